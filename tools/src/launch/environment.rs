//! Which variables a command sees. Everything else stays with the host, keys above all.

use std::ffi::{OsStr, OsString};

/// The variables of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

/// Takes from `all` what a command needs to find programs, files, its user and its language.
pub fn allowed_environment(all: impl Iterator<Item = (OsString, OsString)>) -> Environment {
    Environment(all.filter(|(name, _)| is_allowed(name)).collect())
}

fn is_allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    const ALLOWED: [&str; 9] =
        ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR"];
    ALLOWED.contains(&name) || name.starts_with("LC_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_pass() {
        let all = ["PATH", "LC_ALL", "TZ", "ANTHROPIC_API_KEY", "LD_PRELOAD", "BASH_ENV", "PATHS"];
        let all = all.iter().map(|name| (OsString::from(name), OsString::from("x")));
        let allowed = allowed_environment(all);
        let names: Vec<&OsStr> = allowed.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["PATH", "LC_ALL", "TZ"]);
    }
}
