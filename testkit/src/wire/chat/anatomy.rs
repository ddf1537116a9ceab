//! What the parts of its chunks are, and its words for troubles.

use super::OpenAiChat;
use crate::script::fault::{Anatomy, Trouble};
use crate::wire::openai::trouble::{document, words};
use serde_json::{Value, json};

const OVERFLOW: &str = "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. Please reduce the length of the messages.";

impl Anatomy for OpenAiChat {
    fn is_call(&self, data: &Value) -> bool {
        !data["choices"][0]["delta"]["tool_calls"].is_null()
    }

    fn is_stop(&self, data: &Value) -> bool {
        data["choices"][0]["finish_reason"].is_string()
    }

    fn text<'a>(&self, data: &'a mut Value) -> Option<&'a mut Value> {
        data.pointer_mut("/choices/0/delta/content")
    }

    fn numbers<'a>(&self, data: &'a mut Value) -> Vec<&'a mut Value> {
        let calls = data.pointer_mut("/choices/0/delta/tool_calls");
        let calls = calls.and_then(Value::as_array_mut).into_iter().flatten();
        calls.filter_map(|call| call.get_mut("index")).collect()
    }

    fn goes_on(&self, data: &Value) -> bool {
        data["choices"][0]["delta"]["tool_calls"][0]["id"].is_null()
    }

    fn stop_place(&self, _: &Value) -> &'static str {
        "/choices/0/finish_reason"
    }

    fn length_word(&self) -> &'static str {
        "length"
    }

    fn ping(&self) -> Value {
        json!({
            "id": "chatcmpl-ping", "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {}, "finish_reason": null}],
        })
    }

    fn unknown(&self) -> Value {
        json!({"object": "chat.completion.aura", "aura": "blue"})
    }

    fn trouble(&self, trouble: Trouble) -> (u16, Value) {
        document(words(trouble, OVERFLOW))
    }
}
