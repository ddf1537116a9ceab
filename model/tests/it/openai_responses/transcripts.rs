//! Streams as a provider sends them, and what reads them in tests.

use posse_agent::Reply;
use posse_model::fault::Fault;
use posse_model::sse::Events;
use posse_model::wire::openai_responses::Decoder;
use posse_model::wire::{Decode, Progress};
use posse_protocol::{Delta, Price};
use serde_json::{Value, json};
use std::sync::Mutex;

/// Everything at once: reasoning with a summary in two parts, a tool of the server, text with
/// sources in two pieces, parallel calls with pieces that alternate and break inside an escape,
/// reasoning without a summary, an item, fields and events that nobody knows, comments and pings.
pub const RICH: &str = r#": connected

event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","error":null,"incomplete_details":null,"instructions":"Be brief.","model":"gpt-test","output":[],"service_tier":"auto","store":false,"usage":null}}

event: response.in_progress
data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"half","summary":[]}}

event: keepalive
data: {"type":"keepalive","sequence_number":3}

event: response.reasoning_summary_part.added
data: {"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"First, ","obfuscation":"x9Kq"}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"look."}

event: response.reasoning_summary_text.done
data: {"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"First, look."}

event: response.reasoning_summary_part.done
data: {"type":"response.reasoning_summary_part.done","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"First, look."}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"Then act."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAB==","summary":[{"type":"summary_text","text":"First, look."},{"type":"summary_text","text":"Then act."}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":1,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}}

event: response.web_search_call.searching
data: {"type":"response.web_search_call.searching","output_index":1,"item_id":"ws_1"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"weather","sources":null}}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":2,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","phase":"commentary","content":[]}}

event: response.content_part.added
data: {"type":"response.content_part.added","item_id":"msg_1","output_index":2,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":2,"content_index":0,"delta":"It is warm — ","logprobs":[],"obfuscation":"1"}

event: response.something_new
data: {"type":"response.something_new","output_index":"none"}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":2,"content_index":0,"delta":"très \"chaud\" 🌡."}

event: response.output_text.annotation.added
data: {"type":"response.output_text.annotation.added","item_id":"msg_1","output_index":2,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation","url":"https://example.com","start_index":0,"end_index":5,"title":"Weather"}}

event: response.output_text.done
data: {"type":"response.output_text.done","item_id":"msg_1","output_index":2,"content_index":0,"text":"It is warm — très \"chaud\" 🌡.","logprobs":[]}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":2,"content_index":1,"delta":"More."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":2,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","annotations":[{"type":"url_citation","url":"https://example.com","start_index":0,"end_index":5,"title":"Weather"}],"logprobs":[],"text":"It is warm — très \"chaud\" 🌡."},{"type":"output_text","annotations":[],"text":"More."}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":3,"item":{"id":"rs_2","type":"reasoning","encrypted_content":"x","summary":[]}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":3,"item":{"id":"rs_2","type":"reasoning","encrypted_content":"gAAAC==","summary":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":4,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"Read"}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":4,"delta":"{\"path\":\"caf\\u00"}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":5,"item":{"id":"fc_2","type":"function_call","status":"in_progress","arguments":"","call_id":"call_2","name":"Bash"}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":5,"delta":"{\"command\": \"ls é\","}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":4,"delta":"e9\"}"}

event: response.function_call_arguments.done
data: {"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":4,"arguments":"{\"path\":\"caf\\u00e9\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":4,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\":\"caf\\u00e9\"}","call_id":"call_1","name":"Read"}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":5,"delta":" \"a\": 1.50}"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":5,"item":{"id":"fc_2","type":"function_call","status":"completed","arguments":"{\"command\": \"ls é\", \"a\": 1.50}","call_id":"call_2","name":"Bash","caller":{"type":"direct"}}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":6,"item":{"type":"novel","id":"nv_1"}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":6,"item":{"type":"novel","z":1,"id":"nv_1","a":{"y":null,"b":2}}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","error":null,"incomplete_details":null,"output":[],"service_tier":"default","usage":{"input_tokens":5952,"input_tokens_details":{"cached_tokens":5600,"cache_write_tokens":340},"output_tokens":89,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":6041}}}

"#;

