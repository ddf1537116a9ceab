//! What a provider complains about. Each wire has its own words for it.

use super::anatomy::{self, Anatomy};
use serde_json::Value;

/// What a provider complains about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    RateLimit,
    Quota,
    Overload,
    Internal,
    Unavailable,
    Timeout,
    Key,
    Permission,
    UnknownModel,
    TooLarge,
    Overflow,
    BadRequest,
}

impl Trouble {
    /// The status that the provider gives it.
    pub(super) fn status(self, wire: &dyn Anatomy) -> u16 {
        wire.trouble(self).0
    }

    /// The document that comes with the status.
    pub(super) fn document(self, wire: &dyn Anatomy) -> Value {
        wire.trouble(self).1
    }

    /// The event that tells of it within a stream.
    pub(super) fn event(self, wire: &dyn Anatomy) -> Vec<u8> {
        anatomy::event(wire, &wire.trouble_event(self))
    }
}
