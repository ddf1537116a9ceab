//! A reply with the words of the request filled in, before it is encoded for a wire.

use crate::ask::Ask;
use crate::cache::Charge;
use crate::prompt::tokens;
use crate::script::{Block, Usage};
use crate::seal;
use std::borrow::Cow;

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
        signature: Cow<'a, str>,
    },
    /// `input` is JSON text.
    ToolCall {
        id: CallId<'a>,
        name: &'a str,
        input: String,
    },
    /// The JSON text of an object.
    Raw(String),
}

/// The id of a tool call.
pub(crate) enum CallId<'a> {
    /// The script says so.
    Given(&'a str),
    /// It follows from the place.
    MadeUp(String),
}

impl CallId<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            CallId::Given(id) => id,
            CallId::MadeUp(id) => id,
        }
    }
}

/// The usage of a reply, complete. The tokens of the prompt are those of `input`, `cache_write`
/// and `cache_read` together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    /// The part of `cache_write` that is kept for an hour.
    pub(crate) cache_write_for_an_hour: u64,
    pub(crate) output: u64,
    /// The part of `output` that is thinking.
    pub(crate) reasoning: u64,
}

impl Tokens {
    /// The whole prompt.
    pub(crate) fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Prompt and reply.
    pub(crate) fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    fn new(claimed: &Usage, charge: Charge, written: u64, thought: u64) -> Self {
        let output = claimed.output_tokens.unwrap_or(written);
        let reasoning = claimed.reasoning_tokens.unwrap_or(thought).min(output);
        let Usage { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, .. } =
            *claimed;
        let claims = [input_tokens, cache_creation_input_tokens, cache_read_input_tokens];
        if claims.iter().all(Option::is_none) {
            return Tokens {
                input: charge.fresh,
                cache_read: charge.read,
                cache_write: charge.written,
                cache_write_for_an_hour: charge.written_for_an_hour,
                output,
                reasoning,
            };
        }
        // If a script sets the tokens read, missing counts are zero.
        let whole = charge.fresh + charge.read + charge.written;
        Tokens {
            input: input_tokens.unwrap_or(whole),
            cache_read: cache_read_input_tokens.unwrap_or_default(),
            cache_write: cache_creation_input_tokens.unwrap_or_default(),
            cache_write_for_an_hour: 0,
            output,
            reasoning,
        }
    }
}

impl<'a> Spoken<'a> {
    /// `prefix` is how the ids of tool calls begin.
    pub(crate) fn new(
        ask: &Ask<'_>,
        blocks: &'a [Block],
        stop_reason: Option<&'a str>,
        usage: &Usage,
        charge: Charge,
        prefix: &str,
    ) -> Self {
        let mut calls = 0;
        let blocks: Vec<SpokenBlock<'a>> = blocks
            .iter()
            .map(|block| match block {
                Block::Text(text) => SpokenBlock::Text(text.fill(ask)),
                Block::Thinking { text, signature } => {
                    let text = text.fill(ask);
                    let own = signature.as_deref().map(Cow::Borrowed);
                    let signature = own.unwrap_or_else(|| Cow::Owned(seal::of(&text)));
                    SpokenBlock::Thinking { text, signature }
                }
                Block::ToolCall { id, name, input } => {
                    let index = calls;
                    calls += 1;
                    let id = match id {
                        Some(id) => CallId::Given(id),
                        None => CallId::MadeUp(call_id(prefix, ask, index)),
                    };
                    SpokenBlock::ToolCall { id, name, input: input.fill(ask) }
                }
                Block::Raw(block) => SpokenBlock::Raw(block.to_string()),
            })
            .collect();
        let characters: usize = blocks.iter().map(SpokenBlock::characters).sum();
        let thinks = |block: &&SpokenBlock<'_>| matches!(block, SpokenBlock::Thinking { .. });
        let thought: usize = blocks.iter().filter(thinks).map(SpokenBlock::characters).sum();
        let usage = Tokens::new(usage, charge, tokens(characters), tokens(thought));
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
fn call_id(prefix: &str, ask: &Ask<'_>, index: usize) -> String {
    let plain = format!("{prefix}_{}_{index}", ask.turn);
    let taken = |id: &str| ask.messages.iter().any(|said| said.calls.contains(&id));
    if !taken(&plain) {
        return plain;
    }
    let others = (1..).map(|attempt: u64| format!("{plain}_{attempt}"));
    others.into_iter().find(|id| !taken(id)).unwrap_or(plain)
}
