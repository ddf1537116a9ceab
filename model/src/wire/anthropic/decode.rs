//! Reads a reply from its events.
//!
//! Deltas are frequent, so they are read into borrowed fields. Only block starts and unknown events
//! become JSON values.

use super::NAME;
use super::block::{Block, LastCall, malformed};
use crate::fault::{Fault, Kind, error_words, shorten};
use crate::sse::Event;
use crate::wire::count::Count;
use crate::wire::{Decode, Progress};
use posse_agent::{DeltaSink, Reply};
use posse_protocol::{Delta, Extra, Message, Part, Price, Stop, Usage};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Assembles one reply from the events of its stream.
#[derive(Default)]
pub struct Decoder {
    state: State,
    message_id: Option<String>,
    blocks: Vec<Block>,
    stop_reason: Option<String>,
    usage: Usage,
    service_tier: Option<String>,
    /// Information about the reply: rejected reasoning, the reason of a refusal.
    about: Map<String, Value>,
}

#[derive(Default, PartialEq)]
enum State {
    #[default]
    BeforeStart,
    Open,
    Complete,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct MessageStart {
    message: MessageHead,
}

#[derive(Deserialize)]
struct MessageHead {
    id: Option<String>,
    usage: Option<Counts>,
    input_transformations: Option<Vec<Value>>,
}

/// A reply that is no stream, or an error.
#[derive(Deserialize)]
struct Document {
    id: Option<String>,
    content: Option<Vec<Map<String, Value>>>,
    stop_reason: Option<String>,
    stop_details: Option<Value>,
    usage: Option<Counts>,
    input_transformations: Option<Vec<Value>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct BlockStart {
    index: usize,
    content_block: Map<String, Value>,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    index: usize,
    #[serde(borrow)]
    delta: Piece<'a>,
}

/// All known deltas in one: a borrowed field costs nothing when it is absent.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    partial_json: Cow<'a, str>,
    #[serde(borrow, default)]
    thinking: Cow<'a, str>,
    #[serde(borrow, default)]
    signature: Cow<'a, str>,
    #[serde(default)]
    citation: Value,
}

#[derive(Deserialize)]
struct UnknownDelta {
    index: usize,
    delta: Map<String, Value>,
}

#[derive(Deserialize)]
struct BlockStop {
    index: usize,
}

#[derive(Deserialize)]
struct MessageDelta {
    delta: Option<Ending>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Ending {
    stop_reason: Option<String>,
    stop_details: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
    output_tokens: Count,
    output_tokens_details: Option<OutputDetails>,
    service_tier: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Count,
}

#[derive(Deserialize)]
struct ErrorEvent {
    error: Value,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event<'_>, deltas: DeltaSink<'_>) -> Result<Progress, Fault> {
        if self.state == State::Complete {
            return Ok(Progress::Complete);
        }
        let data = &*event.data;
        // The name saves a look into the data; some proxies leave it out.
        let kind = match event.name {
            b"" => match read::<Typed<'_>>("an event", data)? {
                Typed { kind, error: Some(_) } if kind.is_empty() => Cow::Borrowed(&b"error"[..]),
                Typed { kind, .. } => Cow::Owned(kind.into_owned().into_bytes()),
            },
            name => Cow::Borrowed(name),
        };
        let moved = match &*kind {
            b"content_block_delta" => self.block_delta(data, deltas)?,
            b"content_block_start" => {
                self.block_start(read("content_block_start", data)?, deltas)?;
                true
            }
            b"content_block_stop" => {
                let BlockStop { index } = read("content_block_stop", data)?;
                self.open_block(index)?.stop();
                true
            }
            b"message_start" => {
                self.message_start(read("message_start", data)?)?;
                true
            }
            b"message_delta" => self.message_delta(read("message_delta", data)?)?,
            b"message_stop" => {
                self.check_open("message_stop")?;
                self.state = State::Complete;
                return Ok(Progress::Complete);
            }
            b"error" => {
                let ErrorEvent { error } = read("an error event", data)?;
                return Err(fault_of(&error));
            }
            _ => false,
        };
        Ok(if moved { Progress::Moved } else { Progress::None })
    }

