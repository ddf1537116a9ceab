//! Settings of Claude Code. Posse applies their `deny` and `ask` rules, and a mode that is stricter
//! than its own; it reports the rest as unused.

use super::translate::{List, RuleOrigin, translate};
use crate::config::{ConfigError, read_text};
use crate::tool_facts::built_in_tools;
use posse_protocol::{Mode, near};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::path::{Path, PathBuf};

/// One settings file of Claude Code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaudeSettings {
    /// The file.
    pub path: PathBuf,
    /// Calls that it denies, as rules of Posse.
    pub deny: Vec<String>,
    /// Calls that it asks about, as rules of Posse.
    pub ask: Vec<String>,
    /// The mode of runs that name no other, if it only narrows.
    pub mode: Option<Mode>,
    /// The keys that Posse does not use.
    pub unused: Vec<String>,
    /// Rules that Posse applies in another way than written, in words.
    pub warnings: Vec<String>,
}

impl ClaudeSettings {
    /// Reads the file at `path`, if it exists, for runs in `workspace`. `folder` is the one that
    /// holds `.claude`; `None` for the settings of the user.
    pub(super) fn read(
        path: &Path,
        folder: Option<&Path>,
        workspace: &Path,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(text) = read_text(path)? else { return Ok(None) };
        let text = text.trim_start_matches('\u{feff}');
        let mut settings = ClaudeSettings {
            path: path.to_owned(),
            deny: Vec::new(),
            ask: Vec::new(),
            mode: None,
            unused: Vec::new(),
            warnings: Vec::new(),
        };
        if text.trim().is_empty() {
            return Ok(Some(settings));
        }
        let file = File { path, text };
        let Once(value) = serde_json::from_str(text).map_err(|error| {
            let reason = plain(&error);
            let at = (error.line() as u32, error.column() as u32);
            file.wrong(Some(at), &format!("not valid JSON: {reason}. {NEXT}"))
        })?;
        let Value::Object(all) = value else {
            return Err(
                file.wrong(Some((1, 1)), "it must be an object, as in {\"permissions\": {}}")
            );
        };
        file.check_keys(&all)?;
        settings.unused = unused(&all);
        let permissions = match all.get("permissions") {
            None | Some(Value::Null) => return Ok(Some(settings)),
            Some(Value::Object(permissions)) => permissions,
            Some(_) => return Err(file.wrong_at("permissions", "`permissions` must be an object")),
        };
        settings.mode = mode(permissions);
        let place = RuleOrigin { folder, workspace };
        let tools = built_in_tools();
        for (key, list) in [("deny", List::Deny), ("ask", List::Ask)] {
            for rule in file.rules(permissions, key)? {
                let read = translate(rule, list, &place, &tools).map_err(|error| {
                    let at = file.find(&Value::from(rule).to_string());
                    let error = error.to_string();
                    let end = if error.ends_with('?') { "" } else { "." };
                    file.wrong(at, &format!("`permissions.{key}`: {error}{end} {NEXT}"))
                })?;
                settings.deny.extend(read.deny);
                settings.ask.extend(read.ask);
                let told = |warning| format!("{}: {warning}", path.display());
                settings.warnings.extend(read.warning.map(told));
            }
        }
        Ok(Some(settings))
    }
}

impl ClaudeSettings {
    /// Adds the rules of `other` that are missing here.
    pub(super) fn add_rules(&mut self, other: ClaudeSettings) {
        for (own, further) in [(&mut self.deny, other.deny), (&mut self.ask, other.ask)] {
            let new: Vec<String> = further.into_iter().filter(|it| !own.contains(it)).collect();
            own.extend(new);
        }
        self.mode = self.mode.into_iter().chain(other.mode).min();
    }
}

/// What to do about an invalid file.
const NEXT: &str = "Fix or remove it: Posse starts no run here while it cannot enforce one of \
    your rules";

/// A file in progress.
struct File<'f> {
    path: &'f Path,
    text: &'f str,
}

