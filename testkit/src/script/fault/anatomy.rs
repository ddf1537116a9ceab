//! Which part of an event is what, wire by wire: so that a fault finds the text, the arguments,
//! the indices, the reason for stopping and the usage, and knows what means nothing.

use super::Wire;
use serde_json::{Value, json};

/// What an event brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// A piece of text.
    pub(super) text: bool,
    /// A piece of a tool call.
    pub(super) call: bool,
    /// The reason for stopping.
    pub(super) stop: bool,
}

/// The data of an event, or the document that a piece is.
pub(super) fn json(piece: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(piece).ok()?;
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(text);
    serde_json::from_str(data).ok()
}

/// Puts other data into an event, or another document in the place of one.
pub(super) fn replace_json(piece: &mut Vec<u8>, value: &Value) {
    let text = String::from_utf8_lossy(piece).into_owned();
    let Some((before, after)) = text.split_once("data: ") else {
        *piece = value.to_string().into_bytes();
        return;
    };
    let rest = after.find(['\r', '\n']).map_or("", |end| &after[end..]);
    *piece = format!("{before}data: {value}{rest}").into_bytes();
}

/// An event with this data, under its name where the wire has names.
pub(super) fn event(wire: Wire, data: &Value) -> Vec<u8> {
    let name = match (wire, data["type"].as_str()) {
        (Wire::Anthropic | Wire::OpenAiResponses, Some(kind)) => format!("event: {kind}\n"),
        _ => String::new(),
    };
    format!("{name}data: {data}\n\n").into_bytes()
}

/// What an event brings.
pub(super) fn marks(wire: Wire, piece: &[u8]) -> Marks {
    let Some(mut data) = json(piece) else { return Marks::default() };
    let kind = data["type"].as_str().unwrap_or_default().to_owned();
    let call = match wire {
        Wire::Anthropic => data["delta"]["type"] == "input_json_delta",
        Wire::OpenAiChat => !data["choices"][0]["delta"]["tool_calls"].is_null(),
        Wire::OpenAiResponses => kind == "response.function_call_arguments.delta",
        Wire::Gemini => gemini_parts(&data).any(|part| !part["functionCall"].is_null()),
    };
    let stop = match wire {
        Wire::Anthropic => kind == "message_delta",
        Wire::OpenAiChat => data["choices"][0]["finish_reason"].is_string(),
        Wire::OpenAiResponses => {
            matches!(&*kind, "response.completed" | "response.incomplete" | "response.failed")
        }
        Wire::Gemini => data["candidates"][0]["finishReason"].is_string(),
    };
    let text = text_of(wire, &mut data);
    Marks { text: text.is_some_and(|text| text != ""), call, stop }
}

fn gemini_parts(data: &Value) -> impl Iterator<Item = &Value> {
    data["candidates"][0]["content"]["parts"].as_array().into_iter().flatten()
}

/// The piece of text in an event.
pub(super) fn text_of(wire: Wire, data: &mut Value) -> Option<&mut Value> {
    let found = match wire {
        Wire::Anthropic => match data["delta"]["type"].as_str() {
            Some("text_delta") => data.pointer_mut("/delta/text"),
            _ => None,
        },
        Wire::OpenAiChat => data.pointer_mut("/choices/0/delta/content"),
        Wire::OpenAiResponses => match data["type"].as_str() {
            Some("response.output_text.delta") => data.pointer_mut("/delta"),
            _ => None,
        },
        Wire::Gemini => {
            let parts = data.pointer_mut("/candidates/0/content/parts")?.as_array_mut()?;
            let spoken = parts.iter_mut().find(|part| part["thought"] != true);
            spoken.and_then(|part| part.get_mut("text"))
        }
    };
    found.filter(|text| text.is_string())
}

