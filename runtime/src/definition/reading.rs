//! Makes a definition of nodes: checks every field, and reports what is unusual.
//!
//! A description is one line. Claude Code writes longer ones, as one line with `\n` in it or over
//! several lines with examples: in its folders, in plugins and in JSON they are folded into one
//! line, with a note. In our own files several lines are an error (case D12), unless they are
//! written as one line with `\n` in it.

use super::budget;
use super::field::{self, Field};
use super::values::{self, Name, mismatch};
use super::{
    AgentDefinition, COLORS, DefinedChildren, DefinedRights, Memory, Network, Paths, PermissionMode,
};
use crate::definition::subagents::FileSubagents;
use crate::error::quoted;
use crate::front_matter::node::{Content, Node, Style};
use crate::front_matter::problem::{Findings, Position};
use crate::limits::DEEPEST;
use posse_protocol::{AgentName, Announce, Effort};

/// The longest description, in characters. Every request of a possible caller contains it.
const DESCRIPTION: usize = 4_096;

/// The format of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Markdown in a folder of Posse.
    Own,
    /// Markdown in a folder of Claude Code, or in a plugin.
    Claude,
    /// A map of agents in JSON.
    Json,
    /// A table of a settings file.
    Settings,
}

impl Form {
    fn is_markdown(self) -> bool {
        matches!(self, Form::Own | Form::Claude)
    }
}

/// A definition and the places of its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written {
    pub(crate) definition: AgentDefinition,
    /// The fields that were present.
    pub(crate) places: Vec<(Field, Position)>,
    /// The place of each entry of `tools`, and of `disallowed_tools`.
    pub(crate) tools: Vec<Position>,
    pub(crate) disallowed_tools: Vec<Position>,
}

impl Written {
    /// A definition without places.
    pub(crate) fn without_places(definition: AgentDefinition) -> Self {
        Written { definition, ..Written::default() }
    }

    /// The place of `field`.
    pub(crate) fn place(&self, field: Field) -> Position {
        let found = self.places.iter().find(|(known, _)| *known == field);
        found.map_or(Position::UNKNOWN, |(_, place)| *place)
    }
}

/// Reads the fields in `node`. [`require`] checks whether all required fields are present.
pub(crate) fn read(node: &Node, form: Form, findings: &mut Findings) -> Written {
    let mut written = Written::default();
    let Content::Map(entries) = &node.content else {
        let reason = format!("this is {}: write `key: value` lines", node.kind());
        findings.error(node.place, reason);
        return written;
    };
    for (key, value) in entries {
        misplaced(&key.name, value, findings);
        let Some(field) = Field::of(&key.name) else {
            unknown(&key.name, key.place, form, findings);
            continue;
        };
        if written.places.iter().any(|(known, _)| *known == field) {
            let reason = format!(
                "{} is the field `{}`, which stands there already; keep one of them",
                quoted(&key.name),
                field.name()
            );
            findings.error(key.place, reason);
            continue;
        }
        written.places.push((field, key.place));
        if key.name != field.name() && form != Form::Settings {
            let reason = format!("{} is read as `{}`", quoted(&key.name), field.name());
            findings.note(key.place, reason);
        }
        if value.is_null() {
            empty(field, value.place, findings);
        } else if field == Field::Prompt && form.is_markdown() {
            let reason = format!(
                "{} has no effect: the prompt is the text below the front matter",
                quoted(&key.name)
            );
            findings.warning(key.place, reason);
        } else {
            set(&mut written, field, value, form, findings);
            if field.is_not_in_force() {
                let reason =
                    format!("`{}` is read and checked; nothing acts on it yet", field.name());
                findings.not_in_force(key.place, reason);
            }
        }
    }
    written
}

/// Reports the required fields that are missing.
pub(crate) fn require(definition: &AgentDefinition, place: Position, findings: &mut Findings) {
    if definition.description.is_empty() {
        findings.error(place, "it has no description; say in a line what the agent is for");
    }
    if definition.prompt.trim().is_empty() {
        findings.error(place, "it has no prompt; write down what the agent is to do");
    }
}

