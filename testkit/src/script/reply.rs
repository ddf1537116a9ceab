//! Replies: what the fake model says, how slowly, and what holds it back.

use super::template::Template;
use crate::gate::Gate;
use crate::script::fault::{Fault, UnknownFault};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// Headers that belong to the framing of a response, which a script must not contradict.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

/// One answer of the fake model: a message made of blocks in the order they were added, or an
/// HTTP error.
///
/// Texts, thinking and tool inputs may hold `{{last_user}}`, `{{last_tool_result}}`, `{{last_run}}` and
/// `{{turn}}`. An error has no stop reason and no usage: there, those two say nothing.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) body: Body,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) latency: Duration,
    pub(crate) token_delay: Duration,
    pub(crate) held_by: Option<Gate>,
    pub(crate) held_after: Option<(usize, Gate)>,
    /// Its fault. The server refuses to start with an unknown name.
    fault: Option<Result<&'static Fault, UnknownFault>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Message { blocks: Vec<Block>, stop_reason: Option<String>, usage: Usage },
    Error { status: u16, kind: Option<String>, message: String },
}

#[derive(Clone, Debug)]
pub(crate) enum Block {
    Text(Template),
    /// Without a signature, one is made up for the text.
    Thinking {
        text: Template,
        signature: Option<String>,
    },
    ToolCall {
        id: Option<String>,
        name: String,
        input: Template,
    },
    Raw(Value),
}

impl Block {
    /// Whether it holds words of the request.
    pub(crate) fn quotes(&self) -> bool {
        match self {
            Block::Text(text)
            | Block::Thinking { text, .. }
            | Block::ToolCall { input: text, .. } => text.quotes(),
            Block::Raw(_) => false,
        }
    }
}

/// Tokens that a reply claims to have cost. What is not given is computed: a token per four
/// bytes of the prompt, or four characters of the reply. A claim about what was read replaces all
/// that the emulated cache says: then, what is not given was not cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens read that were in no cache.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Tokens written to the cache.
    pub cache_creation_input_tokens: Option<u64>,
    /// Tokens read from the cache.
    pub cache_read_input_tokens: Option<u64>,
    /// The part of the tokens written that is thinking.
    pub reasoning_tokens: Option<u64>,
}

impl Reply {
    /// A message without any content; add blocks to it.
    pub fn empty() -> Self {
        let body = Body::Message { blocks: Vec::new(), stop_reason: None, usage: Usage::default() };
        Reply {
            body,
            headers: Vec::new(),
            latency: Duration::ZERO,
            token_delay: Duration::ZERO,
            held_by: None,
            held_after: None,
            fault: None,
        }
    }

    /// A message of one text.
    pub fn text(text: &str) -> Self {
        Self::empty().and_text(text)
    }

    /// A message of one tool call.
    pub fn tool_call(name: &str, input: Value) -> Self {
        Self::empty().and_tool_call(name, input)
    }

    /// A message that begins with thinking.
    pub fn thinking(text: &str) -> Self {
        Self::empty().and_thinking(text)
    }

    /// An HTTP error with the error type that goes with its status. Content added later makes it
    /// a message again.
    pub fn error(status: u16, message: &str) -> Self {
        let body = Body::Error { status, kind: None, message: message.to_owned() };
        Reply { body, ..Self::empty() }
    }

    /// An HTTP error with an error type of one's own.
    pub fn error_of_type(status: u16, error_type: &str, message: &str) -> Self {
        let kind = Some(error_type.to_owned());
        Reply { body: Body::Error { status, kind, message: message.to_owned() }, ..Self::empty() }
    }

    /// Adds a text.
    pub fn and_text(self, text: &str) -> Self {
        self.and(Block::Text(Template::plain(text)))
    }

    /// Adds thinking, with a made-up signature.
    pub fn and_thinking(self, text: &str) -> Self {
        self.and(Block::Thinking { text: Template::plain(text), signature: None })
    }

    /// Adds thinking with this signature.
    pub fn and_signed_thinking(self, text: &str, signature: &str) -> Self {
        let text = Template::plain(text);
        self.and(Block::Thinking { text, signature: Some(signature.to_owned()) })
    }

