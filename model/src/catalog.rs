//! The catalog: facts about vendors and their models, from the built-in file and from the user.
//!
//! It holds no keys, does no I/O, and decides nothing beyond finding a row.

mod built_in;
mod check;
mod properties;
mod row;
mod vendor;

pub use check::CatalogError;
pub(crate) use check::{is_model_name, is_vendor_name, usable_url};
pub use properties::{DatedPrice, Properties};
pub use row::{Additions, ModelRow, VendorRow};
pub use vendor::{Caps, Locality, Vendor};

use crate::ResolveError;
use crate::wire::{Dialect, Wire};
use posse_protocol::near;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// The vendor that no settings can add. Its name is reserved for a model of the host that needs no
/// vendor.
const KEPT_VENDOR: &str = "offline";

/// Vendors, models and short names. It is cheap to clone, and parsed on first use.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    inner: Arc<OnceLock<Inner>>,
}

#[derive(Debug)]
struct Inner {
    /// The built-in catalog.
    text: &'static str,
    /// In order of preference.
    vendors: Vec<Vendor>,
    aliases: BTreeMap<String, String>,
    /// Rows of the user. Built-in rows are parsed when they are needed.
    models: BTreeMap<String, ModelRow>,
}

/// Where a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The built-in catalog.
    BuiltIn,
    /// The settings of the user, at least in part.
    User,
    /// Nowhere: the name is in no catalog.
    Nobody,
}

/// The model that a name stands for.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// Its vendor.
    pub vendor: &'a Vendor,
    /// The name that the vendor uses.
    pub name: String,
    /// Its abilities and its price.
    pub properties: Properties,
    /// The dialect of its vendor.
    pub dialect: Dialect,
    /// Where its row comes from.
    pub source: Source,
}

impl Found<'_> {
    /// Returns `vendor/name`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.vendor.name, self.name)
    }

    /// Returns the wire format of its vendor.
    pub fn wire(&self) -> Wire {
        self.vendor.wire
    }
}

impl Inner {
    fn built_in() -> Self {
        Inner::of(built_in::TEXT)
    }

    fn of(text: &'static str) -> Self {
        let mut head = built_in::Head::of(text);
        let vendors = head.take_vendors().into_iter().filter_map(|(name, row)| {
            // A test parses every row. If one is wrong all the same, it is skipped.
            Vendor::new(name, row, Source::BuiltIn).ok()
        });
        let vendors = vendors.collect();
        Inner { text, vendors, aliases: head.aliases, models: BTreeMap::new() }
    }
}

impl Catalog {
    /// Returns the built-in catalog.
    pub fn built_in() -> Self {
        Catalog::default()
    }

    /// Returns the catalog with `text` in place of `model/catalog.toml`.
    #[doc(hidden)]
    pub fn of_text(text: &'static str) -> Self {
        Catalog { inner: Arc::new(OnceLock::from(Inner::of(text))) }
    }

    fn inner(&self) -> &Inner {
        self.inner.get_or_init(Inner::built_in)
    }

    /// Returns the built-in catalog with the additions of a user: new rows, and changes of known
    /// ones. Vendors of the user come first in the order of preference.
    ///
    /// # Errors
    /// When a row is invalid.
    pub fn with(additions: Additions) -> Result<Self, CatalogError> {
        let Inner { text, mut vendors, mut aliases, .. } = Inner::built_in();
        let Additions { vendors: rows, models, aliases: short } = additions;
        let mut own = Vec::new();
        for (name, row) in rows {
            check::vendor(&name, &row)?;
            match vendors.iter_mut().find(|known| known.name == name) {
                Some(known) => known.change(row)?,
                None => own.push(Vendor::new(&name, row, Source::User)?),
            }
        }
        own.append(&mut vendors);
        let vendors = own;
        for (id, row) in &models {
            check::model(id, row, &vendors)?;
        }
        for (alias, target) in short {
            check::alias(&alias, &target, &vendors)?;
            aliases.insert(alias, target);
        }
        let inner = Inner { text, vendors, aliases, models };
        Ok(Catalog { inner: Arc::new(OnceLock::from(inner)) })
    }

    /// Returns all vendors, preferred ones first.
    pub fn vendors(&self) -> &[Vendor] {
        &self.inner().vendors
    }

    /// Returns the vendor `name`.
    pub fn vendor(&self, name: &str) -> Option<&Vendor> {
        self.vendors().iter().find(|vendor| vendor.name == name)
    }

