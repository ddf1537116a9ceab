//! The four wires: a model of each at some address, and its request as bytes.

use crate::bench::Result;
use posse::model::wire::{Dialect, Target, Wire, Written};
use posse::model::{Catalog, Keys, Models, Options};
use posse::protocol::Message;
use posse_agent::Request;
use std::sync::Arc;

/// All of them, in the order in which they are shown.
pub const WIRES: [Wire; 4] =
    [Wire::Anthropic, Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Gemini];

/// What the provider calls the model.
const MODEL: &str = "model-1";

fn base(wire: Wire, address: &str) -> String {
    let path = match wire {
        Wire::Anthropic => "",
        Wire::OpenaiChat | Wire::OpenaiResponses => "/v1",
        Wire::Gemini => "/v1beta",
    };
    format!("{address}{path}")
}

/// Where requests go at the server at `address`.
pub fn url(wire: Wire, address: &str) -> String {
    format!("{}{}", base(wire, address), wire.path(MODEL))
}

/// A model that is served at `address`.
pub fn model(wire: Wire, address: &str) -> Result<Arc<dyn posse::Model>> {
    let settings = format!(
        "[vendors.bench]\nbase_url = \"{}\"\nwire = \"{}\"\nkey_variable = \"BENCH_KEY\"\n",
        base(wire, address),
        wire.name()
    );
    let catalog = Catalog::with(toml::from_str(&settings)?)?;
    let keys = Keys::default().with("BENCH_KEY", "any");
    let models = Models::new(catalog, keys, Options::default());
    Ok(models.resolve(&format!("bench/{MODEL}"))?)
}

/// The body of [`request`].
pub fn body(wire: Wire) -> Result<Vec<u8>> {
    let (dialect, written) = (Dialect::default(), Written::default());
    let target = Target { model: MODEL, dialect: &dialect, written: &written };
    Ok(wire.encode(&request(), target)?)
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

/// The headers that clients of these wires send.
pub const HEADERS: [(&str, &str); 6] = [
    ("content-type", "application/json"),
    ("accept", "text/event-stream"),
    ("x-api-key", "any"),
    ("anthropic-version", "2023-06-01"),
    ("authorization", "Bearer any"),
    ("x-goog-api-key", "any"),
];
