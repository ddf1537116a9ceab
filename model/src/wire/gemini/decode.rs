//! Reads a reply from its chunks.
//!
//! No event says that a reply is over: a reason to finish may come early, on every chunk or before
//! the last counts. So the end of the stream is the end, and [`Decode::finish`] judges it.

use super::NAME;
use super::assembly::{Assembly, LastCall, stem};
use super::chunk::{Borrowed, Candidate, Chunk, Counts};
use crate::fault::{Fault, Kind, shorten};
use crate::sse::Event;
use crate::wire::count::Count;
use crate::wire::{Decode, Progress};
use posse_agent::{DeltaSink, Reply};
use posse_protocol::{Extra, Message, Part, Price, Stop, Usage};
use serde_json::{Map, Value};

/// Assembles one reply from the chunks of its stream.
#[derive(Default)]
pub struct Decoder {
    content: Assembly,
    finish_reason: Option<String>,
    /// The prompt was refused.
    blocked: bool,
    response_id: Option<String>,
    tokens: Tokens,
    service_tier: Option<String>,
    /// Information about the reply, by its name, in the order of arrival.
    about: Map<String, Value>,
    /// A proxy has said that nothing follows.
    done: bool,
}

/// The highest counts so far.
#[derive(Default)]
struct Tokens {
    prompt: u64,
    cached: u64,
    tool_use: u64,
    candidates: u64,
    thoughts: u64,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event<'_>, deltas: DeltaSink<'_>) -> Result<Progress, Fault> {
        if self.done {
            return Ok(Progress::Complete);
        }
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
            return Ok(Progress::Complete);
        }
        match data.is_empty() {
            true => Ok(Progress::None),
            false => self.chunks(data, deltas),
        }
    }

    fn document(&mut self, body: &[u8], deltas: DeltaSink<'_>) -> Result<(), Fault> {
        self.chunks(body.trim_ascii(), deltas).map(drop)
    }

    fn usage(&self) -> Usage {
        self.tokens.usage()
    }

    fn finish(self: Box<Self>, price: &Price) -> Result<Reply, Fault> {
        let stop = match self.finish_reason.as_deref() {
            Some(reason) => stop_of(reason, self.about.get("finishMessage"))?,
            None if self.blocked => Stop::Refusal,
            None => {
                let reason =
                    format!("it ended without a finishReason, in part {}", self.content.len());
                return Err(Fault::new(Kind::Cut, reason));
            }
        };
        let last_call = if stop == Stop::End { LastCall::Whole } else { LastCall::Doubtful };
        let usage = self.tokens.usage();
        let sent = usage.all_input_tokens();
        let parts =
            self.content.finish(last_call, |parts| stem(self.response_id.as_deref(), sent, parts));
        let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let stop = if calls && stop == Stop::End { Stop::ToolUse } else { stop };
        let mut message = Message::from_model(NAME, parts);
        message.extra = Extra::from(self.about);
        let cost = price.of(&usage);
        Ok(Reply {
            message,
            stop,
            usage: Usage { cost, ..usage },
            request_id: self.response_id,
            service_tier: self.service_tier,
            rate_limits: None,
        })
    }
}

impl Decoder {
    /// Takes one chunk, or a list of them: the wire sends a list to clients that do not ask for
    /// events, and for some errors.
    fn chunks(&mut self, data: &[u8], deltas: DeltaSink<'_>) -> Result<Progress, Fault> {
        let unreadable =
            |error| Fault::new(Kind::Malformed, format!("a chunk cannot be read: {error}"));
        if !data.starts_with(b"[") {
            let chunk = serde_json::from_slice(data).map_err(unreadable)?;
            return self.chunk(chunk, deltas);
        }
        let chunks: Vec<Chunk<'_>> = serde_json::from_slice(data).map_err(unreadable)?;
        let mut progress = Progress::None;
        for chunk in chunks {
            if self.chunk(chunk, deltas)? == Progress::Moved {
                progress = Progress::Moved;
            }
        }
        Ok(progress)
    }

    fn chunk(&mut self, chunk: Chunk<'_>, deltas: DeltaSink<'_>) -> Result<Progress, Fault> {
        if let Some(error) = chunk.error {
            return Err(fault_of(error));
        }
        if let (None, Some(Borrowed(id))) = (&self.response_id, chunk.response_id) {
            self.response_id = Some(id.into_owned());
        }
        let mut moved = chunk.usage_metadata.is_some_and(|counts| self.count(counts));
        if let Some(feedback) = chunk.prompt_feedback {
            self.blocked |= feedback.get("blockReason").is_some_and(Value::is_string);
            moved |= self.note("promptFeedback", Some(feedback.into()));
        }
        // Posse asks for one candidate. Further ones must not be mixed into it.
        let candidates = chunk.candidates.into_iter().flatten();
        for candidate in candidates.filter(|candidate| candidate.index.unwrap_or(0) == 0) {
            moved |= self.candidate(candidate, deltas)?;
        }
        Ok(if moved { Progress::Moved } else { Progress::None })
    }

