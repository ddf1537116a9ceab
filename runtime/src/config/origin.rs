//! Values that know where they came from.

use super::table::Effective;
use serde_json::Value as Json;
use std::fmt;
use std::path::PathBuf;

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default.
    Default,
    /// The user's file.
    User(PathBuf),
    /// The project's file.
    Project(PathBuf),
    /// The command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::User(path) | Origin::Project(path) => path.display().fmt(f),
            Origin::Flag(flag) => f.write_str(flag),
        }
    }
}

impl Origin {
    /// The setting `key` with this origin.
    pub(super) fn effective(&self, key: impl Into<String>, value: Json) -> Effective {
        Effective { key: key.into(), value, origin: self.to_string() }
    }
}

impl<T> Setting<T> {
    /// A default value.
    pub(super) fn default(value: T) -> Self {
        Setting { value, origin: Origin::Default }
    }
}
