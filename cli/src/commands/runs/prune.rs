//! `posse runs prune`: deletes the logs of runs that ended long ago, once a person has confirmed it.

use super::super::Common;
use super::targets::confirm;
use crate::args::PruneOptions;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use crate::screen::line::label;
use crate::table::{Column, Table};
use posse::{Prune, RunRow, Runtime};
use serde_json::json;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    options: PruneOptions,
) -> Result<Code, Failure> {
    if !options.yes && !options.dry_run {
        let rows = runtime.prune(options.older_than, Prune::Preview).await?;
        if !rows.is_empty() {
            confirm(common, &rows, "deleted for good", "")?;
        }
    }
    let prune = if options.dry_run { Prune::Preview } else { Prune::Now };
    let rows = runtime.prune(options.older_than, prune).await?;
    let events: u64 = rows.iter().map(|row| row.log.last_seq.0).sum();
    if common.global.json {
        let runs: Vec<_> = rows.iter().map(|row| row.id).collect();
        let removed = prune == Prune::Now;
        print::json_pretty(&json!({"removed": removed, "runs": runs, "events": events}))?;
        return Ok(Code::Done);
    }
    Table { columns: COLUMNS, rows: rows.iter().map(line).collect() }.print(common)?;
    if !common.global.quiet {
        let (runs, events) =
            (format::count(rows.len() as u64, "run"), format::count(events, "event"));
        print::note(match prune {
            Prune::Now => format!("{runs}, {events} deleted; their costs are kept"),
            Prune::Preview => format!("{runs}, {events} would be deleted"),
        });
    }
    Ok(Code::Done)
}

const COLUMNS: [Column; 4] = [
    Column::text("RUN"),
    Column::figures("ENDED"),
    Column::figures("EVENTS").leaves(1),
    Column::text("TASK").cut(24, 10),
];

fn line(row: &RunRow) -> [String; 4] {
    let ended = format::ago(row.state.finished_at);
    [row.id.short(), ended, row.log.last_seq.to_string(), label(&row.about.title)]
}
