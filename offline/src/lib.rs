//! A model that needs no key and no network: a planner that answers questions about files.
//!
//! It parses a question, calls tools to list, search and read, ranks the results, and answers with
//! places and short extracts. A reply depends on the request alone: the same transcript gets the
//! same reply, so a run continues after a crash. It never writes and never invents, and treats the
//! text of files as data. It knows only the names and texts of tools.

use async_trait::async_trait;
use conversation::{Conversation, WIRE};
use intent::Intent;
use notes::Notes;
use posse_agent::{DeltaSink, Model, ModelError, ModelInfo, Reply, Request};
use posse_protocol::{CallId, Delta, Extra, Message, Part, Price, Stop, ToolCall, Usage};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

mod answer;
mod conversation;
mod definition;
mod follow_up;
mod found;
mod intent;
mod language;
mod manifest;
mod notes;
mod place;
mod plan;
mod question;
mod rank;
mod readme;
mod shape;
mod summary;
mod words;

/// What the offline model is called.
pub const ID: &str = "offline/planner";

/// Bytes that count as one token.
const BYTES_PER_TOKEN: usize = 4;

/// The offline model.
#[derive(Debug)]
pub struct Offline {
    info: ModelInfo,
}

impl Offline {
    /// The offline model.
    pub fn new() -> Self {
        let price = Price::default();
        Offline {
            info: ModelInfo {
                id: ID.to_owned(),
                context_window: 1_000_000,
                max_output: 16_000,
                price,
            },
        }
    }
}

impl Default for Offline {
    fn default() -> Self {
        Offline::new()
    }
}

#[async_trait]
impl Model for Offline {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn call(
        &self,
        request: Request,
        deltas: DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let (text, calls) = reply(&request);
        let stop = if calls.is_empty() { Stop::End } else { Stop::ToolUse };
        let mut parts = Vec::with_capacity(calls.len() + 1);
        if !text.is_empty() {
            for piece in text.split_inclusive('\n') {
                deltas(Delta::Text { text: piece.to_owned() });
            }
            parts.push(Part::text(text));
        }
        parts.extend(calls.into_iter().map(Part::ToolCall));
        let output: usize = parts.iter().map(weigh).sum();
        let usage = Usage {
            input_tokens: tokens(weigh_request(&request)),
            output_tokens: tokens(output),
            ..Usage::default()
        };
        let message = Message::from_model(WIRE, parts);
        Ok(Reply { message, stop, usage, request_id: None, service_tier: None, rate_limits: None })
    }
}

/// What to say and to call.
fn reply(request: &Request) -> (String, Vec<ToolCall>) {
    let conversation = Conversation::read(&request.messages);
    if conversation.summary_wanted {
        return (summary::of(&conversation), Vec::new());
    }
    let root = conversation::working_folder(&request.system);
    let (question, intent) = follow_up::resolve(&conversation.asked, root);
    let mut notes = Notes::new(&request.tools, &conversation);
    let specialists = conversation::specialists(&request.system, &request.tools);
    let handed = conversation.handed_on(&specialists).filter(|_| notes.can_delegate());
    let looks = handed.is_none() && !matches!(intent, Intent::Help | Intent::Foreign);
    if looks && !notes.can_look() {
        let mut answer = answer::Answer::new();
        answer.say(
            "I have no tools to look at files with (Grep, Glob, List or Read), and without them I \
                know nothing.",
        );
        return (shaped(answer.finish(&[]), request), Vec::new());
    }
    let pursue = |notes: &mut Notes<'_>| match &handed {
        Some((agents, task)) => plan::hand_on(agents, task, notes),
        None if intent == Intent::Help => Some(plan::help(&specialists)),
        None => plan::pursue(&question, intent, notes),
    };
    let mut found = pursue(&mut notes);
    if found.is_none() && !notes.has_wanted() {
        // A plan that neither ends nor wants calls has to end.
        notes.close();
        found = pursue(&mut notes);
    }
    match found {
        Some(mut answer) => {
            if looks && question.has_material() && !matches!(intent, Intent::Decline(_)) {
                answer.say(
                    "I answered from the files here. I did not read the text that came with the \
                        question.",
                );
            }
            if looks && !notes.can_search() {
                answer.say(
                    "I could not search inside files: this agent does not have the tool Grep.",
                );
            }
            (shaped(answer.finish(notes.gaps()), request), Vec::new())
        }
        None => {
            let first = conversation.replies == 0 && handed.is_none();
            let text = if first { plan::intention(&question, intent) } else { String::new() };
            let stamp = fingerprint(request);
            let calls = notes.wanted().into_iter().enumerate().map(|(at, wanted)| ToolCall {
                id: CallId(format!("offline_{stamp:016x}_{at}")),
                name: wanted.tool.to_owned(),
                input: wanted.input,
                extra: Extra::default(),
            });
            (text, calls.collect())
        }
    }
}

/// The answer within the allowed tokens. If the schema is an object with one text, the answer has
/// this form. Other forms would need values that the plan did not look up.
fn shaped(mut text: String, request: &Request) -> String {
    let limit =
        usize::try_from(request.max_tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub(4)));
        text.push('…');
    }
    let Some(schema) = request.output_schema.as_deref() else { return text };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match required.as_slice() {
        [name] if schema["properties"][name]["type"] == "string" => {
            json!({(*name): text}).to_string()
        }
        _ => text,
    }
}

/// A hash (FNV-1a) of a request, so that calls of one run have different ids even after a summary
/// replaced its beginning.
fn fingerprint(request: &Request) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut mix = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for message in &request.messages {
        for part in &message.parts {
            match part {
                Part::Text(text) => mix(text.text.as_bytes()),
                Part::ToolCall(call) => mix(call.id.0.as_bytes()),
                Part::ToolResult(result) => mix(result.call.0.as_bytes()),
                _ => mix(b"."),
            }
        }
    }
    hash
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

fn weigh_request(request: &Request) -> usize {
    let messages = request.messages.iter().flat_map(|message| &message.parts);
    let tools = request.tools.iter().map(|tool| tool.description.len() + tool.schema.text().len());
    request.system.len() + messages.map(weigh).sum::<usize>() + tools.sum::<usize>()
}

fn weigh(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.text.len(),
        Part::ToolCall(call) => call.name.len() + call.input.to_string().len(),
        Part::ToolResult(result) => result.parts.iter().map(weigh).sum(),
        Part::Thinking(thinking) => thinking.text.len(),
        Part::Image { data, .. } | Part::Document { data, .. } => data.len(),
        Part::Opaque { .. } => 0,
    }
}
