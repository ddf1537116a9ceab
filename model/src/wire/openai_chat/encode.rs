//! Writes a request: borrowed from the transcript, keys in a fixed order, straight into bytes.
//!
//! This module writes the settings beside the messages: caps, effort, the form of the answer,
//! tools.

use super::message::Messages;
use crate::wire::bytes_of;
use crate::wire::schema::{Parameters, can_be_promised};
use crate::wire::{Dialect, EffortStyle, EncodeError, OutputCap, Target, TopEffort};
use posse_agent::Request;
use posse_protocol::{Effort, ToolSpec};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

/// Returns the body of a request.
///
/// The same request gives the same bytes. Consecutive messages of one role become one; the results
/// of calls follow their calls, in the order of the calls. Text without a visible character is left
/// out, and so is reasoning with nothing beside it. Arguments that are not an object are sent back
/// as `{"raw_input": …}`.
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
        let (request, dialect) = (self.request, self.target.dialect);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.target.model)?;
        let cap = match dialect.output_cap {
            OutputCap::MaxTokens => "max_tokens",
            OutputCap::MaxCompletionTokens => "max_completion_tokens",
        };
        map.serialize_entry(cap, &request.max_tokens)?;
        map.serialize_entry("stream", &true)?;
        if dialect.stream_usage {
            map.serialize_entry("stream_options", &StreamOptions { include_usage: true })?;
        }
        if let Some(effort) = request.effort {
            write_effort(&mut map, effort, dialect)?;
        }
        if let Some(schema) = request.output_schema.as_deref().filter(|_| dialect.output_schema) {
            map.serialize_entry("response_format", &ResponseFormat::of(schema))?;
        }
        if !request.tools.is_empty() {
            self.target.write_tools(&mut map, &request.tools, &Tools(&request.tools))?;
        }
        map.serialize_entry("messages", &Messages::of(request, dialect))?;
        map.end()
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

fn write_effort<M: SerializeMap>(
    map: &mut M,
    effort: Effort,
    dialect: &Dialect,
) -> Result<(), M::Error> {
    #[derive(Serialize)]
    struct Reasoning {
        effort: &'static str,
    }
    #[derive(Serialize)]
    struct Thinking {
        r#type: &'static str,
    }
    let name = match (effort, dialect.top_effort) {
        (Effort::Low, _) => "low",
        (Effort::Medium, _) => "medium",
        (Effort::High, _) | (Effort::Max, TopEffort::High) => "high",
        (Effort::Max, TopEffort::Xhigh) => "xhigh",
        (Effort::Max, TopEffort::Max) => "max",
    };
    // A model that can only switch thinking on or off does not think at minimal effort.
    let thinks = effort > Effort::Low;
    match dialect.effort {
        EffortStyle::ReasoningEffort => map.serialize_entry("reasoning_effort", name),
        EffortStyle::Reasoning => map.serialize_entry("reasoning", &Reasoning { effort: name }),
        EffortStyle::ThinkingSwitch => {
            let r#type = if thinks { "enabled" } else { "disabled" };
            map.serialize_entry("thinking", &Thinking { r#type })
        }
        EffortStyle::EnableThinking => map.serialize_entry("enable_thinking", &thinks),
        // The last two are values of other wires.
        EffortStyle::None | EffortStyle::ThinkingBudget | EffortStyle::ThinkingLevel => Ok(()),
    }
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    schema: &'a Value,
    strict: bool,
}

impl<'a> ResponseFormat<'a> {
    fn of(schema: &'a Value) -> Self {
        let strict = can_be_promised(schema);
        ResponseFormat {
            r#type: "json_schema",
            json_schema: JsonSchema { name: "answer", schema, strict },
        }
    }
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tool<'a> {
            r#type: &'static str,
            function: Function<'a>,
        }
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: Parameters<'a>,
        }
        serializer.collect_seq(self.0.iter().map(|tool| Tool {
            r#type: "function",
            function: Function {
                name: &tool.name,
                description: &tool.description,
                parameters: Parameters(&tool.schema),
            },
        }))
    }
}
