//! The model for runs that name none.

use super::{Keys, Models};
use crate::ResolveError;
use crate::catalog::Catalog;
use std::fmt;

/// The model for runs that name none, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The model, as `vendor/name`.
    pub model: String,
    /// The reason.
    pub why: ChoiceReason,
}

/// Why a model was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoiceReason {
    /// Its key is set.
    Key {
        /// The environment variable with the key.
        variable: String,
    },
    /// A server on this machine offers it.
    Server {
        /// The vendor.
        vendor: String,
    },
    /// A cassette has it.
    Cassette {
        /// The path of the cassette.
        path: String,
    },
    /// It needs no key, and there is neither a key nor a server for another model.
    Nothing,
}

impl fmt::Display for ChoiceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChoiceReason::Key { variable } => write!(f, "{variable} is set"),
            ChoiceReason::Server { vendor } => write!(f, "a local server of {vendor} answers"),
            ChoiceReason::Cassette { path } => write!(f, "replayed from {path}"),
            ChoiceReason::Nothing => f.write_str("no key is set and no local server answers"),
        }
    }
}

/// The first vendor of `catalog` with a key, as a choice.
pub(super) fn by_key(catalog: &Catalog, keys: &Keys) -> Option<Choice> {
    let usable = catalog.vendors().iter().filter(|vendor| vendor.needs_key());
    usable.into_iter().find_map(|vendor| {
        let (variable, _) = keys.first(&vendor.key_variables)?;
        let model = catalog.preferred(vendor)?;
        Some(Choice { model, why: ChoiceReason::Key { variable: variable.to_owned() } })
    })
}

impl Models {
    /// Returns the model to use when none is named: in a replay the recorded one; else one of the
    /// first vendor with a key; else one of the first local server that answers and does not belong
    /// to another person; else the last resort of the host.
    ///
    /// # Errors
    /// When there is none of these; the error says what to do.
    pub async fn choose(&self) -> Result<Choice, ResolveError> {
        if let Some(choice) = self.recorded_choice() {
            return choice;
        }
        if let Some(choice) = by_key(&self.catalog, &self.keys) {
            return Ok(choice);
        }
        for (vendor, offered) in self.local().await {
            if !self.is_trusted(vendor) {
                continue;
            }
            let usable = |name: &&String| can_talk(name);
            if let Some(name) = offered.iter().flatten().find(usable) {
                let model = format!("{}/{name}", vendor.name);
                return Ok(Choice {
                    model,
                    why: ChoiceReason::Server { vendor: vendor.name.clone() },
                });
            }
        }
        match self.last_resort() {
            Some(host) => Ok(Choice { model: host.name().to_owned(), why: ChoiceReason::Nothing }),
            None => Err(self.nothing_to_take()),
        }
    }

    /// Why no model was chosen, and what would help.
    fn nothing_to_take(&self) -> ResolveError {
        let mut variables = self.catalog.vendors().iter().filter(|vendor| vendor.needs_key());
        let variable = variables.find_map(|vendor| vendor.key_variables.first());
        let key = variable.map(|variable| format!("set a key such as {variable}, "));
        let own: Vec<&str> = self.host_models().map(|(model, _)| model.name()).collect();
        let name = match own.is_empty() {
            true => "name a model that needs neither".to_owned(),
            false => format!("name a model, such as {}", own.join(" or ")),
        };
        let key = key.unwrap_or_default();
        ResolveError::NothingToTake {
            reason: ChoiceReason::Nothing.to_string(),
            remedy: format!("{key}start a local server such as ollama, or {name}"),
        }
    }
}

/// False for entries in the list of a server that are not chat models.
fn can_talk(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !["embed", "rerank", "whisper", "bge-"].iter().any(|sign| name.contains(sign))
}
