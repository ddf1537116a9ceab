//! The types of settings: how files write them, when one is stricter than another, how Posse shows them.

use super::table::{Effective, Layer, Layered, Merge, Row};
use super::{Origin, Setting};
use crate::limits::{parse_duration, parse_size, show_duration};
use posse_protocol::{AgentName, Announce, Cleanup, DelegationStrategy, Effort, Limit, Mode, Usd};
use posse_store::{Durability, PostgresOptions};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A type of settings.
pub(crate) trait Value: Sized {
    /// How a file writes it.
    type Written: DeserializeOwned;

    /// Converts the written value, or says what is wrong with it.
    fn read(written: Self::Written, layer: &mut Layer<'_>) -> Result<Self, String>;

    /// The value as `posse config` shows it; `None` if there is nothing to show.
    fn shown(&self) -> Option<Json>;

    /// True when it is lower than `other`, for types with an order.
    fn is_lower(&self, _other: &Self) -> bool {
        false
    }
}

impl<T: Value> Layered for Setting<T> {
    type Written = T::Written;

    fn overlay(&mut self, written: T::Written, layer: &mut Layer<'_>) -> Result<(), String> {
        let value = T::read(written, layer)?;
        // A project can only be stricter than the user.
        let is_project = matches!(layer.origin, Origin::Project(_));
        let is_kept = match layer.row.merge {
            Merge::Lower if is_project => value.is_lower(&self.value),
            Merge::Raise if is_project => self.value.is_lower(&value),
            _ => true,
        };
        if is_kept {
            *self = layer.set(value);
        }
        Ok(())
    }

    fn show(&self, row: &Row, shown: &mut Vec<Effective>) {
        let value = self.value.shown();
        shown.extend(value.map(|value| self.origin.effective(row.key, value)));
    }
}

impl<T: Value> Layered for Vec<Setting<T>> {
    type Written = T::Written;

    fn overlay(&mut self, written: T::Written, layer: &mut Layer<'_>) -> Result<(), String> {
        let value = T::read(written, layer)?;
        if value.shown().is_some() {
            self.push(layer.set(value));
        }
        Ok(())
    }

    fn show(&self, row: &Row, shown: &mut Vec<Effective>) {
        let layers = self.iter().filter_map(|it| Some((it.value.shown()?, &it.origin)));
        if row.merge != Merge::AllAsOne {
            shown.extend(layers.map(|(value, origin)| origin.effective(row.key, value)));
        } else if !self.is_empty() {
            let (value, origins): (Vec<Json>, Vec<String>) =
                layers.map(|(value, origin)| (value, origin.to_string())).unzip();
            let (key, origin) = (row.key.to_owned(), origins.join(", "));
            shown.push(Effective { key, value: value.into(), origin });
        }
    }
}

/// A second name of a setting. Files may use it; the value is stored under the main name.
#[derive(Clone, Debug)]
pub struct Elsewhere<W>(PhantomData<W>);

impl<W> Default for Elsewhere<W> {
    fn default() -> Self {
        Elsewhere(PhantomData)
    }
}

impl<W: DeserializeOwned> Layered for Elsewhere<W> {
    type Written = W;

    fn overlay(&mut self, _: W, _: &mut Layer<'_>) -> Result<(), String> {
        Ok(())
    }

    fn show(&self, _: &Row, _: &mut Vec<Effective>) {}
}

/// A time, or `off`, which is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrOff(pub Duration);

/// A number of bytes, which files write like `20GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub struct Bytes(pub u64);

/// The path of a database file, or the address of a database on a server.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseAddress(pub String);

/// Shows no password.
impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseAddress({:?})", without_password(self))
    }
}

/// Which guidance files (`AGENTS.md`, `CLAUDE.md`) runs get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guidance {
    /// None.
    Off,
    /// Those of the user.
    User,
    /// Those of the user and those of projects.
    #[default]
    All,
}

/// Whether unfinished runs continue by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoResume {
    /// They continue.
    Continue,
    /// They wait for `posse runs resume`.
    Wait,
}

/// Implements `Value` for types: how files write them, how Posse reads and shows them, and which of two is lower.
macro_rules! values {
    ($($Type:ty, $Written:ty, $read:expr, $shown:expr $(, $is_lower:expr)?;)*) => {$(
        impl Value for $Type {
            type Written = $Written;

            fn read(written: $Written, layer: &mut Layer<'_>) -> Result<Self, String> {
                $read(written).map_err(|reason: String| layer.row.wrong(reason))
            }

            fn shown(&self) -> Option<Json> {
                Some($shown(self))
            }

            $(fn is_lower(&self, other: &Self) -> bool {
                $is_lower(self, other)
            })?
        }
    )*};
}

