//! Reads a reply from its chunks.
//!
//! A reply is complete at `[DONE]`, since usage comes after the reason to stop. A stream that ends
//! between the two is complete, too.

use super::call::{Calls, Ending};
use super::chunk::{Choice, Chunk, Content, Field, Fields, Piece};
use super::detail::{self, Details};
use super::error::fault_of;
use super::usage::Tally;
use super::{NAME, REASONING_DETAILS};
use crate::fault::{Fault, Kind, shorten};
use crate::sse::Event;
use crate::wire::{Decode, Progress};
use posse_agent::{DeltaSink, Reply};
use posse_protocol::{Delta, Extra, Message, Part, Price, Stop, Text, Thinking, Usage};
use serde_json::{Map, Value};

/// Assembles one reply from the chunks of its stream.
#[derive(Default)]
pub struct Decoder {
    state: State,
    id: Option<String>,
    service_tier: Option<String>,
    thinking: String,
    details: Details,
    /// Text, and unknown blocks.
    content: Vec<Part>,
    /// The text, or its end, is a refusal.
    refused: bool,
    annotations: Vec<Value>,
    citations: Vec<Value>,
    calls: Calls,
    finish_reason: Option<String>,
    tally: Tally,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    BeforeStart,
    Open,
    Complete,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event<'_>, deltas: DeltaSink<'_>) -> Result<Progress, Fault> {
        let data = event.data.trim_ascii();
        if self.state == State::Complete {
            return Ok(Progress::Complete);
        }
        if data == b"[DONE]" {
            if self.state == State::Open {
                self.state = State::Complete;
            }
            return Ok(Progress::Complete);
        }
        if data.is_empty() {
            return Ok(Progress::None);
        }
        let chunk = read(data)?;
        if event.name == b"error" && chunk.error.is_none() {
            return Err(fault_in(data));
        }
        match self.take(chunk, data, deltas)? {
            true => Ok(Progress::Moved),
            false => Ok(Progress::None),
        }
    }

    fn document(&mut self, body: &[u8], deltas: DeltaSink<'_>) -> Result<(), Fault> {
        self.take(read(body)?, body, deltas)?;
        if self.state == State::BeforeStart {
            return Err(malformed("it has no message"));
        }
        self.state = State::Complete;
        Ok(())
    }

    fn usage(&self) -> Usage {
        self.tally.usage()
    }

    fn finish(self: Box<Self>, price: &Price) -> Result<Reply, Fault> {
        let reason = self.finish_reason.as_deref();
        // Some vendors give no reason for stopping, and then `[DONE]` is enough.
        let says_something = !self.content.is_empty() || !self.calls.is_empty();
        match self.state {
            State::BeforeStart => return Err(Fault::new(Kind::Cut, "it ended before it began")),
            State::Complete if reason.is_some() || says_something => {}
            State::Open if reason.is_some() => {}
            _ => return Err(Fault::new(Kind::Cut, "it ended without a finish_reason")),
        }
        let ending = match reason.map(stop_of) {
            Some(Stop::End | Stop::ToolUse) => Ending::Whole,
            _ => Ending::Doubtful,
        };
        let calls = self.calls.into_parts(ending, self.id.as_deref().unwrap_or_default())?;
        let stop = match reason.map(stop_of) {
            Some(Stop::End) | None if self.refused => Stop::Refusal,
            Some(Stop::End) | None if !calls.is_empty() => Stop::ToolUse,
            Some(stop) => stop,
            None => Stop::End,
        };
        let mut parts = Vec::with_capacity(2 + calls.len());
        if !self.thinking.is_empty() || !self.details.is_empty() {
            let extra = match self.details.is_empty() {
                true => Extra::default(),
                false => extra_of([(REASONING_DETAILS, self.details.into_value())]),
            };
            parts.push(Part::Thinking(Thinking { text: self.thinking, signature: None, extra }));
        }
        let sources = [("annotations", self.annotations), ("citations", self.citations)];
        parts.extend(with_sources(self.content, sources));
        parts.extend(calls);
        let usage = self.tally.usage();
        let usage = Usage { cost: price.of(&usage), ..usage };
        let message = Message::from_model(NAME, parts);
        let (service_tier, rate_limits) = (self.service_tier, None);
        Ok(Reply { message, stop, usage, request_id: self.id, service_tier, rate_limits })
    }
}

impl Decoder {
    /// Takes a chunk, whose bytes are `data`; false when nothing was in it.
    fn take(
        &mut self,
        chunk: Chunk<'_>,
        data: &[u8],
        deltas: DeltaSink<'_>,
    ) -> Result<bool, Fault> {
        if let Some(error) = &chunk.error {
            return Err(fault_of(error));
        }
        if chunk.object.0 == "error" {
            return Err(fault_in(data));
        }
        let before = self.tally;
        self.tally.raise(chunk.usage);
        if let Some(groq) = chunk.x_groq {
            if let Some(error) = &groq.error {
                return Err(fault_of(error));
            }
            self.tally.raise(groq.usage);
        }
        if self.id.is_none() {
            self.id = chunk.id.into_text();
        }
        if self.service_tier.as_deref() != Some(&*chunk.service_tier.0) {
            self.service_tier = chunk.service_tier.into_text().or(self.service_tier.take());
        }
        if let Some(citations) = chunk.citations {
            self.citations = citations;
        }
        // Posse asks for one choice and ignores further ones.
        let choice = chunk.choices.into_iter().find(|choice| choice.index.0.unwrap_or(0) == 0);
        let moved = match choice {
            Some(choice) => self.choose(choice, deltas)?,
            None => false,
        };
        Ok(moved || self.tally != before)
    }

