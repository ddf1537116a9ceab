//! Forks: the messages of a run that takes over the conversation of another run.
//!
//! Pure. For the same agent and model, the fork is what that run's last request sent, byte for
//! byte, so that the vendor can use its prompt cache. For any other, it is normalised: calls of
//! tools that the new run does not have become text, and every call has its result. Open calls,
//! such as the one that asked for the fork, are left out.

use crate::compact::shortened;
use crate::transcript::{Transcript, weigh};
use posse_protocol::{CallId, Message, Part, Role, SeenFile, Seq, ToolCall, ToolResult};
use serde_json::Value;
use std::sync::Arc;

/// The heading of the separator.
pub const SEPARATOR_HEADING: &str = "[The conversation that you take over ends here]\n";

/// How much of a context window a fork may take, in percent.
const MOST_OF_WINDOW_PERCENT: u64 = 60;
/// How many characters of a call's input the text about it shows.
const TOLD_INPUT: usize = 120;

/// How a fork takes over a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For the same agent and model: the messages as they were sent.
    Verbatim,
    /// For another agent or model: only messages that it can follow.
    Normalised,
}

/// The messages and files that a run takes over from another run.
#[derive(Clone, Debug, PartialEq)]
pub struct Fork {
    /// The conversation, then the separator. The task follows them.
    pub messages: Vec<Message>,
    /// The files that the other run had read or written.
    pub seen: Vec<SeenFile>,
    /// The fork depends on the other run's log up to this position only. All calls of one reply
    /// have the same position.
    pub at: Seq,
    /// Tokens of the messages, estimated on the high side.
    pub tokens: u64,
}

impl Fork {
    /// True when the fork leaves enough room in a context window of `window` tokens.
    pub fn fits(&self, window: u64) -> bool {
        self.tokens <= window / 100 * MOST_OF_WINDOW_PERCENT
    }
}

/// The fork of `transcript` for a run that may call `may_call`: the whole conversation, or its last
/// `turns`. A turn begins with a message to the agent.
pub fn fork(transcript: &Transcript, form: Form, turns: Option<u32>, may_call: &[String]) -> Fork {
    let (taken, seen, at) = transcript.handed_over();
    let first = turns.map_or(0, |count| beginning_of_last(count, &taken));
    let taken = &taken[first..];
    let mut messages = match form {
        Form::Verbatim => taken.iter().map(|message| Message::clone(message)).collect(),
        Form::Normalised => normalised(taken, may_call),
    };
    messages.push(separator(may_call, form));
    let bytes = messages.iter().map(|message| weigh(&message.parts)).sum();
    Fork { messages, seen: seen.list(), at, tokens: transcript.tokens_of(bytes) }
}

/// The message between the conversation and the task. It says whose conversation it was, and which
/// tools the run may call.
pub fn separator(may_call: &[String], form: Form) -> Message {
    let tools = match may_call {
        [] => "You may call no tool".to_owned(),
        names => format!("The only tools you may call are: {}", names.join(", ")),
    };
    let rest = match form {
        Form::Verbatim => {
            "Any other tool shown to you is not available to you; calling it is refused"
        }
        Form::Normalised => {
            "Where the other agent used a tool that you do not have, a line in brackets says what \
             it did; never write such a line yourself"
        }
    };
    Message::user(format!(
        "{SEPARATOR_HEADING}Whatever stands above is the conversation of the agent that called \
         you, up to that moment. It is there for you to know; going on with it is not your task. \
         Your task follows: do it alone, and give the result as your final answer. {tools}. {rest}."
    ))
}

/// The index where the last `count` turns begin.
fn beginning_of_last(count: u32, messages: &[Arc<Message>]) -> usize {
    let speaks = |index: usize| {
        let message = &messages[index];
        message.role == Role::User && results_of(message).next().is_none()
    };
    // Consecutive messages begin one turn.
    let begins = |index: &usize| speaks(*index) && (*index == 0 || !speaks(*index - 1));
    match count.checked_sub(1) {
        Some(earlier) => {
            (0..messages.len()).rev().filter(begins).nth(earlier as usize).unwrap_or(0)
        }
        None => messages.len(),
    }
}

