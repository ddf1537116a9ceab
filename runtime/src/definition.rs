//! A definition of an agent as people write it: in Markdown with front matter, in JSON, in TOML.
//!
//! This module has the fields and writes them back. `reading` checks what is read, and `agents::resolve` makes an
//! `AgentSpec` of it. A definition grants nothing by itself.

mod budget;
pub(crate) mod field;
pub(crate) mod markdown;
pub(crate) mod reading;
pub(crate) mod subagents;
mod tolerant;
mod values;

use crate::front_matter::node::Node;
use crate::front_matter::problem::{Findings, Position};
use crate::limits::{parse_duration, parse_size};
use posse_protocol::{
    AgentName, Announce, Budget, Context, Effort, Isolation, Limits, Mode, SubagentRules, Usd,
};
use reading::Form;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// A definition of an agent as written. Keys are camelCase, and the keys of the groups are next to the others. Fields
/// that are not set are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// The name. In a map of agents, the key is the name instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<AgentName>,
    /// What it is for and when to use it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its system prompt; in Markdown, the body.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// Its display colour, one of [`COLORS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Its models.
    #[serde(flatten)]
    pub models: DefinedModels,
    /// The JSON Schema of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What it may do.
    #[serde(flatten)]
    pub rights: DefinedRights,
    /// The maximum number of model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// How far it may go each time it starts to work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Measure>,
    /// How much it and its subagents may spend together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Measure>,
    /// How its runs start.
    #[serde(flatten)]
    pub start: DefinedStart,
    /// The agents that its runs may start.
    #[serde(flatten)]
    pub children: DefinedChildren,
}

/// The models of an agent in a definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinedModels {
    /// Its model, followed by the fallbacks.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "one_or_more")]
    pub model: Vec<String>,
    /// The reasoning effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

/// What an agent may do, according to its definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinedRights {
    /// The tools it may call: names, groups such as `@read`, patterns such as `mcp__files__*`, rules such as
    /// `Read(src/**)` and `Task(explore, plan)`. If absent or exactly `*`: all tools that its caller can pass on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The tools or calls that are denied, whatever `tools` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disallowed_tools: Option<Vec<String>>,
    /// The permission mode for calls that no rule covers; never less strict than its caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// The hosts it may connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The paths it may read and write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Paths>,
    /// MCP servers: names, or tables that describe them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Value>,
    /// Hooks by event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Value>,
}

impl DefinedRights {
    /// The right to call only these tools.
    pub fn to_call(tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let tools = tools.into_iter().map(Into::into).collect();
        DefinedRights { tools: Some(tools), ..DefinedRights::default() }
    }

    /// The mode that it sets, if a file can set that mode.
    pub(crate) fn mode(&self) -> Option<Mode> {
        match self.permission_mode? {
            PermissionMode::Default | PermissionMode::BypassPermissions => None,
            PermissionMode::AcceptEdits | PermissionMode::Auto => Some(Mode::AcceptEdits),
            PermissionMode::Plan => Some(Mode::Plan),
            PermissionMode::DontAsk => Some(Mode::DontAsk),
        }
    }
}

/// How the runs of an agent start, according to its definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinedStart {
    /// The skills that it starts with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// How much of its caller's conversation it starts with: all, none, or the last turns.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "fork")]
    pub fork_context: Option<Context>,
    /// A message before its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_prompt: Option<String>,
    /// True when its caller does not wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// How its result is announced to its caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announce: Option<Announce>,
    /// Where it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Whose memory it keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// True when its runs get no guidance files, such as CLAUDE.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omit_claude_md: Option<bool>,
}

/// The agents that the runs of an agent may start, according to its definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinedChildren {
    /// The agents it may call; if absent, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// How many levels of runs may be below its own, 0 to 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// What its runs may start, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagents: Option<SubagentRules>,
}

/// The display colours of agents.
pub const COLORS: [&str; 12] = [
    "red", "orange", "yellow", "green", "cyan", "blue", "purple", "magenta", "pink", "white",
    "gray", "black",
];

