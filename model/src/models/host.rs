//! Models of the host. They are not in the catalog, and their calls do not use the HTTP client of
//! this crate: no governor and no cassette sees them.

use super::{Abilities, Models};
use crate::ResolveError;
use crate::catalog::{is_model_name, is_vendor_name};
use posse_agent::Model;
use posse_protocol::Price;
use std::fmt;
use std::sync::Arc;

/// A model of the host, in addition to those of the catalog.
///
/// Its name is its [`id`](posse_agent::ModelInfo::id): `vendor/name`, with a vendor that the
/// catalog does not have. If it is the only model of that vendor, the part before the `/` is
/// enough.
///
/// Each reply says what it cost: [`Usage::cost`](posse_protocol::Usage::cost).
///
/// The model makes its own connections. A recording does not contain its calls, and a replay calls
/// it as usual.
#[derive(Clone)]
pub struct HostModel {
    /// The model.
    pub model: Arc<dyn Model>,
    /// What it can do.
    pub abilities: Abilities,
    /// Posse uses it when no model is named, no key is set and no local server answers. Of several
    /// such models, the first counts.
    pub last_resort: bool,
}

impl HostModel {
    /// Returns a model that can call tools, has no output schema, and is used only by name. Its
    /// price counts as known if it has one. For a free model, set [`Abilities::priced`], or runs
    /// with a cost limit refuse it.
    pub fn new(model: Arc<dyn Model>) -> Self {
        let priced = model.info().price != Price::default();
        let abilities = Abilities { tools: true, output_schema: false, priced };
        HostModel { model, abilities, last_resort: false }
    }

    /// Returns its name, as `vendor/name`.
    pub fn name(&self) -> &str {
        &self.model.info().id
    }

    /// What stands before the `/`.
    pub(super) fn vendor(&self) -> &str {
        self.name().split('/').next().unwrap_or_default()
    }
}

impl fmt::Debug for HostModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostModel")
            .field("name", &self.name())
            .field("abilities", &self.abilities)
            .field("last_resort", &self.last_resort)
            .finish()
    }
}

impl Models {
    /// Adds a model of the host.
    ///
    /// # Errors
    /// When its name is not `vendor/name`, or is taken.
    pub fn with(mut self, model: HostModel) -> Result<Self, ResolveError> {
        let unusable = |reason: String| {
            Err(ResolveError::UnusableHostModel { name: model.name().to_owned(), reason })
        };
        let parts = model.name().split_once('/');
        let parts = parts.filter(|(vendor, name)| is_vendor_name(vendor) && is_model_name(name));
        let Some((vendor, _)) = parts else {
            return unusable("a model is called `vendor/name`, such as `acme/one`".to_owned());
        };
        if self.catalog.vendor(vendor).is_some() {
            return unusable(format!(
                "the catalog has a vendor `{vendor}`; call the vendor of this model otherwise"
            ));
        }
        if self.hosts.iter().any(|known| known.name() == model.name()) {
            return unusable("there is another one of this name; bring each once".to_owned());
        }
        self.hosts.push(model);
        Ok(self)
    }

    /// Returns the models of the host, in their order, each with its short name if it has one.
    pub fn host_models(&self) -> impl Iterator<Item = (&HostModel, Option<&str>)> {
        self.hosts.iter().map(|model| {
            let vendor = model.vendor();
            let is_alone = self.hosts.iter().filter(|it| it.vendor() == vendor).count() == 1;
            (model, is_alone.then_some(vendor))
        })
    }

    /// The model of the program that `asked` stands for.
    pub(super) fn host_model(&self, asked: &str) -> Option<&HostModel> {
        self.host_models()
            .find(|(model, short)| model.name() == asked || *short == Some(asked))
            .map(|(model, _)| model)
    }

    /// What the names of the program's models begin with.
    pub(super) fn host_vendors(&self) -> Vec<&str> {
        let mut vendors: Vec<&str> = self.hosts.iter().map(HostModel::vendor).collect();
        vendors.sort_unstable();
        vendors.dedup();
        vendors
    }

    /// The model that is taken when there is no other.
    pub(super) fn last_resort(&self) -> Option<&HostModel> {
        self.hosts.iter().find(|model| model.last_resort)
    }
}