/// Refuses fields about tools inside another value: their author believes that they apply.
fn misplaced(key: &str, value: &Node, findings: &mut Findings) {
    let Content::Map(entries) = &value.content else { return };
    // There they are valid: they restrict the tools of children.
    if Field::of(key) == Some(Field::Subagents) {
        return;
    }
    for (inner, _) in entries {
        let grants = [Field::Tools, Field::DisallowedTools, Field::PermissionMode];
        if let Some(field) = Field::of(&inner.name).filter(|field| grants.contains(field)) {
            let reason = format!(
                "`{}` stands within {}, where it has no effect; it belongs beside `description`",
                field.name(),
                quoted(key)
            );
            findings.error(inner.place, reason);
        }
    }
}

fn unknown(key: &str, place: Position, form: Form, findings: &mut Findings) {
    let shown = quoted(key);
    let meant = Field::near(key);
    let told = match meant {
        Some(field) => format!("; did you mean `{}`?", field.name()),
        None => String::new(),
    };
    // The author of a misspelled restriction believes that it applies.
    if meant.is_some_and(Field::narrows) {
        findings.error(place, format!("{shown} is not a field, and restricts nothing{told}"));
    } else if field::seems_to_restrict(key) {
        let reason = format!(
            "{shown} is not a field, and restricts nothing: write `tools`, `disallowedTools` or \
             `permissionMode`"
        );
        findings.error(place, reason);
    } else if form == Form::Settings {
        let told = if meant.is_some() { told } else { "; leave it out".to_owned() };
        findings.error(place, format!("{shown} is not a field of an agent{told}"));
    } else {
        let reason = format!("{shown} is not a field of an agent, and has no effect{told}");
        findings.warning(place, reason);
    }
}

fn empty(field: Field, place: Position, findings: &mut Findings) {
    let name = field.name();
    if field.narrows() {
        findings.error(place, format!("`{name}` is empty: give it a value, or leave it out"));
    } else {
        findings.note(place, format!("`{name}` is empty, and counts as left out"));
    }
}

fn set(written: &mut Written, field: Field, node: &Node, form: Form, findings: &mut Findings) {
    let definition = &mut written.definition;
    let AgentDefinition { rights, start, children, .. } = &mut *definition;
    match field {
        Field::Name => definition.name = name(node, findings),
        Field::Description => definition.description = description(node, form, findings),
        Field::Prompt => {
            definition.prompt = values::text(node, field, findings).unwrap_or_default();
        }
        Field::Tools => {
            let (names, places) = rules(node, field, findings);
            if names.as_ref().is_some_and(Vec::is_empty) {
                let reason = "`tools` names no tool, and without any an agent can do nothing; \
                              name some, or leave it out for all";
                findings.error(node.place, reason);
            }
            (rights.tools, written.tools) = (names, places);
        }
        Field::DisallowedTools => {
            (rights.disallowed_tools, written.disallowed_tools) = rules(node, field, findings);
        }
        Field::Model => definition.models.model = models(node, findings),
        Field::Effort => definition.models.effort = values::word(node, field, &EFFORTS, findings),
        Field::MaxTurns => definition.max_turns = budget::count(node, field, findings),
        Field::PermissionMode => permission_mode(rights, node, findings),
        Field::Skills => start.skills = plain_names(node, field, findings),
        Field::McpServers => rights.mcp_servers = mcp_servers(node, findings),
        Field::Hooks | Field::OutputSchema => match &node.content {
            Content::Map(_) if field == Field::Hooks => rights.hooks = Some(node.to_json()),
            Content::Map(_) => {
                let schema = node.to_json();
                if let Err(why) = posse_agent::check_schema(&schema) {
                    findings.error(node.place, format!("`outputSchema` cannot be used: {why}"));
                }
                definition.output_schema = Some(schema);
            }
            _ => mismatch(node, field, "a table", findings),
        },
        Field::Memory => start.memory = values::word(node, field, &MEMORIES, findings),
        Field::Background => start.background = values::switch(node, field, findings),
        Field::Isolation => {
            let words = [("worktree", posse_protocol::Isolation::Worktree)];
            start.isolation = values::word(node, field, &words, findings);
        }
        Field::Color => definition.color = color(node, findings),
        Field::ForkContext => start.fork_context = values::fork(node, findings),
        Field::InitialPrompt => start.initial_prompt = values::text(node, field, findings),
        Field::OmitClaudeMd => start.omit_claude_md = values::switch(node, field, findings),
        Field::Limits => definition.limits = budget::read(node, field, findings),
        Field::Budget => definition.budget = budget::read(node, field, findings),
        Field::Announce => start.announce = values::word(node, field, &ANNOUNCES, findings),
        Field::Subagents => subagents(children, node, findings),
        Field::MaxDepth => {
            let depth = values::whole(node, field, (0, u64::from(DEEPEST)), findings);
            children.max_depth = depth.map(|depth| depth as u32);
        }
        Field::Agents => children.agents = agents(node, findings),
        Field::Network => {
            rights.network = match &node.content {
                Content::Plain { .. } => values::switch(node, field, findings).map(Network::Any),
                _ => plain_names(node, field, findings).map(Network::Hosts),
            }
        }
        Field::Paths => rights.paths = paths(node, findings),
        // Other systems write this field in their exports.
        Field::Source => {
            let reason = "`source` has no effect: where a definition stands says whose it is";
            findings.note(node.place, reason);
        }
    }
}

