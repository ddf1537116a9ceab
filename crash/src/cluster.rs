//! Cycles on many machines: several workers on one PostgreSQL server, each behind a proxy of its
//! own. Workers are killed and stopped, connections are cut and held, the server is restarted,
//! filled or replaced by its replica. Then the harness checks what is left.
//!
//! The runs are known by their exported logs, their effects and their requests alone. Only who wrote
//! an event is told by the server: see `witness`.

mod cycle;
mod faults;
mod fleet;
mod owners;
mod place;
mod plan;
mod plant;
mod site;
mod story;
mod witness;

pub use cycle::ClusterEnded;
pub use owners::{Taken, Write, check_owners};
pub use place::Place;
pub use plan::{Fault, Plan};
pub use plant::Plant;

use super::violation::{PROMISES, Promise};
use cycle::ClusterCycle;
use site::Template;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Cycles to play on clusters, and where.
#[derive(Clone, Debug)]
pub struct ClusterCampaign {
    /// The binary, built with fail-points.
    pub binary: PathBuf,
    /// An existing folder. Each cycle makes a folder in it.
    pub folder: PathBuf,
    /// The seed of all random choices.
    pub seed: u64,
    /// Cycles at the same time.
    pub jobs: usize,
    /// The numbers of the cycles. Each depends on its number and the seed alone.
    pub cycles: Vec<usize>,
    /// Mistakes to plant in cycles of these numbers, which the checker has to find.
    pub mistakes: BTreeMap<usize, Plant>,
}

/// The result of a campaign on clusters.
#[derive(Clone, Debug, Default)]
pub struct ClusterReport {
    /// Cycles that were played.
    pub cycles: usize,
    /// Cycles with violations.
    pub failed: usize,
    /// The cycles in which a fault of this kind happened while runs were unfinished.
    pub faults: BTreeMap<&'static str, usize>,
    /// The faults that happened, or that this machine does not allow.
    pub untested: BTreeMap<&'static str, usize>,
    /// Runs that were executed.
    pub runs: usize,
    /// Effects of tools in the ledgers.
    pub effects: usize,
    /// Events whose writers were checked.
    pub writes: usize,
    /// Claims that were checked.
    pub claims: usize,
    /// How often each promise was broken.
    pub violations: HashMap<Promise, usize>,
    /// How long it took.
    pub took: Duration,
}

impl ClusterCampaign {
    /// Plays all cycles, and calls `progress` with each as it ends.
    ///
    /// Must be called on a runtime of one thread that lives as long as this process: servers and
    /// workers die with the thread that started them.
    ///
    /// # Errors
    /// When there is no server to copy.
    pub async fn play(
        self,
        mut progress: impl FnMut(&ClusterEnded, &ClusterReport),
    ) -> io::Result<ClusterReport> {
        let began = Instant::now();
        let template = Template::make(&self.binary, &self.folder).await?;
        let mut waiting: VecDeque<usize> = self.cycles.into();
        let mut playing = JoinSet::new();
        let mut report = ClusterReport::default();
        loop {
            while playing.len() < self.jobs.max(1)
                && let Some(number) = waiting.pop_front()
            {
                let mut plan = Plan::of(self.seed, number);
                if self.mistakes.contains_key(&number) {
                    // They are planted in the ledger of a folder.
                    plan.place = Place::Folder;
                }
                let cycle = ClusterCycle {
                    plan,
                    binary: self.binary.clone(),
                    folder: self.folder.join(format!("cycle-{number}")),
                    plant: self.mistakes.get(&number).copied(),
                };
                playing.spawn(cycle.play(template.clone()));
            }
            let Some(ended) = playing.join_next().await else { break };
            let Ok(ended) = ended else {
                // The cycle panicked.
                report.cycles += 1;
                report.failed += 1;
                continue;
            };
            report.count(&ended);
            progress(&ended, &report);
        }
        report.took = began.elapsed();
        Ok(report)
    }
}

impl ClusterReport {
    fn count(&mut self, ended: &ClusterEnded) {
        self.cycles += 1;
        self.failed += usize::from(!ended.violations.is_empty());
        for name in &ended.happened {
            *self.faults.entry(name).or_default() += 1;
        }
        for name in &ended.untested {
            *self.untested.entry(name).or_default() += 1;
        }
        self.runs += ended.runs;
        self.effects += ended.effects;
        self.writes += ended.writes;
        self.claims += ended.claims;
        for violation in &ended.violations {
            *self.violations.entry(violation.promise).or_default() += 1;
        }
    }

    /// The cycles in which the server was restarted or killed while runs were unfinished.
    pub fn restarts(&self) -> usize {
        self.faults.get(plan::RESTARTS).copied().unwrap_or_default()
    }

    /// The cycles in which a replica took over while runs were unfinished.
    pub fn failovers(&self) -> usize {
        self.faults.get(plan::FAILOVERS).copied().unwrap_or_default()
    }
}

impl fmt::Display for ClusterReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, count: usize| writeln!(out, "{name:40} {count:>9}");
        line("cycles", self.cycles)?;
        for (name, count) in &self.faults {
            line(&format!("  of them with {name}"), *count)?;
        }
        line("runs", self.runs)?;
        line("effects", self.effects)?;
        line("events whose writers were checked", self.writes)?;
        line("claims that were checked", self.claims)?;
        line("seconds", self.took.as_secs() as usize)?;
        writeln!(out, "violations of")?;
        for promise in PROMISES {
            let count = self.violations.get(&promise).copied().unwrap_or_default();
            writeln!(out, "  {:38} {count:>9}", promise.to_string())?;
        }
        Ok(())
    }
}
