//! A prompt as its provider counts and caches it: one text, in the order of the cache, and where
//! its blocks end.

/// Bytes that count as one token.
pub(crate) const TOKEN: usize = 4;

/// What a request gives the model to read.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    text: Vec<u8>,
    blocks: Vec<Block>,
}

/// A block of a prompt: a tool, a piece of the system prompt, a piece of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Where it ends in the text.
    pub(crate) end: usize,
    /// The cache is asked to keep everything up to here.
    pub(crate) mark: Option<Lifetime>,
}

/// How long a cache is asked to keep a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    FiveMinutes,
    OneHour,
}

impl Prompt {
    /// Adds text to the present block.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Ends the present block.
    pub(crate) fn end_block(&mut self, mark: Option<Lifetime>) {
        self.blocks.push(Block { end: self.text.len(), mark });
    }

    /// Marks the last block, as a request does that leaves the place to the provider.
    pub(crate) fn mark_last_block(&mut self, lifetime: Lifetime) {
        if let Some(block) = self.blocks.last_mut() {
            block.mark.get_or_insert(lifetime);
        }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// How many tokens it counts as.
    pub(crate) fn tokens(&self) -> u64 {
        tokens(self.text.len())
    }
}

/// How many tokens this many bytes or characters count as.
pub(crate) fn tokens(length: usize) -> u64 {
    length.div_ceil(TOKEN) as u64
}
