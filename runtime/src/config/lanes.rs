//! How many runs of a kind are executed at the same time, as settings files say it.

use super::{Origin, Setting};
use crate::lanes::{LaneCaps, Shares};
use posse_model::Catalog;
use posse_protocol::AgentName;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How many runs of a kind are executed at the same time, and where each value came from.
#[derive(Clone, Debug)]
pub struct LaneSettings {
    /// Children of one run.
    pub per_parent: Setting<Option<usize>>,
    /// Runs of each agent; `*` stands for those that are not named.
    pub per_agent: BTreeMap<String, Setting<usize>>,
    /// Runs of each model, as `vendor/name`; `*` stands for those that are not named.
    pub per_model: BTreeMap<String, Setting<usize>>,
}

/// Stands for all that are not named.
const OTHERS: &str = "*";

impl LaneSettings {
    /// No caps.
    pub(super) fn open() -> Self {
        LaneSettings {
            per_parent: Setting::default(None),
            per_agent: BTreeMap::new(),
            per_model: BTreeMap::new(),
        }
    }

    /// Takes over what a file says; `catalog` knows the short names of models.
    pub(super) fn set(
        &mut self,
        file: FileLanes,
        catalog: &Catalog,
        origin: &Origin,
    ) -> Result<(), String> {
        if file.per_parent == Some(0) {
            return Err(too_small("per_parent"));
        }
        self.per_parent.set_some(file.per_parent, origin);
        for (name, most) in file.per_agent {
            if name != OTHERS {
                let agent: Result<AgentName, _> = name.parse();
                agent.map_err(|error| format!("in [lanes]: `per_agent`: {error}"))?;
            }
            put(&mut self.per_agent, "per_agent", name, most, origin)?;
        }
        for (name, most) in file.per_model {
            let found = (name != OTHERS).then(|| catalog.find(&name).map(|found| found.id()));
            let found = found.transpose();
            let model = found.map_err(|error| format!("in [lanes]: `per_model`: {error}"))?;
            let model = model.unwrap_or(name);
            put(&mut self.per_model, "per_model", model, most, origin)?;
        }
        Ok(())
    }

    /// The caps themselves.
    pub fn caps(&self) -> LaneCaps {
        LaneCaps {
            per_parent: self.per_parent.value,
            per_agent: shares(&self.per_agent),
            per_model: shares(&self.per_model),
        }
    }
}

fn put(
    into: &mut BTreeMap<String, Setting<usize>>,
    key: &str,
    name: String,
    most: usize,
    origin: &Origin,
) -> Result<(), String> {
    if most == 0 {
        return Err(too_small(&format!("{key}.{name}")));
    }
    into.insert(name, Setting { value: most, origin: origin.clone() });
    Ok(())
}

fn too_small(key: &str) -> String {
    format!("in [lanes]: `{key}` is 0: it must be at least 1, or what it caps would never start")
}

fn shares(settings: &BTreeMap<String, Setting<usize>>) -> Shares {
    let named = settings.iter().filter(|(name, _)| *name != OTHERS);
    Shares {
        named: named.map(|(name, most)| (name.clone(), most.value)).collect(),
        others: settings.get(OTHERS).map(|most| most.value),
    }
}

/// `[lanes]` as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileLanes {
    pub(super) per_parent: Option<usize>,
    per_agent: BTreeMap<String, usize>,
    per_model: BTreeMap<String, usize>,
}

impl FileLanes {
    pub(super) fn is_empty(&self) -> bool {
        self.per_parent.is_none() && self.per_agent.is_empty() && self.per_model.is_empty()
    }
}
