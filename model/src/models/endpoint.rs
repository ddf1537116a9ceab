//! The address and the headers for requests to a vendor. Only this module puts a key into a header.

use super::Keys;
use crate::ResolveError;
use crate::catalog::{Vendor, usable_url};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// What all requests to a vendor have in common.
pub(crate) struct Endpoint {
    /// The base URL.
    pub(crate) base: Url,
    /// Sent with each request; the key among them is marked as sensitive.
    pub(crate) headers: HeaderMap,
    /// The key; empty when there is none.
    pub(crate) key: SecretString,
    /// Where the key came from or is expected, for people.
    pub(crate) key_source: String,
}

impl Endpoint {
    /// How `vendor` is reached, for the model that was asked for as `asked`.
    pub(crate) fn of(vendor: &Vendor, keys: &Keys, asked: &str) -> Result<Self, ResolveError> {
        let found = keys.first(&vendor.key_variables);
        if found.is_none() && vendor.needs_key() {
            return Err(ResolveError::MissingKey {
                name: asked.to_owned(),
                variable: vendor.key_variables.join(" or "),
            });
        }
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some((name, version)) = vendor.wire.version() {
            headers.insert(name, HeaderValue::from_static(version));
        }
        if let Some((variable, key)) = found {
            let (name, value) = key_header(vendor, key)
                .ok_or_else(|| ResolveError::UnusableKey { variable: variable.to_owned() })?;
            headers.insert(name, value);
        }
        let expected = vendor.key_variables.first();
        let key_source = match (found, expected) {
            (Some((variable, _)), _) => variable.to_owned(),
            (None, Some(variable)) => variable.clone(),
            (None, None) => format!("`key_variable` of [vendors.{}]", vendor.name),
        };
        let key = found.map_or_else(SecretString::default, |(_, key)| key.clone());
        Ok(Endpoint { base: base_url(vendor, keys)?, headers, key, key_source })
    }

    /// Sends these headers too.
    pub(crate) fn add_headers(&mut self, headers: &[(&'static str, &'static str)]) {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        self.headers.extend(headers.iter().map(header));
    }

    /// The address of `path`, which may end in a query, below the base URL.
    pub(crate) fn url(&self, path: &str) -> Url {
        below(&self.base, path)
    }
}

/// `path`, which may end in a query, below `base`.
pub(crate) fn below(base: &Url, path: &str) -> Url {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    if query.is_some() {
        url.set_query(query);
    }
    url
}

/// The header that shows `key` to `vendor`.
fn key_header(vendor: &Vendor, key: &SecretString) -> Option<(HeaderName, HeaderValue)> {
    let name = match &vendor.key_header {
        Some(name) => HeaderName::from_bytes(name.as_bytes()).ok()?,
        None => HeaderName::from_static(vendor.wire.key_header()),
    };
    let key = key.expose_secret();
    let mut value = match name {
        AUTHORIZATION => HeaderValue::from_str(&format!("Bearer {key}")),
        _ => HeaderValue::from_str(key),
    }
    .ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

/// Where `vendor` listens, as the keys, the user or the catalog say.
pub(crate) fn base_url(vendor: &Vendor, keys: &Keys) -> Result<Url, ResolveError> {
    let unusable = |place: &str, reason: String| ResolveError::UnusableUrl {
        place: place.to_owned(),
        reason,
        example: vendor.base_url.clone(),
    };
    if let Some((variable, value)) = keys.first(&vendor.base_url_variables) {
        return usable_url(value.expose_secret()).map_err(|reason| unusable(variable, reason));
    }
    let place = format!("`base_url` of [vendors.{}]", vendor.name);
    let base = usable_url(&vendor.base_url).map_err(|reason| unusable(&place, reason))?;
    match keys.first(&vendor.host_variable) {
        Some((variable, host)) => {
            at_host(base, host.expose_secret()).map_err(|reason| unusable(variable, reason))
        }
        None => Ok(base),
    }
}

/// `base` on another host, which is given as `host`, `host:port`, `:port` or a whole URL.
fn at_host(mut base: Url, host: &str) -> Result<Url, String> {
    let given = match host {
        whole if whole.contains("://") => usable_url(whole)?,
        port if port.starts_with(':') => usable_url(&format!("http://127.0.0.1{port}"))?,
        bare => usable_url(&format!("http://{bare}"))?,
    };
    let port = match given.port() {
        None if !host.contains("://") => base.port(),
        port => port,
    };
    // A server may listen on the address for all interfaces, but clients cannot connect to it.
    let name = match given.host_str() {
        Some("0.0.0.0" | "[::]") | None => "127.0.0.1",
        Some(name) => name,
    };
    let moved = base.set_scheme(given.scheme()).and_then(|()| base.set_port(port));
    let moved = moved.is_ok() && base.set_host(Some(name)).is_ok();
    if moved { Ok(base) } else { Err("it names no host".to_owned()) }
}