const EFFORTS: [(&str, Effort); 5] = [
    ("low", Effort::Low),
    ("medium", Effort::Medium),
    ("high", Effort::High),
    ("max", Effort::Max),
    // Other systems have this level between `high` and `max`.
    ("xhigh", Effort::High),
];

const MEMORIES: [(&str, Memory); 3] =
    [("user", Memory::User), ("project", Memory::Project), ("local", Memory::Local)];

const ANNOUNCES: [(&str, Announce); 4] = [
    ("steer", Announce::Steer),
    ("followup", Announce::Followup),
    ("collect", Announce::Collect),
    ("silent", Announce::Silent),
];

const PERMISSION_MODES: [(&str, PermissionMode); 6] = [
    ("default", PermissionMode::Default),
    ("acceptEdits", PermissionMode::AcceptEdits),
    ("auto", PermissionMode::Auto),
    ("plan", PermissionMode::Plan),
    ("dontAsk", PermissionMode::DontAsk),
    ("bypassPermissions", PermissionMode::BypassPermissions),
];

fn name(node: &Node, findings: &mut Findings) -> Option<AgentName> {
    let text = values::text(node, Field::Name, findings)?;
    let name = text.parse::<AgentName>();
    name.map_err(|error| findings.error(node.place, error.to_string())).ok()
}

