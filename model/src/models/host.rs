//! Models of the host. They are not in the catalog, and their calls do not use the HTTP client of
//! this crate: no governor and no cassette sees them.

use super::{Abilities, Models};
use crate::ResolveError;
use crate::catalog::{is_model_name, is_vendor_name};
use posse_agent::Model;
use posse_protocol::Price;
use std::fmt;
use std::sync::Arc;

/// A model that the program brings along, beside those of the catalog.
///
/// It is called what its [`id`](posse_agent::ModelInfo::id) says: `vendor/name`, with a vendor that
/// the catalog does not have. What stands before the `/` is name enough while the program brings
/// one model of that vendor.
///
/// What a call costs is what its reply says: [`Usage::cost`](posse_protocol::Usage::cost).
///
/// It makes its own connections. A recording does not contain its calls, and a replay calls it as
/// usual.
#[derive(Clone)]
pub struct HostModel {
    /// What is called.
    pub model: Arc<dyn Model>,
    /// What can be asked of it.
    pub abilities: Abilities,
    /// It is used when no model is named, no key is set and no local server answers. Of several the
    /// first counts.
    pub last_resort: bool,
}

impl HostModel {
    /// A model that calls tools, promises no form of its answers, and is taken only when it is
    /// named. Its price counts as known if it has one: where a model is free, say so in
    /// [`Abilities::priced`], or runs with a limit of cost refuse it.
    pub fn new(model: Arc<dyn Model>) -> Self {
        let priced = model.info().price != Price::default();
        let abilities = Abilities { tools: true, output_schema: false, priced };
        HostModel { model, abilities, last_resort: false }
    }

    /// What it is called, as `vendor/name`.
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
    /// The same, and a model that the program brings along.
    ///
    /// # Errors
    /// When its name is not `vendor/name`, or is taken already.
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

    /// The models that the program has brought along, in their order, each with the short name that
    /// it has.
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