    fn document(&mut self, body: &[u8], deltas: DeltaSink<'_>) -> Result<(), Fault> {
        let document: Document = read("the reply", body)?;
        if let Some(error) = document.error {
            return Err(fault_of(&error));
        }
        let Document { id, usage, input_transformations, .. } = document;
        let content = document.content.ok_or_else(|| malformed("the reply has no content"))?;
        // The reply has ended, so a missing reason does not mean that it was cut off.
        let calls =
            content.iter().any(|block| block.get("type").is_some_and(|it| it == "tool_use"));
        let usual = if calls { "tool_use" } else { "end_turn" };
        let message = MessageHead { id, usage, input_transformations };
        self.message_start(MessageStart { message })?;
        for (index, content_block) in content.into_iter().enumerate() {
            self.block_start(BlockStart { index, content_block }, deltas)?;
            self.open_block(index)?.stop();
        }
        let stop_reason = Some(document.stop_reason.unwrap_or_else(|| usual.to_owned()));
        self.end(Ending { stop_reason, stop_details: document.stop_details });
        self.state = State::Complete;
        Ok(())
    }

    fn usage(&self) -> Usage {
        self.usage.clone()
    }

    fn finish(self: Box<Self>, price: &Price) -> Result<Reply, Fault> {
        match self.state {
            State::Complete => {}
            State::BeforeStart => return Err(Fault::new(Kind::Cut, "it ended before it began")),
            State::Open => {
                let reason =
                    format!("it ended without message_stop, in block {}", self.blocks.len());
                return Err(Fault::new(Kind::Cut, reason));
            }
        }
        let stop = self.stop_reason.as_deref().map(stop_of);
        let last_call = match stop {
            Some(Stop::End | Stop::ToolUse) => LastCall::Whole,
            _ => LastCall::Doubtful,
        };
        let is_whole = last_call == LastCall::Whole || stop.is_none();
        if let Some(open) = self.blocks.iter().position(Block::is_half_call).filter(|_| is_whole) {
            return Err(Fault::new(Kind::Cut, format!("the tool_use in block {open} never ended")));
        }
        let last = self.blocks.len().saturating_sub(1);
        let parts = self.blocks.into_iter().enumerate().filter_map(|(position, block)| {
            block.into_part(if position == last { last_call } else { LastCall::Whole })
        });
        let parts: Vec<Part> = parts.collect();
        let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let stop = stop.unwrap_or(if calls { Stop::ToolUse } else { Stop::End });
        let reasoning_tokens = self.usage.reasoning_tokens.min(self.usage.output_tokens);
        let usage = Usage { cost: price.of(&self.usage), reasoning_tokens, ..self.usage };
        let mut message = Message::from_model(NAME, parts);
        message.extra = Extra::from(self.about);
        let (service_tier, rate_limits) = (self.service_tier, None);
        Ok(Reply { message, stop, usage, request_id: self.message_id, service_tier, rate_limits })
    }
}

impl Decoder {
    fn message_start(&mut self, start: MessageStart) -> Result<(), Fault> {
        if self.state != State::BeforeStart {
            return Err(malformed("a second message_start"));
        }
        self.state = State::Open;
        self.message_id = start.message.id;
        self.count(start.message.usage);
        let changes = start.message.input_transformations.unwrap_or_default();
        if !changes.is_empty() {
            self.about.insert("input_transformations".to_owned(), changes.into());
        }
        Ok(())
    }