    /// Adds a tool call. Its id follows from its place: `toolu_<turn>_<index among the calls>`, or
    /// `call_…` on the wires of OpenAI. On that of Gemini it has none.
    pub fn and_tool_call(self, name: &str, input: Value) -> Self {
        self.and(Block::ToolCall { id: None, name: name.to_owned(), input: Template::json(&input) })
    }

    /// Adds a tool call with this id.
    pub fn and_tool_call_with_id(self, id: &str, name: &str, input: Value) -> Self {
        self.and(Block::ToolCall {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            input: Template::json(&input),
        })
    }

    /// Adds an object of any kind, sent as it is and without deltas: a content block of
    /// Anthropic, an output item of OpenAI Responses, a part of Gemini. On OpenAI Chat, which has
    /// nothing of that kind, its members become members of the message.
    pub fn and_raw(self, block: Value) -> Self {
        self.and(Block::Raw(block))
    }

    /// Says this stop reason, in the wire's own word, in place of the usual one. On OpenAI
    /// Responses it is why the response is incomplete, or `completed` or `failed`.
    pub fn stop_reason(mut self, reason: &str) -> Self {
        if let Body::Message { stop_reason, .. } = &mut self.body {
            *stop_reason = Some(reason.to_owned());
        }
        self
    }

    /// Claims this usage.
    pub fn usage(mut self, claimed: Usage) -> Self {
        if let Body::Message { usage, .. } = &mut self.body {
            *usage = claimed;
        }
        self
    }

    /// Adds a response header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    /// Waits this long before the first byte.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Waits this long between two deltas of a stream.
    pub fn token_delay(mut self, delay: Duration) -> Self {
        self.token_delay = delay;
        self
    }

    /// Sends no byte before the gate is open.
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.held_by = Some(gate.clone());
        self
    }

    /// Stops a stream after this many deltas until the gate is open: 0 is right after the
    /// message has started. A stream with fewer deltas stops before its last event, and a reply
    /// that is no stream before its first byte.
    pub fn held_after_deltas(mut self, deltas: usize, gate: &Gate) -> Self {
        self.held_after = Some((deltas, gate.clone()));
        self
    }

    /// Goes wrong in this way, one of [`Fault::all`]. The server refuses to start with another
    /// name.
    pub fn fault(mut self, name: &str) -> Self {
        self.fault = Some(Fault::named(name));
        self
    }

    /// What goes wrong with it.
    pub(crate) fn faulty(&self) -> Option<&'static Fault> {
        self.fault.as_ref().and_then(|fault| fault.as_ref().ok().copied())
    }

    /// Whether it is sent as a stream of events, to a client that asked for one or did not.
    pub(crate) fn streams(&self, asked: Option<bool>) -> bool {
        (asked == Some(true)) != self.faulty().is_some_and(Fault::swaps_form)
    }

    fn and(mut self, block: Block) -> Self {
        if let Body::Message { blocks, .. } = &mut self.body {
            blocks.push(block);
            return self;
        }
        let body =
            Body::Message { blocks: vec![block], stop_reason: None, usage: Usage::default() };
        Reply { body, ..self }
    }

    /// What it says.
    pub(crate) fn blocks(&self) -> &[Block] {
        match &self.body {
            Body::Message { blocks, .. } => blocks,
            Body::Error { .. } => &[],
        }
    }

    /// Why it cannot be sent as it is written.
    pub(crate) fn problem(&self) -> Option<String> {
        if let Body::Error { status, .. } = self.body
            && !(400..600).contains(&status)
        {
            return Some(format!("status {status} is no HTTP error; give one from 400 to 599"));
        }
        if let Body::Message { blocks, .. } = &self.body
            && let Some(Block::Raw(raw)) =
                blocks.iter().find(|block| matches!(block, Block::Raw(raw) if !raw.is_object()))
        {
            return Some(format!("a raw block is an object, and {raw} is none"));
        }
        match &self.fault {
            Some(Err(unknown)) => return Some(unknown.to_string()),
            Some(Ok(fault)) => {
                if let Some(problem) = fault.problem_with(self) {
                    return Some(problem);
                }
            }
            None => {}
        }
        self.headers.iter().find_map(|(name, value)| {
            let token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(token) {
                Some(format!("{name:?} is no name for a header"))
            } else if value.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
                Some(format!("header {name}: its value holds a control character"))
            } else if FRAMING.contains(&name.as_str()) {
                Some(format!("header {name} is set by the server; leave it out"))
            } else {
                None
            }
        })
    }
}
