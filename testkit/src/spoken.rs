//! A reply with the request's words filled in: what is said, before any wire format.

use crate::ask::Ask;
use crate::script::{Block, Usage};

/// What the fake model says to one request.
pub(crate) struct Spoken<'a> {
    pub(crate) blocks: Vec<SpokenBlock<'a>>,
    pub(crate) stop_reason: Option<&'a str>,
    pub(crate) usage: Tokens,
}

pub(crate) enum SpokenBlock<'a> {
    Text(String),
    Thinking {
        text: String,
        signature: &'a str,
    },
    /// `input` is JSON text.
    ToolCall {
        id: String,
        name: &'a str,
        input: String,
    },
    /// JSON text.
    Raw(String),
}

/// The usage of a reply, complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_creation: u64,
    pub(crate) cache_read: u64,
}

impl<'a> Spoken<'a> {
    pub(crate) fn new(
        ask: &Ask<'_>,
        blocks: &'a [Block],
        stop_reason: Option<&'a str>,
        usage: &Usage,
    ) -> Self {
        let mut calls = 0;
        let blocks: Vec<SpokenBlock<'a>> = blocks
            .iter()
            .map(|block| match block {
                Block::Text(text) => SpokenBlock::Text(text.fill(ask)),
                Block::Thinking { text, signature } => {
                    SpokenBlock::Thinking { text: text.fill(ask), signature }
                }
                Block::ToolCall { id, name, input } => {
                    let index = calls;
                    calls += 1;
                    let id = id.clone().unwrap_or_else(|| call_id(ask, index));
                    SpokenBlock::ToolCall { id, name, input: input.fill(ask) }
                }
                Block::Raw(block) => SpokenBlock::Raw(block.to_string()),
            })
            .collect();
        let characters: usize = blocks.iter().map(SpokenBlock::characters).sum();
        let usage = Tokens {
            input: usage.input_tokens.unwrap_or_else(|| a_quarter_of(ask.body.len())),
            output: usage.output_tokens.unwrap_or_else(|| a_quarter_of(characters)),
            cache_creation: usage.cache_creation_input_tokens.unwrap_or_default(),
            cache_read: usage.cache_read_input_tokens.unwrap_or_default(),
        };
        Spoken { blocks, stop_reason, usage }
    }

    pub(crate) fn calls_tools(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, SpokenBlock::ToolCall { .. }))
    }
}

impl SpokenBlock<'_> {
    fn characters(&self) -> usize {
        match self {
            SpokenBlock::Text(text) | SpokenBlock::Thinking { text, .. } => text.chars().count(),
            SpokenBlock::ToolCall { input: json, .. } | SpokenBlock::Raw(json) => {
                json.chars().count()
            }
        }
    }
}

/// An id that follows from the place in the conversation, so that a repeated request gets the
/// same one. Where a compacted transcript kept a call of the same place, it is told apart.
fn call_id(ask: &Ask<'_>, index: usize) -> String {
    let plain = format!("toolu_{}_{index}", ask.turn);
    let taken = |id: &str| ask.messages.iter().any(|said| said.calls.contains(&id));
    if !taken(&plain) {
        return plain;
    }
    let others = (1..).map(|attempt: u64| format!("{plain}_{attempt}"));
    others.into_iter().find(|id| !taken(id)).unwrap_or(plain)
}

fn a_quarter_of(count: usize) -> u64 {
    u64::try_from(count.div_ceil(4)).unwrap_or(u64::MAX)
}
