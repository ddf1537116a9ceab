//! Streams as a provider sends them, and what reads and writes them in tests.

use posse_agent::{Reply, Request};
use posse_model::fault::Fault;
use posse_model::sse::Events;
use posse_model::wire::gemini::{self, Decoder};
use posse_model::wire::{Decode, Dialect, Gemini, Progress, Target, Written};
use posse_protocol::{Delta, Extra, Message, Part, Price, Role, Thinking, ToolCall, ToolResult};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Everything at once: thoughts in pieces and with a signature, text whose signature comes on a
/// part of its own and on an empty one, code that ran at the provider, a picture, calls with and
/// without id and signature, parts and fields nobody knows, sources, counts after the end, comments
/// and empty chunks.
pub const RICH: &str = r#": connected

data: {"candidates":[{"content":{"parts":[{"text":"First, ","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":5952,"totalTokenCount":5952,"cachedContentTokenCount":5600,"trafficType":"ON_DEMAND"},"modelVersion":"gemini-3-pro","responseId":"mAitaLmkHPPlz7IPvtfUqQ4"}

data: {"candidates":[{"content":{"parts":[{"text":"look.","thought":true}],"role":"model"},"index":0}],"responseId":"mAitaLmkHPPlz7IPvtfUqQ4"}

data: {"candidates":[{"content":{"parts":[{"thought":true,"text":"Then.","thoughtSignature":"VGhl","depth":2}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"text":"It is warm — "},{"text":"très "}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"text":"chaud 🌡","thoughtSignature":"c2ln"},{"text":"."}],"role":"model"},"index":0,"citationMetadata":{"citationSources":[{"startIndex":0,"uri":"https://example.com"}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"ZW1wdHk="}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"print(1)"},"thoughtSignature":"Y29kZQ=="},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}}],"role":"model"},"index":0}]}

data: {"somethingNew":{"is":"here"}}

data: {"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBO"},"thought":true},{"novel":{"z":1,"a":null},"partMetadata":{"k":[]}}],"role":"model"},"index":0,"safetyRatings":[]}]}

data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"fc-1","name":"Read","args":{"path":"caf\u00e9","b":[1,null]},"priority":3},"thoughtSignature":"Y2FsbA==","hint":"h"},{"functionCall":{"name":"Bash"}}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"Bash","args":{"command":"ls"}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5952,"cachedContentTokenCount":5600,"toolUsePromptTokenCount":8,"candidatesTokenCount":60,"thoughtsTokenCount":29,"totalTokenCount":6049}}

data: {"candidates":[{"content":{"role":"model"},"index":0,"groundingMetadata":{"webSearchQueries":["weather"]}}],"usageMetadata":{"promptTokenCount":5952,"cachedContentTokenCount":5600,"toolUsePromptTokenCount":8,"candidatesTokenCount":61,"thoughtsTokenCount":29,"totalTokenCount":6050}}

"#;

/// The parts of [`RICH`], as they have to be sent back.
pub const RICH_PARTS: &str = r#"[
    {"text":"First, look.","thought":true},
    {"text":"Then.","thought":true,"thoughtSignature":"VGhl","depth":2},
    {"text":"It is warm — très "},
    {"text":"chaud 🌡","thoughtSignature":"c2ln"},
    {"text":"."},
    {"text":"","thoughtSignature":"ZW1wdHk="},
    {"executableCode":{"language":"PYTHON","code":"print(1)"},"thoughtSignature":"Y29kZQ=="},
    {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}},
    {"inlineData":{"mimeType":"image/png","data":"iVBO"},"thought":true},
    {"novel":{"z":1,"a":null},"partMetadata":{"k":[]}},
    {"functionCall":{"id":"fc-1","name":"Read","args":{"path":"café","b":[1,null]},"priority":3},"thoughtSignature":"Y2FsbA==","hint":"h"},
    {"functionCall":{"name":"Bash","args":{}}},
    {"functionCall":{"name":"Bash","args":{"command":"ls"}}}]"#;

/// A reply of one text.
pub const PLAIN: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"}}],"responseId":"r-2"}

data: {"candidates":[{"content":{"parts":[{"text":"lo."}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3},"responseId":"r-2"}

"#;

/// A stream of these chunks.
pub fn stream(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

/// A stream of one chunk with `parts` that ends for `finish_reason`.
pub fn reply_of(parts: Value, finish_reason: &str) -> String {
    stream(&[json!({"candidates": [
        {"content": {"parts": parts, "role": "model"}, "finishReason": finish_reason}]})])
}

/// Reads with `feed` into a new decoder: the reply or the fault, and what was shown on the way.
pub fn read_with(
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

/// Reads a body that comes in `chunks`.
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

/// The bytes of a request to a model with these rules.
pub fn encode(request: &Request, rules: Gemini) -> Vec<u8> {
    let dialect = Dialect { gemini: rules, ..Dialect::default() };
    gemini::encode(
        request,
        Target { model: "gemini-test", dialect: &dialect, written: &Written::default() },
    )
    .unwrap()
}

/// The contents that are sent for `messages`.
pub fn contents_of(messages: Vec<Message>, rules: Gemini) -> Value {
    let body: Value = serde_json::from_slice(&encode(&request(messages), rules)).unwrap();
    body["contents"].clone()
}

/// A message of the model without a wire.
pub fn model(parts: Vec<Part>) -> Message {
    Message::new(Role::Assistant, parts)
}

/// A call of `Read`.
pub fn call(id: &str, input: Value) -> Part {
    let extra = Extra::default();
    Part::ToolCall(ToolCall { id: id.into(), name: "Read".to_owned(), input, extra })
}

/// A result.
pub fn result(id: &str, parts: Vec<Part>) -> Part {
    let extra = Extra::default();
    Part::ToolResult(ToolResult { call: id.into(), parts, is_error: false, extra })
}

/// A result that is an error.
pub fn error(id: &str, text: &str) -> Part {
    let (parts, extra) = (vec![Part::text(text)], Extra::default());
    Part::ToolResult(ToolResult { call: id.into(), parts, is_error: true, extra })
}

/// Reasoning, perhaps signed.
pub fn thinking(text: &str, signature: Option<&str>) -> Part {
    let (text, signature) = (text.to_owned(), signature.map(str::to_owned));
    Part::Thinking(Thinking { text, signature, extra: Extra::default() })
}

/// A picture of this type.
pub fn image(media_type: &str) -> Part {
    Part::Image { media_type: media_type.to_owned(), data: "iVBO".to_owned() }
}
