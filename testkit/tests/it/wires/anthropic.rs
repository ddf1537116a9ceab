//! Anthropic Messages.

use super::{Call, Client, Form, Heard, Talk, append, id, strings};
use crate::client::events;
use serde_json::{Value, json};

pub struct Anthropic;

impl Client for Anthropic {
    fn body(&self, talk: &Talk) -> Value {
        body(talk)
    }

    fn path(&self, _: &str, _: Form) -> String {
        "/v1/messages".to_owned()
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        vec![("x-api-key", key.to_owned()), ("anthropic-version", "2023-06-01".to_owned())]
    }

    fn replied(&self, document: &Value) -> Vec<Value> {
        vec![json!({"role": "assistant", "content": document["content"]})]
    }

    fn results(&self, calls: &[Call], text: &str) -> Vec<Value> {
        let result =
            |call| json!({"type": "tool_result", "tool_use_id": id(call), "content": text});
        let results: Vec<Value> = calls.iter().map(result).collect();
        vec![json!({"role": "user", "content": results})]
    }

    fn stops(&self) -> (&'static str, &'static str) {
        ("tool_use", "end_turn")
    }

    fn id(&self, index: usize) -> Option<String> {
        Some(format!("toolu_0_{index}"))
    }

    fn heard(&self, document: &Value) -> Heard {
        heard(document)
    }

    fn folded(&self, text: &str) -> Value {
        folded(text)
    }
}

fn body(talk: &Talk) -> Value {
    let mut body = json!({"model": talk.model, "max_tokens": 100, "messages": talk.items});
    if let Some(system) = &talk.system {
        body["system"] = json!(system);
    }
    if !talk.tools.is_empty() {
        let tool = |name: &&str| json!({"name": name, "input_schema": {"type": "object"}});
        body["tools"] = talk.tools.iter().map(tool).collect();
    }
    body
}

fn heard(document: &Value) -> Heard {
    let blocks = document["content"].as_array().unwrap();
    let of = |kind: &'static str| blocks.iter().filter(move |block| block["type"] == kind);
    let call = |block: &Value| Call {
        id: block["id"].as_str().map(str::to_owned),
        name: block["name"].as_str().unwrap().to_owned(),
        input: block["input"].clone(),
    };
    let usage = &document["usage"];
    let count = |key: &str| usage[key].as_u64().unwrap();
    Heard {
        text: strings(of("text").map(|block| &block["text"])),
        thinking: strings(of("thinking").map(|block| &block["thinking"])),
        calls: of("tool_use").map(call).collect(),
        stop: document["stop_reason"].as_str().unwrap().to_owned(),
        input: [
            count("input_tokens"),
            count("cache_read_input_tokens"),
            count("cache_creation_input_tokens"),
        ],
        output: count("output_tokens"),
        reasoning: usage["output_tokens_details"]["thinking_tokens"].as_u64().unwrap_or_default(),
    }
}

fn folded(text: &str) -> Value {
    let events = events(text);
    let mut message = Value::Null;
    let mut inputs = String::new();
    for (name, data) in &events {
        assert_eq!(data["type"], name.as_str());
        let index = data["index"].as_u64().map(|index| index as usize);
        match name.as_str() {
            "message_start" => message = data["message"].clone(),
            "content_block_start" => {
                let content = message["content"].as_array_mut().unwrap();
                assert_eq!(index, Some(content.len()));
                content.push(data["content_block"].clone());
                inputs.clear();
            }
            "content_block_delta" => {
                let block = &mut message["content"][index.unwrap()];
                let delta = &data["delta"];
                let mut add = |key: &str| append(&mut block[key], delta[key].as_str().unwrap());
                match delta["type"].as_str().unwrap() {
                    "text_delta" => add("text"),
                    "thinking_delta" => add("thinking"),
                    "signature_delta" => add("signature"),
                    "input_json_delta" => inputs.push_str(delta["partial_json"].as_str().unwrap()),
                    other => panic!("unexpected delta {other}"),
                }
            }
            "content_block_stop" if !inputs.is_empty() => {
                message["content"][index.unwrap()]["input"] =
                    serde_json::from_str(&inputs).unwrap();
            }
            "message_delta" => {
                for (key, value) in data["delta"].as_object().unwrap() {
                    message[key] = value.clone();
                }
                for (key, value) in data["usage"].as_object().unwrap() {
                    message["usage"][key] = value.clone();
                }
            }
            "content_block_stop" | "ping" | "message_stop" => {}
            other => panic!("unexpected event {other}"),
        }
    }
    assert_eq!(events.last().unwrap().0, "message_stop");
    message
}
