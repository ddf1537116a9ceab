//! Counts in the logs: which children have ended, and how often each was announced.

use crate::bench::Result;
use posse::protocol::{Event, Sender};
use posse::store::{Filter, Kin};
use posse::{RunId, Runtime, Seq};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The counts.
#[derive(Default, Serialize, Deserialize)]
pub struct Tally {
    /// Children by how they ended.
    pub outcomes: BTreeMap<String, usize>,
    /// Children that have not ended.
    pub open: usize,
    /// Announcements in all.
    pub announcements: usize,
    /// Children that were announced exactly once.
    pub once: usize,
    /// Milliseconds from the call to the stored child, for each.
    pub starts_ms: Vec<u64>,
}

impl Tally {
    /// All children that have ended.
    pub fn ended(&self) -> usize {
        self.outcomes.values().sum()
    }
}

/// Reads the logs of all `sessions`.
pub async fn tally(runtime: &Runtime, sessions: &[RunId]) -> Result<Tally> {
    let mut tally = Tally::default();
    for session in sessions {
        let all = Filter { kin: Kin::ChildrenOf(*session), limit: 1_000_000, ..Filter::default() };
        let rows = runtime.list(&all).await?;
        let mut told: HashMap<RunId, usize> = HashMap::new();
        let mut spawns = HashSet::new();
        for record in runtime.read(*session, Seq::ZERO, usize::MAX).await? {
            match record.event {
                Event::MessageReceived(received) => {
                    if let Sender::Child(child) = received.from {
                        *told.entry(child.run).or_default() += 1;
                    }
                }
                Event::ToolStarted(started) if started.tool == "spawn_subagent" => {
                    spawns.insert(started.call);
                }
                Event::ToolFinished(finished) if spawns.remove(&finished.call) => {
                    tally.starts_ms.push(finished.took_ms);
                }
                _ => {}
            }
        }
        tally.announcements += told.values().sum::<usize>();
        for row in rows {
            tally.once += usize::from(told.get(&row.id) == Some(&1));
            match row.state.outcome {
                Some(outcome) => *tally.outcomes.entry(outcome).or_default() += 1,
                None => tally.open += 1,
            }
        }
    }
    Ok(tally)
}
