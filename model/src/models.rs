//! Resolves a name to a model that can be called.
//!
//! It holds the keys that the caller gives it, and never looks for keys.

mod choice;
mod endpoint;
mod host;
mod keys;
mod recorded;
mod servers;
mod trial;

pub use choice::{Choice, ChoiceReason};
pub use host::HostModel;
pub use keys::Keys;
pub use trial::{Offer, Trial, try_out};

use crate::ResolveError;
use crate::catalog::{Catalog, Found, Vendor};
use crate::governor::{Governor, Pacing, Provider};
use crate::http::{self, Http};
use crate::input_kinds::InputKinds;
use crate::remote::{Remote, Server};
use crate::wire::Written;
use endpoint::Endpoint;
use parking_lot::Mutex;
use posse_agent::{Model, ModelInfo};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// The most resolved models to keep. Further names still work.
const MAX_KEPT: usize = 256;

/// Options for calls of models.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a stream may make no progress before the call fails as stalled.
    pub stall: Duration,
    /// Whether calls wait until their provider accepts them.
    pub pacing: Pacing,
}

impl Default for Options {
    fn default() -> Self {
        Options { stall: Duration::from_secs(120), pacing: Pacing::default() }
    }
}

/// What a model can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// It can call tools.
    pub tools: bool,
    /// Its answer can be restricted by a JSON Schema.
    pub output_schema: bool,
    /// Its price is known; it may be zero.
    pub priced: bool,
}

/// All models of a catalog that are reachable with some keys, and the models of the host. The
/// former share one HTTP client, and the models of one provider share its governor.
pub struct Models {
    catalog: Catalog,
    keys: Keys,
    options: Options,
    hosts: Vec<HostModel>,
    http: Http,
    kept: Mutex<HashMap<String, Arc<dyn Model>>>,
    abilities: Mutex<HashMap<String, Abilities>>,
    governors: Governors,
}

/// The governors of all providers in use: one for each address and key.
type Governors = Mutex<BTreeMap<(String, String), Arc<Governor>>>;

impl Models {
    /// Returns the models of `catalog` that `keys` give access to. It is cheap until the first
    /// call.
    pub fn new(catalog: Catalog, keys: Keys, options: Options) -> Self {
        let (hosts, kept, abilities, governors) = Default::default();
        Models { catalog, keys, options, hosts, http: http::client(), kept, abilities, governors }
    }

    /// Returns the catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the model `name`: a short name, `vendor/name`, or a name that implies its vendor.
    /// Models of the host come first.
    ///
    /// # Errors
    /// When there is no such vendor, or no usable key or base URL for it.
    pub fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ResolveError> {
        if let Some(host) = self.host_model(name) {
            return Ok(Arc::clone(&host.model));
        }
        let mut kept = self.kept.lock();
        if let Some(model) = kept.get(name) {
            return Ok(Arc::clone(model));
        }
        let model: Arc<dyn Model> = Arc::new(self.make(name)?);
        if kept.len() < MAX_KEPT {
            kept.insert(name.to_owned(), Arc::clone(&model));
        }
        Ok(model)
    }

    /// Returns what the model `name` can do, whether it is reachable or not.
    ///
    /// # Errors
    /// When there is no such vendor.
    pub fn abilities(&self, name: &str) -> Result<Abilities, ResolveError> {
        if let Some(host) = self.host_model(name) {
            return Ok(host.abilities);
        }
        // Thousands of runs may ask, and a lookup in the catalog takes time.
        let mut known = self.abilities.lock();
        if let Some(abilities) = known.get(name) {
            return Ok(*abilities);
        }
        let abilities = self.look_up(name)?;
        if known.len() < MAX_KEPT {
            known.insert(name.to_owned(), abilities);
        }
        Ok(abilities)
    }

    fn look_up(&self, name: &str) -> Result<Abilities, ResolveError> {
        if let Some(recorded) = self.recorded(name) {
            return Ok(recorded?.abilities());
        }
        let Found { properties, dialect, .. } = self.find(name)?;
        Ok(Abilities {
            tools: properties.tools,
            output_schema: dialect.output_schema,
            priced: properties.price.is_some(),
        })
    }

    /// Checks that `vendor` can be called: its address is valid, and its key is set if it needs
    /// one.
    ///
    /// # Errors
    /// When it cannot be called; the error says what to do.
    pub fn check(&self, vendor: &Vendor) -> Result<(), ResolveError> {
        Endpoint::of(vendor, &self.keys, &vendor.name).map(drop)
    }

    /// Returns the address of `vendor`, without its secret parts.
    ///
    /// # Errors
    /// When its address is invalid.
    pub fn address(&self, vendor: &Vendor) -> Result<String, ResolveError> {
        Ok(http::address(&endpoint::base_url(vendor, &self.keys)?))
    }

    /// Returns the providers of all models resolved so far, by name: how many calls each accepts,
    /// and how many there are.
    pub fn providers(&self) -> Vec<Provider> {
        let governors = self.governors.lock();
        let mut all: Vec<Provider> = governors.values().map(|one| one.provider()).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Returns the governor of calls to `vendor`. There is one for each address and key.
    fn governor(&self, vendor: &Vendor, endpoint: &Endpoint) -> Arc<Governor> {
        let key = (endpoint.base.to_string(), endpoint.key_source.clone());
        let mut governors = self.governors.lock();
        let make = || {
            let address = http::address(&endpoint.base);
            Governor::new(vendor.name.clone(), address, self.options.pacing, vendor.caps)
        };
        Arc::clone(governors.entry(key).or_insert_with(|| Arc::new(make())))
    }

    /// Returns the row of the catalog for `asked`. An error may also suggest a model of the host.
    fn find(&self, asked: &str) -> Result<Found<'_>, ResolveError> {
        self.catalog.find_beside(asked, &self.host_vendors())
    }

    fn make(&self, asked: &str) -> Result<Remote, ResolveError> {
        if let Some(recorded) = self.recorded(asked) {
            return self.replayed(recorded?);
        }
        let found = self.find(asked)?;
        let mut endpoint = Endpoint::of(found.vendor, &self.keys, asked)?;
        endpoint.add_headers(found.wire().headers(&found.dialect));
        self.record(&found, &endpoint);
        let (id, governor) = (found.id(), self.governor(found.vendor, &endpoint));
        let Found { vendor, name, properties, dialect, .. } = found;
        Ok(Remote {
            info: ModelInfo {
                id,
                context_window: properties.window,
                max_output: properties.max_output,
                price: properties.price.map(|dated| dated.price).unwrap_or_default(),
            },
            url: endpoint.url(&vendor.wire.path(&name)),
            name,
            wire: vendor.wire,
            dialect,
            written: Written::default(),
            sight: InputKinds { images: properties.images, documents: properties.documents },
            headers: endpoint.headers,
            key: endpoint.key,
            key_source: endpoint.key_source,
            http: self.http.clone(),
            governor,
            stall: self.options.stall,
            server: Server::of(vendor),
        })
    }
}