    fn block_start(&mut self, start: BlockStart, deltas: DeltaSink<'_>) -> Result<(), Fault> {
        self.check_open("content_block_start")?;
        let next = self.blocks.len();
        if start.index != next {
            return Err(malformed(format!("block {} starts in place of {next}", start.index)));
        }
        let block = Block::start(start.content_block)?;
        if let Some(delta) = block.first_delta() {
            deltas(delta);
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Takes a piece of a block. Returns whether there was something in it.
    fn block_delta(&mut self, data: &[u8], deltas: DeltaSink<'_>) -> Result<bool, Fault> {
        let parsed = serde_json::from_slice::<BlockDelta<'_>>(data);
        let Ok(BlockDelta { index, delta }) = parsed else {
            return self.unknown_delta(data);
        };
        let block = self.open_block(index)?;
        let (fits, is_empty) = match &*delta.kind {
            "text_delta" => {
                let (fits, is_empty) = (block.push_text(&delta.text), delta.text.is_empty());
                if fits && !is_empty {
                    deltas(Delta::Text { text: delta.text.into_owned() });
                }
                (fits, is_empty)
            }
            "input_json_delta" => {
                let bytes = delta.partial_json.len();
                let fits = block.push_json(&delta.partial_json);
                if fits && bytes > 0 {
                    deltas(Delta::Called { bytes });
                }
                (fits, bytes == 0)
            }
            "thinking_delta" => {
                let is_empty = delta.thinking.is_empty();
                let fits = block.push_thinking(&delta.thinking);
                if fits && !is_empty {
                    deltas(Delta::Thinking { text: delta.thinking.into_owned() });
                }
                (fits, is_empty)
            }
            "signature_delta" => {
                (block.push_signature(&delta.signature), delta.signature.is_empty())
            }
            "citations_delta" => {
                let is_empty = delta.citation.is_null();
                block.push_citation(delta.citation);
                (true, is_empty)
            }
            _ => return self.unknown_delta(data),
        };
        match fits {
            true => Ok(!is_empty),
            false => Err(malformed(format!("a {} for block {index}, of another type", delta.kind))),
        }
    }

    fn unknown_delta(&mut self, data: &[u8]) -> Result<bool, Fault> {
        const KNOWN: [&str; 5] = [
            "text_delta",
            "input_json_delta",
            "thinking_delta",
            "signature_delta",
            "citations_delta",
        ];
        let UnknownDelta { index, delta } = read("content_block_delta", data)?;
        match delta.get("type").and_then(Value::as_str) {
            Some(kind) if !KNOWN.contains(&kind) => Ok(self.open_block(index)?.push_unknown(delta)),
            _ => Err(malformed(format!("a delta for block {index} cannot be read"))),
        }
    }

    /// Takes what is said of the whole message. Returns whether anything of it is new.
    fn message_delta(&mut self, delta: MessageDelta) -> Result<bool, Fault> {
        self.check_open("message_delta")?;
        let counted = self.usage.clone();
        self.count(delta.usage);
        let ended = delta.delta.is_some_and(|ending| self.end(ending));
        Ok(ended || self.usage != counted)
    }

    /// Takes the reason for the end. Returns whether that is new.
    fn end(&mut self, ending: Ending) -> bool {
        let mut is_new = false;
        if ending.stop_reason.is_some() {
            is_new = self.stop_reason != ending.stop_reason;
            self.stop_reason = ending.stop_reason;
        }
        if let Some(details) = ending.stop_details {
            is_new |= self.about.get("stop_details") != Some(&details);
            self.about.insert("stop_details".to_owned(), details);
        }
        is_new
    }

    /// Takes counts, which are sums so far: a later one is never smaller, unless it was left out.
    fn count(&mut self, counts: Option<Counts>) {
        let Some(counts) = counts else { return };
        let raise = |field: &mut u64, Count(count): Count| *field = (*field).max(count);
        raise(&mut self.usage.input_tokens, counts.input_tokens);
        raise(&mut self.usage.cache_write_tokens, counts.cache_creation_input_tokens);
        raise(&mut self.usage.cache_read_tokens, counts.cache_read_input_tokens);
        raise(&mut self.usage.output_tokens, counts.output_tokens);
        let details = counts.output_tokens_details.unwrap_or_default();
        raise(&mut self.usage.reasoning_tokens, details.thinking_tokens);
        if counts.service_tier.is_some() {
            self.service_tier = counts.service_tier;
        }
    }

    fn open_block(&mut self, index: usize) -> Result<&mut Block, Fault> {
        let block = self.blocks.get_mut(index).filter(|block| !block.is_stopped());
        block.ok_or_else(|| malformed(format!("an event for block {index}, which is not open")))
    }

    fn check_open(&self, event: &str) -> Result<(), Fault> {
        match self.state {
            State::Open => Ok(()),
            _ => Err(malformed(format!("{event} before message_start"))),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(what: &str, data: &'a [u8]) -> Result<T, Fault> {
    serde_json::from_slice(data)
        .map_err(|error| malformed(format!("{what} cannot be read: {error}")))
}

/// The fault of an error of the provider, with or without a type.
fn fault_of(error: &Value) -> Fault {
    let kind = error["type"].as_str().unwrap_or("api_error");
    Fault::of_error_event(kind, &error_words(error).unwrap_or_else(|| error.to_string()))
}

fn stop_of(reason: &str) -> Stop {
    match reason {
        "end_turn" | "stop_sequence" => Stop::End,
        "tool_use" => Stop::ToolUse,
        // The window was full before the cap was reached, so the reply was cut off, too.
        "max_tokens" | "model_context_window_exceeded" => Stop::MaxTokens,
        "refusal" => Stop::Refusal,
        other => Stop::Other(shorten(other, 100)),
    }
}
