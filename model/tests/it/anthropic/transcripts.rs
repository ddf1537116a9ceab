//! Streams as a provider sends them, and what reads them in tests.

use posse_agent::Reply;
use posse_model::fault::Fault;
use posse_model::sse::Events;
use posse_model::wire::anthropic::Decoder;
use posse_model::wire::{Decode, Progress};
use posse_protocol::{Delta, Price};
use std::sync::Mutex;

/// Everything at once: interleaved reasoning with signatures in pieces, redacted reasoning, a
/// server's tool with its result, citations, parallel calls with pieces that alternate and break
/// inside an escape, fields and events that nobody knows, comments and pings.
pub const RICH: &str = r#": connected

event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":340,"cache_read_input_tokens":5600,"cache_creation":{"ephemeral_5m_input_tokens":340},"output_tokens":1,"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"First, "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"look."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"CgIYAh=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKAhgB"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" \"weather\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"Weather","url":"https://example.com","encrypted_content":"EqgfCioI","page_age":null}]}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"text","text":"","citations":[]}}

event: something_new
data: {"type":"something_new","message":"not an object","index":"none"}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://example.com","cited_text":"Warm."}}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"It is warm — très chaud 🌡."}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://example.org","cited_text":"Hot."}}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: content_block_start
data: {"type":"content_block_start","index":5,"content_block":{"type":"thinking","thinking":"","signature":"","depth":2}}

event: content_block_delta
data: {"type":"content_block_delta","index":5,"delta":{"type":"signature_delta","signature":"omitted=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":5}

event: content_block_start
data: {"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"type":"direct"}}}

event: content_block_delta
data: {"type":"content_block_delta","index":6,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_start
data: {"type":"content_block_start","index":7,"content_block":{"type":"tool_use","id":"toolu_2","name":"Bash","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":6,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"caf\\u00"}}

event: content_block_delta
data: {"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"ls é\","}}

event: content_block_delta
data: {"type":"content_block_delta","index":6,"delta":{"type":"input_json_delta","partial_json":"e9\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":6}

event: content_block_delta
data: {"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"\"a\":1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":7}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89,"server_tool_use":{"web_search_requests":1}}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// The content blocks of [`RICH`], as they have to be sent back.
pub const RICH_CONTENT: &str = r#"[
    {"type":"thinking","thinking":"First, look.","signature":"EqQBCgIYAh=="},
    {"type":"redacted_thinking","data":"EmwKAhgB"},
    {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"weather"}},
    {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"Weather","url":"https://example.com","encrypted_content":"EqgfCioI","page_age":null}]},
    {"type":"text","text":"It is warm — très chaud 🌡.","citations":[
        {"type":"web_search_result_location","url":"https://example.com","cited_text":"Warm."},
        {"type":"web_search_result_location","url":"https://example.org","cited_text":"Hot."}]},
    {"type":"thinking","thinking":"","signature":"omitted==","depth":2},
    {"type":"tool_use","id":"toolu_1","name":"Read","input":{"path":"café"},"caller":{"type":"direct"}},
    {"type":"tool_use","id":"toolu_2","name":"Bash","input":{"command":"ls é","a":1}}]"#;

/// A reply of one text.
pub const PLAIN: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_2","usage":{"input_tokens":5,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// A stream from the data of its events, without names.
pub fn stream(events: &[&str]) -> String {
    events.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// A stream that starts, has `events` and ends for `stop_reason`.
pub fn reply_of(events: &[&str], stop_reason: &str) -> String {
    let ending = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop_reason}"}},"usage":{{"output_tokens":1}}}}"#
    );
    let mut all = vec![r#"{"type":"message_start","message":{}}"#];
    all.extend(events);
    all.extend([ending.as_str(), r#"{"type":"message_stop"}"#]);
    stream(&all)
}

/// Reads with `feed` into a new decoder: the reply or the fault, and what was shown on the way.
fn read_with(
    feed: impl FnOnce(&mut Decoder, &(dyn Fn(Delta) + Send + Sync)) -> Result<(), Fault>,
) -> (Result<Reply, Fault>, Vec<Delta>) {
    let shown = Mutex::new(Vec::new());
    let show = |delta: Delta| {
        let is_shown = !matches!(delta, Delta::Called { .. });
        shown.lock().unwrap().extend(is_shown.then_some(delta));
    };
    let mut decoder = Box::new(Decoder::default());
    let fed = feed(&mut decoder, &show);
    let price = Price { input: 3_000, cache_read: 300, cache_write: 3_750, output: 15_000 };
    let reply = fed.and_then(|()| decoder.finish(&price));
    (reply, shown.into_inner().unwrap())
}

/// Reads a body that comes in `chunks`: the reply or the fault, and what was shown on the way.
pub fn read_chunks<'a>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Result<Reply, Fault>, Vec<Delta>) {
    read_with(|decoder, show| {
        let mut events = Events::default();
        for chunk in chunks {
            events.push(chunk);
            while let Some(event) = events.next()? {
                if decoder.event(&event, show)? == Progress::Complete {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

/// Reads a whole body.
pub fn read(body: &str) -> Result<Reply, Fault> {
    read_chunks([body.as_bytes()]).0
}

/// Reads a reply that is no stream.
pub fn read_document(body: &str) -> (Result<Reply, Fault>, Vec<Delta>) {
    read_with(|decoder, show| decoder.document(body.as_bytes(), show))
}
