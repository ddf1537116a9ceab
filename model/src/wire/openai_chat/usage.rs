//! Reads the token counts of vendors into counts that do not overlap.

use crate::wire::count::Count;
use posse_protocol::Usage;
use serde::Deserialize;

/// The counts in one chunk. Missing counts are zero.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    /// All tokens sent, cached or not.
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for what was cached.
    prompt_cache_hit_tokens: Count,
    /// Moonshot's name for it.
    cached_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
    /// Qwen's name for what was written.
    cache_creation_input_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

/// The counts of a reply so far, as vendors tell them.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    prompt: u64,
    completion: u64,
    total: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
}

impl Tally {
    /// Takes counts, which are sums so far: a later one is never smaller, unless it was left out.
    pub(super) fn raise(&mut self, counts: Option<Counts>) {
        let Some(counts) = counts else { return };
        let prompt = counts.prompt_tokens_details.unwrap_or_default();
        let completion = counts.completion_tokens_details.unwrap_or_default();
        let raise = |field: &mut u64, Count(count): Count| *field = (*field).max(count);
        raise(&mut self.prompt, counts.prompt_tokens);
        raise(&mut self.completion, counts.completion_tokens);
        raise(&mut self.total, counts.total_tokens);
        raise(&mut self.cache_read, prompt.cached_tokens);
        raise(&mut self.cache_read, counts.prompt_cache_hit_tokens);
        raise(&mut self.cache_read, counts.cached_tokens);
        raise(&mut self.cache_write, prompt.cache_write_tokens);
        raise(&mut self.cache_write, prompt.cache_creation_input_tokens);
        raise(&mut self.reasoning, completion.reasoning_tokens);
    }

    /// What was spent; its cost is not known here.
    pub(super) fn usage(self) -> Usage {
        let cached = self.cache_read + self.cache_write;
        // More cached than sent: this vendor does not include cached tokens in its sum.
        let input_tokens = self.prompt.checked_sub(cached).unwrap_or(self.prompt);
        // xAI does not include reasoning in the completion, as its total shows.
        let beside = self.total >= self.prompt + self.completion + self.reasoning
            || self.reasoning > self.completion;
        let output_tokens = self.completion + if beside { self.reasoning } else { 0 };
        Usage {
            input_tokens,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            output_tokens,
            reasoning_tokens: self.reasoning,
            ..Usage::default()
        }
    }
}