/// The items of [`RICH`], as they have to be sent back.
pub const RICH_ITEMS: &str = r#"[
    {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"First, look."},{"type":"summary_text","text":"Then act."}],"encrypted_content":"gAAAB=="},
    {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"weather","sources":null}},
    {"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[
        {"type":"output_text","text":"It is warm — très \"chaud\" 🌡.","annotations":[{"type":"url_citation","url":"https://example.com","start_index":0,"end_index":5,"title":"Weather"}],"logprobs":[]},
        {"type":"output_text","text":"More.","annotations":[]}]},
    {"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gAAAC=="},
    {"type":"function_call","id":"fc_1","status":"completed","call_id":"call_1","name":"Read","arguments":"{\"path\":\"caf\\u00e9\"}"},
    {"type":"function_call","id":"fc_2","status":"completed","caller":{"type":"direct"},"call_id":"call_2","name":"Bash","arguments":"{\"command\": \"ls é\", \"a\": 1.50}"},
    {"type":"novel","z":1,"id":"nv_1","a":{"y":null,"b":2}}]"#;

/// A reply of one text.
pub const PLAIN: &str = r#"event: response.created
data: {"type":"response.created","response":{"id":"resp_2","status":"in_progress"}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"id":"msg_2","type":"message","status":"in_progress","role":"assistant","content":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hello."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Hello."}]}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_2","status":"completed","usage":{"input_tokens":5,"output_tokens":3}}}

"#;

/// A stream from the data of its events, without names.
pub fn stream(events: &[Value]) -> String {
    events.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// An item that starts.
pub fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

/// An item that ends.
pub fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

/// More of a text.
pub fn delta(kind: &str, index: u64, more: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": more})
}

/// A message of one text.
pub fn message(id: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"type": "message", "id": id, "role": "assistant", "content": content})
}

/// A call of `Read`.
pub fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "Read", "arguments": arguments})
}

/// The end of a reply that is complete.
pub fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed"}})
}

/// The end of a reply that was stopped.
pub fn incomplete(reason: &str) -> Value {
    let response = json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
    json!({"type": "response.incomplete", "response": response})
}

/// The price that [`read`] uses.
pub const PRICE: Price =
    Price { input: 3_000, cache_read: 300, cache_write: 3_750, output: 15_000 };

/// Reads a body that comes in `chunks`: the reply or the fault, and what was shown on the way.
pub fn read_chunks<'a>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Result<Reply, Fault>, Vec<Delta>) {
    let shown = Mutex::new(Vec::new());
    let show = |delta: Delta| {
        let is_shown = !matches!(delta, Delta::Called { .. });
        shown.lock().unwrap().extend(is_shown.then_some(delta));
    };
    let mut events = Events::default();
    let mut decoder = Box::new(Decoder::default());
    let read = || {
        for chunk in chunks {
            events.push(chunk);
            while let Some(event) = events.next()? {
                if decoder.event(&event, &show)? == Progress::Complete {
                    return Ok(());
                }
            }
        }
        Ok(())
    };
    let read: Result<(), Fault> = read();
    let reply = read.and_then(|()| decoder.finish(&PRICE));
    (reply, shown.into_inner().unwrap())
}

/// Reads a whole body.
pub fn read(body: &str) -> Result<Reply, Fault> {
    read_chunks([body.as_bytes()]).0
}

/// Reads a stream of these events.
pub fn read_events(events: &[Value]) -> Result<Reply, Fault> {
    read(&stream(events))
}

/// Reads a reply that is no stream, and what it shows.
pub fn read_document(body: &Value) -> (Result<Reply, Fault>, Vec<Delta>) {
    let shown = Mutex::new(Vec::new());
    let show = |delta: Delta| {
        let is_shown = !matches!(delta, Delta::Called { .. });
        shown.lock().unwrap().extend(is_shown.then_some(delta));
    };
    let mut decoder = Box::new(Decoder::default());
    let read = decoder.document(body.to_string().as_bytes(), &show);
    let reply = read.and_then(|()| decoder.finish(&PRICE));
    (reply, shown.into_inner().unwrap())
}

/// All text that was shown.
pub fn shown_text(shown: &[Delta]) -> String {
    let texts = shown.iter().filter_map(|delta| match delta {
        Delta::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
