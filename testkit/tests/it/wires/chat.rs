//! OpenAI Chat Completions.

use super::{Call, Client, Form, Heard, Talk, append, data, id, strings};
use serde_json::{Value, json};

pub struct Chat;

impl Client for Chat {
    fn body(&self, talk: &Talk) -> Value {
        body(talk)
    }

    fn stream(&self, body: &mut Value) {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
    }

    fn path(&self, _: &str, _: Form) -> String {
        "/v1/chat/completions".to_owned()
    }

    fn replied(&self, document: &Value) -> Vec<Value> {
        vec![document["choices"][0]["message"].clone()]
    }

    fn results(&self, calls: &[Call], text: &str) -> Vec<Value> {
        let result = |call| json!({"role": "tool", "tool_call_id": id(call), "content": text});
        calls.iter().map(result).collect()
    }

    fn stops(&self) -> (&'static str, &'static str) {
        ("tool_calls", "stop")
    }

    fn heard(&self, document: &Value) -> Heard {
        heard(document)
    }

    fn folded(&self, text: &str) -> Value {
        folded(text)
    }
}

fn body(talk: &Talk) -> Value {
    let system = talk.system.iter().map(|text| json!({"role": "system", "content": text}));
    let messages: Vec<Value> = system.chain(talk.items.iter().cloned()).collect();
    let mut body = json!({"model": talk.model, "max_tokens": 100, "messages": messages});
    if !talk.tools.is_empty() {
        let tool = |name: &&str| {
            let function = json!({"name": name, "parameters": {"type": "object"}});
            json!({"type": "function", "function": function})
        };
        body["tools"] = talk.tools.iter().map(tool).collect();
    }
    body
}

fn heard(document: &Value) -> Heard {
    let choice = &document["choices"][0];
    let message = &choice["message"];
    let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
    let call = |call: &Value| Call {
        id: call["id"].as_str().map(str::to_owned),
        name: call["function"]["name"].as_str().unwrap().to_owned(),
        input: serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap(),
    };
    let usage = &document["usage"];
    let prompt = usage["prompt_tokens"].as_u64().unwrap();
    let details = &usage["prompt_tokens_details"];
    let read = details["cached_tokens"].as_u64().unwrap();
    let written = details["cache_write_tokens"].as_u64().unwrap();
    Heard {
        text: strings([&message["content"]].into_iter()),
        thinking: strings([&message["reasoning_content"]].into_iter()),
        calls: calls.iter().map(call).collect(),
        stop: choice["finish_reason"].as_str().unwrap().to_owned(),
        input: [prompt - read - written, read, written],
        output: usage["completion_tokens"].as_u64().unwrap(),
        reasoning: usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap(),
    }
}

fn folded(text: &str) -> Value {
    let mut chunks = data(text);
    assert_eq!(chunks.pop(), Some("[DONE]"));
    let mut document = Value::Null;
    for chunk in chunks {
        let chunk: Value = serde_json::from_str(chunk).unwrap();
        assert_eq!(chunk["object"], "chat.completion.chunk");
        if document.is_null() {
            document = chunk.clone();
            document["object"] = json!("chat.completion");
            document["choices"] = json!([{"index": 0, "message": {}, "logprobs": null}]);
        }
        let Some(choice) = chunk["choices"].get(0) else {
            document["usage"] = chunk["usage"].clone();
            continue;
        };
        assert_eq!(chunk["usage"], Value::Null);
        let delta = choice["delta"].as_object().unwrap();
        let message = &mut document["choices"][0]["message"];
        for (key, value) in delta {
            match (key.as_str(), value) {
                ("tool_calls", Value::Array(calls)) => {
                    calls.iter().for_each(|call| add_call(&mut message["tool_calls"], call));
                }
                ("content" | "reasoning_content", Value::String(piece)) => {
                    append(&mut message[key], piece);
                }
                _ => message[key] = value.clone(),
            }
        }
        if !choice["finish_reason"].is_null() {
            document["choices"][0]["finish_reason"] = choice["finish_reason"].clone();
        }
    }
    document["choices"][0]["message"]["annotations"] = json!([]);
    document
}

fn add_call(calls: &mut Value, piece: &Value) {
    if calls.is_null() {
        *calls = json!([]);
    }
    let calls = calls.as_array_mut().unwrap();
    let index = piece["index"].as_u64().unwrap() as usize;
    if index == calls.len() {
        let mut call = piece.clone();
        call.as_object_mut().unwrap().remove("index");
        assert_eq!(call["function"]["arguments"], "");
        calls.push(call);
        return;
    }
    let piece = piece["function"]["arguments"].as_str().unwrap();
    append(&mut calls[index]["function"]["arguments"], piece);
}
