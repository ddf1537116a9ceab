//! The differences between providers of the same wire, as data from the catalog.

use serde::{Deserialize, Serialize};

/// The variant of a wire that a provider uses. The default suits a plain provider of each wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// How a request sets the reasoning effort.
    pub effort: EffortStyle,
    /// It accepts a JSON Schema for the answer.
    pub output_schema: bool,
    /// The field for the cap on output tokens (OpenAI Chat).
    pub output_cap: OutputCap,
    /// It wants reasoning back although it has no signature (OpenAI Chat).
    pub returns_reasoning: bool,
    /// It must be asked for usage in a stream (OpenAI Chat).
    pub stream_usage: bool,
    /// Which ids of calls it accepts (OpenAI Chat).
    pub call_ids: CallIds,
    /// It accepts cache marks in Anthropic's form (OpenAI Chat).
    pub cache_marks: bool,
    /// The name of the greatest effort, if efforts have names.
    pub top_effort: TopEffort,
    /// It gives `reasoning_details` and wants them back; others refuse the field (OpenAI Chat).
    pub reasoning_details: bool,
    /// It puts `extra_content` into tool calls and wants it back; others refuse the field (OpenAI
    /// Chat).
    pub extra_content: bool,
    /// It wants a message of the assistant between the results of tools and the user's next message
    /// (OpenAI Chat).
    pub assistant_after_results: bool,
    /// It always thinks, and its reasoning is only valid after an unchanged prefix (Anthropic).
    pub bound_thinking: bool,
    /// Which rules apply to it (Gemini).
    pub gemini: Gemini,
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
            top_effort: TopEffort::High,
            reasoning_details: false,
            extra_content: false,
            assistant_after_results: false,
            bound_thinking: false,
            gemini: Gemini::Two,
        }
    }
}

/// How a request sets the reasoning effort of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// The field for the cap on output tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputCap {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// Which ids of tool calls a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallIds {
    /// Any.
    Any,
    /// Exactly nine letters and digits.
    NineAlphanumeric,
}

/// The name of the greatest effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopEffort {
    /// `high`: it has no higher one.
    High,
    /// `xhigh`.
    Xhigh,
    /// `max`.
    Max,
}

/// Which rules of Gemini apply to a model: those of generation two, or those since generation
/// three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gemini {
    /// It accepts no schema for the answer beside tools, and no pictures inside results.
    Two,
    /// It accepts both, and refuses calls without a signature.
    Three,
}