/// `messages` in a form that any model can follow, for an agent that may call `may_call`.
fn normalised(messages: &[Arc<Message>], may_call: &[String]) -> Vec<Message> {
    let mut out = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        match message.role {
            // Results are left out here; they come with their calls.
            Role::User => out.extend(said_by_user(message)),
            Role::Assistant => {
                let answers = after.iter().take_while(|message| message.role == Role::User);
                let results = answers.flat_map(|message| results_of(message)).collect();
                let (said, kept) = retold(message, results, may_call);
                out.extend([(Role::Assistant, said), (Role::User, kept)].into_iter().filter_map(
                    |(role, parts)| (!parts.is_empty()).then(|| Message::new(role, parts)),
                ));
            }
        }
    }
    out
}

/// The message of a person, if it has any content.
fn said_by_user(message: &Message) -> Option<Message> {
    let parts: Vec<Part> = message.parts.iter().filter(|part| is_plain(part)).cloned().collect();
    (!parts.is_empty()).then(|| Message { parts, ..message.clone() })
}

/// A reply in a form for another model, and the results of the calls that are kept. Reasoning and
/// vendor-specific parts are left out, because their signatures hold only in the original conversation.
fn retold(
    message: &Message,
    mut results: Vec<&ToolResult>,
    may_call: &[String],
) -> (Vec<Part>, Vec<Part>) {
    let mut said = Vec::with_capacity(message.parts.len());
    let mut kept = Vec::new();
    // Text goes before calls, so that results follow their calls directly.
    let mut first_call = None;
    for part in &message.parts {
        match part {
            Part::Text(text) if is_plain(part) => said.push(Part::text(text.text.clone())),
            Part::ToolCall(call) => {
                let Some(result) = take_result(&mut results, &call.id) else { continue };
                if may_call.contains(&call.name) {
                    first_call.get_or_insert(said.len());
                    let call = ToolCall { extra: Default::default(), ..call.clone() };
                    said.push(Part::ToolCall(call));
                    kept.push(Part::ToolResult(result.clone()));
                } else {
                    let at = first_call.as_mut().map_or(said.len(), |at| {
                        *at += 1;
                        *at - 1
                    });
                    said.insert(at, Part::text(told(call, result)));
                }
            }
            _ if is_plain(part) => said.push(part.clone()),
            _ => {}
        }
    }
    (said, kept)
}

/// True for parts that every model understands.
fn is_plain(part: &Part) -> bool {
    match part {
        Part::Text(text) => !text.text.trim().is_empty(),
        Part::Image { .. } | Part::Document { .. } => true,
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Opaque { .. } => false,
    }
}

fn results_of(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    })
}

/// Removes and returns the first of `results` that answers `call`. Some models use an id twice.
fn take_result<'a>(results: &mut Vec<&'a ToolResult>, call: &CallId) -> Option<&'a ToolResult> {
    let index = results.iter().position(|result| result.call == *call)?;
    Some(results.remove(index))
}

/// One line of text about a call.
fn told(call: &ToolCall, result: &ToolResult) -> String {
    let name = one_line(&call.name);
    let failed = if result.is_error { ", which failed" } else { "" };
    match telling(&call.input) {
        Some(input) => format!("[used {name}: {}{failed}]", one_line(&input)),
        None => format!("[used {name}{failed}]"),
    }
}

/// The most informative part of an input: its first text, or all of it if it has no text.
fn telling(input: &Value) -> Option<String> {
    let texts = match input {
        Value::String(text) => return Some(text.clone()),
        Value::Object(fields) => fields.values().filter_map(Value::as_str),
        _ => return Some(input.to_string()),
    };
    let mut texts = texts.filter(|text| !text.trim().is_empty());
    let is_empty = input.as_object().is_some_and(|fields| fields.is_empty());
    texts.next().map(str::to_owned).or_else(|| (!is_empty).then(|| input.to_string()))
}

fn one_line(text: &str) -> String {
    // The text may be a whole file, and only its beginning is shown.
    let beginning: String = text.chars().take(8 * TOLD_INPUT).collect();
    let words: Vec<&str> = beginning.split_whitespace().collect();
    shortened(&words.join(" "), TOLD_INPUT)
}
