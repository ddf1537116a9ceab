//! The Gemini generateContent wire.
//!
//! How the provider's parts become parts of a message, and back:
//! - Texts in a row become one text, thoughts in a row one reasoning, a `functionCall` a call.
//!   Their other fields, such as `thoughtSignature`, go back on exactly the same parts.
//! - Every other part becomes [`Part::Opaque`](posse_protocol::Part::Opaque) and goes back as it is.
//! - Information about a reply, such as its sources, stays in the message's `extra`: requests have
//!   no field for it.

mod assembly;
mod chunk;
mod contents;
mod decode;
mod encode;
mod part;

pub use decode::Decoder;
pub use encode::encode;

use super::{Codec, Decode, EncodeError, Target, Wire};
use posse_agent::Request;
use std::fmt::Write;

/// What this wire is called in [`Part::Opaque`](posse_protocol::Part::Opaque).
const NAME: &str = Wire::Gemini.name();

/// In the `extra` of a text: the parts it came in, each with its length in bytes and, unless it was
/// text alone, its other fields.
const PIECES: &str = "pieces";

/// In the `extra` of a call or of reasoning: the other fields of the part it came in.
const PART: &str = "part";

/// In the `extra` of a call: the fields of `functionCall` that have no meaning here.
const FUNCTION_CALL: &str = "functionCall";

/// The field that proves where a part came from.
const SIGNATURE: &str = "thoughtSignature";

/// The beginning of ids that Posse makes for calls without an id. They are not sent.
const MADE_ID: &str = "posse_";

/// The codec of this wire.
pub(super) struct Gemini;

impl Codec for Gemini {
    fn path(&self, model: &str) -> String {
        path(model)
    }

    fn key_header(&self) -> &'static str {
        "x-goog-api-key"
    }

    fn encode(&self, request: &Request, target: Target<'_>) -> Result<Vec<u8>, EncodeError> {
        encode(request, target)
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::new(Decoder::default())
    }
}

/// The path and query of the endpoint below the base URL, for the model called `model`.
fn path(model: &str) -> String {
    let mut path = String::from("/models/");
    for byte in model.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b'@' => {
                path.push(char::from(byte));
            }
            // No other character may end the path or look like the method.
            _ => {
                let _ = write!(path, "%{byte:02X}");
            }
        }
    }
    path + ":streamGenerateContent?alt=sse"
}
