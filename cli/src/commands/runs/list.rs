//! `posse runs list`.

use super::super::Common;
use super::targets;
use crate::args::ListOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::family::Family;
use crate::print;
use crate::screen::line::label;
use crate::spending::Spending;
use crate::terminal;
use crate::view::{self, RunView};
use posse::store::Kin;
use posse::{RunId, RunRow, Runtime};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

pub async fn run(
    common: &Common,
    runtime: &Runtime,
    options: ListOptions,
) -> Result<Code, Failure> {
    let limit = options.limit as usize;
    let kin = match (options.all, options.filters.unfinished) {
        (true, _) => Kin::All,
        // Nobody above stands for what a root has left behind.
        (false, true) => Kin::Heads,
        (false, false) => Kin::Roots,
    };
    let mut filter = targets::filter(runtime, &options.filters, kin).await?;
    filter.limit = limit;
    if let Some(text) = &options.before {
        filter.before = Some(runtime.find(text).await?.id);
    }
    let rows = runtime.list(&filter).await?;
    let families = Families::of(runtime, &rows).await?;
    if common.global.json {
        let view = |row: &RunRow| families.view(row);
        print::json_pretty(&rows.iter().map(view).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    if rows.is_empty() {
        print::note("no such runs");
    }
    let columns = terminal::table_width().unwrap_or(usize::MAX);
    for row in &rows {
        print::line(line(&families, row, columns))?;
    }
    if rows.len() == limit
        && let Some(last) = rows.last()
        && !common.global.quiet
    {
        print::note(format!("older ones: --before {}", last.id.short()));
    }
    Ok(Code::Done)
}

/// How many of a tree are looked at for a list.
const OF_A_TREE: usize = 2_000;

/// The trees that the listed runs stand in, by their roots.
struct Families(HashMap<RunId, Family>);

impl Families {
    async fn of(runtime: &Runtime, rows: &[RunRow]) -> Result<Self, Failure> {
        let mut families = HashMap::new();
        for row in rows {
            if let Entry::Vacant(family) = families.entry(row.root) {
                family.insert(Family::newest(runtime, row, OF_A_TREE).await?);
            }
        }
        Ok(Families(families))
    }

    fn get(&self, row: &RunRow) -> Option<&Family> {
        self.0.get(&row.root)
    }

    /// How many runs stand below, and whether there are more.
    fn below(&self, row: &RunRow) -> (u64, bool) {
        self.get(row).map_or((0, false), |family| {
            (family.below(row.id).len() as u64, family.len() >= OF_A_TREE)
        })
    }

    fn view(&self, row: &RunRow) -> RunView {
        let (below, is_more) = self.below(row);
        let waits_for = self.get(row).map_or(0, |family| family.waited_for(row));
        let position = self.get(row).and_then(|family| family.position(row));
        let view = RunView { position, ..RunView::of(row).waiting_on(waits_for) };
        if is_more { view } else { view.with_below(below) }
    }

    /// What is said about those below, in parentheses.
    fn about(&self, row: &RunRow) -> String {
        let mut words = match self.below(row) {
            (0, _) => Vec::new(),
            (below, false) => vec![format!("+{below}")],
            (below, true) => vec![format!("+{below} or more")],
        };
        match self.get(row).map_or(0, |family| family.waited_for(row)) {
            0 => {}
            1 => words.push("waiting on 1 child".to_owned()),
            count => words.push(format!("waiting on {count} children")),
        }
        match words.is_empty() {
            true => String::new(),
            false => format!(" ({})", words.join(", ")),
        }
    }
}

/// Columns below which the agent is left out.
const WIDE: usize = 90;
/// Columns from which on the model is shown.
const VERY_WIDE: usize = 140;
/// Columns that a title has at least.
const TITLE: usize = 16;

fn line(families: &Families, row: &RunRow, columns: usize) -> String {
    let agent = match columns {
        WIDE.. => format!("  {:15}", clean_line(&row.agent, 15)),
        _ => String::new(),
    };
    let model = match columns {
        // Where nobody says how wide it is, a program reads it.
        VERY_WIDE..usize::MAX => format!("  {:28}", clean_line(&row.model, 28)),
        _ => String::new(),
    };
    let family = families.get(row);
    let state = family.map_or_else(|| row.status.to_string(), |family| family.word(row));
    let (ago, cost) = (view::ago(row.updated_at), Spending::of(row).money());
    let before = format!("{}  {state:11}  {ago:>7}  {cost:>8}{agent}{model}  ", row.id.short());
    let about = families.about(row);
    let taken = terminal::columns(&before) + terminal::columns(&about);
    let title = terminal::fitted(&label(&row.title), columns.saturating_sub(taken).max(TITLE));
    terminal::fitted(&format!("{before}{title}{about}"), columns)
}
