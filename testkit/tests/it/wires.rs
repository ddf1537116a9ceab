//! A small client of every wire, so that one test can be asked of all of them.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use crate::client::client;
use posse_testkit::{FakeModel, Wire};
use serde_json::{Value, json};

/// The model that is asked.
pub const MODEL: &str = "fake-1";

/// A conversation in the words of one wire.
#[derive(Clone)]
pub struct Talk {
    pub wire: Wire,
    pub key: String,
    pub model: String,
    pub system: Option<String>,
    pub tools: Vec<&'static str>,
    /// Messages, items or contents.
    pub items: Vec<Value>,
    /// Members of the body besides.
    pub extra: Vec<(&'static str, Value)>,
}

/// What a reply says, whichever wire it came by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    pub text: String,
    pub thinking: String,
    pub calls: Vec<Call>,
    pub stop: String,
    /// Read anew, read from the cache, written to the cache: their sum is the prompt.
    pub input: [u64; 3],
    pub output: u64,
    pub reasoning: u64,
}

/// A tool call. Gemini gives no ids of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub id: Option<String>,
    pub name: String,
    pub input: Value,
}

impl Talk {
    pub fn new(wire: Wire) -> Self {
        Talk {
            wire,
            key: "test".to_owned(),
            model: MODEL.to_owned(),
            system: None,
            tools: Vec::new(),
            items: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// A conversation that says one thing.
    pub fn saying(wire: Wire, text: &str) -> Self {
        Self::new(wire).user(text)
    }

    pub fn system(mut self, text: &str) -> Self {
        self.system = Some(text.to_owned());
        self
    }

    pub fn tool(mut self, name: &'static str) -> Self {
        self.tools.push(name);
        self
    }

    pub fn with(mut self, key: &'static str, value: Value) -> Self {
        self.extra.push((key, value));
        self
    }

    pub fn user(mut self, text: &str) -> Self {
        self.items.push(match self.wire {
            Wire::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            _ => json!({"role": "user", "content": text}),
        });
        self
    }

    /// Adds a reply as it came.
    pub fn reply(mut self, document: &Value) -> Self {
        match self.wire {
            Wire::Anthropic => {
                let content = &document["content"];
                self.items.push(json!({"role": "assistant", "content": content}));
            }
            Wire::OpenAiChat => self.items.push(document["choices"][0]["message"].clone()),
            Wire::OpenAiResponses => {
                self.items.extend(document["output"].as_array().unwrap().iter().cloned());
            }
            Wire::Gemini => self.items.push(document["candidates"][0]["content"].clone()),
        }
        self
    }

    /// Answers each call of a reply with this text.
    pub fn results(mut self, document: &Value, text: &str) -> Self {
        let calls = heard(self.wire, document).calls;
        let id = |call: &Call| call.id.clone().unwrap_or_default();
        match self.wire {
            Wire::Anthropic => {
                let results = calls.iter().map(
                    |call| json!({"type": "tool_result", "tool_use_id": id(call), "content": text}),
                );
                let results: Vec<Value> = results.collect();
                self.items.push(json!({"role": "user", "content": results}));
            }
            Wire::OpenAiChat => self.items.extend(
                calls
                    .iter()
                    .map(|call| json!({"role": "tool", "tool_call_id": id(call), "content": text})),
            ),
            Wire::OpenAiResponses => self.items.extend(calls.iter().map(
                |call| json!({"type": "function_call_output", "call_id": id(call), "output": text}),
            )),
            Wire::Gemini => {
                let parts = calls.iter().map(|call| {
                    json!({"functionResponse": {"name": call.name, "response": {"output": text}}})
                });
                let parts: Vec<Value> = parts.collect();
                self.items.push(json!({"role": "user", "parts": parts}));
            }
        }
        self
    }

    /// The request's body.
    pub fn body(&self, form: Form) -> Value {
        let mut body = match self.wire {
            Wire::Anthropic => anthropic::body(self),
            Wire::OpenAiChat => chat::body(self),
            Wire::OpenAiResponses => responses::body(self),
            Wire::Gemini => gemini::body(self),
        };
        if form == Form::Stream && self.wire != Wire::Gemini {
            body["stream"] = json!(true);
            if self.wire == Wire::OpenAiChat {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
        for (key, value) in &self.extra {
            body[*key] = value.clone();
        }
        body
    }

    pub fn path(&self, form: Form) -> String {
        match (self.wire, form) {
            (Wire::Anthropic, _) => "/v1/messages".to_owned(),
            (Wire::OpenAiChat, _) => "/v1/chat/completions".to_owned(),
            (Wire::OpenAiResponses, _) => "/v1/responses".to_owned(),
            (Wire::Gemini, Form::Document) => {
                format!("/v1beta/models/{}:generateContent", self.model)
            }
            (Wire::Gemini, Form::Stream) => {
                format!("/v1beta/models/{}:streamGenerateContent?alt=sse", self.model)
            }
        }
    }

    /// The request, ready to be sent.
    pub fn request(
        &self,
        client: &reqwest::Client,
        fake: &FakeModel,
        form: Form,
    ) -> reqwest::RequestBuilder {
        let request = client.post(format!("{}{}", fake.url(), self.path(form)));
        let request = match self.wire {
            Wire::Anthropic => {
                request.header("x-api-key", &self.key).header("anthropic-version", "2023-06-01")
            }
            Wire::OpenAiChat | Wire::OpenAiResponses => request.bearer_auth(&self.key),
            Wire::Gemini => request.header("x-goog-api-key", &self.key),
        };
        request.header("content-type", "application/json").body(self.body(form).to_string())
    }

    pub async fn send(&self, fake: &FakeModel, form: Form) -> reqwest::Response {
        self.request(&client(), fake, form).send().await.unwrap()
    }

    /// The status and the document that answers it.
    pub async fn ask(&self, fake: &FakeModel) -> (u16, Value) {
        let response = self.send(fake, Form::Document).await;
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    }

    /// The document that answers it, which must be a success.
    pub async fn document(&self, fake: &FakeModel) -> Value {
        let (status, document) = self.ask(fake).await;
        assert_eq!(status, 200, "{}: {document}", self.wire.name());
        document
    }

    /// The document that a stream tells in pieces.
    pub async fn streamed(&self, fake: &FakeModel) -> Value {
        let response = self.send(fake, Form::Stream).await;
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 200, "{}: {text}", self.wire.name());
        folded(self.wire, &text)
    }

    pub async fn heard(&self, fake: &FakeModel) -> Heard {
        heard(self.wire, &self.document(fake).await)
    }

    /// The message of the error that answers it, which must have this status.
    pub async fn error(&self, fake: &FakeModel, status: u16) -> String {
        let (found, document) = self.ask(fake).await;
        assert_eq!(found, status, "{}: {document}", self.wire.name());
        document["error"]["message"].as_str().unwrap().to_owned()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Document,
    Stream,
}

/// What a document says.
pub fn heard(wire: Wire, document: &Value) -> Heard {
    match wire {
        Wire::Anthropic => anthropic::heard(document),
        Wire::OpenAiChat => chat::heard(document),
        Wire::OpenAiResponses => responses::heard(document),
        Wire::Gemini => gemini::heard(document),
    }
}

/// Puts the document together that a stream tells in pieces.
pub fn folded(wire: Wire, text: &str) -> Value {
    match wire {
        Wire::Anthropic => anthropic::folded(text),
        Wire::OpenAiChat => chat::folded(text),
        Wire::OpenAiResponses => responses::folded(text),
        Wire::Gemini => gemini::folded(&gemini::chunks(text)),
    }
}

/// The data of each event of a stream.
pub fn data(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.filter_map(|line| line.strip_prefix("data: ")).collect()
}

/// Appends a piece to a string that may not be there yet.
fn append(place: &mut Value, piece: &str) {
    *place = json!(format!("{}{piece}", place.as_str().unwrap_or_default()));
}

fn strings<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    values.filter_map(Value::as_str).collect()
}
