//! From a name to a model that can be called.
//!
//! Owns the keys. Is given them; never looks for them.

use crate::catalog::{self, ANTHROPIC, Vendor};
use crate::http::{self, Http};
use crate::remote::Remote;
use crate::wire::{Dialect, Wire, anthropic};
use posse_agent::{Model, ModelInfo};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use url::Url;

/// Models that are kept once resolved. Names beyond that still work.
const MAX_KEPT: usize = 256;

/// What is needed to reach providers, as the caller found it.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// The value of `ANTHROPIC_API_KEY`.
    pub anthropic_api_key: Option<SecretString>,
    /// The value of `ANTHROPIC_BASE_URL`: where to send requests instead of Anthropic.
    pub anthropic_base_url: Option<String>,
}

/// How models are called.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a stream may make no progress before the call fails as stalled.
    pub stall: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { stall: Duration::from_secs(120) }
    }
}

/// All models that can be reached with some keys. They share one HTTP client.
pub struct Models {
    keys: Keys,
    options: Options,
    http: Http,
    kept: Mutex<HashMap<String, Arc<dyn Model>>>,
}

/// Why a name gives no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// What stands before the `/` is no vendor.
    #[error("`{name}`: there is no vendor `{vendor}`; known vendors: {known}")]
    UnknownVendor {
        /// What was asked for.
        name: String,
        /// The part before the `/`.
        vendor: String,
        /// The vendors there are.
        known: String,
    },
    /// A name without a vendor that is no known model either.
    #[error(
        "`{name}` is not a known model; write it as `vendor/name` (known vendors: {known}) or use one of {aliases}"
    )]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The vendors there are.
        known: String,
        /// The short names there are.
        aliases: String,
    },
    /// There is no key for the vendor.
    #[error("`{name}` needs a key, and there is none; set {variable}")]
    MissingKey {
        /// What was asked for.
        name: String,
        /// Where the key is expected.
        variable: &'static str,
    },
    /// The key cannot be a key.
    #[error(
        "the key in {variable} has characters that cannot be sent, such as a line break; set {variable} to the key alone"
    )]
    UnusableKey {
        /// Where the key came from.
        variable: &'static str,
    },
    /// The base URL is none.
    #[error("{variable} is not a usable URL: {reason}; set it to something like {example}")]
    UnusableUrl {
        /// Where the URL came from.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
        /// What it could be.
        example: &'static str,
    },
}

impl Models {
    /// The models that `keys` give access to. Costs nothing until one is called.
    pub fn new(keys: Keys, options: Options) -> Self {
        Models { keys, options, http: http::client(), kept: Mutex::default() }
    }

    /// The model called `name`: `vendor/name`, a vendor's name that tells its vendor
    /// (`claude-…`), or a short name (`sonnet`, `opus`, `haiku`).
    ///
    /// # Errors
    /// When there is no such vendor, or no usable key or base URL for it.
    pub fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ResolveError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = kept.get(name) {
            return Ok(Arc::clone(model));
        }
        let model: Arc<dyn Model> = Arc::new(self.make(name)?);
        if kept.len() < MAX_KEPT {
            kept.insert(name.to_owned(), Arc::clone(&model));
        }
        Ok(model)
    }

    fn make(&self, asked: &str) -> Result<Remote, ResolveError> {
        let (vendor, name) = parse(asked)?;
        let entry = vendor.find(name);
        let name = entry.filter(|entry| entry.alias == name).map_or(name, |entry| entry.name);
        let properties = entry.map_or(catalog::UNKNOWN, |entry| entry.properties);
        let key = self.keys.anthropic_api_key.clone();
        let key = key.filter(|key| !key.expose_secret().is_empty()).ok_or_else(|| {
            ResolveError::MissingKey { name: asked.to_owned(), variable: vendor.key_variable }
        })?;
        Ok(Remote {
            info: ModelInfo {
                id: format!("{}/{name}", vendor.name),
                context_window: properties.context_window,
                max_output: properties.max_output,
                price: properties.price,
            },
            name: name.to_owned(),
            wire: Wire::Anthropic,
            dialect: Dialect::default(),
            url: endpoint(vendor, self.keys.anthropic_base_url.as_deref())?,
            headers: headers(vendor, &key)?,
            key,
            key_source: vendor.key_variable,
            http: self.http.clone(),
            stall: self.options.stall,
        })
    }
}

/// Splits a name into its vendor and what the vendor calls it.
fn parse(asked: &str) -> Result<(&'static Vendor, &str), ResolveError> {
    let vendor = &ANTHROPIC;
    let known = || vendor.name.to_owned();
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    match asked.split_once('/') {
        Some((prefix, name)) if prefix == vendor.name && is_name(name) => Ok((vendor, name)),
        Some((prefix, _)) if prefix != vendor.name => Err(ResolveError::UnknownVendor {
            name: asked.to_owned(),
            vendor: prefix.to_owned(),
            known: known(),
        }),
        None if vendor.find(asked).is_some() => Ok((vendor, asked)),
        None if asked.starts_with(vendor.name_prefix) && is_name(asked) => Ok((vendor, asked)),
        _ => Err(ResolveError::UnknownModel {
            name: asked.to_owned(),
            known: known(),
            aliases: vendor.models.iter().map(|entry| entry.alias).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Where requests go: the wire's path below the base URL.
fn endpoint(vendor: &Vendor, base_url: Option<&str>) -> Result<Url, ResolveError> {
    let unusable = |reason: String| ResolveError::UnusableUrl {
        variable: vendor.base_url_variable,
        reason,
        example: vendor.base_url,
    };
    let base_url = base_url.map(str::trim).filter(|text| !text.is_empty());
    let mut url =
        Url::parse(base_url.unwrap_or(vendor.base_url)).map_err(|e| unusable(e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(unusable(format!("its scheme is `{}`, not http or https", url.scheme())));
    }
    let path = format!("{}{}", url.path().trim_end_matches('/'), anthropic::PATH);
    url.set_path(&path);
    Ok(url)
}

fn headers(vendor: &Vendor, key: &SecretString) -> Result<HeaderMap, ResolveError> {
    let mut key = HeaderValue::from_str(key.expose_secret())
        .map_err(|_| ResolveError::UnusableKey { variable: vendor.key_variable })?;
    key.set_sensitive(true);
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert("x-api-key", key);
    headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    Ok(headers)
}
