//! Variables in the settings of a server: `${NAME}` and `${NAME:-default}`.

use super::ServerSettings;
use crate::redact::names_secret;
use posse_tools::launch::allowed_environment;
use std::ffi::OsString;
use std::sync::Arc;

/// Returns the value of an environment variable.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A program with the values of its variables.
pub(crate) struct Expanded {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// What no log and no model may see.
    pub(crate) secrets: Vec<String>,
}

/// The variables that settings may use.
pub(crate) struct Variables<'l> {
    pub(crate) lookup: Option<&'l Lookup>,
    /// Names that a project may not use, because they hold keys of models.
    pub(crate) refused: &'l [String],
}

impl ServerSettings {
    /// Returns the program with the values of its variables.
    ///
    /// # Errors
    /// When a variable is not set, or may not be used.
    pub(crate) fn expand(&self, variables: &Variables<'_>) -> Result<Expanded, String> {
        let mut secrets = Vec::new();
        let mut value = |text: &String| variables.expand(text, &mut secrets).map(OsString::from);
        let program = value(&self.command)?;
        let args = self.args.iter().map(&mut value).collect::<Result<_, _>>()?;
        let values = self.env.iter().map(|(name, text)| Ok((OsString::from(name), value(text)?)));
        let values = values.collect::<Result<Vec<_>, String>>()?;
        let named = values.iter().filter(|(name, _)| names_secret(&name.to_string_lossy()));
        let named: Vec<String> =
            named.filter_map(|(_, text)| text.to_str().map(str::to_owned)).collect();
        secrets.extend(named);
        Ok(Expanded { program, args, variables: values, secrets })
    }
}

impl Variables<'_> {
    fn expand(&self, text: &str, secrets: &mut Vec<String>) -> Result<String, String> {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inside, behind)) = after.split_once('}') else { break };
            out.push_str(before);
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            if self.refused.iter().any(|refused| refused == name) {
                return Err(format!(
                    "a project may not use the variable `{name}`, which holds a key of a model; define the server \
                     in your own settings"
                ));
            }
            let found = self.lookup.and_then(|lookup| lookup(name));
            if let Some(found) = found.as_ref().filter(|_| !is_seen_by_commands(name)) {
                secrets.push(found.clone());
            }
            match (found.as_deref(), default) {
                (Some(""), Some(default)) | (None, Some(default)) => out.push_str(default),
                (Some(found), _) => out.push_str(found),
                (None, None) => {
                    return Err(format!("the variable `{name}` of its settings is not set"));
                }
            }
            rest = behind;
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// Returns true for a variable such as `HOME`. Every command sees it, so it is no secret.
fn is_seen_by_commands(name: &str) -> bool {
    let one = std::iter::once((OsString::from(name), OsString::new()));
    allowed_environment(one, &[]).iter().any(|(known, _)| known == name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_and_what_is_not_for_commands_is_secret() {
        let lookup: Lookup = Arc::new(|name| match name {
            "HOME" => Some("/home/u".to_owned()),
            "PLACE" => Some("https://inside.example.org".to_owned()),
            _ => None,
        });
        let refused = ["OPENAI_API_KEY".to_owned()];
        let variables = Variables { lookup: Some(&lookup), refused: &refused };
        let mut secrets = Vec::new();
        for (text, expected) in [
            ("${HOME}/x", Ok("/home/u/x")),
            ("a${PLACE}b${NONE:-c}${NONE:-}", Ok("ahttps://inside.example.orgbc")),
            ("$HOME ${HOME", Ok("$HOME ${HOME")),
            ("${NONE}", Err("`NONE` of its settings is not set")),
            ("${OPENAI_API_KEY:-x}", Err("a project may not use")),
        ] {
            match (variables.expand(text, &mut secrets), expected) {
                (Ok(text), Ok(expected)) => assert_eq!(text, expected),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
        assert_eq!(secrets, ["https://inside.example.org"]);
    }
}
