//! `posse runs list`.

use super::super::{Common, folder};
use crate::args::ListOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::family::Family;
use crate::print;
use crate::screen::line::label;
use crate::terminal;
use crate::view::{self, RunView};
use posse::store::{Filter, Kin, Unfinished};
use posse::{RunId, RunRow, Runtime};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

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
    let kin = match &options.children_of {
        Some(parent) => Kin::ChildrenOf(runtime.find(parent).await?.id),
        None if options.all => Kin::All,
        None => Kin::Roots,
    };
    let unfinished = if options.unfinished { Unfinished::Only } else { Unfinished::All };
    let filter = Filter { workspace, kin, unfinished, before, limit, ..Filter::default() };
    let rows = runtime.list(&filter).await?;
    let families = families(runtime, &rows).await?;
    if common.global.json {
        let view = |row: &RunRow| {
            let position = families.get(&row.root).and_then(|family| family.position(row));
            RunView { position, ..RunView::of(row).with_below(below(&families, row)) }
        };
        print::json_pretty(&rows.iter().map(view).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    if rows.is_empty() {
        print::note("no such runs");
    }
    let columns = terminal::table_width().unwrap_or(usize::MAX);
    for row in &rows {
        print::line(terminal::fitted(&line(&families, row, columns), columns))?;
    }
    if rows.len() == limit
        && let Some(last) = rows.last()
        && !common.global.quiet
    {
        print::note(format!("older ones: --before {}", last.id.short()));
    }
    Ok(Code::Done)
}

/// The trees that the listed runs stand in, by their roots.
async fn families(runtime: &Runtime, rows: &[RunRow]) -> Result<HashMap<RunId, Family>, Failure> {
    let mut families = HashMap::new();
    for row in rows {
        if let Entry::Vacant(family) = families.entry(row.root) {
            family.insert(Family::of(runtime, row).await?);
        }
    }
    Ok(families)
}

/// How many runs stand below.
fn below(families: &HashMap<RunId, Family>, row: &RunRow) -> u64 {
    families.get(&row.root).map_or(0, |family| family.below(row.id).len() as u64)
}

/// Columns below which the agent is left out.
const WIDE: usize = 90;

fn line(families: &HashMap<RunId, Family>, row: &RunRow, columns: usize) -> String {
    let agent = match columns {
        WIDE.. => format!("  {:15}", clean_line(&row.agent, 15)),
        _ => String::new(),
    };
    let family = families.get(&row.root);
    let state = family.map_or_else(|| row.status.to_string(), |family| family.word(row));
    let below = match below(families, row) {
        0 => String::new(),
        below => format!(" (+{below})"),
    };
    let (ago, cost) = (view::ago(row.updated_at), row.cost().to_string());
    let (short, title) = (row.id.short(), label(&row.title));
    format!("{short}  {state:11}  {ago:>7}  {cost:>8}{agent}  {title}{below}")
}
