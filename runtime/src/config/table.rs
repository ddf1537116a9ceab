//! Tables of settings. Each setting is one row. The row determines how files write the setting, who may set it, how the
//! files of the user and the project merge, and what `posse config` and the reference page show.

use super::{Origin, Setting};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::fmt;
use std::path::Path;

/// The description of a setting, without its value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Its key, with the section before a dot.
    pub key: &'static str,
    /// Other spellings of the key that files may use.
    pub also: &'static [&'static str],
    /// How files write the key: `{}` stands for it.
    pub form: &'static str,
    /// What it means, in sentences.
    pub doc: &'static str,
    /// Its default in words, if the value says too little or depends on the machine.
    pub default: Option<&'static str>,
    /// How the values of several files become one.
    pub merge: Merge,
    /// Who may set it.
    pub who: Who,
}

/// How the values of several files become one. The user's file comes before the project's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// The later file wins.
    Later,
    /// The user sets it. A project can only lower it.
    Lower,
    /// The user sets it. A project can only raise it.
    Raise,
    /// The values of all files apply, each separately.
    All,
    /// The values of all files apply, and `posse config` shows them as one list.
    AllAsOne,
    /// The keys of a section have rules of their own.
    #[default]
    Section,
    /// The value is stored under another key.
    Elsewhere,
}

/// Who may set a setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Who {
    /// The user and every project.
    #[default]
    Anyone,
    /// The user, and projects that the user trusts.
    Trusted,
    /// The user alone.
    User,
}

/// A setting in effect, as `posse config` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Json,
    /// The file it came from, or `default`.
    pub origin: String,
}

/// The file that is being merged, and the row that it is about.
pub(crate) struct Layer<'f> {
    pub(crate) row: Row,
    pub(crate) origin: &'f Origin,
    pub(crate) text: &'f str,
    /// The folder of the file, from which relative paths count.
    pub(crate) beside: &'f Path,
    /// Warnings about values without effect.
    pub(crate) warnings: Vec<String>,
}

impl<'f> Layer<'f> {
    /// The layer of the file at `path`, whose content is `text`.
    pub(crate) fn new(origin: &'f Origin, path: &'f Path, text: &'f str) -> Self {
        let beside = path.parent().unwrap_or(path);
        Layer { row: Row::default(), origin, text, beside, warnings: Vec::new() }
    }

    /// `value` with this file as its origin.
    pub(crate) fn set<T>(&self, value: T) -> Setting<T> {
        Setting { value, origin: self.origin.clone() }
    }
}

impl Row {
    /// An error message: the name of the key, then `what`.
    pub(crate) fn wrong(&self, what: impl fmt::Display) -> String {
        format!("{}{what}", named(self.key))
    }
}

/// `key` as errors name it.
pub(crate) fn named(key: &str) -> String {
    match key.split_once('.') {
        Some((section @ ("limits" | "budget" | "lanes" | "patience"), key)) => {
            format!("in [{section}]: `{key}`")
        }
        _ => format!("`{key}`"),
    }
}

/// The merged values of one row: a value, layers of values, or a section.
pub(crate) trait Layered {
    /// How a file writes it.
    type Written: DeserializeOwned;

    /// How files write its key: `{}` stands for it.
    const FORM: &'static str = "{}";

    /// Merges the value of a file into this one.
    fn overlay(&mut self, written: Self::Written, layer: &mut Layer<'_>) -> Result<(), String>;

    /// Adds the values in effect to `shown`.
    fn show(&self, row: &Row, shown: &mut Vec<Effective>);

    /// True when `written` sets anything.
    fn is_set(_written: &Self::Written) -> bool {
        true
    }

    /// The rows of a section.
    fn rows() -> Vec<Row> {
        Vec::new()
    }

    /// Removes the keys of a section that only trusted projects may set, and lists them in `held_back`.
    fn hold_back(_written: &mut Self::Written, _held_back: &mut Vec<&'static str>) {}

    /// The first key of a section that no project may set.
    fn reserved(_written: &Self::Written) -> Option<&'static str> {
        None
    }
}

/// [`Layered::hold_back`] of a row.
pub(crate) fn hold_back<L: Layered>(
    written: &mut Option<L::Written>,
    row: &Row,
    held_back: &mut Vec<&'static str>,
) {
    match written {
        Some(said) if row.who == Who::Trusted => {
            held_back.extend(L::is_set(said).then_some(row.key));
            *written = None;
        }
        Some(said) => L::hold_back(said, held_back),
        None => {}
    }
}

/// [`Layered::reserved`] of a row.
pub(crate) fn reserved<L: Layered>(it: &Option<L::Written>, row: &Row) -> Option<&'static str> {
    let written = it.as_ref().filter(|it| L::is_set(it))?;
    if row.who == Who::User { Some(row.key) } else { L::reserved(written) }
}