/// Changes the numbers by which a wire tells blocks or calls apart.
pub(super) fn reindex(wire: Wire, data: &mut Value, change: impl Fn(u64) -> Value) {
    let set = |index: &mut Value| {
        if let Some(number) = index.as_u64() {
            *index = change(number);
        }
    };
    match wire {
        Wire::Anthropic => data.get_mut("index").into_iter().for_each(set),
        Wire::OpenAiResponses => data.get_mut("output_index").into_iter().for_each(set),
        Wire::OpenAiChat => {
            let calls = data.pointer_mut("/choices/0/delta/tool_calls");
            let calls = calls.and_then(Value::as_array_mut).into_iter().flatten();
            calls.filter_map(|call| call.get_mut("index")).for_each(set);
        }
        Wire::Gemini => {}
    }
}

/// Whether an event goes on with a call or block that another one has begun.
pub(super) fn goes_on(wire: Wire, data: &Value) -> bool {
    match wire {
        Wire::Anthropic => data["type"] == "content_block_delta",
        Wire::OpenAiChat => data["choices"][0]["delta"]["tool_calls"][0]["id"].is_null(),
        Wire::OpenAiResponses => data["type"] == "response.function_call_arguments.delta",
        Wire::Gemini => false,
    }
}

/// Changes the reason for stopping, wherever one is given.
pub(super) fn restop(wire: Wire, data: &mut Value, reason: &Value) {
    let place = match wire {
        Wire::Anthropic if data["type"] == "message_delta" => "/delta/stop_reason",
        Wire::Anthropic => "/stop_reason",
        Wire::OpenAiChat => "/choices/0/finish_reason",
        Wire::OpenAiResponses if data["type"] == "response.completed" => "/response/status",
        Wire::OpenAiResponses => "/status",
        Wire::Gemini => "/candidates/0/finishReason",
    };
    // Items of a reply have a status of their own, and an unfinished reply one that says so.
    let stands = |given: &Value| given.is_string() && *given != "in_progress";
    if let Some(given) = data.pointer_mut(place).filter(|given| stands(given)) {
        *given = reason.clone();
    }
}

/// Says that the reply was ended by the cap on its length.
pub(super) fn stop_for_length(wire: Wire, piece: &mut Vec<u8>) {
    let Some(mut data) = json(piece) else { return };
    let word = match wire {
        Wire::Anthropic => "max_tokens",
        Wire::OpenAiChat => "length",
        Wire::OpenAiResponses => "incomplete",
        Wire::Gemini => "MAX_TOKENS",
    };
    restop(wire, &mut data, &json!(word));
    if wire != Wire::OpenAiResponses {
        replace_json(piece, &data);
        return;
    }
    let why = json!({"reason": "max_output_tokens"});
    if data["type"] == "response.completed" {
        data["type"] = json!("response.incomplete");
        data["response"]["incomplete_details"] = why;
        *piece = event(wire, &data);
    } else if data["status"] == word {
        data["incomplete_details"] = why;
        replace_json(piece, &data);
    }
}

/// Calls `change` with each object that holds counts of tokens, and its parent's key for it.
pub(super) fn each_usage(data: &mut Value, change: &impl Fn(&mut Value)) {
    match data {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match key.as_str() {
                    "usage" | "usageMetadata" => change(value),
                    _ => each_usage(value, change),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_usage(item, change)),
        _ => {}
    }
}

/// An event that says only that the connection lives.
pub(super) fn ping(wire: Wire) -> Vec<u8> {
    let data = match wire {
        Wire::Anthropic => json!({"type": "ping"}),
        Wire::OpenAiChat => json!({
            "id": "chatcmpl-ping", "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {}, "finish_reason": null}],
        }),
        Wire::OpenAiResponses => json!({"type": "keepalive"}),
        Wire::Gemini => json!({"candidates": [{"content": {"role": "model"}, "index": 0}]}),
    };
    event(wire, &data)
}

/// An event of a kind that nobody knows yet.
pub(super) fn unknown(wire: Wire) -> Vec<u8> {
    let data = match wire {
        Wire::Anthropic => json!({"type": "aura_delta", "aura": {"colour": "blue"}}),
        Wire::OpenAiChat => json!({"object": "chat.completion.aura", "aura": "blue"}),
        Wire::OpenAiResponses => {
            json!({"type": "response.aura.delta", "aura": {"colour": "blue"}, "output_index": 0})
        }
        Wire::Gemini => json!({"auraMetadata": {"colour": "blue"}}),
    };
    event(wire, &data)
}
