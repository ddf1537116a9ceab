//! Keys and addresses from the caller. This module never looks for them.

use crate::catalog::Catalog;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;

/// Keys and addresses of vendors, by the name of their environment variable.
///
/// A value is sent only to the vendor of its variable, and never shown.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    values: BTreeMap<String, SecretString>,
}

impl Keys {
    /// Returns the values that `lookup` returns for the variables of `catalog`. It calls `lookup`
    /// once for each; an empty value counts as missing.
    pub fn collect(catalog: &Catalog, mut lookup: impl FnMut(&str) -> Option<String>) -> Self {
        let found = catalog.variables().filter_map(|name| Some((name, lookup(name)?)));
        found.fold(Keys::default(), |keys, (name, value)| keys.with(name, value))
    }

    /// Adds the value of a variable. An empty value counts as missing.
    #[must_use]
    pub fn with(mut self, variable: impl Into<String>, value: impl Into<String>) -> Self {
        let value: String = value.into();
        // A line break at the end is not part of a key, and Posse would not find the key in texts
        // with it.
        let value = value.trim();
        if !value.is_empty() {
            self.values.insert(variable.into(), value.into());
        }
        self
    }

    /// True when this variable has a value.
    pub fn has(&self, variable: &str) -> bool {
        self.values.contains_key(variable)
    }

    /// Returns the values of variables for keys in `catalog`, which must never be shown.
    pub fn secrets<'a>(&'a self, catalog: &Catalog) -> Vec<&'a str> {
        let variables = catalog.vendors().iter().flat_map(|vendor| &vendor.key_variables);
        variables
            .filter_map(|name| self.values.get(name.as_str()))
            .map(ExposeSecret::expose_secret)
            .collect()
    }

    /// All values of these variables.
    pub(crate) fn values<'a>(
        &'a self,
        variables: impl IntoIterator<Item = &'a String>,
    ) -> impl Iterator<Item = &'a SecretString> {
        variables.into_iter().filter_map(|name| self.values.get(name))
    }

    /// The first of `variables` that has a value.
    pub(crate) fn first<'a>(
        &self,
        variables: impl IntoIterator<Item = &'a String>,
    ) -> Option<(&'a str, &SecretString)> {
        variables.into_iter().find_map(|name| Some((name.as_str(), self.values.get(name)?)))
    }
}
