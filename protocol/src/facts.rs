//! What a tool says of itself besides what a model is sent. Grants, rules, the confinement and every
//! screen follow from it, for a tool of a host as for one that comes with Posse.

use crate::Extra;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tool does to the world. Decides what may run side by side, what a read-only agent
/// may call, and what may run again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Looks only.
    Read,
    /// Changes files.
    Write,
    /// Starts processes.
    Execute,
    /// Talks to other machines.
    Network,
    /// Starts or controls other runs.
    Delegate,
}

impl Effect {
    /// Calls with this effect may run beside others of the same reply.
    pub fn side_by_side(self) -> bool {
        matches!(self, Effect::Read | Effect::Delegate)
    }
}

/// What the calls of a tool are about. Each variant names the argument that says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The file at this path. Rules write a path: `Tool(src/**)`.
    File(String),
    /// The names in the folder at this path; without the argument, in the workspace.
    Folder(String),
    /// Everything below the folder at this path; without the argument, below the workspace.
    Tree(String),
    /// A shell command. Rules write how it begins: `Tool(git diff:*)`.
    Command(String),
    /// A web address. Rules write its host: `Tool(domain:example.org)`.
    Address(String),
    /// Any other text. Rules write all of it, or how it begins: `Tool(staging:*)`.
    Text(String),
    /// Notes that the run keeps for itself: the tool touches nothing else.
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

/// What there is to know of a tool without its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFacts {
    /// The name that is offered to the model.
    pub name: String,
    /// Other names that models and people call it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// What it does to the world.
    pub effect: Effect,
    /// What its calls are about. Without it, rules can be about all of its calls or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// How a call is shown in a line after the tool's name, as in `{pattern} in {path}`. A piece
    /// whose argument is missing is left out; `{line>1}` shows a number only when it is greater.
    /// Empty shows what the call is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shown: String,
    /// It keeps to the grant by itself: it holds each file that it opens against the rules, and the
    /// kernel confines its commands. Posse holds the paths of other tools against the rules before it
    /// calls them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confined: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ToolFacts {
    /// A tool of which no more is known.
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

    /// True when `name` is its name or another name for it.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// True when its calls are about paths.
    pub fn uses_paths(&self) -> bool {
        self.about.as_ref().is_some_and(About::is_path)
    }

    /// True when its calls name what they may read. What runs programs or talks to others may too.
    pub fn reads_files(&self) -> bool {
        self.uses_paths() && self.effect != Effect::Write
    }

    /// True when its calls name what they may change. What runs programs may change files too.
    pub fn writes_files(&self) -> bool {
        self.uses_paths() && matches!(self.effect, Effect::Write | Effect::Execute)
    }

    /// True when it is there to change the files that its calls name.
    pub fn changes_files(&self) -> bool {
        self.uses_paths() && self.effect == Effect::Write
    }

    /// True when its calls are shell commands.
    pub fn runs_commands(&self) -> bool {
        matches!(self.about, Some(About::Command(_)))
    }

    /// What a call with the arguments `input` is about, in words for people; nothing when they do
    /// not say.
    pub fn line(&self, input: &Value) -> Option<String> {
        let line = match (self.shown.as_str(), &self.about) {
            ("", None) => None,
            ("", Some(about)) => text(input, about.argument()),
            (shown, _) => Some(filled(shown, input)),
        };
        line.filter(|line| !line.is_empty())
    }
}

/// The argument `name`, if it is one text or one number.
fn text(input: &Value, name: &str) -> Option<String> {
    match input.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// `shown` with the arguments of a call in it.
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
