//! The events of a stream: only the fields that matter, borrowed in frequent events.

use super::item::{List, malformed};
use crate::fault::Fault;
use crate::sse::Event;
use crate::wire::count::Count;
use posse_protocol::Usage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The beginnings of events of tools that run at the provider. Their items have all the content;
/// the events themselves only show progress.
const AT_THE_PROVIDER: [&[u8]; 8] = [
    b"response.web_search_call",
    b"response.file_search_call",
    b"response.code_interpreter_call",
    b"response.image_generation_call",
    b"response.mcp_call",
    b"response.mcp_list_tools",
    b"response.custom_tool_call_input",
    b"response.computer_call",
];

/// What an event is about.
pub(super) enum Subject {
    /// More of a text.
    More(List),
    /// The whole of a text.
    All(List),
    Annotation,
    ItemStart,
    ItemEnd,
    Start,
    /// The reply has ended, with this status unless it says another.
    End(&'static str),
    Error,
    /// Something goes on.
    Movement,
    /// A ping, or an unknown event.
    Nothing,
}

/// What an event is, when its name does not say.
#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    error: Option<IgnoredAny>,
}

/// More of a text.
#[derive(Deserialize)]
pub(super) struct TextDelta<'a> {
    pub(super) output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: Cow<'a, str>,
}

/// The whole of a text, under the name of its list.
#[derive(Deserialize)]
pub(super) struct TextDone {
    pub(super) output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    text: Option<String>,
    refusal: Option<String>,
    arguments: Option<String>,
}

/// A source of a text.
#[derive(Deserialize)]
pub(super) struct AnnotationAdded {
    pub(super) output_index: Option<u64>,
    pub(super) content_index: Option<u64>,
    pub(super) annotation: Value,
}

/// An item that starts or ends.
#[derive(Deserialize)]
pub(super) struct ItemEvent {
    pub(super) output_index: Option<u64>,
    pub(super) item: Map<String, Value>,
}

/// An event about the reply as a whole.
#[derive(Deserialize)]
pub(super) struct ResponseEvent<T> {
    #[serde(default)]
    pub(super) response: T,
}

/// The reply as a whole, without its items.
#[derive(Default, Deserialize)]
pub(super) struct Response {
    pub(super) id: Option<String>,
    pub(super) status: Option<String>,
    pub(super) error: Option<Value>,
    pub(super) incomplete_details: Option<IncompleteDetails>,
    pub(super) service_tier: Option<String>,
    pub(super) usage: Option<Counts>,
}

/// Why a reply is incomplete.
#[derive(Deserialize)]
pub(super) struct IncompleteDetails {
    pub(super) reason: Option<String>,
}

/// The items of a reply.
#[derive(Default, Deserialize)]
pub(super) struct Output {
    pub(super) output: Option<Vec<Map<String, Value>>>,
}

/// Tokens.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    input_tokens: Count,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Count,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Count,
}

impl TextDelta<'_> {
    pub(super) fn index(&self) -> u64 {
        self.content_index.or(self.summary_index).unwrap_or(0)
    }
}

impl TextDone {
    pub(super) fn index(&self) -> u64 {
        self.content_index.or(self.summary_index).unwrap_or(0)
    }

    pub(super) fn into_text(self, list: List) -> Option<String> {
        match list {
            List::Text | List::Summary | List::Reasoning => self.text,
            List::Refusal => self.refusal,
            List::Arguments => self.arguments,
        }
    }
}

impl Counts {
    /// The counts as Posse keeps them. The wire's input includes cached tokens.
    pub(super) fn into_usage(self) -> Usage {
        let details = self.input_tokens_details.unwrap_or_default();
        let input = self.input_tokens.0;
        let cache_read_tokens = details.cached_tokens.0.min(input);
        let cache_write_tokens = details.cache_write_tokens.0.min(input - cache_read_tokens);
        let output_tokens = self.output_tokens.0;
        let reasoning = self.output_tokens_details.unwrap_or_default().reasoning_tokens;
        Usage {
            input_tokens: input - cache_read_tokens - cache_write_tokens,
            cache_read_tokens,
            cache_write_tokens,
            output_tokens,
            reasoning_tokens: reasoning.0.min(output_tokens),
            ..Usage::default()
        }
    }
}

/// What `event` is about.
pub(super) fn subject(event: &Event<'_>) -> Result<Subject, Fault> {
    // The name makes parsing the data unnecessary; some gateways leave it out.
    let kind = match event.name {
        b"" | b"message" => {
            let Typed { kind, error } = read("an event", &event.data)?;
            match error {
                Some(_) if kind.is_empty() => return Ok(Subject::Error),
                _ => Cow::Owned(kind.into_owned().into_bytes()),
            }
        }
        name => Cow::Borrowed(name),
    };
    Ok(match &*kind {
        b"response.output_text.delta" => Subject::More(List::Text),
        b"response.function_call_arguments.delta" => Subject::More(List::Arguments),
        b"response.reasoning_summary_text.delta" => Subject::More(List::Summary),
        b"response.reasoning_text.delta" => Subject::More(List::Reasoning),
        b"response.refusal.delta" => Subject::More(List::Refusal),
        b"response.output_text.done" => Subject::All(List::Text),
        b"response.function_call_arguments.done" => Subject::All(List::Arguments),
        b"response.reasoning_summary_text.done" => Subject::All(List::Summary),
        b"response.reasoning_text.done" => Subject::All(List::Reasoning),
        b"response.refusal.done" => Subject::All(List::Refusal),
        b"response.output_text.annotation.added" => Subject::Annotation,
        b"response.output_item.added" => Subject::ItemStart,
        b"response.output_item.done" => Subject::ItemEnd,
        b"response.created" | b"response.queued" | b"response.in_progress" => Subject::Start,
        b"response.completed" => Subject::End("completed"),
        b"response.incomplete" => Subject::End("incomplete"),
        b"response.failed" => Subject::End("failed"),
        b"response.cancelled" => Subject::End("cancelled"),
        b"error" => Subject::Error,
        b"response.content_part.added"
        | b"response.content_part.done"
        | b"response.reasoning_summary_part.added"
        | b"response.reasoning_summary_part.done" => Subject::Movement,
        other if AT_THE_PROVIDER.iter().any(|prefix| other.starts_with(prefix)) => {
            Subject::Movement
        }
        _ => Subject::Nothing,
    })
}

pub(super) fn read<'a, T: Deserialize<'a>>(what: &str, data: &'a [u8]) -> Result<T, Fault> {
    serde_json::from_slice(data)
        .map_err(|error| malformed(format!("{what} cannot be read: {error}")))
}