/// Makes a table of settings: the struct of the values in effect, and the struct that files are read into.
///
/// ```text
/// /// What it means, for the reference page.
/// key | "otherSpelling": Setting<TYPE> = DEFAULT => "default in words", MERGE, WHO, check CHECK;
/// ```
///
/// Other spellings, the default in words and the check are optional. A `check` is a function of the written value and
/// the row. `from struct NAME` creates the struct that files are read into; `from NAME` uses an existing one.
macro_rules! settings {
    (
        $(#[$about:meta])*
        $vis:vis struct $Name:ident, $section:literal, from struct $File:ident { $($rows:tt)* }
        $($beside:tt)*
    ) => {
        $crate::config::table::file! { $File { $($rows)* } }
        $crate::config::table::settings! {
            $(#[$about])* $vis struct $Name, $section, from $File { $($rows)* } $($beside)*
        }
    };
    (
        $(#[$about:meta])*
        $vis:vis struct $Name:ident, $section:literal, from $File:ident {
            $(
                $(#[doc = $doc:literal])+
                $key:ident $(| $also:literal)*: $Kept:ty $(= $default:expr)? $(=> $words:literal)?,
                    $merge:ident, $who:ident $(, check $check:expr)?;
            )*
        }
        $(beside { $( $(#[$note:meta])* $more:ident: $More:ty; )* })?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        $vis struct $Name {
            $( $(#[doc = $doc])+ pub $key: $Kept, )*
            $($( $(#[$note])* pub $more: $More, )*)?
        }

        const _: () = {
            use $crate::config::table::{Effective, Layer, Layered, Merge, Row, Who, self};

            const ROWS: [Row; [$(stringify!($key)),*].len()] = [$( Row {
                key: concat!($section, stringify!($key)),
                also: &[$($also),*],
                form: <$Kept as Layered>::FORM,
                doc: concat!($($doc, "\n"),+),
                default: [$(Some($words),)? None][0],
                merge: Merge::$merge,
                who: Who::$who,
            }, )*];

            impl Default for $Name {
                fn default() -> Self {
                    $Name {
                        $( $key: table::start!($($default)?), )*
                        $($( $more: Default::default(), )*)?
                    }
                }
            }

            impl Layered for $Name {
                type Written = $File;

                const FORM: &'static str = "[{}]";

                fn overlay(&mut self, file: $File, layer: &mut Layer<'_>) -> Result<(), String> {
                    let [$($key),*] = &ROWS;
                    $(
                        if let Some(written) = file.$key {
                            $( $check(&written, $key)?; )?
                            layer.row = *$key;
                            self.$key.overlay(written, layer)?;
                        }
                    )*
                    Ok(())
                }

                fn show(&self, _: &Row, shown: &mut Vec<Effective>) {
                    let [$($key),*] = &ROWS;
                    $( self.$key.show($key, shown); )*
                }

                fn is_set(file: &$File) -> bool {
                    $( file.$key.as_ref().is_some_and(<$Kept as Layered>::is_set) || )* false
                }

                fn rows() -> Vec<Row> {
                    let [$($key),*] = ROWS;
                    let rows = [$( (vec![$key], <$Kept as Layered>::rows()) ),*];
                    rows.into_iter().flat_map(|(row, below)| row.into_iter().chain(below)).collect()
                }

                fn hold_back(file: &mut $File, held_back: &mut Vec<&'static str>) {
                    let [$($key),*] = &ROWS;
                    $( table::hold_back::<$Kept>(&mut file.$key, $key, held_back); )*
                }

                fn reserved(file: &$File) -> Option<&'static str> {
                    let [$($key),*] = &ROWS;
                    None$( .or_else(|| table::reserved::<$Kept>(&file.$key, $key)) )*
                }
            }
        };
    };
}
pub(crate) use settings;

/// The struct that files are read into.
macro_rules! file {
    ($File:ident { $(
        $(#[doc = $doc:literal])+ $key:ident $(| $also:literal)*: $Kept:ty
            $(= $default:expr)? $(=> $words:literal)?, $merge:ident, $who:ident $(, check $check:expr)?;
    )* }) => {
        #[derive(Default, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $File { $(
            $(#[serde(alias = $also)])*
            pub(crate) $key: Option<<$Kept as $crate::config::table::Layered>::Written>,
        )* }
    };
}
pub(crate) use file;

/// The value of a row that no file sets.
macro_rules! start {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $crate::config::Setting::default($default)
    };
}
pub(crate) use start;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
