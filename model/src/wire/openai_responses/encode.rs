//! Writes a request: borrowed from the transcript, keys in a fixed order, straight into bytes.
//!
//! The request asks the provider to store nothing. So each request has the whole transcript, and
//! the provider returns its reasoning encrypted, to be sent back. Its cache works by prefixes and
//! without marks, so the transcript comes last and only grows at its end.

use super::input::{is_visible, items};
use crate::wire::bytes_of;
use crate::wire::hash::hash;
use crate::wire::schema::{Parameters, can_be_promised};
use crate::wire::{Dialect, EffortStyle, EncodeError, Target, TopEffort};
use posse_agent::Request;
use posse_protocol::{Effort, Part, ToolSpec};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// The fewest tokens that the wire takes for a cap.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// Returns the body of a request.
///
/// The same request gives the same bytes. Results of tools follow their calls, in the order of the
/// calls. A call without a result gets an output that says so, and a result without a call is
/// marked as such. Text without a visible character is left out, unless the provider made an item
/// of it, and so is reasoning that is not signed or has nothing after it. The request asks for
/// encrypted reasoning only if the dialect has efforts for `reasoning`: models that do not reason
/// refuse that.
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
        map.serialize_entry("store", &false)?;
        map.serialize_entry("stream", &true)?;
        let max_output_tokens = request.max_tokens.max(MIN_OUTPUT_TOKENS);
        map.serialize_entry("max_output_tokens", &max_output_tokens)?;
        if dialect.effort == EffortStyle::Reasoning {
            map.serialize_entry("include", &["reasoning.encrypted_content"])?;
            if let Some(effort) = request.effort {
                let effort = effort_name(effort, dialect);
                map.serialize_entry("reasoning", &Reasoning { effort, summary: "auto" })?;
            }
        }
        if let Some(schema) = request.output_schema.as_deref().filter(|_| dialect.output_schema) {
            map.serialize_entry("text", &Text { format: Format::of(schema) })?;
        }
        map.serialize_entry("prompt_cache_key", &cache_key(request))?;
        if !request.tools.is_empty() {
            self.target.write_tools(&mut map, &request.tools, &Tools(&request.tools))?;
        }
        if is_visible(&request.system) {
            map.serialize_entry("instructions", &*request.system)?;
        }
        map.serialize_entry("input", &items(&request.messages, dialect))?;
        map.end()
    }
}

#[derive(serde::Serialize)]
struct Reasoning {
    effort: &'static str,
    summary: &'static str,
}

fn effort_name(effort: Effort, dialect: &Dialect) -> &'static str {
    match (effort, dialect.top_effort) {
        (Effort::Low, _) => "low",
        (Effort::Medium, _) => "medium",
        (Effort::High, _) | (Effort::Max, TopEffort::High) => "high",
        (Effort::Max, TopEffort::Xhigh) => "xhigh",
        (Effort::Max, TopEffort::Max) => "max",
    }
}

#[derive(serde::Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(serde::Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a Value,
    strict: bool,
}

impl<'a> Format<'a> {
    fn of(schema: &'a Value) -> Self {
        let strict = can_be_promised(schema);
        Format { r#type: "json_schema", name: "answer", schema, strict }
    }
}

/// A key that sends the requests of a run to the machine that has their prefix in its cache. It
/// depends on the beginning of the transcript. Without it, all runs of one agent, which share their
/// first tokens, would go to one machine.
fn cache_key(request: &Request) -> String {
    let first = request.messages.first().map(|message| message.parts.as_slice());
    let texts = first.unwrap_or_default().iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    format!("posse-{:016x}", hash([&*request.system].into_iter().chain(texts)))
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Tool<'a> {
            r#type: &'static str,
            name: &'a str,
            description: &'a str,
            parameters: Parameters<'a>,
            strict: bool,
        }
        serializer.collect_seq(self.0.iter().map(|tool| Tool {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: Parameters(&tool.schema),
            // Strict schemas must require every argument; those of tools do not.
            strict: false,
        }))
    }
}
