//! Streams as vendors send them, what reads them, and requests, in tests.

use posse_agent::{Reply, Request};
use posse_model::fault::Fault;
use posse_model::sse::Events;
use posse_model::wire::{Dialect, Progress, Target, Wire, Written};
use posse_protocol::{Delta, Message, Part, Price, Role, ToolCall, ToolResult};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Everything at once, as a router sends it: reasoning with details whose signature comes last,
/// text with sources, parallel calls with pieces that alternate and break inside an escape, a
/// second choice nobody asked for, fields nobody knows, comments, usage after the end.
pub const RICH: &str = r#": OPENROUTER PROCESSING

data: {"id":"gen-1","provider":"Anthropic","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}

: OPENROUTER PROCESSING

data: {"id":"gen-1","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"First, ","reasoning_details":[{"type":"reasoning.text","text":"First, ","format":"anthropic-claude-v1","index":0}]},"finish_reason":null}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"content":"","reasoning":"look.","reasoning_details":[{"type":"reasoning.text","text":"look.","format":"anthropic-claude-v1","index":0}]},"finish_reason":null}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"EqQBCgIYAh==","format":"anthropic-claude-v1","index":0}]},"finish_reason":null}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"EmwKAhgB","z":1,"a":null,"index":1}]},"finish_reason":null}]}

data: {"id":"gen-1","choices":[{"index":1,"delta":{"content":"Nobody asked."},"finish_reason":null}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"content":"It is warm — "},"finish_reason":null},{"index":1,"delta":{"content":"Nobody."}}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"content":"très chaud 🌡.","annotations":[{"type":"url_citation","url_citation":{"url":"https://example.com","title":"Weather"}}]},"finish_reason":null}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"toolu_1","type":"function","function":{"name":"Read","arguments":""},"extra_content":{"google":{"thought_signature":"c2ln"}}}]},"finish_reason":null}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"toolu_2","type":"function","function":{"name":"Bash","arguments":"{\"command\":"}},{"index":0,"function":{"arguments":"{\"path\":\"caf\\u00"}}]},"finish_reason":null}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"\"ls é\",\"a\":1}"}}]},"finish_reason":null}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"e9\"}"}}]},"finish_reason":null}]}

data: {"id":"gen-1","service_tier":"standard","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"tool_calls","native_finish_reason":"tool_use"}]}

data: {"id":"gen-1","choices":[],"usage":{"prompt_tokens":5952,"completion_tokens":89,"total_tokens":6041,"cost":0.1,"prompt_tokens_details":{"cached_tokens":5600,"cache_write_tokens":340},"completion_tokens_details":{"reasoning_tokens":20}}}

data: [DONE]

"#;

/// A reply of one text, as OpenAI sends it.
pub const PLAIN: &str = r#"data: {"id":"chatcmpl-2","object":"chat.completion.chunk","created":1,"model":"gpt-x","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abc"}

data: {"id":"chatcmpl-2","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-2","choices":[{"index":0,"delta":{"content":"lo."},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-2","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-2","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}

data: [DONE]

"#;

/// What tokens cost in these tests.
pub const PRICE: Price =
    Price { input: 3_000, cache_read: 300, cache_write: 3_750, output: 15_000 };

/// A stream from the data of its events.
pub fn stream<T: AsRef<str>>(events: &[T]) -> String {
    events.iter().map(|data| format!("data: {}\n\n", data.as_ref())).collect()
}

/// A chunk with this delta.
pub fn chunk(delta: Value) -> String {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
}

/// A chunk that ends for `reason`.
pub fn end(reason: &str) -> String {
    let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
    json!({"id": "c", "choices": [choice]}).to_string()
}

/// The body of a stream of these deltas that ends for `reason`.
pub fn body_of(deltas: &[Value], reason: &str) -> String {
    let mut events: Vec<String> = deltas.iter().cloned().map(chunk).collect();
    events.extend([end(reason), "[DONE]".to_owned()]);
    stream(&events)
}

/// The reply of a stream of these deltas that ends for `reason`.
pub fn reply_of(deltas: &[Value], reason: &str) -> Reply {
    read(&body_of(deltas, reason)).unwrap()
}

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
    let mut decoder = Wire::OpenaiChat.decoder();
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

/// Reads a reply that is no stream.
pub fn read_document(body: &str) -> (Result<Reply, Fault>, Vec<Delta>) {
    let shown = Mutex::new(Vec::new());
    let show = |delta: Delta| {
        let is_shown = !matches!(delta, Delta::Called { .. });
        shown.lock().unwrap().extend(is_shown.then_some(delta));
    };
    let mut decoder = Wire::OpenaiChat.decoder();
    let read = decoder.document(body.as_bytes(), &show);
    let reply = read.and_then(|()| decoder.finish(&PRICE));
    (reply, shown.into_inner().unwrap())
}

/// A request of `messages` with neither system prompt nor tools.
pub fn request(messages: Vec<Message>) -> Request {
    Request {
        system: "".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new([]),
        max_tokens: 1_000,
        effort: None,
        output_schema: None,
    }
}

/// The bytes of a request to a vendor of this dialect.
pub fn encode(request: &Request, dialect: &Dialect) -> Vec<u8> {
    let target = Target { model: "gpt-test", dialect, written: &Written::default() };
    Wire::OpenaiChat.encode(request, target).unwrap()
}

/// The body of a request to a vendor of this dialect, as JSON.
pub fn sent(request: &Request, dialect: &Dialect) -> Value {
    serde_json::from_slice(&encode(request, dialect)).unwrap()
}

/// The messages that are sent for a transcript to a vendor of this dialect.
pub fn messages_for(messages: Vec<Message>, dialect: &Dialect) -> Value {
    sent(&request(messages), dialect)["messages"].take()
}

/// A message of a model whose wire is not known.
pub fn assistant(parts: Vec<Part>) -> Message {
    Message::new(Role::Assistant, parts)
}

/// A call of `Read`.
pub fn call(id: &str, input: Value) -> Part {
    let call = json!({"id": id, "name": "Read", "input": input});
    Part::ToolCall(serde_json::from_value::<ToolCall>(call).unwrap())
}

/// The result of a call.
pub fn result(id: &str, parts: Vec<Part>, is_error: bool) -> Part {
    Part::ToolResult(ToolResult { call: id.into(), parts, is_error, extra: Default::default() })
}

/// The results of all calls in `reply`, as a message.
pub fn results_of(reply: &Message) -> Message {
    let done = |call: &ToolCall| result(&call.id.0, vec![Part::text("done")], false);
    Message::new(Role::User, reply.tool_calls().map(done).collect())
}

/// A picture.
pub fn image() -> Part {
    Part::Image { media_type: "image/png".to_owned(), data: "iVBO".to_owned() }
}
