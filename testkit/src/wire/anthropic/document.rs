//! Answers as one JSON document.

use crate::json::push_string;
use crate::spoken::{SpokenBlock, Tokens};
use crate::wire::dialogue::Voice;
use crate::wire::refusal::Refusal;

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
    push_string(&mut out, stop_reason(voice));
    out.push_str(r#","stop_sequence":null,"usage":"#);
    push_usage(&mut out, &voice.spoken.usage);
    out.push('}');
    out
}

/// The document that goes with an HTTP error.
pub(in crate::wire) fn error(refusal: &Refusal, request_id: &str) -> String {
    let mut out = String::from(r#"{"type":"error","error":{"type":"#);
    push_string(&mut out, refusal.kind.as_deref().unwrap_or_else(|| error_type(refusal.status)));
    out.push_str(r#","message":"#);
    push_string(&mut out, &refusal.message);
    out.push_str(r#"},"request_id":"#);
    push_string(&mut out, request_id);
    out.push('}');
    out
}

/// A message up to its content, not closed.
pub(super) fn open_message(out: &mut String, voice: &Voice<'_>) {
    out.push_str(r#"{"id":"#);
    // Follows from the place in the conversation, as the ids of tool calls do.
    push_string(out, &format!("msg_fake_{}", voice.turn));
    out.push_str(r#","type":"message","role":"assistant","model":"#);
    push_string(out, voice.model);
}

pub(super) fn stop_reason<'a>(voice: &'a Voice<'_>) -> &'a str {
    voice.stop_reason("tool_use", "end_turn")
}

pub(super) fn push_usage(out: &mut String, tokens: &Tokens) {
    let for_an_hour = tokens.cache_write_for_an_hour;
    let for_minutes = tokens.cache_write.saturating_sub(for_an_hour);
    out.push_str(&format!(
        r#"{{"input_tokens":{},"cache_creation_input_tokens":{},"cache_read_input_tokens":{},"cache_creation":{{"ephemeral_5m_input_tokens":{for_minutes},"ephemeral_1h_input_tokens":{for_an_hour}}},"#,
        tokens.input, tokens.cache_write, tokens.cache_read
    ));
    push_output(out, tokens);
    out.push_str(r#","service_tier":"standard"}"#);
}

/// The members of a usage that tell what was written.
pub(super) fn push_output(out: &mut String, tokens: &Tokens) {
    out.push_str(&format!(r#""output_tokens":{}"#, tokens.output));
    if tokens.reasoning > 0 {
        let thinking = tokens.reasoning;
        out.push_str(&format!(r#","output_tokens_details":{{"thinking_tokens":{thinking}}}"#));
    }
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
            push_string(out, id.as_str());
            out.push_str(r#","name":"#);
            push_string(out, name);
            out.push_str(r#","input":"#);
            out.push_str(input);
            out.push('}');
        }
        SpokenBlock::Raw(json) => out.push_str(json),
    }
}

fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}
