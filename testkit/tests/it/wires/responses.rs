//! OpenAI Responses.

use super::{Call, Client, Form, Heard, Talk, append, id, strings};
use crate::client::events;
use serde_json::{Value, json};

pub struct Responses;

impl Client for Responses {
    fn body(&self, talk: &Talk) -> Value {
        body(talk)
    }

    fn path(&self, _: &str, _: Form) -> String {
        "/v1/responses".to_owned()
    }

    fn replied(&self, document: &Value) -> Vec<Value> {
        document["output"].as_array().unwrap().clone()
    }

    fn results(&self, calls: &[Call], text: &str) -> Vec<Value> {
        let result =
            |call| json!({"type": "function_call_output", "call_id": id(call), "output": text});
        calls.iter().map(result).collect()
    }

    fn stops(&self) -> (&'static str, &'static str) {
        ("completed", "completed")
    }

    fn heard(&self, document: &Value) -> Heard {
        heard(document)
    }

    fn folded(&self, text: &str) -> Value {
        folded(text)
    }
}

fn body(talk: &Talk) -> Value {
    let mut body = json!({
        "model": talk.model,
        "max_output_tokens": 100,
        "input": talk.items,
        "store": false,
        "include": ["reasoning.encrypted_content"],
    });
    if let Some(system) = &talk.system {
        body["instructions"] = json!(system);
    }
    if !talk.tools.is_empty() {
        let tool = |name: &&str| json!({"type": "function", "name": name, "parameters": {"type": "object"}});
        body["tools"] = talk.tools.iter().map(tool).collect();
    }
    body
}

fn heard(document: &Value) -> Heard {
    let items = document["output"].as_array().unwrap();
    let of = |kind: &'static str| items.iter().filter(move |item| item["type"] == kind);
    let call = |item: &Value| Call {
        id: item["call_id"].as_str().map(str::to_owned),
        name: item["name"].as_str().unwrap().to_owned(),
        input: serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap(),
    };
    let parts = |item: &'_ Value, key: &str| {
        strings(item[key].as_array().unwrap().iter().map(|part| &part["text"]))
    };
    let usage = &document["usage"];
    let prompt = usage["input_tokens"].as_u64().unwrap();
    let details = &usage["input_tokens_details"];
    let read = details["cached_tokens"].as_u64().unwrap();
    let written = details["cache_write_tokens"].as_u64().unwrap();
    let reason = document["incomplete_details"]["reason"].as_str();
    Heard {
        text: of("message").map(|item| parts(item, "content")).collect(),
        thinking: of("reasoning").map(|item| parts(item, "summary")).collect(),
        calls: of("function_call").map(call).collect(),
        stop: reason.or(document["status"].as_str()).unwrap().to_owned(),
        input: [prompt - read - written, read, written],
        output: usage["output_tokens"].as_u64().unwrap(),
        reasoning: usage["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap(),
    }
}

/// The response at the end of a stream, after checking that the events before tell the same.
fn folded(text: &str) -> Value {
    let events = events(text);
    let mut output: Vec<Value> = Vec::new();
    for (number, (name, data)) in events.iter().enumerate() {
        assert_eq!(data["type"], name.as_str());
        assert_eq!(data["sequence_number"], number);
        let item = data["output_index"].as_u64().map(|index| index as usize);
        match name.as_str() {
            "response.created" | "response.in_progress" => {
                assert_eq!(data["response"]["status"], "in_progress");
                assert_eq!(data["response"]["output"], json!([]));
            }
            "response.output_item.added" => {
                assert_eq!(item, Some(output.len()));
                output.push(data["item"].clone());
            }
            "response.content_part.added" => {
                list(&mut output[item.unwrap()], "content", &data["part"])
            }
            "response.reasoning_summary_part.added" => {
                list(&mut output[item.unwrap()], "summary", &data["part"]);
            }
            "response.output_text.delta" => {
                append(
                    &mut output[item.unwrap()]["content"][0]["text"],
                    data["delta"].as_str().unwrap(),
                );
            }
            "response.reasoning_summary_text.delta" => {
                append(
                    &mut output[item.unwrap()]["summary"][0]["text"],
                    data["delta"].as_str().unwrap(),
                );
            }
            "response.function_call_arguments.delta" => {
                append(&mut output[item.unwrap()]["arguments"], data["delta"].as_str().unwrap());
            }
            "response.output_text.done" => {
                assert_eq!(output[item.unwrap()]["content"][0]["text"], data["text"]);
            }
            "response.content_part.done" => {
                assert_eq!(output[item.unwrap()]["content"][0], data["part"]);
            }
            "response.reasoning_summary_text.done" => {
                assert_eq!(output[item.unwrap()]["summary"][0]["text"], data["text"]);
            }
            "response.reasoning_summary_part.done" => {
                assert_eq!(output[item.unwrap()]["summary"][0], data["part"]);
            }
            "response.function_call_arguments.done" => {
                assert_eq!(output[item.unwrap()]["arguments"], data["arguments"]);
            }
            "response.output_item.done" => {
                let told = &mut output[item.unwrap()];
                let whole = &data["item"];
                for (key, value) in told.as_object().unwrap() {
                    if key != "status" {
                        assert_eq!(&whole[key], value, "{key}");
                    }
                }
                *told = whole.clone();
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                assert_eq!(number, events.len() - 1);
                assert_eq!(data["response"]["output"], json!(output));
                assert_eq!(
                    format!("response.{}", data["response"]["status"].as_str().unwrap()),
                    *name
                );
                return data["response"].clone();
            }
            other => panic!("unexpected event {other}"),
        }
    }
    panic!("the stream has no last event: {text}");
}

fn list(item: &mut Value, key: &str, part: &Value) {
    item[key].as_array_mut().unwrap().push(part.clone());
}