/// How the calls of an agent are approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// The mode of its caller.
    Default,
    /// Changes of files need no approval.
    AcceptEdits,
    /// Safe calls need no approval.
    Auto,
    /// The agent only reads.
    Plan,
    /// Calls that need approval are refused.
    DontAsk,
    /// Nothing needs approval.
    BypassPermissions,
}

/// Whose memory an agent keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// The user's, for all projects.
    User,
    /// The project's, shared.
    Project,
    /// The project's, on this machine only.
    Local,
}

/// The hosts that an agent may connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Network {
    /// All, or none.
    Any(bool),
    /// These hosts.
    Hosts(Vec<String>),
}

/// The paths an agent may read and write, relative to its workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Paths {
    /// It may read these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<String>>,
    /// It may write these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
}

/// How far an agent may go, or how much it may spend.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measure {
    /// The limit of `input_tokens` and of `output_tokens`, each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tokens sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Working time, as in `10m`. Always a limit of the run itself, even in a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What tools and commands write to disks, as in `1GiB`; only in limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u32>,
    /// Model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Unfinished runs below it; only in a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<u64>,
}

impl AgentDefinition {
    /// Its limits.
    pub fn limits(&self) -> Limits {
        let limits = self.limits.clone().unwrap_or_default();
        let budget = self.budget.as_ref();
        let times = limits.time.iter().chain(budget.and_then(|budget| budget.time.as_ref()));
        Limits {
            turns: self.max_turns.into_iter().chain(limits.turns).min(),
            tool_calls: limits.tool_calls,
            input_tokens: least(limits.input_tokens, limits.tokens),
            output_tokens: least(limits.output_tokens, limits.tokens),
            cost: limits.cost.map(Usd::from_dollars),
            written_bytes: limits.written.as_deref().and_then(|size| parse_size(size).ok()),
            wall_ms: times.filter_map(|time| parse_duration(time).ok()).min(),
            ..Limits::default()
        }
    }

    /// Its budget, without the time, which is a limit.
    pub fn budget(&self) -> Budget {
        let budget = self.budget.clone().unwrap_or_default();
        Budget {
            input_tokens: least(budget.input_tokens, budget.tokens),
            output_tokens: least(budget.output_tokens, budget.tokens),
            cost: budget.cost.map(Usd::from_dollars),
            turns: budget.turns.map(u64::from),
            tool_calls: budget.tool_calls.map(u64::from),
            children: budget.children,
            ..Budget::default()
        }
    }
}

/// The stricter of two.
fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// A whole definition: with a description and a prompt. Unknown keys are errors.
impl<'de> Deserialize<'de> for AgentDefinition {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (definition, mut findings) = partial(from)?;
        reading::require(&definition, Position::UNKNOWN, &mut findings);
        match findings.first_error() {
            Some(error) => Err(serde::de::Error::custom(&error.reason)),
            None => Ok(definition),
        }
    }
}

/// Reads some fields of a definition, as a settings file has them. Returns findings about them, too.
pub(crate) fn partial<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<(AgentDefinition, Findings), D::Error> {
    let fields: BTreeMap<String, Value> = BTreeMap::deserialize(from)?;
    let node = Node::of_json(Position::UNKNOWN, Value::Object(fields.into_iter().collect()));
    let mut findings = Findings::default();
    let written = reading::read(&node, Form::Settings, &mut findings);
    match findings.first_error() {
        Some(error) => Err(serde::de::Error::custom(&error.reason)),
        None => Ok((written.definition, findings)),
    }
}

fn one_or_more<S: Serializer>(names: &[String], to: S) -> Result<S::Ok, S::Error> {
    match names {
        [one] => one.serialize(to),
        several => several.serialize(to),
    }
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
fn fork<S: Serializer>(context: &Option<Context>, to: S) -> Result<S::Ok, S::Error> {
    match context {
        Some(Context::ForkTurns(turns)) => to.serialize_u32(*turns),
        Some(Context::Fork) => to.serialize_bool(true),
        Some(Context::Fresh) | None => to.serialize_bool(false),
    }
}
