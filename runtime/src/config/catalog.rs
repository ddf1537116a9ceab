//! Vendors, models and short names in settings files: together they make the catalog.

use super::Setting;
use super::table::{Effective, Layer, Layered, Row};
use super::value::Elsewhere;
use posse_model::Catalog;
use posse_model::catalog::{Additions, ModelRow, Source, VendorRow};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// `[vendors.NAME]` as written, and the other additions of the file to the catalog.
#[derive(Default, Deserialize)]
#[serde(from = "BTreeMap<String, VendorRow>")]
pub(crate) struct FileCatalog(pub(super) Additions);

impl From<BTreeMap<String, VendorRow>> for FileCatalog {
    fn from(vendors: BTreeMap<String, VendorRow>) -> Self {
        FileCatalog(Additions { vendors, ..Additions::default() })
    }
}

impl Layered for Setting<Catalog> {
    type Written = FileCatalog;

    const FORM: &'static str = "[{}.NAME]";

    fn overlay(&mut self, file: FileCatalog, layer: &mut Layer<'_>) -> Result<(), String> {
        let value = Catalog::with(file.0).map_err(|error| error.to_string())?;
        *self = layer.set(value);
        Ok(())
    }

    fn show(&self, row: &Row, shown: &mut Vec<Effective>) {
        let own = self.value.vendors().iter().filter(|vendor| vendor.source == Source::User);
        shown.extend(own.map(|vendor| {
            let key = format!("{}.{}", row.key, vendor.name);
            self.origin.effective(key, json!(vendor.base_url))
        }));
        let built_in = Catalog::built_in();
        let usual: BTreeMap<&str, &str> = built_in.aliases().collect();
        let changed = self.value.aliases().filter(|(alias, model)| usual.get(alias) != Some(model));
        let alias =
            |(alias, model)| self.origin.effective(format!("aliases.{alias}"), json!(model));
        shown.extend(changed.map(alias));
        let is_own =
            |model: &String| self.value.find(model).is_ok_and(|found| found.source == Source::User);
        let own = self.value.models().into_iter().filter(is_own);
        shown.extend(
            own.map(|model| self.origin.effective(format!("models.{model}"), json!("set"))),
        );
    }

    fn is_set(file: &FileCatalog) -> bool {
        !file.0.is_empty()
    }
}

/// Rows of models, which are stored in the catalog.
pub type Models = Elsewhere<BTreeMap<String, ModelRow>>;
/// Short names, which are stored in the catalog.
pub type Aliases = Elsewhere<BTreeMap<String, String>>;