    fn candidate(
        &mut self,
        candidate: Candidate<'_>,
        deltas: DeltaSink<'_>,
    ) -> Result<bool, Fault> {
        let mut moved = false;
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.into_iter().flatten() {
            moved |= self.content.push(part, deltas)?;
        }
        let reason = candidate.finish_reason.map(|reason| reason.0);
        let reason = reason.filter(|reason| *reason != "FINISH_REASON_UNSPECIFIED");
        if let Some(reason) = reason.filter(|reason| self.finish_reason.as_deref() != Some(reason))
        {
            self.finish_reason = Some(reason.into_owned());
            moved = true;
        }
        moved |= self.note("finishMessage", candidate.finish_message);
        moved |= self.note("citationMetadata", candidate.citation_metadata);
        moved |= self.note("groundingMetadata", candidate.grounding_metadata);
        moved |= self.note("urlContextMetadata", candidate.url_context_metadata);
        Ok(moved)
    }

    /// Takes counts, which are sums so far. Returns whether one has grown.
    fn count(&mut self, counts: Counts<'_>) -> bool {
        let mut grown = false;
        let mut raise = |field: &mut u64, Count(count): Count| {
            grown |= count > *field;
            *field = count.max(*field);
        };
        raise(&mut self.tokens.prompt, counts.prompt_token_count);
        raise(&mut self.tokens.cached, counts.cached_content_token_count);
        raise(&mut self.tokens.tool_use, counts.tool_use_prompt_token_count);
        raise(&mut self.tokens.candidates, counts.candidates_token_count);
        raise(&mut self.tokens.thoughts, counts.thoughts_token_count);
        if let (None, Some(Borrowed(tier))) =
            (&self.service_tier, counts.service_tier.or(counts.traffic_type))
        {
            self.service_tier = Some(tier.into_owned());
        }
        grown
    }

    /// Keeps information about the reply. Returns whether it is new.
    fn note(&mut self, name: &str, value: Option<Value>) -> bool {
        let Some(value) = value else { return false };
        match self.about.get_mut(name) {
            Some(Value::Array(said)) if said.last() == Some(&value) => return false,
            Some(Value::Array(said)) => said.push(value),
            _ => {
                self.about.insert(name.to_owned(), Value::Array(vec![value]));
            }
        }
        true
    }
}

impl Tokens {
    fn usage(&self) -> Usage {
        let cached = self.cached.min(self.prompt);
        Usage {
            input_tokens: self.prompt - cached + self.tool_use,
            cache_read_tokens: cached,
            output_tokens: self.candidates + self.thoughts,
            reasoning_tokens: self.thoughts,
            ..Usage::default()
        }
    }
}

fn stop_of(reason: &str, messages: Option<&Value>) -> Result<Stop, Fault> {
    let fault = |kind| {
        let words = messages.and_then(|said| said.get(0)).and_then(Value::as_str).unwrap_or("");
        let colon = if words.is_empty() { "" } else { ": " };
        Err(Fault::new(kind, format!("it ended with {reason}{colon}{words}")))
    };
    Ok(match reason {
        "STOP" => Stop::End,
        "MAX_TOKENS" => Stop::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Stop::Refusal,
        // The provider discarded the output of the model, so there is no reply. A retry may work.
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
            return fault(Kind::Malformed);
        }
        "MISSING_THOUGHT_SIGNATURE" => return fault(Kind::Rejected),
        other => Stop::Other(shorten(other, 100)),
    })
}

/// The fault of an error inside a stream, which has the form and the status of a failed answer.
fn fault_of(error: Value) -> Fault {
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..600).contains(code));
    let status = match error.get("status").and_then(Value::as_str) {
        Some("RESOURCE_EXHAUSTED") => 429,
        Some("UNAVAILABLE" | "INTERNAL" | "DEADLINE_EXCEEDED" | "ABORTED" | "CANCELLED") => {
            code.unwrap_or(0).max(500)
        }
        Some("UNAUTHENTICATED" | "PERMISSION_DENIED") => 403,
        Some(_) => code.unwrap_or(400),
        None => code.unwrap_or(500),
    };
    let body = Value::Object(Map::from_iter([("error".to_owned(), error)])).to_string();
    Fault::of_status(status, None, body.as_bytes())
}
