//! The lines of a cassette: a head with the version, the models, the exchanges. Data only.

use crate::wire::{Dialect, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use posse_protocol::Price;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the format. A cassette of another is refused.
pub(super) const VERSION: u64 = 1;

/// A line of a cassette.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first one.
    Cassette(Head),
    /// A model that a run could call, from then on.
    Model(Box<RecordedModel>),
    /// A request and its answer, in the order in which the exchanges ended.
    Exchange(Box<Exchange>),
}

/// What the first line says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) version: u64,
    /// The version of Posse that recorded it.
    pub(super) posse: String,
}

/// A model as it was recorded, with all that is needed to call it again except keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordedModel {
    /// `vendor/name`.
    pub(crate) id: String,
    /// What the provider calls it.
    pub(crate) name: String,
    pub(crate) wire: Wire,
    /// The base URL, without user and query.
    pub(crate) base: String,
    /// Where the key came from, for people.
    pub(crate) key_source: String,
    pub(crate) window: u64,
    pub(crate) max_output: u64,
    /// What it costs, where that is known.
    pub(crate) price: Option<Price>,
    pub(crate) tools: bool,
    pub(crate) images: bool,
    pub(crate) documents: bool,
    pub(crate) dialect: Dialect,
}

/// A request and its answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Exchange {
    /// Requests are counted from 1 in the order in which they were made.
    pub(super) number: u64,
    pub(super) request: Asked,
    /// The answer, if its head came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<Answered>,
    pub(super) end: End,
}

/// A request, with marks in place of secrets and places.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) method: String,
    /// The path of the URL and its query.
    pub(super) path: String,
    pub(super) wire: String,
    pub(super) body: Value,
}

/// An answer, with marks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Content,
}

/// A body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Content {
    /// As text.
    Text(String),
    /// Bytes that are no text.
    Base64(String),
}

impl Content {
    pub(super) fn base64(bytes: &[u8]) -> Self {
        Content::Base64(STANDARD.encode(bytes))
    }

    /// The bytes; `None` if they are not what they claim to be.
    pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
        STANDARD.decode(text).ok()
    }
}

/// How an exchange ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// The body came to its end.
    Complete,
    /// The client stopped reading: the reply was complete before its body, it stalled, or the call
    /// was cancelled.
    Left,
    /// The network or the server failed.
    Failed {
        /// `unreachable`, `cut` or `malformed`.
        kind: String,
        reason: String,
    },
}
