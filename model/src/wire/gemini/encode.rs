//! Writes a request: borrowed from the transcript, keys in a fixed order, straight into bytes.
//!
//! The transcript comes last, so that a request begins like the request before it, and the provider
//! finds that in its cache.

use super::contents::contents;
use crate::wire::bytes_of;
use crate::wire::dialect::{Dialect, EffortStyle, Gemini};
use crate::wire::{EncodeError, Target};
use posse_agent::Request;
use posse_protocol::{Effort, ToolSpec};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// The smallest number of tokens for thinking that every model takes.
const MIN_BUDGET: u64 = 512;

/// Returns the body of a request.
///
/// The same request gives the same bytes. Consecutive messages of one role become one; every call
/// is followed by its result, in the order of the calls. Text without a visible character, replies
/// of reasoning alone, and content that only another provider understands are left out.
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
        let dialect = target.dialect;
        let mut map = serializer.serialize_map(None)?;
        if !request.system.trim().is_empty() {
            let instruction = Instruction { parts: [TextPart { text: &request.system }] };
            map.serialize_entry("systemInstruction", &instruction)?;
        }
        if !request.tools.is_empty() {
            let tools = [Tools { function_declarations: &request.tools }];
            target.write_tools(&mut map, &request.tools, &tools)?;
        }
        map.serialize_entry("contents", &contents(&request.messages, dialect.gemini))?;
        map.serialize_entry("generationConfig", &Config { request, dialect })?;
        map.end()
    }
}

#[derive(serde::Serialize)]
struct Instruction<'a> {
    parts: [TextPart<'a>; 1],
}

#[derive(serde::Serialize)]
struct TextPart<'a> {
    text: &'a str,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    #[serde(serialize_with = "declarations")]
    function_declarations: &'a [ToolSpec],
}

fn declarations<S: Serializer>(tools: &[ToolSpec], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(tools.iter().map(Declaration))
}

struct Declaration<'a>(&'a ToolSpec);

impl Serialize for Declaration<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tool = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &tool.name)?;
        map.serialize_entry("description", &tool.description)?;
        // `parameters` accepts only a part of OpenAPI and refuses other keywords such as `$schema`.
        // This field accepts any JSON Schema.
        if tool.schema.is_object() {
            map.serialize_entry("parametersJsonSchema", &tool.schema)?;
        }
        map.end()
    }
}

struct Config<'a> {
    request: &'a Request,
    dialect: &'a Dialect,
}

impl Serialize for Config<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Config { request, dialect } = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("maxOutputTokens", &request.max_tokens)?;
        if let Some(schema) = self.schema() {
            map.serialize_entry("responseMimeType", "application/json")?;
            map.serialize_entry("responseJsonSchema", schema)?;
        }
        if let Some(thinking) = Thinking::of(request, dialect.effort) {
            map.serialize_entry("thinkingConfig", &thinking)?;
        }
        map.end()
    }
}

impl Config<'_> {
    /// The schema of the answer, where the provider takes one. Older models refuse one beside
    /// tools. Then only the tools are sent, and Posse checks the answer.
    fn schema(&self) -> Option<&Value> {
        let taken = self.request.tools.is_empty() || self.dialect.gemini == Gemini::Three;
        let schema = self.request.output_schema.as_deref();
        schema.filter(|_| self.dialect.output_schema && taken)
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Thinking {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

impl Thinking {
    /// For a model that thinks: asks for its thoughts, and sets the effort if there is one. Other
    /// models refuse the field.
    fn of(request: &Request, style: EffortStyle) -> Option<Thinking> {
        let (mut thinking_budget, mut thinking_level) = (None, None);
        match style {
            EffortStyle::ThinkingBudget => {
                let wanted = request.effort.map(budget);
                // Thoughts count as output, so the cap must leave room for an answer.
                let budget = wanted.map(|wanted| wanted.min(request.max_tokens / 4 * 3));
                thinking_budget = budget.filter(|budget| *budget >= MIN_BUDGET);
            }
            EffortStyle::ThinkingLevel => thinking_level = request.effort.map(level),
            _ => return None,
        }
        Some(Thinking { include_thoughts: true, thinking_budget, thinking_level })
    }
}

/// Tokens for thinking, within the limits of every model with a budget.
fn budget(effort: Effort) -> u64 {
    match effort {
        Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Max => 24_576,
    }
}

fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::Max => "HIGH",
    }
}
