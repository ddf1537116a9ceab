//! Writes a request: borrowed from the transcript, keys in a fixed order, straight into bytes.
//!
//! Cache marks are on the system prompt (which covers the tools before it; on the last tool if
//! there is no prompt) and on the last three turns of the user. So the last mark of the previous
//! request is still a mark, and each turn reads the cache that the previous one wrote. If the last
//! turn ends with two texts, the first of them has the mark of the third turn: siblings that
//! continue the same conversation share everything up to there.

use super::content::{Content, contents, is_reasoning};
use super::schema::strict;
use crate::wire::bytes_of;
use crate::wire::turns::{Said, is_visible};
use crate::wire::{Dialect, EffortStyle, EncodeError, Target, TopEffort};
use posse_agent::Request;
use posse_protocol::{Effort, Part, Role, ToolSpec};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

/// The smallest number of tokens for thinking that the provider takes.
const MIN_BUDGET: u64 = 1_024;

/// Returns the body of a request.
///
/// The same request gives the same bytes. Consecutive messages of one role become one; every call
/// is followed by its result, and results come first. Text without a visible character, and
/// reasoning without a signature or with nothing after it, are left out, because the provider would
/// refuse them. Content that only another provider understands is left out as well. Arguments that
/// are not an object, which the wire does not allow either, are sent back as `{"raw_input": …}`.
///
/// # Errors
/// When a value has no JSON form.
pub fn encode(request: &Request, target: Target<'_>) -> Result<Vec<u8>, EncodeError> {
    bytes_of(&Body { request, target }, request, target)
}

struct Body<'a> {
    request: &'a Request,
    target: Target<'a>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Body { request, target } = *self;
        let system = Some(&*request.system).filter(|text| is_visible(text));
        let contents = contents(&request.messages);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", target.model)?;
        map.serialize_entry("max_tokens", &request.max_tokens)?;
        map.serialize_entry("stream", &true)?;
        if let Some(thinking) = Thinking::of(request, target.dialect, &contents) {
            map.serialize_entry("thinking", &thinking)?;
        }
        let output = OutputConfig::of(request, target.dialect);
        if output.effort.is_some() || output.format.is_some() {
            map.serialize_entry("output_config", &output)?;
        }
        if !request.tools.is_empty() {
            let tools = Tools { tools: &request.tools, mark: Mark::Unset };
            match system {
                Some(_) => target.write_tools(&mut map, &request.tools, &tools)?,
                None => map.serialize_entry("tools", &Tools { mark: Mark::Set, ..tools })?,
            }
        }
        if let Some(text) = system {
            map.serialize_entry("system", &[TextBlock { text, mark: Mark::Set }])?;
        }
        map.serialize_entry("messages", &contents)?;
        map.end()
    }
}

/// The setting for thinking.
#[derive(serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled {
        budget_tokens: u64,
    },
    Adaptive {
        /// Newer models return their thoughts only on request.
        display: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_binding: Option<Binding>,
    },
}

/// What the provider does with reasoning that follows a changed prefix.
#[derive(serde::Serialize)]
struct Binding {
    prefix_mismatch_behavior: &'static str,
}

impl Binding {
    /// The provider drops it and continues. Otherwise it refuses the request, and each run with a
    /// compacted transcript or changed instructions would end there.
    const LENIENT: Binding = Binding { prefix_mismatch_behavior: "drop_block" };
}

impl Thinking {
    fn of(request: &Request, dialect: &Dialect, contents: &[Content<'_>]) -> Option<Thinking> {
        match dialect.effort {
            EffortStyle::ThinkingBudget => {
                // Thoughts count as output, so the cap must leave room for an answer.
                let budget_tokens = budget(request.effort?).min(request.max_tokens / 4 * 3);
                let possible = budget_tokens >= MIN_BUDGET && !is_amid_unthought_calls(contents);
                possible.then_some(Thinking::Enabled { budget_tokens })
            }
            EffortStyle::ThinkingLevel if request.effort.is_some() || dialect.bound_thinking => {
                let block_binding = dialect.bound_thinking.then_some(Binding::LENIENT);
                Some(Thinking::Adaptive { display: "summarized", block_binding })
            }
            _ => None,
        }
    }
}

/// True when the last calls were made without thinking, or by another model. The provider refuses a
/// budget for thinking until the next answer.
fn is_amid_unthought_calls(contents: &[Content<'_>]) -> bool {
    let last = contents.iter().rfind(|content| content.role == Role::Assistant);
    last.is_some_and(|content| {
        let is_call = |said: &Said<'_>| matches!(said, Said::Part { part: Part::ToolCall(_), .. });
        let thought = match content.said.first() {
            Some(Said::Part { part, .. }) => is_reasoning(part),
            _ => false,
        };
        !thought && content.said.iter().any(is_call)
    })
}

fn budget(effort: Effort) -> u64 {
    match effort {
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Max => 31_999,
    }
}

/// The settings for the answer.
#[derive(serde::Serialize)]
struct OutputConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
}

#[derive(serde::Serialize)]
struct Format {
    r#type: &'static str,
    schema: Value,
}

impl OutputConfig {
    fn of(request: &Request, dialect: &Dialect) -> OutputConfig {
        let by_level = dialect.effort == EffortStyle::ThinkingLevel;
        let effort = request.effort.filter(|_| by_level).map(|effort| level(effort, dialect));
        let schema = request.output_schema.as_deref().filter(|_| dialect.output_schema);
        let schema = schema.and_then(strict);
        OutputConfig {
            effort,
            format: schema.map(|schema| Format { r#type: "json_schema", schema }),
        }
    }
}

fn level(effort: Effort, dialect: &Dialect) -> &'static str {
    match (effort, dialect.top_effort) {
        (Effort::Low, _) => "low",
        (Effort::Medium, _) => "medium",
        (Effort::High, _) | (Effort::Max, TopEffort::High) => "high",
        (Effort::Max, TopEffort::Xhigh) => "xhigh",
        (Effort::Max, TopEffort::Max) => "max",
    }
}

/// Whether a block carries a cache mark.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mark {
    Set,
    Unset,
}

impl Mark {
    pub(super) fn write<M: SerializeMap>(self, map: &mut M) -> Result<(), M::Error> {
        #[derive(serde::Serialize)]
        struct Ephemeral {
            r#type: &'static str,
        }
        match self {
            Mark::Set => map.serialize_entry("cache_control", &Ephemeral { r#type: "ephemeral" }),
            Mark::Unset => Ok(()),
        }
    }
}

struct Tools<'a> {
    tools: &'a [ToolSpec],
    /// Of the last one.
    mark: Mark,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.tools.len()))?;
        for (position, tool) in self.tools.iter().enumerate() {
            let mark = if position + 1 == self.tools.len() { self.mark } else { Mark::Unset };
            list.serialize_element(&ToolBlock { tool, mark })?;
        }
        list.end()
    }
}

struct ToolBlock<'a> {
    tool: &'a ToolSpec,
    mark: Mark,
}

impl Serialize for ToolBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.tool.name)?;
        map.serialize_entry("description", &self.tool.description)?;
        map.serialize_entry("input_schema", &self.tool.schema)?;
        self.mark.write(&mut map)?;
        map.end()
    }
}

pub(super) struct TextBlock<'a> {
    pub(super) text: &'a str,
    pub(super) mark: Mark,
}

impl Serialize for TextBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "text")?;
        map.serialize_entry("text", self.text)?;
        self.mark.write(&mut map)?;
        map.end()
    }
}