    /// Returns the environment variables for the keys and addresses of all vendors.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.vendors().iter().flat_map(Vendor::variables)
    }

    /// Returns all models with a row, as `vendor/name`, in the order of the vendors.
    pub fn models(&self) -> Vec<String> {
        let own = self.inner().models.keys().cloned();
        let built_in: Vec<String> =
            built_in::models(self.inner().text).map(str::to_owned).collect();
        let seen: BTreeSet<&String> = built_in.iter().collect();
        let own: Vec<String> = own.filter(|id| !seen.contains(id)).collect();
        let all: Vec<String> = own.into_iter().chain(built_in).collect();
        let of = |vendor: &Vendor| -> Vec<String> {
            let is_of = |id: &&String| id.split_once('/').is_some_and(|(of, _)| of == vendor.name);
            all.iter().filter(is_of).cloned().collect()
        };
        self.vendors().iter().flat_map(of).collect()
    }

    /// Returns the short names, and what they stand for.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.inner().aliases.iter().map(|(alias, target)| (alias.as_str(), target.as_str()))
    }

    /// Returns the model to use if only `vendor` is known.
    pub fn preferred(&self, vendor: &Vendor) -> Option<String> {
        if let Some(name) = &vendor.model {
            return Some(format!("{}/{name}", vendor.name));
        }
        let own = self.inner().models.keys();
        own.into_iter()
            .find(|id| id.split_once('/').is_some_and(|(of, _)| of == vendor.name))
            .cloned()
    }

    /// Returns the model that `asked` stands for: a short name, `vendor/name`, or a name that
    /// implies its vendor.
    ///
    /// # Errors
    /// When there is no such vendor, or the name implies none.
    pub fn find(&self, asked: &str) -> Result<Found<'_>, ResolveError> {
        self.find_beside(asked, &[])
    }

    /// Does the same. An error may also suggest the vendors `beside`, which are not in the catalog.
    pub(crate) fn find_beside(
        &self,
        asked: &str,
        beside: &[&str],
    ) -> Result<Found<'_>, ResolveError> {
        let asked_for = self.inner().aliases.get(asked).map_or(asked, String::as_str);
        let (vendor, name) = self.split(asked, asked_for, beside)?;
        let id = format!("{}/{name}", vendor.name);
        let undated = without_date(&id);
        let own = self.inner().models.get(&id).or_else(|| self.inner().models.get(undated));
        let text = self.inner().text;
        let built_in = built_in::model(text, &id).or_else(|| built_in::model(text, undated));
        let rows = [built_in.as_ref(), own];
        let source = match rows {
            [_, Some(_)] => Source::User,
            [Some(_), None] => Source::BuiltIn,
            [None, None] => Source::Nobody,
        };
        let rows = || rows.into_iter().flatten();
        let properties = rows().fold(vendor.properties(), Properties::changed_by);
        let dialects = std::iter::once(&vendor.dialect).chain(rows().map(|row| &row.dialect));
        // Each table was checked when its row was parsed.
        let dialect = row::dialect(dialects).unwrap_or_default();
        Ok(Found { vendor, name, properties, dialect, source })
    }

    /// Splits a name into its vendor and the name that the vendor uses.
    fn split(
        &self,
        asked: &str,
        name: &str,
        beside: &[&str],
    ) -> Result<(&Vendor, String), ResolveError> {
        let beside = || beside.iter().copied();
        let unknown = || ResolveError::UnknownModel {
            name: asked.to_owned(),
            suggestion: near::suggestion(
                asked,
                self.aliases().map(|(alias, _)| alias).chain(beside()),
                "write others as `vendor/name`",
            ),
        };
        if let Some((prefix, rest)) = name.split_once('/') {
            let is_beside = || prefix == KEPT_VENDOR || beside().any(|other| other == prefix);
            let names = || self.vendors().iter().map(|vendor| vendor.name.as_str());
            let vendor = self.vendor(prefix).ok_or_else(|| match is_beside() {
                true => unknown(),
                false => ResolveError::UnknownVendor {
                    name: asked.to_owned(),
                    vendor: prefix.to_owned(),
                    suggestion: near::suggestion(
                        prefix,
                        names().chain(beside()),
                        "the catalog lists all",
                    ),
                },
            })?;
            // `anthropic/sonnet` means the same as `sonnet`.
            let target = self.inner().aliases.get(rest).and_then(|target| target.split_once('/'));
            let rest = target.filter(|(of, _)| *of == prefix).map_or(rest, |(_, name)| name);
            return match check::is_model_name(rest) {
                true => Ok((vendor, rest.to_owned())),
                false => Err(unknown()),
            };
        }
        let tells =
            |vendor: &&Vendor| vendor.prefixes.iter().any(|prefix| name.starts_with(prefix));
        match self.vendors().iter().find(tells) {
            Some(vendor) if check::is_model_name(name) => Ok((vendor, name.to_owned())),
            _ => Err(unknown()),
        }
    }
}

/// Returns `name` without a date at its end, as in `-20250929` or `-2026-04-23`.
fn without_date(name: &str) -> &str {
    let is_number = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some((stem, last)) = name.rsplit_once('-') else { return name };
    if is_number(last, 8) {
        return stem;
    }
    let parts: Vec<&str> = name.rsplitn(4, '-').collect();
    match parts[..] {
        [day, month, year, stem]
            if is_number(day, 2) && is_number(month, 2) && is_number(year, 4) =>
        {
            stem
        }
        _ => name,
    }
}
