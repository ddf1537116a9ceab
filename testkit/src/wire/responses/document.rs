//! An answer as one `response` object.

use crate::json::push_string;
use crate::spoken::{SpokenBlock, Tokens};
use crate::wire::dialogue::Voice;
use crate::wire::openai::CREATED;

/// Whether reasoning comes in the form that can be sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encrypted {
    Given,
    KeptBack,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending<'a> {
    Completed,
    Failed,
    /// And why.
    Incomplete(&'a str),
}

impl<'a> Ending<'a> {
    pub(super) fn of(voice: &'a Voice<'_>) -> Self {
        match voice.spoken.stop_reason {
            None | Some("completed") => Ending::Completed,
            Some("failed") => Ending::Failed,
            Some(reason) => Ending::Incomplete(reason),
        }
    }

    pub(super) fn status(self) -> &'static str {
        match self {
            Ending::Completed => "completed",
            Ending::Failed => "failed",
            Ending::Incomplete(_) => "incomplete",
        }
    }
}

/// The response to a request without a stream, and that at the end of a stream.
pub(super) fn response(voice: &Voice<'_>, encrypted: Encrypted) -> String {
    let mut out = String::with_capacity(1024);
    let ending = Ending::of(voice);
    open(&mut out, voice, ending.status());
    out.push_str(match ending {
        Ending::Failed => {
            r#","error":{"code":"server_error","message":"The script ends this response so."}"#
        }
        _ => r#","error":null"#,
    });
    out.push_str(r#","incomplete_details":"#);
    match ending {
        Ending::Incomplete(reason) => {
            out.push_str(r#"{"reason":"#);
            push_string(&mut out, reason);
            out.push('}');
        }
        _ => out.push_str("null"),
    }
    out.push_str(r#","output":["#);
    for (index, block) in voice.spoken.blocks.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_item(&mut out, block, &item_id(voice, index, block), encrypted);
    }
    out.push_str(r#"],"usage":"#);
    push_usage(&mut out, &voice.spoken.usage);
    out.push('}');
    out
}

/// A response that has only begun.
pub(super) fn begun(voice: &Voice<'_>) -> String {
    let mut out = String::with_capacity(512);
    open(&mut out, voice, "in_progress");
    out.push_str(r#","error":null,"incomplete_details":null,"output":[],"usage":null}"#);
    out
}

/// What a response has in any state, not closed.
fn open(out: &mut String, voice: &Voice<'_>, status: &str) {
    out.push_str(&format!(
        r#"{{"id":"resp_fake_{}","object":"response","created_at":{CREATED},"status":"{status}","model":"#,
        voice.turn
    ));
    push_string(out, voice.model);
    out.push_str(concat!(
        r#","background":false,"instructions":null,"max_output_tokens":null,"metadata":{},"#,
        r#""parallel_tool_calls":true,"previous_response_id":null,"#,
        r#""reasoning":{"effort":null,"summary":null},"service_tier":"default","store":false,"#,
        r#""temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"#,
        r#""top_p":1.0,"truncation":"disabled","user":null"#
    ));
}

/// The id of an item, which follows from its place.
pub(super) fn item_id(voice: &Voice<'_>, index: usize, block: &SpokenBlock<'_>) -> String {
    let prefix = match block {
        SpokenBlock::Text(_) => "msg",
        SpokenBlock::Thinking { .. } => "rs",
        SpokenBlock::ToolCall { .. } | SpokenBlock::Raw(_) => "fc",
    };
    format!("{prefix}_fake_{}_{index}", voice.turn)
}

/// An item, complete.
pub(super) fn push_item(out: &mut String, block: &SpokenBlock<'_>, id: &str, encrypted: Encrypted) {
    match block {
        SpokenBlock::Text(text) => {
            out.push_str(&format!(
                r#"{{"id":"{id}","type":"message","status":"completed","role":"assistant","content":["#
            ));
            push_text_part(out, text);
            out.push_str("]}");
        }
        SpokenBlock::Thinking { text, signature } => {
            out.push_str(&format!(r#"{{"id":"{id}","type":"reasoning","summary":["#));
            if !text.is_empty() {
                push_summary_part(out, text);
            }
            out.push(']');
            if encrypted == Encrypted::Given {
                out.push_str(r#","encrypted_content":"#);
                push_string(out, signature);
            }
            out.push('}');
        }
        SpokenBlock::ToolCall { id: call_id, name, input } => {
            open_call(out, id, "completed", call_id.as_str(), name);
            push_string(out, input);
            out.push('}');
        }
        SpokenBlock::Raw(json) => out.push_str(json),
    }
}

/// A call up to its arguments, not closed.
pub(super) fn open_call(out: &mut String, id: &str, status: &str, call_id: &str, name: &str) {
    out.push_str(&format!(
        r#"{{"id":"{id}","type":"function_call","status":"{status}","call_id":"#
    ));
    push_string(out, call_id);
    out.push_str(r#","name":"#);
    push_string(out, name);
    out.push_str(r#","arguments":"#);
}

pub(super) fn push_text_part(out: &mut String, text: &str) {
    out.push_str(r#"{"type":"output_text","annotations":[],"logprobs":[],"text":"#);
    push_string(out, text);
    out.push('}');
}

pub(super) fn push_summary_part(out: &mut String, text: &str) {
    out.push_str(r#"{"type":"summary_text","text":"#);
    push_string(out, text);
    out.push('}');
}

fn push_usage(out: &mut String, tokens: &Tokens) {
    out.push_str(&format!(
        r#"{{"input_tokens":{},"input_tokens_details":{{"cached_tokens":{},"cache_write_tokens":{}}},"#,
        tokens.prompt(),
        tokens.cache_read,
        tokens.cache_write
    ));
    out.push_str(&format!(
        r#""output_tokens":{},"output_tokens_details":{{"reasoning_tokens":{}}},"total_tokens":{}}}"#,
        tokens.output,
        tokens.reasoning,
        tokens.total()
    ));
}
