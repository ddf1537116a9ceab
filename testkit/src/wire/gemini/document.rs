//! Answers as one JSON document.

use crate::json::push_string;
use crate::spoken::{CallId, Spoken, SpokenBlock, Tokens};
use crate::wire::dialogue::Voice;
use crate::wire::refusal::Refusal;

/// The response to a request without a stream.
pub(super) fn response(voice: &Voice<'_>) -> String {
    let mut out = String::with_capacity(512);
    out.push_str(r#"{"candidates":[{"content":{"#);
    let mut before = r#""parts":["#;
    for (block, signature) in parts(&voice.spoken) {
        out.push_str(before);
        push_part(&mut out, block, signature);
        before = ",";
    }
    let thought = trailing_signature(&voice.spoken);
    if let Some(signature) = thought {
        out.push_str(before);
        push_text(&mut out, "", Some(signature));
        before = ",";
    }
    if before == "," {
        out.push_str("],");
    }
    out.push_str(r#""role":"model"},"finishReason":"#);
    push_string(&mut out, finish_reason(voice));
    out.push_str(r#","index":0}],"usageMetadata":"#);
    push_usage(&mut out, &voice.spoken.usage);
    close(&mut out, voice);
    out
}

/// The document that goes with an HTTP error.
pub(in crate::wire) fn error(refusal: &Refusal) -> String {
    let mut out = format!(r#"{{"error":{{"code":{},"message":"#, refusal.status);
    push_string(&mut out, &refusal.message);
    out.push_str(r#","status":"#);
    push_string(&mut out, refusal.kind.as_deref().unwrap_or_else(|| status(refusal.status)));
    if let Some(seconds) = refusal.retry_after {
        out.push_str(&format!(
            r#","details":[{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{seconds}s"}}]"#
        ));
    }
    out.push_str("}}");
    out
}

/// The blocks of a reply, each with the signature that it bears: that of the thinking before it.
pub(super) fn parts<'s, 'a>(
    spoken: &'s Spoken<'a>,
) -> impl Iterator<Item = (&'s SpokenBlock<'a>, Option<&'s str>)> {
    let mut waiting = None;
    spoken.blocks.iter().map(move |block| {
        let signature = match block {
            SpokenBlock::Thinking { signature, .. } => {
                waiting = Some(signature.as_ref());
                None
            }
            SpokenBlock::Raw(_) => None,
            SpokenBlock::Text(_) | SpokenBlock::ToolCall { .. } => waiting.take(),
        };
        (block, signature)
    })
}

/// The signature of thinking that nothing follows.
pub(super) fn trailing_signature<'s>(spoken: &'s Spoken<'_>) -> Option<&'s str> {
    match spoken.blocks.last() {
        Some(SpokenBlock::Thinking { signature, .. }) => Some(signature),
        _ => None,
    }
}

pub(super) fn finish_reason<'a>(voice: &'a Voice<'_>) -> &'a str {
    voice.stop_reason("STOP", "STOP")
}

/// What ends every response.
pub(super) fn close(out: &mut String, voice: &Voice<'_>) {
    out.push_str(r#","modelVersion":"#);
    push_string(out, voice.model);
    out.push_str(&format!(r#","responseId":"fake_{}"}}"#, voice.turn));
}

pub(super) fn push_part(out: &mut String, block: &SpokenBlock<'_>, signature: Option<&str>) {
    match block {
        SpokenBlock::Text(text) => push_text(out, text, signature),
        SpokenBlock::Thinking { text, .. } => push_thought(out, text),
        SpokenBlock::ToolCall { id, name, input } => {
            out.push_str(r#"{"functionCall":{"#);
            if let CallId::Given(id) = id {
                out.push_str(r#""id":"#);
                push_string(out, id);
                out.push(',');
            }
            out.push_str(r#""name":"#);
            push_string(out, name);
            out.push_str(r#","args":"#);
            out.push_str(input);
            out.push('}');
            push_signature(out, signature);
            out.push('}');
        }
        SpokenBlock::Raw(json) => out.push_str(json),
    }
}

pub(super) fn push_text(out: &mut String, text: &str, signature: Option<&str>) {
    out.push_str(r#"{"text":"#);
    push_string(out, text);
    push_signature(out, signature);
    out.push('}');
}

pub(super) fn push_thought(out: &mut String, text: &str) {
    out.push_str(r#"{"text":"#);
    push_string(out, text);
    out.push_str(r#","thought":true}"#);
}

fn push_signature(out: &mut String, signature: Option<&str>) {
    if let Some(signature) = signature {
        out.push_str(r#","thoughtSignature":"#);
        push_string(out, signature);
    }
}

pub(super) fn push_usage(out: &mut String, tokens: &Tokens) {
    let prompt = tokens.prompt();
    out.push_str(&format!(
        r#"{{"promptTokenCount":{prompt},"candidatesTokenCount":{},"totalTokenCount":{},"promptTokensDetails":[{{"modality":"TEXT","tokenCount":{prompt}}}]"#,
        tokens.output - tokens.reasoning,
        tokens.total()
    ));
    if tokens.cache_read > 0 {
        let read = tokens.cache_read;
        out.push_str(&format!(
            r#","cachedContentTokenCount":{read},"cacheTokensDetails":[{{"modality":"TEXT","tokenCount":{read}}}]"#
        ));
    }
    if tokens.reasoning > 0 {
        out.push_str(&format!(r#","thoughtsTokenCount":{}"#, tokens.reasoning));
    }
    out.push('}');
}

fn status(code: u16) -> &'static str {
    match code {
        400 | 413 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 | 405 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        500 => "INTERNAL",
        501 => "UNIMPLEMENTED",
        502 | 503 | 529 => "UNAVAILABLE",
        _ => "UNKNOWN",
    }
}
