//! The built-in catalog. It is parsed in pieces, so that a process with one model does not spend
//! time on the others at its start.

use super::row::{ModelRow, VendorRow};
use serde::Deserialize;
use std::collections::BTreeMap;

pub(super) const TEXT: &str = include_str!("../../catalog.toml");

/// How the header of a vendor begins.
const VENDOR: &str = "\n[vendors.";

/// How the header of a model begins.
const MODEL: &str = "\n[models.\"";

/// What stands before the models.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) aliases: BTreeMap<String, String>,
    vendors: BTreeMap<String, VendorRow>,
    /// The vendors in the order of the text, in which they are preferred.
    #[serde(skip)]
    order: Vec<&'static str>,
}

impl Head {
    /// What stands before the models of `text`. A test sees to it that it can be read.
    pub(super) fn of(text: &'static str) -> Head {
        let head = &text[..text.find(MODEL).unwrap_or(text.len())];
        let order = head.split(VENDOR).skip(1).filter_map(|row| Some(row.split_once(']')?.0));
        Head { order: order.collect(), ..toml::from_str(head).unwrap_or_default() }
    }

    /// The vendors, the preferred ones first.
    pub(super) fn take_vendors(&mut self) -> Vec<(&'static str, VendorRow)> {
        let Head { order, vendors, .. } = self;
        order.iter().filter_map(|name| Some((*name, vendors.remove(*name)?))).collect()
    }
}

/// The row of the model called `id` in `text`.
pub(super) fn model(text: &str, id: &str) -> Option<ModelRow> {
    let (_, rest) = text.split_once(&format!("{MODEL}{id}\"]\n"))?;
    let end = rest.find("\n[").unwrap_or(rest.len());
    toml::from_str(&rest[..end]).ok()
}

/// The models that have a row in `text`, as `vendor/name`.
pub(super) fn models(text: &str) -> impl Iterator<Item = &str> {
    text.split(MODEL).skip(1).filter_map(|section| Some(section.split_once('"')?.0))
}
