//! Answers as one JSON document.

use super::Voice;
use crate::json::push_string;
use crate::spoken::{SpokenBlock, Tokens};

/// The message that answers a request without a stream.
pub(super) fn message(voice: &Voice<'_>) -> String {
    let mut out = String::with_capacity(512);
    open_message(&mut out, voice);
    out.push_str(r#","content":["#);
    for (index, block) in voice.spoken.blocks.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_block(&mut out, block);
    }
    out.push_str(r#"],"stop_reason":"#);
    push_string(&mut out, voice.stop_reason());
    out.push_str(r#","stop_sequence":null,"usage":"#);
    push_usage(&mut out, &voice.spoken.usage);
    out.push('}');
    out
}

/// The document that goes with an HTTP error.
pub(super) fn error(kind: &str, message: &str, request_id: &str) -> String {
    let mut out = String::from(r#"{"type":"error","error":{"type":"#);
    push_string(&mut out, kind);
    out.push_str(r#","message":"#);
    push_string(&mut out, message);
    out.push_str(r#"},"request_id":"#);
    push_string(&mut out, request_id);
    out.push('}');
    out
}

/// A message up to its content, not closed.
pub(super) fn open_message(out: &mut String, voice: &Voice<'_>) {
    out.push_str(r#"{"id":"#);
    push_string(out, &voice.message_id());
    out.push_str(r#","type":"message","role":"assistant","model":"#);
    push_string(out, voice.model);
}

pub(super) fn push_usage(out: &mut String, tokens: &Tokens) {
    out.push_str(&format!(
        r#"{{"input_tokens":{},"cache_creation_input_tokens":{},"cache_read_input_tokens":{},"output_tokens":{}}}"#,
        tokens.input, tokens.cache_creation, tokens.cache_read, tokens.output
    ));
}

fn push_block(out: &mut String, block: &SpokenBlock<'_>) {
    match block {
        SpokenBlock::Text(text) => {
            out.push_str(r#"{"type":"text","text":"#);
            push_string(out, text);
            out.push('}');
        }
        SpokenBlock::Thinking { text, signature } => {
            out.push_str(r#"{"type":"thinking","thinking":"#);
            push_string(out, text);
            out.push_str(r#","signature":"#);
            push_string(out, signature);
            out.push('}');
        }
        SpokenBlock::ToolCall { id, name, input } => {
            out.push_str(r#"{"type":"tool_use","id":"#);
            push_string(out, id);
            out.push_str(r#","name":"#);
            push_string(out, name);
            out.push_str(r#","input":"#);
            out.push_str(input);
            out.push('}');
        }
        SpokenBlock::Raw(json) => out.push_str(json),
    }
}
