//! The OpenAI Responses wire, with nothing kept at the provider.
//!
//! How output items become parts, and back:
//! - `message`, `reasoning` and `function_call` become text, thinking and tool calls. What else
//!   an item has (its `id`, `status`, `phase`…) stays in `extra` under `item` and is sent back.
//! - Every other item becomes [`Part::Opaque`] of the wire `openai-responses`, verbatim and in its place.
//!
//! [`Part::Opaque`]: posse_protocol::Part::Opaque

mod decode;
mod encode;
mod entry;
mod error;
mod event;
mod input;
mod item;
mod part;
mod reasoning;

pub use decode::Decoder;
pub use encode::encode;

use super::{Codec, Decode, EncodeError, Target, Wire};
use posse_agent::Request;

/// What this wire is called in [`Part::Opaque`](posse_protocol::Part::Opaque).
const NAME: &str = Wire::OpenaiResponses.name();

/// Where a part's `extra` holds what its item has besides: the fields without meaning here.
const ITEM: &str = "item";

/// Where a text's `extra` says that the text is a refusal.
const REFUSAL: &str = "refusal";

/// Where an item's fields hold the arguments of a call as they came, if writing them again would
/// give other bytes.
const ARGUMENTS: &str = "arguments";

/// The codec of this wire.
pub(super) struct OpenaiResponses;

impl Codec for OpenaiResponses {
    fn path(&self, _: &str) -> String {
        "/responses".to_owned()
    }

    fn encode(&self, request: &Request, target: Target<'_>) -> Result<Vec<u8>, EncodeError> {
        encode(request, target)
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::new(Decoder::default())
    }
}
