//! The number of requests by wire, model and status.

use crate::ask::Wire;
use crate::wire::Note;
use std::collections::BTreeMap;

/// The most names of models to count. Clients choose them, so memory must be bounded.
const MODELS: usize = 1000;

/// Requests that were answered, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the order of [`Wire::ALL`].
    wires: [usize; Wire::ALL.len()],
    statuses: BTreeMap<u16, usize>,
    models: BTreeMap<String, usize>,
    faults: usize,
}

impl Counts {
    /// Requests in this wire format.
    pub fn wire(&self, wire: Wire) -> usize {
        let places = Wire::ALL.iter().zip(self.wires);
        places.into_iter().find(|(known, _)| **known == wire).map_or(0, |(_, count)| count)
    }

    /// Requests that were answered with this status. Spoilt answers have none.
    pub fn status(&self, status: u16) -> usize {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// Requests to this model.
    pub fn model(&self, name: &str) -> usize {
        self.models.get(name).copied().unwrap_or_default()
    }

    /// Requests whose answers were spoilt by a fault.
    pub fn faults(&self) -> usize {
        self.faults
    }

    /// All statuses that occurred, with their counts.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, usize)> {
        self.statuses.iter().map(|(status, count)| (*status, *count))
    }

    /// All models that were asked, with their counts.
    pub fn models(&self) -> impl Iterator<Item = (&str, usize)> {
        self.models.iter().map(|(name, count)| (name.as_str(), *count))
    }

    pub(crate) fn add(&mut self, note: &Note) {
        let places = Wire::ALL.iter().zip(&mut self.wires);
        for (_, count) in places.filter(|(wire, _)| Some(**wire) == note.wire) {
            *count += 1;
        }
        match note.status {
            Some(status) => *self.statuses.entry(status).or_default() += 1,
            None => self.faults += 1,
        }
        if note.model.is_empty() {
            return;
        }
        if let Some(count) = self.models.get_mut(&note.model) {
            *count += 1;
        } else if self.models.len() < MODELS {
            self.models.insert(note.model.clone(), 1);
        }
    }
}
