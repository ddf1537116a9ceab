//! One chunk of a reply as the provider writes it.
//!
//! Text is frequent, so it is borrowed. Unknown fields become JSON values.

use super::SIGNATURE;
use crate::wire::count::Count;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A chunk of a stream, or a whole reply: they have the same form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    pub(super) usage_metadata: Option<Counts<'a>>,
    #[serde(borrow)]
    pub(super) response_id: Option<Borrowed<'a>>,
    pub(super) prompt_feedback: Option<Map<String, Value>>,
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Borrowed<'a>>,
    pub(super) finish_message: Option<Value>,
    pub(super) citation_metadata: Option<Value>,
    pub(super) grounding_metadata: Option<Value>,
    pub(super) url_context_metadata: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<WirePart<'a>>>,
}

/// Tokens so far.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Counts<'a> {
    /// Cached ones included.
    pub(super) prompt_token_count: Count,
    pub(super) cached_content_token_count: Count,
    /// Results of tools that run at the provider.
    pub(super) tool_use_prompt_token_count: Count,
    /// Thoughts not included.
    pub(super) candidates_token_count: Count,
    pub(super) thoughts_token_count: Count,
    #[serde(borrow)]
    pub(super) service_tier: Option<Borrowed<'a>>,
    #[serde(borrow)]
    pub(super) traffic_type: Option<Borrowed<'a>>,
}

/// Text that is copied only if it has escapes. Inside an `Option`, a plain `Cow` always copies.
#[derive(Deserialize)]
pub(super) struct Borrowed<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// A part of the content.
#[derive(Default)]
pub(super) struct WirePart<'a> {
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) thought: bool,
    pub(super) function_call: Option<Map<String, Value>>,
    /// All other fields, the signature among them, in their order.
    pub(super) fields: Map<String, Value>,
}

impl<'de: 'a, 'a> Deserialize<'de> for WirePart<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WirePartVisitor(PhantomData))
    }
}

struct WirePartVisitor<'a>(PhantomData<WirePart<'a>>);

impl<'de: 'a, 'a> Visitor<'de> for WirePartVisitor<'a> {
    type Value = WirePart<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WirePart<'a>, A::Error> {
        let mut part = WirePart::default();
        while let Some(Borrowed(key)) = map.next_key::<Borrowed<'de>>()? {
            match &*key {
                "text" => {
                    part.text = map.next_value::<Option<Borrowed<'de>>>()?.map(|text| text.0);
                }
                "thought" => {
                    part.thought = map.next_value::<Option<bool>>()?.unwrap_or_default();
                }
                "functionCall" => part.function_call = map.next_value()?,
                SIGNATURE => {
                    let signature = map.next_value::<Value>()?;
                    // An empty signature counts as none.
                    if signature.as_str() != Some("") && !signature.is_null() {
                        part.fields.insert(key.into_owned(), signature);
                    }
                }
                _ => {
                    part.fields.insert(key.into_owned(), map.next_value()?);
                }
            }
        }
        Ok(part)
    }
}
