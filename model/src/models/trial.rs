//! One real call of a model, to check that it works: an answer, or a call of a tool.

use parking_lot::Mutex;
use posse_agent::{Model, ModelError, Request};
use posse_protocol::{Delta, Effect, Message, Stop, ToolSpec, Usage};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Tokens the reply may have: some models think before they say one word.
const MAX_TOKENS: u64 = 2_048;

/// The word that is asked for.
const WORD: &str = "ready";

/// The result of a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The text of the reply.
    pub text: String,
    /// Whether it called the offered tool with the right argument; `None` if no tool was offered.
    pub called_tool: Option<bool>,
    /// Why it stopped.
    pub stop: Stop,
    /// How long it took until the first piece of the reply.
    pub first: Option<Duration>,
    /// How long the whole reply took.
    pub took: Duration,
    /// The tokens and the cost.
    pub usage: Usage,
    /// The id that the provider gave the request.
    pub request_id: Option<String>,
}

/// Whether a tool is offered in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// One tool, which the model is asked to call.
    Tool,
    /// No tool; the model is asked for a word.
    Nothing,
}

/// Calls `model` once.
///
/// # Errors
/// When the call fails; it is not retried.
pub async fn try_out(
    model: &dyn Model,
    offer: Offer,
    cancel: &CancellationToken,
) -> Result<Trial, ModelError> {
    let (prompt, tools) = match offer {
        Offer::Tool => {
            (format!("Call the tool `report` once, with the word `{WORD}`."), vec![report()])
        }
        Offer::Nothing => (format!("Answer with one word: {WORD}"), Vec::new()),
    };
    let request = Request {
        system: "You are being tested for whether you can be reached. Be brief.".into(),
        messages: vec![Arc::new(Message::user(prompt))],
        tools: tools.into(),
        max_tokens: MAX_TOKENS.min(model.info().max_output),
        effort: None,
        output_schema: None,
    };
    let began = Instant::now();
    let first = Mutex::new(None);
    let listen = |_: Delta| {
        first.lock().get_or_insert(began.elapsed());
    };
    let reply = model.call(request, &listen, cancel).await?;
    let called = reply.message.tool_calls().any(|call| {
        call.name == "report" && call.input.get("word").is_some_and(|word| word == WORD)
    });
    Ok(Trial {
        text: reply.message.text(),
        called_tool: (offer == Offer::Tool).then_some(called),
        stop: reply.stop,
        first: first.into_inner(),
        took: began.elapsed(),
        usage: reply.usage,
        request_id: reply.request_id,
    })
}

fn report() -> ToolSpec {
    ToolSpec::new(
        "report",
        "Reports a word.",
        Effect::Read,
        json!({
            "type": "object",
            "properties": {"word": {"type": "string", "description": "The word to report"}},
            "required": ["word"],
            "additionalProperties": false,
        }),
    )
}