values! {
    bool, Self, Ok, as_it_is, PartialOrd::lt;
    u32, Self, Ok, as_it_is, PartialOrd::lt;
    u64, Self, Ok, as_it_is, PartialOrd::lt;
    usize, Self, Ok, as_it_is, PartialOrd::lt;
    String, Self, Ok, as_it_is;
    Vec<String>, Self, Ok, as_it_is;
    AgentName, Self, Ok, as_it_is;
    Announce, Self, Ok, as_it_is;
    AutoResume, Self, Ok, as_it_is;
    Cleanup, Self, Ok, as_it_is;
    DatabaseAddress, String, database, |it: &DatabaseAddress| json!(without_password(it));
    DelegationStrategy, Self, Ok, as_it_is;
    Durability, Self, Ok, as_it_is;
    Effort, Self, Ok, as_it_is;
    Guidance, Self, Ok, as_it_is, PartialOrd::lt;
    Mode, Self, Ok, as_it_is;
    Usd, f64, dollars, |it: &Usd| json!(it.dollars()), PartialOrd::lt;
    Duration, String, duration, show_time, PartialOrd::lt;
    OrOff, String, time_or_off, |OrOff(time): &OrOff| match time.is_zero() {
        true => json!("off"),
        false => show_time(time),
    };
    Bytes, String, bytes, |it: &Bytes| json!(Limit::WrittenBytes.amount(it.0)), PartialOrd::lt;
    ModelList, Self, Ok, |ModelList(models): &ModelList| match &models[..] {
        [] => Json::Null,
        [model] => json!(model),
        several => json!(several),
    };
}

fn as_it_is(value: impl Serialize) -> Json {
    json!(value)
}

/// Converts the path or the address of a database, or says what is wrong with it.
fn database(text: String) -> Result<DatabaseAddress, String> {
    let is_address = ["postgres://", "postgresql://"].iter().any(|it| text.starts_with(it));
    match is_address || Path::new(&text).is_absolute() {
        true => Ok(DatabaseAddress(text)),
        false => Err(" is neither the absolute path of a file nor an address that begins with \
                      `postgres://`"
            .to_owned()),
    }
}

/// Returns the address with `…` in place of a password.
fn without_password(DatabaseAddress(text): &DatabaseAddress) -> String {
    match PostgresOptions::new(text).written_password() {
        Some(password) if !password.is_empty() && text.contains("://") => {
            text.replace(password, "…")
        }
        _ => text.clone(),
    }
}

/// Converts an amount in dollars, or says what is wrong with it.
pub(super) fn dollars(amount: f64) -> Result<Usd, String> {
    match amount.is_finite() && amount > 0.0 {
        true => Ok(Usd::from_dollars(amount)),
        false => Err(format!(" is {amount}: give dollars, more than 0")),
    }
}

fn duration(text: String) -> Result<Duration, String> {
    parse_duration(&text).map(Duration::from_millis).map_err(|reason| format!(": {reason}"))
}

fn time_or_off(text: String) -> Result<OrOff, String> {
    let time = if text == "off" { Ok(Duration::ZERO) } else { duration(text) };
    time.map(OrOff).map_err(|reason| reason + ", or off")
}

fn show_time(time: &Duration) -> Json {
    json!(show_duration(time.as_millis() as u64))
}

fn bytes(text: String) -> Result<Bytes, String> {
    parse_size(&text).map(Bytes).map_err(|reason| format!(": {reason}"))
}

impl<T: Value> Value for Option<T> {
    type Written = T::Written;

    fn read(written: T::Written, layer: &mut Layer<'_>) -> Result<Self, String> {
        T::read(written, layer).map(Some)
    }

    fn shown(&self) -> Option<Json> {
        self.as_ref().map_or(Some(Json::Null), T::shown)
    }

    /// `None` means no limit, so any value is lower.
    fn is_lower(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.is_lower(other),
            (one, other) => one.is_some() && other.is_none(),
        }
    }
}

/// Folders. A relative path counts from the folder of the file.
impl Value for Vec<PathBuf> {
    type Written = Self;

    fn read(written: Self, layer: &mut Layer<'_>) -> Result<Self, String> {
        Ok(written.iter().map(|folder| layer.beside.join(folder)).collect())
    }

    fn shown(&self) -> Option<Json> {
        (!self.is_empty()).then(|| json!(self))
    }
}

/// A model and its fallbacks, in this order. Files write a text or a list of them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "OneOrMore")]
pub struct ModelList(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a model or a list of models")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl TryFrom<OneOrMore> for ModelList {
    type Error = &'static str;

    /// Refuses an empty list, which would have no meaning.
    fn try_from(written: OneOrMore) -> Result<Self, Self::Error> {
        match written {
            OneOrMore::One(one) => Ok(ModelList(vec![one])),
            OneOrMore::More(more) if more.is_empty() => {
                Err("the list of models is empty; name one, or leave it out")
            }
            OneOrMore::More(more) => Ok(ModelList(more)),
        }
    }
}

impl Deref for ModelList {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

/// Checks that a number is in a range.
pub(super) fn between<T: PartialOrd + fmt::Display>(
    least: T,
    most: T,
) -> impl Fn(&T, &Row) -> Result<(), String> {
    move |value, row| match least <= *value && *value <= most {
        true => Ok(()),
        false => Err(row.wrong(format!(" is {value}: it can be {least} to {most}"))),
    }
}

/// Checks that a number is not 0.
pub(super) fn at_least_one(value: &usize, row: &Row) -> Result<(), String> {
    if *value == 0 { Err(row.wrong(" must be at least 1")) } else { Ok(()) }
}

/// Checks each text of a list. `why` completes the error message.
pub(super) fn each(
    list: &[String],
    row: &Row,
    is_fine: fn(&str) -> bool,
    why: &str,
) -> Result<(), String> {
    match list.iter().find(|text| !is_fine(text)) {
        Some(text) => Err(row.wrong(format!(": `{text}` {why}"))),
        None => Ok(()),
    }
}
