//! `posse runs prune`: removes the logs of runs that ended long ago.

use super::super::Common;
use crate::args::PruneOptions;
use crate::exit::{Code, Failure};
use crate::print;
use crate::screen::line::label;
use crate::terminal;
use crate::view;
use posse::{Prune, RunRow, Runtime};
use serde_json::json;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    options: PruneOptions,
) -> Result<Code, Failure> {
    let prune = if options.dry_run { Prune::Preview } else { Prune::Now };
    let rows = runtime.prune(options.older_than, prune).await?;
    let events: u64 = rows.iter().map(|row| row.last_seq.0).sum();
    if common.global.json {
        let runs: Vec<_> = rows.iter().map(|row| row.id).collect();
        let removed = prune == Prune::Now;
        print::json_pretty(&json!({"removed": removed, "runs": runs, "events": events}))?;
        return Ok(Code::Done);
    }
    let columns = terminal::table_width().unwrap_or(usize::MAX);
    for row in &rows {
        print::line(terminal::fitted(&line(row), columns))?;
    }
    if !common.global.quiet {
        let (runs, events) = (view::count(rows.len() as u64, "run"), view::count(events, "event"));
        print::note(match prune {
            Prune::Now => format!("{runs}, {events} removed; what they cost is kept"),
            Prune::Preview => format!("{runs}, {events} would be removed"),
        });
    }
    Ok(Code::Done)
}

fn line(row: &RunRow) -> String {
    let (short, ago) = (row.id.short(), view::ago(row.finished_at));
    let events = view::count(row.last_seq.0, "event");
    format!("{short}  {ago:>8}  {events:>11}  {}", label(&row.title))
}