    fn choose(&mut self, choice: Choice<'_>, deltas: DeltaSink<'_>) -> Result<bool, Fault> {
        if let Some(error) = &choice.error {
            return Err(fault_of(error));
        }
        self.tally.raise(choice.usage);
        let mut moved = self.state == State::BeforeStart;
        self.state = State::Open;
        // Some send the message so far beside what is new.
        if let Some(piece) = choice.delta.or(choice.message) {
            moved |= self.say(piece, deltas)?;
        }
        if let Some(reason) = choice.finish_reason.into_text() {
            if is_failure(&reason) {
                let reason = format!("it ended for the reason \"{}\"", shorten(&reason, 100));
                return Err(Fault::new(Kind::Overloaded(None), reason));
            }
            moved |= self.finish_reason.as_deref() != Some(&reason);
            self.finish_reason = Some(reason);
        }
        Ok(moved)
    }

    fn say(&mut self, piece: Piece<'_>, deltas: DeltaSink<'_>) -> Result<bool, Fault> {
        let mut moved = false;
        // Some send their reasoning under both names.
        let named = [&piece.reasoning_content, &piece.reasoning];
        let reasoning = named.into_iter().find(|words| !words.is_empty());
        if let Some(reasoning) = reasoning {
            moved |= self.think(&reasoning.0, deltas);
        }
        for fragment in piece.reasoning_details {
            // If the vendor has a field for this text, it was shown already.
            if reasoning.is_none() {
                self.think(detail::shown(&fragment), deltas);
            }
            self.details.push(fragment);
            moved = true;
        }
        match piece.content {
            Content::Text(text) => moved |= self.speak(&text, deltas),
            Content::Blocks(blocks) => {
                for block in blocks {
                    moved |= self.block(block, deltas);
                }
            }
        }
        if self.speak(&piece.refusal.0, deltas) {
            self.refused = true;
            moved = true;
        }
        for annotation in piece.annotations.into_iter().flatten() {
            self.annotations.push(annotation);
            moved = true;
        }
        for call in piece.tool_calls {
            let bytes = call.bytes();
            if bytes > 0 {
                deltas(Delta::Called { bytes });
            }
            moved |= self.calls.push(call)?;
        }
        Ok(moved)
    }

    /// Adds reasoning; false when there is none.
    fn think(&mut self, more: &str, deltas: DeltaSink<'_>) -> bool {
        if more.is_empty() {
            return false;
        }
        self.thinking.push_str(more);
        deltas(Delta::Thinking { text: more.to_owned() });
        true
    }

    /// Adds text; false when there is none.
    fn speak(&mut self, more: &str, deltas: DeltaSink<'_>) -> bool {
        if more.is_empty() {
            return false;
        }
        match self.content.last_mut() {
            Some(Part::Text(text)) => text.text.push_str(more),
            _ => self.content.push(Part::text(more)),
        }
        deltas(Delta::Text { text: more.to_owned() });
        true
    }

    /// Adds a block of content, from vendors that have such. Mistral tells its reasoning so.
    fn block(&mut self, block: Fields<'_>, deltas: DeltaSink<'_>) -> bool {
        match (block.text("type"), block.get("thinking")) {
            ("text", _) => self.speak(block.text("text"), deltas),
            ("thinking", Some(Field::Text(text))) => self.think(text, deltas),
            ("thinking", Some(Field::Other(Value::Array(texts)))) => {
                let texts = texts.iter().filter_map(|text| text["text"].as_str());
                // All of them: `any` would stop at the first.
                texts.filter(|text| self.think(text, deltas)).count() > 0
            }
            _ => {
                let value = Value::Object(block.into_map());
                self.content.push(Part::Opaque { wire: NAME.to_owned(), value });
                true
            }
        }
    }
}

fn read(data: &[u8]) -> Result<Chunk<'_>, Fault> {
    serde_json::from_slice(data)
        .map_err(|error| malformed(format!("a chunk cannot be read: {error}")))
}

/// The fault of an error event.
fn fault_in(data: &[u8]) -> Fault {
    fault_of(&serde_json::from_slice(data).unwrap_or_default())
}

fn malformed(reason: impl Into<String>) -> Fault {
    Fault::new(Kind::Malformed, reason)
}

/// The parts of `content` with sources, if there are any, in its first text.
fn with_sources(mut content: Vec<Part>, sources: [(&str, Vec<Value>); 2]) -> Vec<Part> {
    let sources = sources.into_iter().filter(|(_, list)| !list.is_empty());
    let extra = extra_of(sources.map(|(key, list)| (key, Value::Array(list))));
    if extra.is_empty() {
        return content;
    }
    match content.iter_mut().find_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    }) {
        Some(text) => text.extra = extra,
        None => content.push(Part::Text(Text { text: String::new(), extra })),
    }
    content
}

fn extra_of<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Extra {
    let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), value));
    Extra::from(fields.collect::<Map<String, Value>>())
}

fn stop_of(reason: &str) -> Stop {
    match reason {
        "stop" | "eos" | "end_turn" | "stop_sequence" => Stop::End,
        "tool_calls" | "function_call" | "tool_use" => Stop::ToolUse,
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
            Stop::MaxTokens
        }
        "content_filter" | "sensitive" | "refusal" => Stop::Refusal,
        other => Stop::Other(shorten(other, 100)),
    }
}

/// True when the reason to stop is an error of the provider: then there is no reply.
fn is_failure(reason: &str) -> bool {
    matches!(reason, "error" | "network_error" | "insufficient_system_resource")
}