impl File<'_> {
    /// Returns the rules in the list `key`.
    fn rules<'p>(
        &self,
        permissions: &'p Map<String, Value>,
        key: &str,
    ) -> Result<Vec<&'p str>, ConfigError> {
        let wrong = || {
            let reason =
                format!("`permissions.{key}` must be a list of rules, as in [\"Read(./.env)\"]");
            self.wrong_at(key, &reason)
        };
        match permissions.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(rules)) => {
                rules.iter().map(|rule| rule.as_str().ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    /// Refuses keys that were probably meant to hold rules: their author would not notice that they
    /// have no effect.
    fn check_keys(&self, all: &Map<String, Value>) -> Result<(), ConfigError> {
        let mistyped = |key: &str, meant: &str| {
            let reason = format!("there is no setting `{key}`; did you mean `{meant}`? {NEXT}");
            Err(self.wrong_at(key, &reason))
        };
        for (key, _) in all.iter().filter(|(_, value)| !is_empty(value)) {
            if key != "permissions" && near::is_near(key, "permissions") {
                return mistyped(key, "permissions");
            }
            if let Some(list) = meant_list(key) {
                return mistyped(key, &format!("permissions.{list}"));
            }
        }
        let Some(Value::Object(permissions)) = all.get("permissions") else { return Ok(()) };
        for (key, _) in permissions.iter().filter(|(_, value)| !is_empty(value)) {
            match meant_list(key) {
                Some(list) if key != list => return mistyped(key, list),
                _ => {}
            }
        }
        Ok(())
    }

    fn wrong_at(&self, key: &str, reason: &str) -> ConfigError {
        self.wrong(self.find(&format!("\"{key}\"")), reason)
    }

    fn wrong(&self, at: Option<(u32, u32)>, reason: &str) -> ConfigError {
        ConfigError::Invalid { path: self.path.to_owned(), at, reason: reason.to_owned() }
    }

    /// Returns the line and column of `part`.
    fn find(&self, part: &str) -> Option<(u32, u32)> {
        let before = &self.text[..self.text.find(part)?];
        let line = before.rsplit('\n').next().unwrap_or_default();
        Some((before.matches('\n').count() as u32 + 1, line.chars().count() as u32 + 1))
    }
}

/// JSON without duplicate keys: of two lists of rules, one would be lost.
struct Once(Value);

impl<'d> Deserialize<'d> for Once {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader).map(Once)
    }
}

struct Reader;

impl<'d> Visitor<'d> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Once(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some((key, Once(value))) = map.next_entry::<String, Once>()? {
            if values.contains_key(&key) {
                let told = format!("the key `{key}` is there twice, and only one would count");
                return Err(A::Error::custom(told));
            }
            values.insert(key, value);
        }
        Ok(values.into())
    }
}

/// Returns the message of a JSON error without the position, which is reported separately.
fn plain(error: &serde_json::Error) -> String {
    let told = error.to_string();
    told.rsplit_once(" at line ").map_or(told.clone(), |(reason, _)| reason.to_owned())
}

/// True for an empty value.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Returns the list of rules that `key` probably means.
fn meant_list(key: &str) -> Option<&'static str> {
    let word = key.to_ascii_lowercase();
    match word.as_str() {
        "ask" | "asks" | "asked" | "asking" | "aks" => Some("ask"),
        "deny" | "denied" | "denies" | "denys" | "denyed" | "denial" | "denials" | "denylist"
        | "deny_list" | "deny-list" => Some("deny"),
        // For such a short word, two different letters are too many: `env` is another word.
        word => (near::distance(word, "deny") == 1).then_some("deny"),
    }
}

/// Returns the mode that `permissions` set, if Posse has one that is as strict, and no laxer than
/// its own.
fn mode(permissions: &Map<String, Value>) -> Option<Mode> {
    match permissions.get("defaultMode")?.as_str()? {
        "plan" => Some(Mode::Plan),
        "dontAsk" => Some(Mode::DontAsk),
        "default" => Some(Mode::Ask),
        _ => None,
    }
}

/// Returns the keys that Posse does not use at all.
fn unused(all: &Map<String, Value>) -> Vec<String> {
    let mut keys = Vec::new();
    if let Some(Value::Object(permissions)) = all.get("permissions") {
        let is_used = |key: &str| match key {
            "defaultMode" => mode(permissions).is_some(),
            key => ["deny", "ask"].contains(&key),
        };
        let others = permissions.iter().filter(|(key, _)| !is_used(key));
        let others = others.filter(|(_, value)| !is_empty(value));
        keys.extend(others.map(|(key, _)| format!("permissions.{key}")));
    }
    let others = all.iter().filter(|(key, value)| {
        !["permissions", "$schema"].contains(&key.as_str()) && !is_empty(value)
    });
    keys.extend(others.map(|(key, _)| key.clone()));
    keys
}
