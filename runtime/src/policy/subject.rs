//! The subject of a call, as rules see it: a path, a command, an agent, a skill, a host, a text.

use super::command::Command;
use super::path::{Case, fold, normal};
use crate::tool_facts::{SKILL, SPAWN, TASK, ToolFacts, about};
use posse_protocol::{About, ToolCall};
use serde_json::Value;
use std::path::Path;
use url::Url;

/// The subject of a call.
pub(crate) enum Subject {
    Path(Target),
    Command(Box<Command>),
    /// The name of an agent or a skill; `None` if the call has none.
    Name(Option<String>),
    /// A host; `None` if the call has none, or an invalid one.
    Host(Option<String>),
    /// Some other text; `None` if the call has none.
    Text(Option<String>),
    /// Nothing that a rule could match.
    Other,
}

/// A path that a tool would open.
#[derive(Clone)]
pub(crate) struct Target {
    /// Absolute, as written.
    pub(crate) path: String,
    /// The same, for rules that ignore case.
    pub(crate) folded: String,
    pub(crate) extent: Extent,
}

/// How much of a path a tool uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The file.
    File,
    /// The names in the folder.
    Names,
    /// Everything below.
    All,
}

impl Target {
    pub(crate) fn new(workspace: &str, path: &str, extent: Extent) -> Self {
        Target::of(normal(workspace, path), extent)
    }

    /// Returns the target for the open file at `path`. Bytes of a name that are not text match only
    /// `?` and `*`.
    pub(crate) fn open(path: &Path, extent: Extent) -> Self {
        Target::of(path.to_string_lossy().into_owned(), extent)
    }

    pub(crate) fn of(path: String, extent: Extent) -> Self {
        let folded = fold(&path, Case::Folded);
        Target { path, folded, extent }
    }
}

impl Subject {
    /// Returns the subject of `call` of `tool` in `workspace`.
    pub(crate) fn of(call: &ToolCall, tool: &ToolFacts, workspace: &str) -> Subject {
        let text = |key: &str| call.input.get(key).and_then(Value::as_str);
        let first = |keys: &[&str]| {
            let said = keys.iter().filter_map(|key| text(key)).map(str::trim);
            said.map(|it| it.trim_start_matches('@')).find(|it| !it.is_empty()).map(str::to_owned)
        };
        let path = |key: &str, extent| {
            Subject::Path(Target::new(workspace, text(key).unwrap_or("."), extent))
        };
        match tool.name.as_str() {
            TASK => return Subject::Name(first(&["subagent_type", "agent_type", "agent"])),
            SPAWN => {
                return Subject::Name(first(&["agentId", "agent_id", "agent", "subagent_type"]));
            }
            SKILL => {
                let name = first(&["skill", "name", "command", "skill_name"]);
                return Subject::Name(name.map(|name| name.trim_start_matches('/').to_owned()));
            }
            _ => {}
        }
        match about(tool).as_deref() {
            Some(About::File(key)) => path(key, Extent::File),
            Some(About::Folder(key)) => path(key, Extent::Names),
            Some(About::Tree(key)) => path(key, Extent::All),
            Some(About::Command(key)) => {
                Subject::Command(Box::new(Command::parse(text(key).unwrap_or_default())))
            }
            Some(About::Address(key)) => Subject::Host(text(key).and_then(host)),
            Some(About::Text(key)) => Subject::Text(text(key).map(str::to_owned)),
            Some(About::Notes(_)) | None => Subject::Other,
        }
    }
}

/// Returns the host of a URL, as rules write it.
fn host(address: &str) -> Option<String> {
    let address = Url::parse(address.trim()).ok()?;
    let is_web = matches!(address.scheme(), "http" | "https");
    let domain = address.domain().filter(|_| is_web)?;
    Some(domain.trim_end_matches('.').to_ascii_lowercase())
}
