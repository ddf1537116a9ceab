//! An answer as one `chat.completion`.

use crate::json::push_string;
use crate::spoken::{SpokenBlock, Tokens};
use crate::wire::dialogue::Voice;
use crate::wire::openai::CREATED;

/// The completion that answers a request without a stream.
pub(super) fn completion(voice: &Voice<'_>) -> String {
    let mut out = String::with_capacity(768);
    open(&mut out, voice, "chat.completion");
    out.push_str(r#","choices":[{"index":0,"message":{"role":"assistant","content":"#);
    push_content(&mut out, voice);
    push_rest(&mut out, voice);
    out.push_str(r#","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"#);
    push_string(&mut out, finish_reason(voice));
    out.push_str(r#"}],"usage":"#);
    push_usage(&mut out, &voice.spoken.usage);
    out.push('}');
    out
}

/// A completion or a chunk of one, up to its choices, not closed.
pub(super) fn open(out: &mut String, voice: &Voice<'_>, object: &str) {
    out.push_str(&format!(r#"{{"id":"chatcmpl-fake-{}","object":"{object}""#, voice.turn));
    out.push_str(&format!(r#","created":{CREATED},"model":"#));
    push_string(out, voice.model);
    out.push_str(r#","service_tier":"default","system_fingerprint":"fp_fake""#);
}

pub(super) fn finish_reason<'a>(voice: &'a Voice<'_>) -> &'a str {
    voice.stop_reason("tool_calls", "stop")
}

/// Whether anything is said aloud.
pub(super) fn speaks(voice: &Voice<'_>) -> bool {
    voice.spoken.blocks.iter().any(|block| matches!(block, SpokenBlock::Text(_)))
}

pub(super) fn push_usage(out: &mut String, tokens: &Tokens) {
    out.push_str(&format!(
        r#"{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"#,
        tokens.prompt(),
        tokens.output,
        tokens.total()
    ));
    out.push_str(&format!(
        r#""prompt_tokens_details":{{"cached_tokens":{},"cache_write_tokens":{},"audio_tokens":0}},"#,
        tokens.cache_read, tokens.cache_write
    ));
    out.push_str(&format!(
        r#""completion_tokens_details":{{"reasoning_tokens":{},"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}}"#,
        tokens.reasoning
    ));
}

/// The members of an object, without its braces.
pub(super) fn members(object: &str) -> &str {
    let inner = object.strip_prefix('{').and_then(|object| object.strip_suffix('}'));
    inner.unwrap_or_default().trim()
}

fn push_content(out: &mut String, voice: &Voice<'_>) {
    if !speaks(voice) {
        out.push_str("null");
        return;
    }
    let texts = voice.spoken.blocks.iter().filter_map(|block| match block {
        SpokenBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    push_string(out, &texts.collect::<String>());
}

/// What a message has besides its content: reasoning, calls, and members of the script's own.
fn push_rest(out: &mut String, voice: &Voice<'_>) {
    let mut reasoning = String::new();
    let mut calls = String::new();
    let mut own = String::new();
    for block in &voice.spoken.blocks {
        match block {
            SpokenBlock::Text(_) => {}
            SpokenBlock::Thinking { text, .. } => reasoning.push_str(text),
            SpokenBlock::ToolCall { id, name, input } => {
                let comma = if calls.is_empty() { "" } else { "," };
                calls.push_str(comma);
                calls.push_str(r#"{"id":"#);
                push_string(&mut calls, id.as_str());
                calls.push_str(r#","type":"function","function":{"name":"#);
                push_string(&mut calls, name);
                calls.push_str(r#","arguments":"#);
                push_string(&mut calls, input);
                calls.push_str("}}");
            }
            SpokenBlock::Raw(json) if members(json).is_empty() => {}
            SpokenBlock::Raw(json) => {
                own.push(',');
                own.push_str(members(json));
            }
        }
    }
    if !reasoning.is_empty() {
        out.push_str(r#","reasoning_content":"#);
        push_string(out, &reasoning);
    }
    if !calls.is_empty() {
        out.push_str(r#","tool_calls":["#);
        out.push_str(&calls);
        out.push(']');
    }
    out.push_str(&own);
}
