//! The four wires: a model of each at some address, and its request as bytes.

use crate::bench::Result;
use posse::model::wire::{Dialect, Target, Wire, Written};
use posse::model::{Catalog, Keys, Models, Options};
use posse::protocol::Message;
use posse_agent::Request;
use std::sync::Arc;

/// All of them, in the order in which they are shown.
pub const WIRES: [Spoken; 4] =
    [Spoken::Anthropic, Spoken::OpenaiChat, Spoken::OpenaiResponses, Spoken::Gemini];

/// What the provider calls the model.
const MODEL: &str = "model-1";

/// A wire, as the command line of a part names it.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub enum Spoken {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
}

impl Spoken {
    pub fn name(self) -> &'static str {
        match self {
            Spoken::Anthropic => "anthropic",
            Spoken::OpenaiChat => "openai-chat",
            Spoken::OpenaiResponses => "openai-responses",
            Spoken::Gemini => "gemini",
        }
    }

    fn wire(self) -> Wire {
        match self {
            Spoken::Anthropic => Wire::Anthropic,
            Spoken::OpenaiChat => Wire::OpenaiChat,
            Spoken::OpenaiResponses => Wire::OpenaiResponses,
            Spoken::Gemini => Wire::Gemini,
        }
    }

    fn base(self, address: &str) -> String {
        let path = match self {
            Spoken::Anthropic => "",
            Spoken::OpenaiChat | Spoken::OpenaiResponses => "/v1",
            Spoken::Gemini => "/v1beta",
        };
        format!("{address}{path}")
    }

    /// Where requests go at the server at `address`.
    pub fn url(self, address: &str) -> String {
        format!("{}{}", self.base(address), self.wire().path(MODEL))
    }

    /// A model that is served at `address`.
    pub fn model(self, address: &str) -> Result<Arc<dyn posse::Model>> {
        let settings = format!(
            "[vendors.bench]\nbase_url = \"{}\"\nwire = \"{}\"\nkey_variable = \"BENCH_KEY\"\n",
            self.base(address),
            self.name()
        );
        let catalog = Catalog::with(toml::from_str(&settings)?)?;
        let keys = Keys::default().with("BENCH_KEY", "any");
        let models = Models::new(catalog, keys, Options::default());
        Ok(models.resolve(&format!("bench/{MODEL}"))?)
    }

    /// The body of [`request`].
    pub fn body(self) -> Result<Vec<u8>> {
        let dialect = Dialect::default();
        Ok(self.wire().encode(
            &request(),
            Target { model: MODEL, dialect: &dialect, written: &Written::default() },
        )?)
    }
}

/// What the model is asked.
pub fn request() -> Request {
    Request {
        system: "Say it.".into(),
        messages: vec![Arc::new(Message::user("What is there to be said?"))],
        tools: Vec::new().into(),
        max_tokens: 4_096,
        effort: None,
        output_schema: None,
    }
}

/// The headers that some wire or other wants of a client, as lines.
pub const HEADERS: [(&str, &str); 6] = [
    ("content-type", "application/json"),
    ("accept", "text/event-stream"),
    ("x-api-key", "any"),
    ("anthropic-version", "2023-06-01"),
    ("authorization", "Bearer any"),
    ("x-goog-api-key", "any"),
];
