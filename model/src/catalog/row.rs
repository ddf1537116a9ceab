//! Rows of the catalog, in the built-in file and in a user's settings.

use super::vendor::Caps;
use crate::wire::Dialect;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use toml::Table;

/// Additions of a user to the catalog.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Additions {
    /// Vendors by name.
    pub vendors: BTreeMap<String, VendorRow>,
    /// Models by `vendor/name`.
    pub models: BTreeMap<String, ModelRow>,
    /// Short names and what they stand for.
    pub aliases: BTreeMap<String, String>,
}

impl Additions {
    /// True when there are no additions.
    pub fn is_empty(&self) -> bool {
        self.vendors.is_empty() && self.models.is_empty() && self.aliases.is_empty()
    }
}

/// A row about a vendor. Missing fields keep their values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VendorRow {
    pub(super) base_url: Option<String>,
    #[serde(deserialize_with = "one_or_more")]
    pub(super) base_url_variable: Vec<String>,
    pub(super) host_variable: Option<String>,
    pub(super) wire: Option<String>,
    #[serde(deserialize_with = "one_or_more")]
    pub(super) key_variable: Vec<String>,
    pub(super) key_header: Option<String>,
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "one_or_more")]
    pub(super) prefixes: Vec<String>,
    pub(super) local: Option<bool>,
    pub(super) start: Option<String>,
    pub(super) max_concurrent: Option<usize>,
    pub(super) requests_per_minute: Option<u64>,
    pub(super) tokens_per_minute: Option<u64>,
    pub(super) window: Option<u64>,
    pub(super) max_output: Option<u64>,
    pub(super) tools: Option<bool>,
    pub(super) images: Option<bool>,
    pub(super) documents: Option<bool>,
    pub(super) dialect: Table,
}

/// A row about a model. Missing fields keep their values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelRow {
    pub(super) window: Option<u64>,
    pub(super) max_output: Option<u64>,
    pub(super) price: Option<PriceRow>,
    pub(super) tools: Option<bool>,
    pub(super) images: Option<bool>,
    pub(super) documents: Option<bool>,
    pub(super) dialect: Table,
}

/// A price in dollars for a million tokens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceRow {
    pub(super) input: f64,
    pub(super) cache_read: Option<f64>,
    pub(super) cache_write: Option<f64>,
    pub(super) output: f64,
    pub(super) date: Option<String>,
}

impl VendorRow {
    /// Its limits where it sets them, else those of `before`.
    pub(super) fn caps(&self, before: Caps) -> Caps {
        Caps {
            max_concurrent: self.max_concurrent.or(before.max_concurrent),
            requests_per_minute: self.requests_per_minute.or(before.requests_per_minute),
            tokens_per_minute: self.tokens_per_minute.or(before.tokens_per_minute),
        }
    }

    /// The properties of all its models.
    pub(super) fn of_models(&self) -> ModelRow {
        ModelRow {
            window: self.window,
            max_output: self.max_output,
            price: None,
            tools: self.tools,
            images: self.images,
            documents: self.documents,
            dialect: Table::new(),
        }
    }
}

impl ModelRow {
    /// Its own values where it has them, else those of `before`, without prices and dialects.
    pub(super) fn or(self, before: &ModelRow) -> ModelRow {
        ModelRow {
            window: self.window.or(before.window),
            max_output: self.max_output.or(before.max_output),
            tools: self.tools.or(before.tools),
            images: self.images.or(before.images),
            documents: self.documents.or(before.documents),
            ..self
        }
    }
}

/// The dialect that `tables` describe together, later ones over earlier ones.
pub(super) fn dialect<'a>(
    tables: impl IntoIterator<Item = &'a Table>,
) -> Result<Dialect, toml::de::Error> {
    let mut all = Table::new();
    for table in tables {
        all.extend(table.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    Dialect::deserialize(all)
}

/// Reads a text or a list of them.
fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct OneOrMore;
    impl<'de> Visitor<'de> for OneOrMore {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a list of texts")
        }
        fn visit_str<E: Error>(self, one: &str) -> Result<Vec<String>, E> {
            Ok(vec![one.to_owned()])
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut more: A) -> Result<Vec<String>, A::Error> {
            let mut all = Vec::new();
            while let Some(one) = more.next_element()? {
                all.push(one);
            }
            Ok(all)
        }
    }
    // An untagged enum would be shorter, but parse each value twice.
    from.deserialize_any(OneOrMore)
}
