//! `posse runs list`.

use super::super::{Common, folder};
use crate::args::ListOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use crate::terminal;
use crate::view::{self, RunView};
use posse::store::{Filter, Unfinished};
use posse::{RunRow, Runtime, Status};

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    options: ListOptions,
) -> Result<Code, Failure> {
    let limit = options.limit as usize;
    let before = match &options.before {
        Some(text) => Some(runtime.find(text).await?.id),
        None => None,
    };
    let workspace = match &options.cwd {
        Some(_) => Some(folder(options.cwd.as_ref())?.display().to_string()),
        None => None,
    };
    let unfinished = if options.unfinished { Unfinished::Only } else { Unfinished::All };
    let filter = Filter { workspace, unfinished, before, limit, ..Filter::default() };
    let rows = runtime.list(&filter).await?;
    if common.global.json {
        print::json_pretty(&rows.iter().map(RunView::of).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    if rows.is_empty() {
        print::note("no such runs");
    }
    let columns = terminal::table_width().unwrap_or(usize::MAX);
    for row in &rows {
        print::line(terminal::fitted(&line(row, columns), columns))?;
    }
    if rows.len() == limit
        && let Some(last) = rows.last()
        && !common.global.quiet
    {
        print::note(format!("older ones: --before {}", last.id.short()));
    }
    Ok(Code::Done)
}

/// Columns below which the agent is left out.
const WIDE: usize = 90;

fn line(row: &RunRow, columns: usize) -> String {
    let title = match clean_line(&row.title, 120) {
        title if title.is_empty() => "(nothing said yet)".to_owned(),
        title => title,
    };
    let agent = match columns {
        WIDE.. => format!("  {:15}", clean_line(&row.agent, 15)),
        _ => String::new(),
    };
    let (ago, cost) = (view::ago(row.updated_at), row.cost().to_string());
    format!("{}  {:11}  {ago:>7}  {cost:>8}{agent}  {title}", row.id.short(), state(row))
}

/// Where a run stands, in one word.
fn state(row: &RunRow) -> String {
    match (&row.outcome, row.status) {
        (Some(outcome), Status::Finished) => outcome.clone(),
        (_, status) => status.to_string(),
    }
}
