//! Values that know where they came from.

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
    /// Nobody set it.
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

impl<T> Setting<T> {
    /// A value that nobody has set.
    pub(super) fn default(value: T) -> Self {
        Setting { value, origin: Origin::Default }
    }

    /// Takes over what a file says.
    pub(super) fn set(&mut self, value: Option<T>, origin: &Origin) {
        if let Some(value) = value {
            *self = Setting { value, origin: origin.clone() };
        }
    }
}

impl<T> Setting<Option<T>> {
    /// The same for a value that may be missing.
    pub(super) fn set_some(&mut self, value: Option<T>, origin: &Origin) {
        if value.is_some() {
            *self = Setting { value, origin: origin.clone() };
        }
    }
}

impl<T: PartialOrd> Setting<Option<T>> {
    /// Sets what is not set, or stricter than what is. What nobody has set is the user's to set.
    pub(super) fn narrow(&mut self, value: Option<T>, origin: &Origin) {
        let is_free = self.origin == Origin::Default && matches!(origin, Origin::User(_));
        let stricter = match (&self.value, &value) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(known), Some(new)) => is_free || new < known,
        };
        if stricter {
            *self = Setting { value, origin: origin.clone() };
        }
    }
}
