//! How many runs of a kind are executed at the same time, according to settings files.

use super::Setting;
use super::table::{Effective, Layer, Layered, Row, named, settings};
use crate::lanes::{LaneCaps, Shares};
use posse_model::Catalog;
use posse_protocol::AgentName;
use serde_json::json;
use std::collections::BTreeMap;

settings! {
    /// How many runs of a kind are executed at the same time, and where each value came from.
    pub struct LaneSettings, "lanes.", from struct FileLanes {
        /// How many children of one run work at the same time.
        per_parent: Setting<Option<usize>> = None => "no cap", Later, Anyone, check can_start;
        /// How many runs of an agent work at the same time, by its name: `{ explore = 4, "*" = 8 }`.
        /// `"*"` means each agent without its own cap.
        per_agent: Caps => "no caps", Later, Anyone, check are_agents;
        /// How many runs of a model work at the same time, by its short name or `vendor/name`. `"*"`
        /// means each model without its own cap. The model that a run started with counts.
        per_model: Caps => "no caps", Later, Anyone;
    }
}

/// Caps by name; `*` means all names without their own cap.
type Caps = BTreeMap<String, Setting<usize>>;

/// The key for all names without their own cap.
const OTHERS: &str = "*";

impl Layered for Caps {
    type Written = BTreeMap<String, usize>;

    fn overlay(&mut self, written: Self::Written, layer: &mut Layer<'_>) -> Result<(), String> {
        for (name, value) in written {
            starts(value, &format!("{}.{name}", layer.row.key))?;
            self.insert(name, layer.set(value));
        }
        Ok(())
    }

    fn show(&self, row: &Row, shown: &mut Vec<Effective>) {
        shown.extend(self.iter().map(|(name, most)| {
            most.origin.effective(format!("{}.{name}", row.key), json!(most.value))
        }));
    }

    fn is_set(written: &Self::Written) -> bool {
        !written.is_empty()
    }
}

impl LaneSettings {
    /// Replaces short names of models with their ids in `catalog`.
    pub(super) fn resolve(&mut self, catalog: &Catalog) -> Result<(), String> {
        let resolve = |(name, most): (String, Setting<usize>)| match name == OTHERS {
            true => Ok((name, most)),
            false => catalog.find(&name).map(|found| (found.id(), most)),
        };
        let caps = std::mem::take(&mut self.per_model).into_iter().map(resolve);
        let resolved: Result<Caps, posse_model::ResolveError> = caps.collect();
        let wrong = |error| format!("{}: {error}", named("lanes.per_model"));
        resolved.map_err(wrong).map(|resolved| self.per_model = resolved)
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

fn can_start(most: &usize, row: &Row) -> Result<(), String> {
    starts(*most, row.key)
}

fn starts(most: usize, key: &str) -> Result<(), String> {
    let why = "is 0: it must be at least 1, or what it caps would never start";
    if most == 0 { Err(format!("{} {why}", named(key))) } else { Ok(()) }
}

fn are_agents(caps: &BTreeMap<String, usize>, row: &Row) -> Result<(), String> {
    let names = caps.keys().filter(|name| *name != OTHERS);
    let wrong = names.filter_map(|name| name.parse::<AgentName>().err()).next();
    wrong.map_or(Ok(()), |error| Err(row.wrong(format!(": {error}"))))
}

fn shares(settings: &Caps) -> Shares {
    let named = settings.iter().filter(|(name, _)| *name != OTHERS);
    Shares {
        named: named.map(|(name, most)| (name.clone(), most.value)).collect(),
        others: settings.get(OTHERS).map(|most| most.value),
    }
}
