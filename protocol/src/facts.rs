//! Facts about a tool that models do not see. Grants, rules, the sandbox and the displays use them,
//! for tools of a host and for built-in ones.

use crate::Extra;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of effect of a tool. It decides which calls may run in parallel, which tools a read-only
/// agent may call, and which calls may run again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Only reads.
    Read,
    /// Changes files.
    Write,
    /// Starts processes.
    Execute,
    /// Uses the network.
    Network,
    /// Starts or controls other runs.
    Delegate,
}

impl Effect {
    /// True when calls with this effect may run in parallel with others of the same reply.
    pub fn side_by_side(self) -> bool {
        matches!(self, Effect::Read | Effect::Delegate)
    }
}

/// The subject of a tool's calls, which rules match. Each variant holds the name of the argument with
/// the subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The file at this path. Rules contain a path: `Tool(src/**)`.
    File(String),
    /// The entries of the folder at this path, or of the workspace if the argument is missing.
    Folder(String),
    /// Everything below the folder at this path, or below the workspace if the argument is missing.
    Tree(String),
    /// A shell command. Rules contain its beginning: `Tool(git diff:*)`.
    Command(String),
    /// A web address. Rules contain its host: `Tool(domain:example.org)`.
    Address(String),
    /// Any other text. Rules contain all of it or its beginning: `Tool(staging:*)`.
    Text(String),
    /// Notes that the run keeps for itself. The tool touches nothing else.
    Notes(String),
}

impl About {
    /// The name of the argument.
    pub fn argument(&self) -> &str {
        match self {
            About::File(name) | About::Folder(name) | About::Tree(name) => name,
            About::Command(name) | About::Address(name) => name,
            About::Text(name) | About::Notes(name) => name,
        }
    }

    /// True when the argument is a path.
    pub fn is_path(&self) -> bool {
        matches!(self, About::File(_) | About::Folder(_) | About::Tree(_))
    }
}

/// Everything about a tool except its description and its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFacts {
    /// The name that the model sees.
    pub name: String,
    /// Other names that models and people use for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Its effect.
    pub effect: Effect,
    /// The subject of its calls. Without it, a rule can only match all calls of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// The template for one line about a call, shown after the tool's name, such as `{pattern} in
    /// {path}`. A piece whose argument is missing is left out. `{line>1}` shows a number only if it
    /// is greater than 1. If empty, the line shows the subject.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shown: String,
    /// The tool enforces the grant itself: it checks each file that it opens against the rules, and
    /// the kernel confines its commands. For other tools, Posse checks the paths against the rules
    /// before the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confined: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ToolFacts {
    /// A tool with no facts but these.
    pub fn new(name: impl Into<String>, effect: Effect) -> Self {
        ToolFacts {
            name: name.into(),
            aliases: Vec::new(),
            effect,
            about: None,
            shown: String::new(),
            confined: false,
            extra: Extra::default(),
        }
    }

    /// True when `name` is its name or an alias.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// True when the subject of its calls is a path.
    pub fn uses_paths(&self) -> bool {
        self.about.as_ref().is_some_and(About::is_path)
    }

    /// True when its calls name the paths that they may read. Tools that execute programs or use the
    /// network may read too.
    pub fn reads_files(&self) -> bool {
        self.uses_paths() && self.effect != Effect::Write
    }

    /// True when its calls name the paths that they may change. Tools that execute programs may
    /// change files too.
    pub fn writes_files(&self) -> bool {
        self.uses_paths() && matches!(self.effect, Effect::Write | Effect::Execute)
    }

    /// True when the purpose of the tool is to change the files that its calls name.
    pub fn changes_files(&self) -> bool {
        self.uses_paths() && self.effect == Effect::Write
    }

    /// True when the subject of its calls is a shell command.
    pub fn runs_commands(&self) -> bool {
        matches!(self.about, Some(About::Command(_)))
    }

    /// One line about a call with the arguments `input`, for people; `None` if the arguments say nothing.
    pub fn line(&self, input: &Value) -> Option<String> {
        let line = match (self.shown.as_str(), &self.about) {
            ("", None) => None,
            ("", Some(about)) => text(input, about.argument()),
            (shown, _) => Some(filled(shown, input)),
        };
        line.filter(|line| !line.is_empty())
    }
}

/// The argument `name`, if it is a text or a number.
fn text(input: &Value, name: &str) -> Option<String> {
    match input.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The template `shown` with the arguments of a call filled in.
fn filled(shown: &str, input: &Value) -> String {
    let mut line = String::new();
    let mut rest = shown;
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        let (name, least) = name.split_once('>').unwrap_or((name, ""));
        let is_greater = |least: f64| input.get(name).and_then(Value::as_f64) > Some(least);
        if let Some(value) = text(input, name).filter(|_| least.parse().map_or(true, is_greater)) {
            line.push_str(before);
            line.push_str(&value);
        }
        rest = after;
    }
    line.push_str(rest);
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_shown_as_its_tool_says() {
        let check = |shown: &str, input: Value, expected: Option<&str>| {
            let about = Some(About::Tree("path".to_owned()));
            let facts =
                ToolFacts { about, shown: shown.to_owned(), ..ToolFacts::new("x", Effect::Read) };
            assert_eq!(facts.line(&input).as_deref(), expected, "{shown} {input}");
        };
        check("", json!({"path": "src"}), Some("src"));
        check("", json!({"path": ["src"]}), None);
        check("{pattern} in {path}", json!({"pattern": "a"}), Some("a"));
        check(
            "{pattern} in {path}",
            json!({"pattern": "{path}", "path": "b"}),
            Some("{path} in b"),
        );
        check("{pattern} in {path}", json!({"path": "b"}), Some("in b"));
        check("{path} from line {line>1}", json!({"path": "b", "line": 1}), Some("b"));
        check("{path} from line {line>1}", json!({"path": "b", "line": 7}), Some("b from line 7"));
        check("{path", json!({"path": "b"}), Some("{path"));
        check("{path}", json!({}), None);
    }

    #[test]
    fn facts_without_more_are_a_name_and_an_effect() {
        let facts: ToolFacts = serde_json::from_str(r#"{"name":"x","effect":"read"}"#).unwrap();
        assert_eq!(facts, ToolFacts::new("x", Effect::Read));
        let about = Some(About::File("path".to_owned()));
        let text = serde_json::to_string(&ToolFacts { about, ..facts }).unwrap();
        assert_eq!(text, r#"{"name":"x","effect":"read","about":{"file":"path"}}"#);
    }
}
