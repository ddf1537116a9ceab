//! Thinking that comes back: signatures must be those that were given, and the blocks of the last
//! message of the model must be where they were, as long as the model thinks on.

use super::request::{Message, Messages};
use crate::issued::Trace;
use crate::spoken::{Spoken, SpokenBlock};
use crate::wire::dialogue::Witness;
use crate::wire::value::Text;
use serde_json::Value;

pub(super) fn check(request: &Messages<'_>, witness: &Witness<'_>) -> Result<(), String> {
    let messages = request.messages.iter().flatten().enumerate();
    let mut last = None;
    for (index, message) in messages {
        if message.role.as_deref() != Some("assistant") {
            continue;
        }
        check_signatures(index, message, witness)?;
        last = Some((index, message));
    }
    match last {
        Some((index, message)) if request.thinks() && witness.was_otherwise(trace_of(message)) => {
            let thinks = |kind: &str| matches!(kind, "thinking" | "redacted_thinking");
            let place = message.blocks().iter().position(|block| thinks(block.kind()));
            Err(format!(
                "messages.{index}.content.{}: `thinking` or `redacted_thinking` blocks in the \
                 latest assistant message cannot be modified. These blocks must remain as they \
                 were in the original response.",
                place.unwrap_or_default()
            ))
        }
        _ => Ok(()),
    }
}

fn check_signatures(
    index: usize,
    message: &Message<'_>,
    witness: &Witness<'_>,
) -> Result<(), String> {
    for (position, block) in message.blocks().iter().enumerate() {
        if block.kind() != "thinking" {
            continue;
        }
        let text = block.thinking.as_deref().unwrap_or_default();
        let signature = block.signature.as_deref().unwrap_or_default();
        if !witness.signed(text, signature) {
            return Err(format!(
                "messages.{index}.content.{position}: Invalid `signature` in `thinking` block: it \
                 was not made for this text, neither by this server nor by its script"
            ));
        }
    }
    Ok(())
}

fn of<'b>(text: &'b Option<Text<'_>>) -> &'b str {
    text.as_deref().unwrap_or_default()
}

fn trace_of(message: &Message<'_>) -> Trace {
    let mut trace = Trace::default();
    for block in message.blocks() {
        match block.kind() {
            "text" => trace.text(of(&block.text)),
            "tool_use" => trace.call(&[of(&block.id), of(&block.name)]),
            "thinking" => trace.reasoning(&[of(&block.thinking), of(&block.signature)]),
            "redacted_thinking" => trace.reasoning(&[of(&block.data)]),
            _ => {}
        }
    }
    trace
}

/// A reply, as [`trace_of`] finds it again.
pub(super) fn trace(spoken: &Spoken<'_>) -> Trace {
    let mut trace = Trace::default();
    for block in &spoken.blocks {
        match block {
            SpokenBlock::Text(text) => trace.text(text),
            SpokenBlock::ToolCall { id, name, .. } => trace.call(&[id.as_str(), name]),
            SpokenBlock::Thinking { text, signature } => trace.reasoning(&[text, signature]),
            SpokenBlock::Raw(json) => trace_raw(&mut trace, json),
        }
    }
    trace
}

fn trace_raw(trace: &mut Trace, json: &str) {
    let block: Value = serde_json::from_str(json).unwrap_or_default();
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match text("type") {
        "text" => trace.text(text("text")),
        "tool_use" => trace.call(&[text("id"), text("name")]),
        "thinking" => trace.reasoning(&[text("thinking"), text("signature")]),
        "redacted_thinking" => trace.reasoning(&[text("data")]),
        _ => {}
    }
}
