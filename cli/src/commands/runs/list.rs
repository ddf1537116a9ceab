//! `posse runs list`.

use super::super::Common;
use super::show::task;
use super::targets;
use crate::args::ListOptions;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::family;
use crate::format;
use crate::print;
use crate::screen::line::label;
use crate::spending;
use crate::table::{Column, Table};
use posse::protocol::{Seq, WorkerId};
use posse::store::Kin;
use posse::views::Spending;
use posse::views::{RepositoryView, RunView};
use posse::views::{Tree, is_empty_chat};
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
        // Also list the open subagents of an ended root, because the root itself is not listed.
        (false, true) => Kin::Heads,
        (false, false) => Kin::Roots,
    };
    let mut filter = targets::filter(runtime, &options.filters, kin).await?;
    filter.limit = limit;
    if let Some(text) = &options.before {
        filter.before = Some(runtime.find(text).await?.id);
    }
    let mut rows = runtime.list(&filter).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|last| last.id);
    rows.retain(|row| !is_empty_chat(row));
    let families = Families::of(runtime, &rows).await?;
    if common.global.json {
        let mut views = Vec::with_capacity(rows.len());
        let machines = machines(runtime, &rows).await?;
        for row in &rows {
            let machine = row.work.owner.and_then(|owner| machines.get(&owner).cloned());
            let view = families.view(row).with_task(task(runtime, row).await?);
            let repository = repository(runtime, row).await?;
            views.push(view.with_machine(machine).with_repository(repository));
        }
        print::json_pretty(&views)?;
        return Ok(Code::Done);
    }
    if rows.is_empty() {
        print::note("no run matches");
    }
    let mut lines = Vec::with_capacity(rows.len());
    for row in &rows {
        // If children have their own lines, the column must add up.
        let spending = match kin {
            Kin::All => Spending::of(row),
            _ => families.spending(row),
        };
        let cost = match spending::costs_unknown(runtime, row, &spending) {
            true => spending::UNKNOWN.to_owned(),
            false => spending::money(&spending),
        };
        lines.push(line(&families, row, cost, task(runtime, row).await?.as_deref()));
    }
    Table { columns: COLUMNS, rows: lines }.print(common)?;
    if let Some(last) = next.filter(|_| !common.global.quiet) {
        print::note(format!("older ones: --before {}", last.short()));
    }
    Ok(Code::Done)
}

/// The machines of the workers that execute some of `rows`, by worker.
async fn machines(
    runtime: &Runtime,
    rows: &[RunRow],
) -> Result<HashMap<WorkerId, String>, Failure> {
    if rows.iter().all(|row| row.work.owner.is_none()) {
        return Ok(HashMap::new());
    }
    let workers = runtime.workers().await?.into_iter();
    let machines = workers.map(|worker| (worker.id, worker.about.host));
    Ok(machines.filter(|(_, host)| !host.is_empty()).collect())
}

/// The repository that a run works on.
async fn repository(runtime: &Runtime, row: &RunRow) -> Result<Option<RepositoryView>, Failure> {
    // A run in a repository is bound to no machine.
    if !row.work.host.is_empty() || row.log.damaged.is_some() || row.log.erased {
        return Ok(None);
    }
    let first = runtime.read(row.id, Seq::ZERO, 1).await?.pop();
    Ok(first.and_then(|record| RepositoryView::of(&record.event)))
}

/// The most runs of a tree to read for a list.
const OF_A_TREE: usize = 2_000;

/// The trees of the listed runs, by root.
struct Families(HashMap<RunId, Tree>);

impl Families {
    async fn of(runtime: &Runtime, rows: &[RunRow]) -> Result<Self, Failure> {
        let mut families = HashMap::new();
        for row in rows {
            if let Entry::Vacant(family) = families.entry(row.family.root) {
                family.insert(Tree::newest(runtime, row, OF_A_TREE).await?);
            }
        }
        Ok(Families(families))
    }

    fn get(&self, row: &RunRow) -> Option<&Tree> {
        self.0.get(&row.family.root)
    }

    /// The number of subagents, and whether there may be more.
    fn below(&self, row: &RunRow) -> (u64, bool) {
        self.get(row).map_or((0, false), |family| {
            (family.below(row.id).len() as u64, family.count() >= OF_A_TREE)
        })
    }

    fn view(&self, row: &RunRow) -> RunView {
        let Some(family) = self.get(row) else { return RunView::of(row) };
        let view = family.view(row).waiting_on(family.waited_for(row));
        // A sum over a part of a tree would look like the sum over all of it.
        match self.below(row) {
            (_, true) => RunView { below: None, subtree: None, ..view },
            (_, false) => view,
        }
    }

    /// The spending of a run and its subagents.
    fn spending(&self, row: &RunRow) -> Spending {
        self.get(row).map_or_else(|| Spending::of(row), |family| family.sum(row))
    }

    /// The note about subagents, in parentheses.
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

const COLUMNS: [Column; 7] = [
    Column::text("RUN"),
    Column::text("STATUS"),
    Column::figures("UPDATED").leaves(3),
    Column::figures("COST"),
    Column::text("AGENT").cut(15, 8).leaves(2),
    Column::text("MODEL").cut(28, 8).leaves(1),
    Column::text("TASK").cut(24, 10),
];

fn line(families: &Families, row: &RunRow, cost: String, task: Option<&str>) -> [String; 7] {
    let family = families.get(row);
    let state =
        family.map_or_else(|| row.status.to_string(), |family| family::word_in(family, row));
    [
        row.id.short(),
        state,
        format::ago(row.updated_at),
        cost,
        clean_line(&row.about.agent, 64),
        clean_line(&row.about.model, 80),
        format!("{}{}", about(row, task), families.about(row)),
    ]
}

/// The label of a run, if it has one, and its task.
fn about(row: &RunRow, task: Option<&str>) -> String {
    match task {
        Some(task) if !row.about.label.is_empty() => {
            format!("{}: {}", clean_line(&row.about.label, 60), clean_line(task, 120))
        }
        _ => label(&row.about.title),
    }
}
