//! `posse runs verify`: checks that no event was changed or lost.

use super::super::Common;
use super::PAGE;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use crate::view;
use posse::protocol::Seq;
use posse::store::{Filter, StoreError};
use posse::{RunId, RunRow, Runtime};
use serde_json::json;

/// What was found.
#[derive(Default)]
struct Findings {
    runs: u64,
    events: u64,
    damaged: Vec<(RunId, Seq, String)>,
}

pub async fn run(common: &Common, runtime: &Runtime, run: Option<&str>) -> Result<Code, Failure> {
    let mut findings = Findings::default();
    match run {
        Some(run) => findings.check(runtime, &runtime.find(run).await?).await?,
        None => {
            let mut before = None;
            loop {
                let filter = Filter { before, limit: 1_000, ..Filter::default() };
                let rows = runtime.list(&filter).await?;
                let Some(last) = rows.last() else { break };
                before = Some(last.id);
                for row in &rows {
                    findings.check(runtime, row).await?;
                }
            }
        }
    }
    findings.tell(common)?;
    Ok(if findings.damaged.is_empty() { Code::Done } else { Code::Store })
}

impl Findings {
    async fn check(&mut self, runtime: &Runtime, row: &RunRow) -> Result<(), Failure> {
        self.runs += 1;
        let mut after = Seq::ZERO;
        loop {
            match runtime.read(row.id, after, PAGE).await {
                Ok(page) => {
                    let Some(last) = page.last() else { return Ok(()) };
                    after = last.seq;
                    self.events += page.len() as u64;
                }
                Err(posse::Error::Store(StoreError::Damaged { run, seq, reason })) => {
                    self.damaged.push((run, seq, reason));
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn tell(&self, common: &Common) -> Result<(), Failure> {
        if common.global.json {
            let damaged: Vec<_> = self
                .damaged
                .iter()
                .map(|(run, seq, reason)| json!({"run": run, "event": seq, "reason": reason}))
                .collect();
            let (runs, events) = (self.runs, self.events);
            return print::json_pretty(
                &json!({"runs": runs, "events": events, "damaged": damaged}),
            );
        }
        for (run, _, reason) in &self.damaged {
            print::line(format!("{run}  damaged: {}", clean_line(reason, 400)))?;
        }
        if !common.global.quiet {
            let (runs, events) = (view::count(self.runs, "run"), view::count(self.events, "event"));
            print::note(format!("{runs}, {events} checked, {} damaged", self.damaged.len()));
        }
        Ok(())
    }
}
