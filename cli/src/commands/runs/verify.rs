//! `posse runs verify`: checks that no event, run or index entry was changed or lost.

use super::super::Common;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use posse::store::{Filter, StoreError};
use posse::{Damage, Error, RunRow, Runtime};
use serde_json::json;

/// The results of the check.
#[derive(Default)]
pub struct Findings {
    runs: u64,
    events: u64,
    /// The number of runs whose log was removed.
    removed: u64,
    /// The damages, each with the name of the run, or without one for the database.
    damaged: Vec<(Option<String>, Damage)>,
}

pub async fn run(common: &Common, runtime: &Runtime, run: Option<&str>) -> Result<Code, Failure> {
    let mut findings = Findings::default();
    match run {
        Some(run) => findings.check_one(runtime, run).await?,
        None => findings.check_all(runtime).await?,
    }
    findings.tell(common)?;
    Ok(if findings.is_sound() { Code::Done } else { Code::Store })
}

impl Findings {
    async fn check_one(&mut self, runtime: &Runtime, run: &str) -> Result<(), Failure> {
        match runtime.find(run).await {
            Err(Error::Store(StoreError::NotFound(id)))
                if runtime.orphans().await?.contains(&id.to_string()) =>
            {
                self.add_orphan(id.to_string());
                Ok(())
            }
            row => Ok(self.check(runtime, &row?).await?),
        }
    }

    pub async fn check_all(&mut self, runtime: &Runtime) -> Result<(), Failure> {
        for flaw in runtime.flaws().await? {
            let damage = Damage { event: None, reason: flaw.reason };
            self.damaged.push((flaw.run.map(|run| run.to_string()), damage));
        }
        match self.check_runs(runtime).await {
            // The file itself is damaged. Report what is known.
            Err(Error::Store(error @ StoreError::Corrupt { .. })) => {
                self.damaged.push((None, Damage { event: None, reason: error.to_string() }));
                Ok(())
            }
            checked => Ok(checked?),
        }
    }

    async fn check_runs(&mut self, runtime: &Runtime) -> Result<(), Error> {
        let mut before = None;
        loop {
            let filter = Filter { before, limit: 1_000, ..Filter::default() };
            let rows = runtime.list(&filter).await?;
            let Some(last) = rows.last() else { break };
            before = Some(last.id);
            for row in &rows {
                self.check(runtime, row).await?;
            }
        }
        runtime.orphans().await?.into_iter().for_each(|run| self.add_orphan(run));
        for run in runtime.strangers().await? {
            let reason = "the ledger has model calls of it, and nothing else is there".to_owned();
            self.damaged.push((Some(run), Damage { event: None, reason }));
        }
        Ok(())
    }

    async fn check(&mut self, runtime: &Runtime, row: &RunRow) -> Result<(), Error> {
        self.runs += 1;
        self.removed += u64::from(row.log.erased);
        let verified = match runtime.verify(row).await {
            // If one run cannot be read or found by its id, check the others all the same.
            Err(Error::Store(
                error @ (StoreError::Newer(_)
                | StoreError::Corrupt { .. }
                | StoreError::NotFound(_)
                | StoreError::Erased(_)),
            )) => {
                let reason = format!("its log cannot be read: {error}");
                self.damaged.push((Some(row.id.to_string()), Damage { event: None, reason }));
                return Ok(());
            }
            verified => verified?,
        };
        self.events += verified.events;
        self.damaged.extend(verified.damage.map(|damage| (Some(row.id.to_string()), damage)));
        Ok(())
    }

    /// Adds a run of which only events are left.
    fn add_orphan(&mut self, run: String) {
        self.runs += 1;
        let reason = "its row is missing, and its events are still there".to_owned();
        self.damaged.push((Some(run), Damage { event: None, reason }));
    }

    /// True when there is no damage.
    pub fn is_sound(&self) -> bool {
        self.damaged.is_empty()
    }

    pub fn tell(&self, common: &Common) -> Result<(), Failure> {
        if common.global.json {
            let damaged: Vec<_> = self
                .damaged
                .iter()
                .map(|(run, damage)| {
                    json!({"run": run, "event": damage.event, "reason": damage.reason})
                })
                .collect();
            return print::json_pretty(&json!({
                "runs": self.runs, "events": self.events, "removed": self.removed,
                "damaged": damaged,
            }));
        }
        for (run, damage) in &self.damaged {
            let run = run.as_deref().unwrap_or("the database");
            let (run, reason) = (clean_line(run, 64), clean_line(&damage.reason, 400));
            print::line(format!("{run}  damaged: {reason}"))?;
        }
        if !common.global.quiet {
            let (runs, events) =
                (format::count(self.runs, "run"), format::count(self.events, "event"));
            let removed = match self.removed {
                0 => String::new(),
                count => format!(", {} removed", format::count(count, "log")),
            };
            let damaged = self.damaged.len();
            print::note(format!("{runs}, {events} checked, {damaged} damaged{removed}"));
        }
        Ok(())
    }
}
