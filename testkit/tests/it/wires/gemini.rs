//! Gemini generateContent.

use super::{Call, Client, Form, Heard, Talk, append, data, strings};
use serde_json::{Value, json};

pub struct Gemini;

impl Client for Gemini {
    fn body(&self, talk: &Talk) -> Value {
        body(talk)
    }

    /// The path asks for it.
    fn stream(&self, _: &mut Value) {}

    fn path(&self, model: &str, form: Form) -> String {
        let verb = match form {
            Form::Document => "generateContent",
            Form::Stream => "streamGenerateContent?alt=sse",
        };
        format!("/v1beta/models/{model}:{verb}")
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        vec![("x-goog-api-key", key.to_owned())]
    }

    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "parts": [{"text": text}]})
    }

    fn replied(&self, document: &Value) -> Vec<Value> {
        vec![document["candidates"][0]["content"].clone()]
    }

    fn results(&self, calls: &[Call], text: &str) -> Vec<Value> {
        let part = |call: &Call| json!({"functionResponse": {"name": call.name, "response": {"output": text}}});
        let parts: Vec<Value> = calls.iter().map(part).collect();
        vec![json!({"role": "user", "parts": parts})]
    }

    fn stops(&self) -> (&'static str, &'static str) {
        ("STOP", "STOP")
    }

    /// It has none.
    fn id(&self, _: usize) -> Option<String> {
        None
    }

    fn heard(&self, document: &Value) -> Heard {
        heard(document)
    }

    fn folded(&self, text: &str) -> Value {
        folded(&chunks(text))
    }
}

fn body(talk: &Talk) -> Value {
    let mut body = json!({
        "contents": talk.items,
        "generationConfig": {"maxOutputTokens": 100},
    });
    if let Some(system) = &talk.system {
        body["systemInstruction"] = json!({"parts": [{"text": system}]});
    }
    if !talk.tools.is_empty() {
        let declare = |name: &&str| {
            let schema = json!({"type": "object", "additionalProperties": false});
            json!({"name": name, "description": "d", "parametersJsonSchema": schema})
        };
        let declared: Vec<Value> = talk.tools.iter().map(declare).collect();
        body["tools"] = json!([{"functionDeclarations": declared}]);
    }
    body
}

fn heard(document: &Value) -> Heard {
    let candidate = &document["candidates"][0];
    let parts = candidate["content"]["parts"].as_array().cloned().unwrap_or_default();
    let texts = |thought: bool| {
        let of = parts.iter().filter(move |part| (part["thought"] == true) == thought);
        strings(of.map(|part| &part["text"]))
    };
    let calls = parts.iter().filter_map(|part| part.get("functionCall"));
    let call = |call: &Value| Call {
        id: call["id"].as_str().map(str::to_owned),
        name: call["name"].as_str().unwrap().to_owned(),
        input: call["args"].clone(),
    };
    let usage = &document["usageMetadata"];
    let count = |key: &str| usage[key].as_u64().unwrap_or_default();
    let read = count("cachedContentTokenCount");
    let reasoning = count("thoughtsTokenCount");
    let output = count("candidatesTokenCount") + reasoning;
    assert_eq!(count("totalTokenCount"), count("promptTokenCount") + output);
    Heard {
        text: texts(false),
        thinking: texts(true),
        calls: calls.map(call).collect(),
        stop: candidate["finishReason"].as_str().unwrap().to_owned(),
        // What is written is not told.
        input: [count("promptTokenCount") - read, read, 0],
        output,
        reasoning,
    }
}

fn chunks(text: &str) -> Vec<Value> {
    assert!(text.ends_with("\r\n\r\n"), "{text:?}");
    data(text).iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect()
}

fn folded(chunks: &[Value]) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    for (number, chunk) in chunks.iter().enumerate() {
        let candidate = &chunk["candidates"][0];
        assert_eq!(candidate["finishReason"].is_string(), number == chunks.len() - 1);
        assert!(chunk["usageMetadata"]["promptTokenCount"].is_u64());
        for part in candidate["content"]["parts"].as_array().unwrap() {
            add_part(&mut parts, part);
        }
    }
    let mut document = chunks.last().unwrap().clone();
    let content = &mut document["candidates"][0]["content"];
    match parts.is_empty() {
        true => drop(content.as_object_mut().unwrap().remove("parts")),
        false => content["parts"] = json!(parts),
    }
    document
}

/// Adds a part: a text goes on with the text before it, and an empty one brings its signature.
fn add_part(parts: &mut Vec<Value>, part: &Value) {
    let Some(text) = part["text"].as_str() else {
        parts.push(part.clone());
        return;
    };
    let signature = &part["thoughtSignature"];
    let last = parts.last_mut().filter(|last| {
        last["text"].is_string()
            && last["thought"] == part["thought"]
            && last["thoughtSignature"].is_null()
    });
    match last {
        Some(last) => {
            append(&mut last["text"], text);
            if !signature.is_null() {
                last["thoughtSignature"] = signature.clone();
            }
        }
        None if text.is_empty() && signature.is_null() => {}
        None => parts.push(part.clone()),
    }
}
