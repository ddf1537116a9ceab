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

/// A client of one wire: all that tests have to know of it. Each wire has a file.
pub trait Client {
    /// The body of a request for one document.
    fn body(&self, talk: &Talk) -> Value;

    /// Asks for a stream.
    fn stream(&self, body: &mut Value) {
        body["stream"] = json!(true);
    }

    fn path(&self, model: &str, form: Form) -> String;

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        vec![("authorization", format!("Bearer {key}"))]
    }

    /// What a user says, as a message, an item or a content.
    fn user(&self, text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    /// A reply as it is sent back.
    fn replied(&self, document: &Value) -> Vec<Value>;

    /// The answers to calls.
    fn results(&self, calls: &[Call], text: &str) -> Vec<Value>;

    /// What a document says.
    fn heard(&self, document: &Value) -> Heard;

    /// Puts the document together that a stream tells in pieces.
    fn folded(&self, text: &str) -> Value;

    /// The words for a reply that calls tools, and for one that ends.
    fn stops(&self) -> (&'static str, &'static str);

    /// The id that a call gets where the script gives none.
    fn id(&self, index: usize) -> Option<String> {
        Some(format!("call_0_{index}"))
    }
}

pub fn client_of(wire: Wire) -> &'static dyn Client {
    match wire {
        Wire::Anthropic => &anthropic::Anthropic,
        Wire::OpenAiChat => &chat::Chat,
        Wire::OpenAiResponses => &responses::Responses,
        Wire::Gemini => &gemini::Gemini,
    }
}

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
        self.items.push(client_of(self.wire).user(text));
        self
    }

    /// Adds a reply as it came.
    pub fn reply(mut self, document: &Value) -> Self {
        self.items.extend(client_of(self.wire).replied(document));
        self
    }

    /// Answers each call of a reply with this text.
    pub fn results(mut self, document: &Value, text: &str) -> Self {
        let calls = heard(self.wire, document).calls;
        self.items.extend(client_of(self.wire).results(&calls, text));
        self
    }

    /// The request's body.
    pub fn body(&self, form: Form) -> Value {
        let mut body = client_of(self.wire).body(self);
        if form == Form::Stream {
            client_of(self.wire).stream(&mut body);
        }
        for (key, value) in &self.extra {
            body[*key] = value.clone();
        }
        body
    }

    pub fn path(&self, form: Form) -> String {
        client_of(self.wire).path(&self.model, form)
    }

    pub fn headers(&self) -> Vec<(&'static str, String)> {
        client_of(self.wire).headers(&self.key)
    }

    /// The request, ready to be sent.
    pub fn request(
        &self,
        client: &reqwest::Client,
        fake: &FakeModel,
        form: Form,
    ) -> reqwest::RequestBuilder {
        let request = client.post(format!("{}{}", fake.url(), self.path(form)));
        let headers = self.headers().into_iter();
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
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
    client_of(wire).heard(document)
}

/// Puts the document together that a stream tells in pieces.
pub fn folded(wire: Wire, text: &str) -> Value {
    client_of(wire).folded(text)
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

/// The id of a call.
fn id(call: &Call) -> String {
    call.id.clone().unwrap_or_default()
}

fn strings<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    values.filter_map(Value::as_str).collect()
}
