//! Vendors and their addresses.

use super::row::{ModelRow, VendorRow};
use super::{CatalogError, DatedPrice, Properties, Source, check};
use crate::wire::Wire;
use toml::Table;

/// A company or server that answers model calls.
#[derive(Clone, Debug)]
pub struct Vendor {
    /// Its name: the part before the `/` in the name of a model.
    pub name: String,
    /// Its default address.
    pub base_url: String,
    /// Environment variables for another base URL.
    pub base_url_variables: Vec<String>,
    /// An environment variable for another host, with or without a port.
    pub host_variable: Option<String>,
    /// The wire format it speaks.
    pub wire: Wire,
    /// Environment variables for its key. The first one that is set counts.
    pub key_variables: Vec<String>,
    /// The header for its key, if it is not the default of the wire.
    pub key_header: Option<String>,
    /// The default model, by the name that the vendor uses.
    pub model: Option<String>,
    /// Prefixes of the names of its models. Such a name needs no vendor before it.
    pub prefixes: Vec<String>,
    /// Whether it is remote or local.
    pub reach: Locality,
    /// The command that starts its server, if the user runs it.
    pub start: Option<String>,
    /// The limits of the user for it.
    pub caps: Caps,
    /// Where its row comes from.
    pub source: Source,
    pub(super) dialect: Table,
    models: ModelRow,
}

/// Whether a vendor is remote or local, and so what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// Remote: it needs a key, if it has a variable for one.
    Remote,
    /// Local: the user runs it. It costs nothing, it may want a key, and it may not be running.
    Local,
}

/// The limits for calls to a vendor, even if it would accept more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Calls in flight.
    pub max_concurrent: Option<usize>,
    /// Requests in any minute.
    pub requests_per_minute: Option<u64>,
    /// Tokens in any minute, sent and received, approximately.
    pub tokens_per_minute: Option<u64>,
}

/// The wire of most vendors.
const USUAL_WIRE: &str = "openai-chat";

impl Vendor {
    pub(super) fn new(name: &str, row: VendorRow, source: Source) -> Result<Self, CatalogError> {
        let (models, caps) = (row.of_models(), row.caps(Caps::default()));
        let wire = check::wire(name, row.wire.as_deref().unwrap_or(USUAL_WIRE))?;
        // A test checks the built-in ones, so that the start of a process does not.
        if source == Source::User {
            check::dialect(&format!("vendors.{name}"), [&row.dialect])?;
        }
        let base_url =
            row.base_url.ok_or_else(|| CatalogError::NoBaseUrl { vendor: name.to_owned() })?;
        Ok(Vendor {
            name: name.to_owned(),
            base_url,
            base_url_variables: row.base_url_variable,
            host_variable: row.host_variable,
            wire,
            key_variables: row.key_variable,
            key_header: row.key_header,
            model: row.model,
            prefixes: row.prefixes,
            reach: if row.local == Some(true) { Locality::Local } else { Locality::Remote },
            start: row.start,
            caps,
            source,
            dialect: row.dialect,
            models,
        })
    }

    /// Applies the user's changes to a known vendor.
    pub(super) fn change(&mut self, row: VendorRow) -> Result<(), CatalogError> {
        fn set<T>(known: &mut T, said: Option<T>) {
            if let Some(said) = said {
                *known = said;
            }
        }
        fn set_list(known: &mut Vec<String>, said: Vec<String>) {
            if !said.is_empty() {
                *known = said;
            }
        }
        self.models = row.of_models().or(&self.models);
        self.caps = row.caps(self.caps);
        if let Some(word) = &row.wire {
            self.wire = check::wire(&self.name, word)?;
        }
        check::dialect(&format!("vendors.{}", self.name), [&self.dialect, &row.dialect])?;
        self.dialect.extend(row.dialect);
        set(&mut self.base_url, row.base_url);
        set_list(&mut self.base_url_variables, row.base_url_variable);
        set_list(&mut self.key_variables, row.key_variable);
        set_list(&mut self.prefixes, row.prefixes);
        set(&mut self.host_variable, row.host_variable.map(Some));
        set(&mut self.key_header, row.key_header.map(Some));
        set(&mut self.model, row.model.map(Some));
        let reach = row.local.map(|local| if local { Locality::Local } else { Locality::Remote });
        set(&mut self.reach, reach);
        set(&mut self.start, row.start.map(Some));
        self.source = Source::User;
        Ok(())
    }

    /// True when it needs a key.
    pub fn needs_key(&self) -> bool {
        self.reach == Locality::Remote && !self.key_variables.is_empty()
    }

    /// Returns the environment variables for its key and address.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let lists = [&self.key_variables, &self.base_url_variables];
        lists.into_iter().flatten().chain(&self.host_variable).map(String::as_str)
    }

    /// The properties of its models.
    pub(super) fn properties(&self) -> Properties {
        let price = (self.reach == Locality::Local).then_some(DatedPrice::FREE);
        Properties { price, ..Properties::assumed(&self.models) }
    }
}
