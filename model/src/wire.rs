//! Wire formats: pure codecs between a transcript and the bytes of a provider.
//!
//! A wire writes a request and reads a reply, as a stream of events or whole. It does no I/O and
//! knows no address. It loses nothing: content from a provider goes back unchanged and in its
//! order, to the same wire.

pub mod anthropic;
mod count;
mod dialect;
pub mod gemini;
mod hash;
pub mod openai_chat;
pub mod openai_responses;
mod schema;
mod turns;
mod written;

pub use dialect::{CallIds, Dialect, EffortStyle, Gemini, OutputCap, TopEffort};
pub use written::Written;

use crate::fault::Fault;
use crate::sse::Event;
use posse_agent::{DeltaSink, Reply, Request};
use posse_protocol::{Part, Price, ToolSpec, Usage};
use serde::ser::{Error, SerializeMap};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most tool calls that one reply may have. An agent may start thousands of subagents at once.
pub(crate) const MAX_CALLS: usize = 10_000;

/// Makes the enum, its names and its codecs from one table.
macro_rules! wires {
    ($($(#[$doc:meta])+ $name:ident = $word:literal in $module:ident,)+) => {
        /// A wire format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Wire {
            $($(#[$doc])+ #[serde(rename = $word)] $name,)+
        }

        impl Wire {
            /// All wire formats.
            pub const ALL: &'static [Wire] = &[$(Wire::$name),+];

            /// Returns its name in settings, stored messages and opaque parts.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Wire::$name => $word,)+
                }
            }

            fn codec(self) -> &'static dyn Codec {
                match self {
                    $(Wire::$name => &$module::$name,)+
                }
            }
        }
    };
}

wires! {
    /// Anthropic Messages.
    Anthropic = "anthropic" in anthropic,
    /// OpenAI Chat Completions.
    OpenaiChat = "openai-chat" in openai_chat,
    /// OpenAI Responses.
    OpenaiResponses = "openai-responses" in openai_responses,
    /// Gemini generateContent.
    Gemini = "gemini" in gemini,
}

/// The interface of a wire format.
trait Codec {
    /// Returns the path of the endpoint relative to the base URL, with its query if there is one.
    /// `model` is the name that the provider uses.
    fn path(&self, model: &str) -> String;

    /// Returns the header for the key of the original vendor of the wire, in lower case. In
    /// `authorization` the key is a bearer token.
    fn key_header(&self) -> &'static str {
        "authorization"
    }

    /// Returns the header with the version of the wire.
    fn version(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns the further headers of a request in this dialect, besides the key and the version.
    fn headers(&self, _: &Dialect) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the body of a request. The same request gives the same bytes.
    fn encode(&self, request: &Request, target: Target<'_>) -> Result<Vec<u8>, EncodeError>;

    /// Returns a decoder for one reply.
    fn decoder(&self) -> Box<dyn Decode>;
}

/// The model of a request, and the dialect of its provider.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The name that the provider uses.
    pub model: &'a str,
    /// The dialect of the provider.
    pub dialect: &'a Dialect,
    /// The cache of encoded parts that requests share.
    pub written: &'a Written,
}

impl Target<'_> {
    /// Writes the entry `tools`, whose value is `form`.
    fn write_tools<M: SerializeMap>(
        &self,
        map: &mut M,
        tools: &Arc<[ToolSpec]>,
        form: &impl Serialize,
    ) -> Result<(), M::Error> {
        let text = self.written.get(tools, form).map_err(M::Error::custom)?;
        map.serialize_entry("tools", &*text)
    }
}

/// The effect of an event on the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing changed: a ping, or an unknown event. Such events do not keep a stream alive.
    None,
    /// The reply has made progress.
    Moved,
    /// The reply is complete.
    Complete,
}

/// The request cannot be written as JSON.
#[derive(Debug, thiserror::Error)]
#[error("the request cannot be written as JSON: {0}")]
pub struct EncodeError(#[from] serde_json::Error);

/// Assembles one reply, from the events of a stream or from one document.
pub trait Decode: Send {
    /// Takes the next event. Its deltas go to `deltas` at once.
    ///
    /// # Errors
    /// When the event is an error of the provider, or violates the wire format. After an error, the
    /// decoder must not be used again.
    fn event(&mut self, event: &Event<'_>, deltas: DeltaSink<'_>) -> Result<Progress, Fault>;

    /// Takes a whole reply, from a provider that does not stream.
    ///
    /// # Errors
    /// When it is an error of the provider, or violates the wire format.
    fn document(&mut self, body: &[u8], deltas: DeltaSink<'_>) -> Result<(), Fault>;

    /// Returns the tokens that the provider has counted so far.
    fn usage(&self) -> Usage;

    /// Returns the reply, once it is complete. `price` determines its cost.
    ///
    /// If the arguments of a tool call are not JSON, the call has the raw text as a string for
    /// arguments, so that Posse can report it to the model. A call that was cut off is left out.
    ///
    /// # Errors
    /// When the stream ended before the reply was complete.
    fn finish(self: Box<Self>, price: &Price) -> Result<Reply, Fault>;
}

impl Wire {
    /// Returns the path of the endpoint relative to the base URL, with its query if there is one.
    /// `model` is the name that the provider uses.
    pub fn path(self, model: &str) -> String {
        self.codec().path(model)
    }

    /// Returns the header for the key of the original vendor of the wire, in lower case.
    pub(crate) fn key_header(self) -> &'static str {
        self.codec().key_header()
    }

    /// Returns the header with the version of the wire.
    pub(crate) fn version(self) -> Option<(&'static str, &'static str)> {
        self.codec().version()
    }

    /// Returns the headers that a request in this dialect needs in addition to those of its vendor.
    pub fn headers(self, dialect: &Dialect) -> &'static [(&'static str, &'static str)] {
        self.codec().headers(dialect)
    }

    /// Returns the body of a request. The same request gives the same bytes.
    ///
    /// # Errors
    /// When a value has no JSON form.
    pub fn encode(self, request: &Request, target: Target<'_>) -> Result<Vec<u8>, EncodeError> {
        self.codec().encode(request, target)
    }

    /// Returns a decoder for one reply.
    pub fn decoder(self) -> Box<dyn Decode> {
        self.codec().decoder()
    }
}

/// Returns `body`, the body of `request`, as bytes.
fn bytes_of(
    body: &impl Serialize,
    request: &Request,
    target: Target<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = target.written.buffer(rough_length(request));
    serde_json::to_writer(&mut bytes, body)?;
    Ok(bytes)
}

/// Estimates the size of a request in bytes, so that the buffer need not grow.
fn rough_length(request: &Request) -> usize {
    let tools = request.tools.iter();
    let tools = tools.map(|tool| 200 + tool.description.len() + tool.schema.text().len());
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let text = request.system.len() + tools.sum::<usize>() + parts.map(length_of).sum::<usize>();
    // Quotes and line breaks take two bytes each.
    1_024 + text + text / 16
}

fn length_of(part: &Part) -> usize {
    let length = match part {
        Part::Text(text) => text.text.len(),
        Part::Thinking(thinking) => {
            thinking.text.len() + thinking.signature.as_ref().map_or(0, String::len)
        }
        Part::ToolResult(result) => result.parts.iter().map(length_of).sum(),
        Part::Image { data, .. } | Part::Document { data, .. } => data.len(),
        Part::ToolCall(_) | Part::Opaque { .. } => 200,
    };
    100 + length
}