/// The description in one line.
fn description(node: &Node, form: Form, findings: &mut Findings) -> String {
    let Some(text) = values::text(node, Field::Description, findings) else {
        return String::new();
    };
    let is_escaped = matches!(&node.content, Content::Text { style: Style::Escaped, .. });
    let (breaks, escapes) = (text.contains('\n'), text.contains("\\n"));
    if breaks && !is_escaped && form == Form::Own {
        let reason = "the description has several lines; write it in one, and put what the agent \
                      is to do below the front matter";
        findings.error(node.place, reason);
        return String::new();
    }
    if breaks || escapes {
        findings.note(node.place, "the description has several lines; they are read as one");
    }
    let unescaped = if escapes { text.replace("\\n", " ") } else { text };
    let words = unescaped.split(|char: char| char.is_whitespace() || char.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.is_empty() {
        mismatch(node, Field::Description, "a text", findings);
    }
    match line.char_indices().nth(DESCRIPTION) {
        None => line,
        Some((end, _)) => {
            let reason = format!("the description is cut after {DESCRIPTION} characters");
            findings.warning(node.place, reason);
            line[..end].to_owned()
        }
    }
}

fn rules(
    node: &Node,
    field: Field,
    findings: &mut Findings,
) -> (Option<Vec<String>>, Vec<Position>) {
    match values::names(node, field, findings) {
        Some(names) => {
            let (names, places) = names.into_iter().map(|name| (name.text, name.place)).unzip();
            (Some(names), places)
        }
        None => (None, Vec::new()),
    }
}

fn plain_names(node: &Node, field: Field, findings: &mut Findings) -> Option<Vec<String>> {
    let names = values::names(node, field, findings)?;
    Some(names.into_iter().map(|name| name.text).collect())
}

fn models(node: &Node, findings: &mut Findings) -> Vec<String> {
    let Some(names) = values::names(node, Field::Model, findings) else { return Vec::new() };
    let inherits = |name: &&Name| name.text.eq_ignore_ascii_case("inherit");
    if names.is_empty() {
        mismatch(node, Field::Model, "a model, or leave it out", findings);
    } else if let Some(name) = names.iter().find(inherits).filter(|_| names.len() > 1) {
        let reason = "`inherit` stands alone: it means the caller's model, with its own fallbacks";
        findings.error(name.place, reason);
    }
    names.into_iter().map(|name| name.text).collect()
}

fn permission_mode(rights: &mut DefinedRights, node: &Node, findings: &mut Findings) {
    let field = Field::PermissionMode;
    rights.permission_mode = values::word(node, field, &PERMISSION_MODES, findings);
    match rights.permission_mode {
        Some(PermissionMode::BypassPermissions) => findings.warning(
            node.place,
            "`bypassPermissions` has no effect: only the user can switch off questions, when a run \
             starts",
        ),
        Some(PermissionMode::Auto) => {
            findings.note(node.place, "`auto` is read as `acceptEdits`");
        }
        _ => {}
    }
}

fn mcp_servers(node: &Node, findings: &mut Findings) -> Option<serde_json::Value> {
    let is_server = |node: &Node| matches!(&node.content, Content::Text { .. } | Content::Map(_));
    match &node.content {
        Content::Map(_) => Some(node.to_json()),
        Content::List(nodes) if nodes.iter().all(is_server) => Some(node.to_json()),
        Content::Text { .. } => {
            plain_names(node, Field::McpServers, findings).map(serde_json::Value::from)
        }
        _ => {
            mismatch(node, Field::McpServers, "names of servers, or tables", findings);
            None
        }
    }
}

fn color(node: &Node, findings: &mut Findings) -> Option<String> {
    let written = values::text(node, Field::Color, findings)?.to_lowercase();
    let word = if written == "grey" { "gray" } else { &written };
    let found = COLORS.contains(&word).then(|| word.to_owned());
    if found.is_none() {
        let reason =
            format!("`color` is {}, which is not one of {}", quoted(&written), COLORS.join(", "));
        findings.warning(node.place, reason);
    }
    found
}

/// Reads what its runs may start, and how.
fn subagents(children: &mut DefinedChildren, node: &Node, findings: &mut Findings) {
    if !matches!(node.content, Content::Map(_)) {
        mismatch(node, Field::Subagents, "a table such as {allowedAgents: [explore]}", findings);
        return;
    }
    match serde_json::from_value::<FileSubagents>(node.to_json()) {
        Ok(file) => match file.unfit_for_an_agent() {
            Some(reason) => findings.error(node.place, reason),
            None => {
                children.max_depth = children.max_depth.or(file.depth());
                children.subagents = Some(file.into());
            }
        },
        Err(error) => findings.error(node.place, format!("`subagents`: {error}")),
    }
}

/// The agents it may call; `None` is all.
fn agents(node: &Node, findings: &mut Findings) -> Option<Vec<String>> {
    let names = values::names(node, Field::Agents, findings)?;
    if matches!(names.as_slice(), [only] if only.text == "*") {
        return None;
    }
    for name in &names {
        if let Err(error) = name.text.parse::<AgentName>() {
            findings.error(name.place, error.to_string());
        }
    }
    Some(names.into_iter().map(|name| name.text).collect())
}

fn paths(node: &Node, findings: &mut Findings) -> Option<Paths> {
    let mut paths = Paths::default();
    let Content::Map(entries) = &node.content else {
        let both = path_list(node, findings)?;
        return Some(Paths { read: Some(both.clone()), write: Some(both) });
    };
    for (key, value) in entries {
        match key.name.as_str() {
            "read" => paths.read = path_list(value, findings),
            "write" => paths.write = path_list(value, findings),
            other => {
                let reason =
                    format!("`paths` has {}: it can have `read` and `write`", quoted(other));
                findings.error(key.place, reason);
            }
        }
    }
    Some(paths)
}

fn path_list(node: &Node, findings: &mut Findings) -> Option<Vec<String>> {
    let names = values::names(node, Field::Paths, findings)?;
    for name in &names {
        if name.text.split(['/', '\\']).any(|part| part == "..") {
            let reason =
                format!("the path {} leads out with `..`; write it out", quoted(&name.text));
            findings.error(name.place, reason);
        }
    }
    Some(names.into_iter().map(|name| name.text).collect())
}
