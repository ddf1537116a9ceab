//! Forks: what a run begins with that takes over another run's conversation.
//!
//! Pure. For the same agent and model it is what that run's last request sent, byte for byte, so
//! that the provider's prompt cache is read. For any other it is normalised: calls of tools that
//! the run does not have are told in words, and no call is without its result. Calls that are
//! still open, the one that asked for the fork among them, are never taken over.

use crate::compact::shortened;
use crate::transcript::{Transcript, weigh};
use posse_protocol::{CallId, Message, Part, Role, SeenFile, Seq, ToolCall, ToolResult};
use serde_json::Value;
use std::sync::Arc;

/// The words that a separator begins with.
pub const SEPARATOR_HEADING: &str = "[The conversation that you take over ends here]\n";

/// The share of a window that a fork may take, in percent.
const MOST_OF_WINDOW_PERCENT: u64 = 60;
/// Characters that are told of the input of a call.
const TOLD_INPUT: usize = 120;

/// How a conversation is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For the same agent and model: as it was sent.
    Verbatim,
    /// For another agent or model: what that one can follow.
    Normalised,
}

/// What a run takes over from another.
#[derive(Clone, Debug, PartialEq)]
pub struct Fork {
    /// The conversation and, last, the separator. The task comes after it.
    pub messages: Vec<Message>,
    /// The files that the other run had read or written.
    pub seen: Vec<SeenFile>,
    /// The log of the other run gives this fork up to here, whatever came later. The same for all
    /// calls of one reply.
    pub at: Seq,
    /// Tokens of the messages, estimated on the high side.
    pub tokens: u64,
}

impl Fork {
    /// True when it leaves enough of a window of so many tokens to work in.
    pub fn fits(&self, window: u64) -> bool {
        self.tokens <= window / 100 * MOST_OF_WINDOW_PERCENT
    }
}

/// What a run that may call `may_call` takes over from the run of `transcript`: all of it, or the
/// last `turns`. A turn begins where someone speaks to the agent.
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

/// What stands between a conversation that was taken over and the task: whose it was, and which
/// tools may be called.
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

/// Where the last `count` turns begin.
fn beginning_of_last(count: u32, messages: &[Arc<Message>]) -> usize {
    let speaks = |index: usize| {
        let message = &messages[index];
        message.role == Role::User && results_of(message).next().is_none()
    };
    // What is said in a row begins one turn.
    let begins = |index: &usize| speaks(*index) && (*index == 0 || !speaks(*index - 1));
    match count.checked_sub(1) {
        Some(earlier) => {
            (0..messages.len()).rev().filter(begins).nth(earlier as usize).unwrap_or(0)
        }
        None => messages.len(),
    }
}

/// `messages` as an agent can follow them that may call `may_call`, whatever its model.
fn normalised(messages: &[Arc<Message>], may_call: &[String]) -> Vec<Message> {
    let mut out = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        match message.role {
            // Results are not taken over from here, but with their calls.
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

/// What a person said, if there is anything to see.
fn said_by_user(message: &Message) -> Option<Message> {
    let parts: Vec<Part> = message.parts.iter().filter(|part| is_plain(part)).cloned().collect();
    (!parts.is_empty()).then(|| Message { parts, ..message.clone() })
}

/// What a model said, for another, and the results of the calls that are kept. Reasoning and what
/// only its own provider understands is left out: it is signed for the place where it stood.
fn retold(
    message: &Message,
    mut results: Vec<&ToolResult>,
    may_call: &[String],
) -> (Vec<Part>, Vec<Part>) {
    let mut said = Vec::with_capacity(message.parts.len());
    let mut kept = Vec::new();
    // Words stand before calls, so that results follow their calls directly.
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

/// True for what every model understands.
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

/// The first of `results` that answers `call`. Some models use an id twice.
fn take_result<'a>(results: &mut Vec<&'a ToolResult>, call: &CallId) -> Option<&'a ToolResult> {
    let index = results.iter().position(|result| result.call == *call)?;
    Some(results.remove(index))
}

/// One line that says what a call did.
fn told(call: &ToolCall, result: &ToolResult) -> String {
    let name = one_line(&call.name);
    let failed = if result.is_error { ", which failed" } else { "" };
    match telling(&call.input) {
        Some(input) => format!("[used {name}: {}{failed}]", one_line(&input)),
        None => format!("[used {name}{failed}]"),
    }
}

/// What says most about a call: its first text, or all of its input when there is none.
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
    // Only the beginning can be shown, and the text may be a whole file.
    let beginning: String = text.chars().take(8 * TOLD_INPUT).collect();
    let words: Vec<&str> = beginning.split_whitespace().collect();
    shortened(&words.join(" "), TOLD_INPUT)
}
