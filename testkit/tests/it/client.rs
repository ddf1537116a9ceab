//! What the tests send, and how they read what comes back.

use posse_testkit::{FakeModel, Script};
use serde_json::{Value, json};

/// A client with its own pool of connections.
pub fn client() -> reqwest::Client {
    // Only the first call of the process installs it, which is all that is needed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

pub async fn start(script: Script) -> FakeModel {
    FakeModel::start(script).await.unwrap()
}

/// A valid request with these messages.
pub fn body(messages: Value) -> Value {
    json!({"model": "fake-1", "max_tokens": 100, "messages": messages})
}

pub fn streaming(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

/// A valid request that says one thing.
pub fn says(text: &str) -> Value {
    body(json!([{"role": "user", "content": text}]))
}

/// A transcript in which `calls` assistant messages each called a tool and got `result`.
pub fn after(prompt: &str, calls: usize, result: &str) -> Value {
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    for turn in 0..calls {
        let id = format!("toolu_{turn}_0");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "Read", "input": {}},
        ]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": result},
        ]}));
    }
    body(Value::Array(messages))
}

pub fn post(client: &reqwest::Client, fake: &FakeModel, body: &Value) -> reqwest::RequestBuilder {
    client
        .post(format!("{}/v1/messages", fake.url()))
        .header("x-api-key", "test")
        .header("anthropic-version", "2023-06-01")
        .body(body.to_string())
}

/// Sends `body` and returns the status and the document.
pub async fn ask(fake: &FakeModel, body: &Value) -> (u16, Value) {
    let response = post(&client(), fake, body).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Sends `body` and returns the text of the reply, which must be a success.
pub async fn text(fake: &FakeModel, body: &Value) -> String {
    let (status, document) = ask(fake, body).await;
    assert_eq!(status, 200, "{document}");
    document["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Sends `body` and returns the message of the error, which must be one of this status and type.
pub async fn error(fake: &FakeModel, body: &Value, status: u16, kind: &str) -> String {
    let (found, document) = ask(fake, body).await;
    assert_eq!(found, status, "{document}");
    assert_eq!(document["type"], "error");
    assert_eq!(document["error"]["type"], kind);
    document["error"]["message"].as_str().unwrap().to_owned()
}

/// The events of a stream: the name that was given, and the data.
pub fn events(text: &str) -> Vec<(String, Value)> {
    let parse = |event: &str| {
        let (name, data) = event.split_once('\n').unwrap();
        let name = name.strip_prefix("event: ").unwrap().to_owned();
        (name, serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap())
    };
    text.split_terminator("\n\n").map(parse).collect()
}
