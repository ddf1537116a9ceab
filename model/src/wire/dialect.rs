//! What differs between providers that speak the same wire: data, read from the catalog.

use serde::Deserialize;

/// A provider's ways within its wire. The default suits a plain provider of each wire.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Dialect {
    /// How it is told how hard to think.
    pub effort: EffortStyle,
    /// It takes a JSON Schema for the answer.
    pub output_schema: bool,
    /// What it calls the cap on output tokens (OpenAI Chat).
    pub output_cap: OutputCap,
    /// It wants reasoning back although that has no signature (OpenAI Chat).
    pub returns_reasoning: bool,
    /// It must be asked for usage in a stream (OpenAI Chat).
    pub stream_usage: bool,
    /// What ids of calls it takes (OpenAI Chat).
    pub call_ids: CallIds,
    /// It takes cache marks of Anthropic's kind (OpenAI Chat).
    pub cache_marks: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Dialect {
            effort: EffortStyle::None,
            output_schema: false,
            output_cap: OutputCap::MaxTokens,
            returns_reasoning: false,
            stream_usage: true,
            call_ids: CallIds::Any,
            cache_marks: false,
        }
    }
}

/// How a model is told how hard to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffortStyle {
    /// Not at all.
    None,
    /// `reasoning_effort: "high"`.
    ReasoningEffort,
    /// `reasoning: {"effort": "high"}`.
    Reasoning,
    /// A number of tokens for thinking.
    ThinkingBudget,
    /// A named level of thinking: Gemini's `thinkingLevel`, Anthropic's adaptive thinking with
    /// `output_config.effort`.
    ThinkingLevel,
    /// `thinking: {"type": "enabled"}` or `"disabled"`.
    ThinkingSwitch,
    /// `enable_thinking: true` or `false`.
    EnableThinking,
}

/// What the cap on output tokens is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputCap {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// What ids of tool calls a provider takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallIds {
    /// Any.
    Any,
    /// Exactly nine letters and digits.
    NineAlphanumeric,
}
