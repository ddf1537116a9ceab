//! The built-in catalog. It is parsed in pieces, so that a process with one model does not spend
//! time on the others at its start.

use super::row::{ModelRow, VendorRow};
use serde::Deserialize;
use std::collections::BTreeMap;

const TEXT: &str = include_str!("../../catalog.toml");

/// How the header of a model begins.
const MODEL: &str = "\n[models.\"";

/// What stands before the models.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) order: Vec<String>,
    pub(super) aliases: BTreeMap<String, String>,
    pub(super) vendors: BTreeMap<String, VendorRow>,
}

/// What stands before the models. A test sees to it that it can be read.
pub(super) fn head() -> Head {
    let end = TEXT.find(MODEL).unwrap_or(TEXT.len());
    toml::from_str(&TEXT[..end]).unwrap_or_default()
}

/// The row of the model called `id`.
pub(super) fn model(id: &str) -> Option<ModelRow> {
    let (_, rest) = TEXT.split_once(&format!("{MODEL}{id}\"]\n"))?;
    let end = rest.find("\n[").unwrap_or(rest.len());
    toml::from_str(&rest[..end]).ok()
}

/// The models that have a row, as `vendor/name`.
pub(super) fn models() -> impl Iterator<Item = &'static str> {
    TEXT.split(MODEL).skip(1).filter_map(|section| Some(section.split_once('"')?.0))
}
