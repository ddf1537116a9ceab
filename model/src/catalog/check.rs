//! Checks the rows of the catalog. An error names the place.

use super::row::{ModelRow, PriceRow, VendorRow};
use super::{KEPT_VENDOR, Vendor, row};
use crate::wire::Wire;
use reqwest::header::HeaderName;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Table;
use url::Url;

/// Why a row is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// An invalid value.
    #[error("[{place}]: {reason}")]
    Unusable {
        /// The table that contains it.
        place: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// An unknown vendor without an address.
    #[error(
        "[vendors.{vendor}]: it has no `base_url`; set it to where the vendor listens, such as https://models.example.com/v1"
    )]
    NoBaseUrl {
        /// The vendor.
        vendor: String,
    },
    /// A model of an unknown vendor.
    #[error(
        "[{place}]: there is no vendor `{vendor}`; name one of {known}, or add [vendors.{vendor}]"
    )]
    UnknownVendor {
        /// The table that contains it.
        place: String,
        /// The part before the `/`.
        vendor: String,
        /// The known vendors.
        known: String,
    },
}

fn unusable(place: &str, reason: impl Into<String>) -> CatalogError {
    CatalogError::Unusable { place: place.to_owned(), reason: reason.into() }
}

/// The most dollars a million tokens may cost.
const MAX_PRICE: f64 = 1e6;

pub(super) fn vendor(name: &str, row: &VendorRow) -> Result<(), CatalogError> {
    let place = format!("vendors.{name}");
    if !is_vendor_name(name) {
        let reason = "the name of a vendor has letters, digits, `-`, `_` and `.`, at most 64";
        return Err(unusable(&place, reason));
    }
    if name == KEPT_VENDOR {
        return Err(unusable(&place, "`offline` is the built-in model; take another name"));
    }
    if let Some(base_url) = &row.base_url {
        usable_url(base_url).map_err(|reason| {
            let example = "set it to something like https://models.example.com/v1";
            unusable(&place, format!("`base_url` is not a usable URL: {reason}; {example}"))
        })?;
    }
    let variables = [&row.key_variable, &row.base_url_variable];
    for variable in variables.into_iter().flatten().chain(&row.host_variable) {
        let usable = |(index, c): (usize, char)| match c {
            '_' => true,
            c if index == 0 => c.is_ascii_alphabetic(),
            c => c.is_ascii_alphanumeric(),
        };
        if variable.is_empty() || !variable.chars().enumerate().all(usable) {
            let reason = "is no name of an environment variable; name the variable, never the key";
            // A value that looks like a key is not repeated.
            return Err(unusable(&place, format!("a variable that is named here {reason}")));
        }
    }
    if let Some(header) = &row.key_header
        && HeaderName::from_bytes(header.as_bytes()).is_err()
    {
        return Err(unusable(&place, format!("`key_header` is `{header}`, which is no header")));
    }
    let names = row.model.iter().chain(&row.prefixes);
    if let Some(name) = names.into_iter().find(|name| !is_model_name(name)) {
        return Err(unusable(&place, format!("`{name}` is no name of a model")));
    }
    let caps = [
        ("max_concurrent", row.max_concurrent == Some(0)),
        ("requests_per_minute", row.requests_per_minute == Some(0)),
        ("tokens_per_minute", row.tokens_per_minute == Some(0)),
    ];
    if let Some((cap, _)) = caps.into_iter().find(|(_, is_nothing)| *is_nothing) {
        let reason = format!("`{cap}` is 0: nothing could ever be sent; set at least 1");
        return Err(unusable(&place, reason));
    }
    sizes(&place, row.window, row.max_output)
}

pub(super) fn model(id: &str, row: &ModelRow, vendors: &[Vendor]) -> Result<(), CatalogError> {
    let place = format!("models.\"{id}\"");
    let vendor = known_vendor(&place, id, vendors)?;
    sizes(&place, row.window, row.max_output)?;
    if let Some(price) = &row.price {
        self::price(&place, price)?;
    }
    dialect(&place, [&vendor.dialect, &row.dialect])
}

pub(super) fn alias(alias: &str, target: &str, vendors: &[Vendor]) -> Result<(), CatalogError> {
    if !is_model_name(alias) || alias.contains('/') {
        let reason = format!("`{alias}` is no short name; take a word without `/` and `,`");
        return Err(unusable("aliases", reason));
    }
    let place = format!("aliases.{alias}");
    known_vendor(&place, target, vendors).map(drop)
}

/// The vendor of `id`, which must be `vendor/name`.
fn known_vendor<'a>(
    place: &str,
    id: &str,
    vendors: &'a [Vendor],
) -> Result<&'a Vendor, CatalogError> {
    let split = id.split_once('/').filter(|(_, name)| is_model_name(name));
    let (vendor, _) = split
        .ok_or_else(|| unusable(place, format!("`{id}` is no model; write it as `vendor/name`")))?;
    vendors.iter().find(|known| known.name == vendor).ok_or_else(|| CatalogError::UnknownVendor {
        place: place.to_owned(),
        vendor: vendor.to_owned(),
        known: vendors.iter().map(|known| known.name.as_str()).collect::<Vec<_>>().join(", "),
    })
}

/// True for a valid name of a vendor.
pub(crate) fn is_vendor_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(fits)
}

/// True for a valid name of a model. A comma separates two names.
pub(crate) fn is_model_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b',';
    !name.is_empty() && name.len() <= 200 && name.bytes().all(fits)
}

/// A URL that requests can be sent to.
pub(crate) fn usable_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(format!("its scheme is `{scheme}`, not http or https")),
    }
}

fn sizes(place: &str, window: Option<u64>, max_output: Option<u64>) -> Result<(), CatalogError> {
    match (window, max_output) {
        (Some(0), _) | (_, Some(0)) => {
            Err(unusable(place, "`window` and `max_output` are numbers of tokens, at least 1"))
        }
        (Some(window), Some(most)) if most > window => {
            let reason = format!("`max_output` ({most}) does not fit into `window` ({window})");
            Err(unusable(place, reason))
        }
        _ => Ok(()),
    }
}

fn price(place: &str, row: &PriceRow) -> Result<(), CatalogError> {
    let all = [Some(row.input), row.cache_read, row.cache_write, Some(row.output)];
    let is_price = |price: &f64| (0.0..=MAX_PRICE).contains(price);
    match all.iter().flatten().find(|price| !is_price(price)) {
        Some(wrong) => {
            let reason = format!("`price` has {wrong}: give USD per million tokens");
            Err(unusable(place, reason))
        }
        None => Ok(()),
    }
}

/// The wire format called `word`.
pub(super) fn wire(vendor: &str, word: &str) -> Result<Wire, CatalogError> {
    let deserializer: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
        word.into_deserializer();
    // The error names all wires.
    Wire::deserialize(deserializer)
        .map_err(|error| unusable(&format!("vendors.{vendor}"), format!("`wire`: {error}")))
}

/// Fails when `tables` are not a valid dialect.
pub(super) fn dialect<'a>(
    place: &str,
    tables: impl IntoIterator<Item = &'a Table>,
) -> Result<(), CatalogError> {
    let made = row::dialect(tables);
    made.map(drop).map_err(|error| unusable(place, format!("`dialect`: {}", error.message())))
}
