//! Queries, which read every row.

use super::is_known;
use super::state::State;
use crate::{
    Background, By, DeliveryState, Filter, Kin, Label, Leftover, Leftovers, Look, ModelCall, Queue,
    Queued, RunRow, Spending, SpendingQuery, Unfinished, date,
};
use posse_protocol::{Cleanup, RunId, Usage, Usd, WorkerId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The default length of a list of runs.
const LIST: usize = 100;
/// The most runs that a query of the queue returns, without those of every root.
const MOST: usize = 1_024;
/// The most runs of each root.
const EACH: usize = 64;
const DAY_MS: u64 = 86_400_000;

/// Returns rows in the order in which workers claim them.
pub(super) fn in_line<'a>(rows: impl Iterator<Item = &'a RunRow>) -> Vec<&'a RunRow> {
    let mut rows: Vec<&RunRow> = rows.collect();
    rows.sort_by_key(|row| (Reverse(row.work.priority), row.work.ready_at, row.id));
    rows
}

pub(super) fn queue(state: &State, look: &Look, worker: WorkerId) -> Queue {
    let about = state.introduced.get(&worker);
    let claimable =
        || state.claimable(None).filter(|row| about.is_none_or(|about| about.takes(row)));
    let until = state.ready().map(|row| row.work.ready_at).max().unwrap_or(0);
    let here = |folder: &Option<String>, row: &RunRow| {
        folder.as_ref().is_none_or(|folder| *folder == row.about.workspace)
    };
    let shown = |rows: Vec<&RunRow>| rows.into_iter().map(Queued::from).collect::<Vec<_>>();
    match look {
        Look::Ahead { workspace } => {
            let rows = in_line(claimable().filter(|row| here(workspace, row)));
            if rows.len() < MOST {
                return Queue { runs: shown(rows), until, ..Queue::default() };
            }
            let mut counts: HashMap<RunId, usize> = HashMap::new();
            let mut place = 0;
            let seen = rows.into_iter().filter(|row| {
                let count = counts.entry(row.family.root).or_default();
                place += 1;
                let is_shown = place <= MOST || *count < EACH;
                *count += usize::from(is_shown);
                is_shown
            });
            let runs = shown(seen.collect());
            let cut = counts.into_iter().filter(|(_, count)| *count >= EACH).map(|it| it.0);
            Queue { runs, more: true, cut: cut.collect(), until, ..Queue::default() }
        }
        Look::Past { workspace, passed } => {
            let rows = claimable().filter(|row| {
                here(workspace, row)
                    && !passed.agents.contains(&row.about.agent)
                    && !passed.models.contains(&row.about.model)
                    && row.family.parent.is_none_or(|parent| !passed.parents.contains(&parent))
            });
            let mut rows = in_line(rows);
            rows.truncate(MOST);
            Queue { more: rows.len() >= MOST, runs: shown(rows), until, ..Queue::default() }
        }
        Look::Since(moment) => {
            let mut rows: Vec<&RunRow> =
                claimable().filter(|row| row.work.ready_at >= *moment).collect();
            rows.sort_by_key(|row| (row.work.ready_at, row.id));
            rows.truncate(MOST);
            let more = rows.len() >= MOST;
            let until = rows.last().filter(|_| more).map_or(until, |last| last.work.ready_at);
            Queue { runs: shown(rows), more, until, ..Queue::default() }
        }
        Look::Of(wanted) => {
            let rows = claimable().filter(|row| wanted.contains(&row.id)).collect();
            Queue { runs: shown(rows), until, ..Queue::default() }
        }
    }
}

/// Returns those of `rows` that `filter` selects, in its order.
pub(super) fn listed(
    state: &State,
    filter: &Filter,
    rows: impl Iterator<Item = RunRow>,
) -> Vec<RunRow> {
    let mut rows: Vec<RunRow> = rows.filter(|row| selects(state, filter, row)).collect();
    match filter.after {
        Some(_) => rows.sort_by_key(|row| row.id),
        None => rows.sort_by_key(|row| Reverse(row.id)),
    }
    rows.truncate(if filter.limit == 0 { LIST } else { filter.limit });
    rows
}

fn selects(state: &State, filter: &Filter, row: &RunRow) -> bool {
    let is = |wanted: &Option<String>, text: &str| wanted.as_deref().is_none_or(|it| it == text);
    let has_ended =
        |run: RunId| state.rows.get(&run).is_some_and(|row| row.state.outcome.is_some());
    let kin = match filter.kin {
        Kin::All => true,
        Kin::Roots => row.family.depth == 0,
        Kin::Heads => row.family.depth == 0 || has_ended(row.family.root),
        Kin::ChildrenOf(run) => row.family.parent == Some(run),
        Kin::TreeOf(run) => row.family.root == run,
    };
    let unfinished = match filter.unfinished {
        Unfinished::All => true,
        Unfinished::Only => row.state.outcome.is_none(),
        Unfinished::Gathering => row.family.gathered_at > 0,
        Unfinished::Asking => row.state.asks > 0,
    };
    let label = match &filter.label {
        None => true,
        Some(Label::Is(label)) => !row.about.label.is_empty() && row.about.label == *label,
        Some(Label::Begins(beginning)) => {
            !row.about.label.is_empty() && row.about.label.starts_with(beginning.as_str())
        }
    };
    let background = match filter.background {
        Background::All => true,
        Background::Only => row.family.background,
        Background::Not => !row.family.background,
    };
    kin && unfinished
        && label
        && background
        && filter.id.is_none_or(|id| id == row.id)
        && is(&filter.workspace, &row.about.workspace)
        && is(&filter.agent, &row.about.agent)
        && is(&filter.model, &row.about.model)
        && filter.outcome.as_ref().is_none_or(|word| row.state.outcome.as_ref() == Some(word))
        && (filter.status.is_empty() || filter.status.contains(&row.status))
        && filter.since.is_none_or(|at| row.id >= RunId::first_at(at))
        && filter.until.is_none_or(|at| row.id < RunId::first_at(at))
        && filter.before.is_none_or(|before| row.id < before)
        && filter.after.is_none_or(|after| row.id > after)
}

/// Finds runs whose ids begin or end with `part`, or else have it near the end, newest first.
pub(super) fn found<'a>(state: &'a State, part: &str) -> Vec<&'a RunRow> {
    if part.len() < 4 {
        return Vec::new();
    }
    let by = |is_meant: &dyn Fn(&str) -> bool| {
        let rows = state.rows.values().map(|row| &**row);
        let mut rows: Vec<&RunRow> = rows.filter(|row| is_meant(&row.id.to_string())).collect();
        rows.sort_by_key(|row| Reverse(row.id));
        rows
    };
    let found = by(&|id| id.starts_with(part) || id.ends_with(part));
    if !found.is_empty() {
        return found;
    }
    by(&|id| id.get(18..).is_some_and(|end| end.contains(part)))
}

pub(super) fn leftovers(state: &State, wanted: Leftovers, now_ms: u64) -> Vec<&RunRow> {
    let long = u64::try_from(wanted.ended_for.as_millis()).unwrap_or(u64::MAX);
    let latest = now_ms.saturating_sub(long);
    let rows = || state.rows.values().map(|row| &**row);
    let open_trees: HashSet<RunId> =
        rows().filter(|row| row.state.outcome.is_none()).map(|row| row.family.root).collect();
    let open_parents: HashSet<RunId> = rows()
        .filter(|row| row.state.outcome.is_none())
        .filter_map(|row| row.family.parent)
        .collect();
    let due = state.deliveries.values().filter(|it| it.state == DeliveryState::Due);
    let untold: HashSet<RunId> = due.map(|it| it.run).collect();
    let since = |row: &RunRow| match wanted.which {
        Leftover::Due => {
            row.state.finished_at.saturating_add(row.state.archive_after_ms.unwrap_or(0))
        }
        Leftover::Ended | Leftover::Unwanted | Leftover::Archived => row.state.finished_at,
    };
    let is_left = |row: &&RunRow| {
        let is_told = !untold.contains(&row.id);
        let ended = row.state.finished_at > 0 && !row.state.archived;
        match wanted.which {
            Leftover::Ended => ended && !open_trees.contains(&row.family.root),
            Leftover::Due => {
                ended
                    && row.state.archive_after_ms.is_some()
                    && !open_trees.contains(&row.family.root)
            }
            Leftover::Unwanted => {
                let unwanted = row.state.cleanup != Cleanup::Keep && !row.log.erased;
                unwanted && ended && !open_parents.contains(&row.id) && is_told
            }
            Leftover::Archived => row.state.archived && !row.log.erased && is_told,
        }
    };
    let mut left: Vec<&RunRow> =
        rows().filter(|row| is_known(row) && since(row) <= latest).filter(is_left).collect();
    left.sort_by_key(|row| since(row));
    left.truncate(wanted.limit);
    left
}

/// A model call, settled or open.
struct Made<'a> {
    run: RunId,
    at: u64,
    root: RunId,
    agent: &'a str,
    model: &'a str,
    label: &'a str,
    known: Usage,
    uncertain: Usage,
    unanswered: bool,
}

impl<'a> Made<'a> {
    fn settled(call: &'a ModelCall) -> Self {
        let (usage, uncertain) = (&call.usage, call.uncertain.clone());
        let known = Usage {
            input_tokens: usage.input_tokens.saturating_sub(uncertain.input_tokens),
            output_tokens: usage.output_tokens.saturating_sub(uncertain.output_tokens),
            cost: usage.cost.saturating_sub(uncertain.cost),
            ..usage.clone()
        };
        let unsure = uncertain.input_tokens + uncertain.output_tokens + uncertain.cost.0 > 0;
        Made {
            run: call.run,
            at: call.at,
            root: call.root,
            agent: &call.agent,
            model: &call.model,
            label: &call.label,
            known,
            uncertain,
            unanswered: unsure || call.ending == "unanswered",
        }
    }

    fn open(row: &'a RunRow) -> Option<Self> {
        Some(Made {
            run: row.id,
            at: row.updated_at,
            root: row.family.root,
            agent: &row.about.agent,
            model: &row.spending.calling.as_ref()?.model,
            label: &row.about.label,
            known: Usage::default(),
            uncertain: row.open_call()?,
            unanswered: true,
        })
    }

    fn key(&self, by: By) -> String {
        match by {
            By::Nothing => String::new(),
            By::Run => self.run.to_string(),
            By::Tree => self.root.to_string(),
            By::Agent => self.agent.to_owned(),
            By::Model => self.model.to_owned(),
            By::Label => self.label.to_owned(),
            By::Day => date(self.at / DAY_MS),
        }
    }
}

pub(super) fn spending(state: &State, query: &SpendingQuery) -> Vec<Spending> {
    let below = query.tree.map(|tree| below(state, tree));
    let folder_of = |run: RunId| state.rows.get(&run).map(|row| &row.about.workspace);
    let open = state.rows.values().filter_map(|row| Made::open(row));
    let made = state.calls.iter().map(Made::settled).chain(open).map(|made| {
        // The label of a tree is that of its root.
        let root = state.rows.get(&made.root);
        Made { label: root.map_or(made.label, |root| &root.about.label), ..made }
    });
    let made = made.filter(|made| {
        below.as_ref().is_none_or(|below| below.contains(&made.run))
            && query.workspace.as_ref().is_none_or(|folder| folder_of(made.run) == Some(folder))
            && query.since.is_none_or(|since| made.at >= since)
            && query.until.is_none_or(|until| made.at < until)
    });
    let mut sums: BTreeMap<String, (Spending, HashSet<RunId>)> = BTreeMap::new();
    for made in made {
        let (sum, runs) = sums.entry(made.key(query.by)).or_default();
        runs.insert(made.run);
        sum.calls += 1;
        sum.unanswered += u64::from(made.unanswered);
        add(&mut sum.usage, &made.known);
        add(&mut sum.uncertain, &made.uncertain);
    }
    let sums = sums.into_iter();
    let mut sums: Vec<Spending> =
        sums.map(|(key, (sum, runs))| Spending { key, runs: runs.len() as u64, ..sum }).collect();
    sums.reverse();
    if !matches!(query.by, By::Nothing | By::Day) {
        sums.sort_by_key(|sum| Reverse((sum.usage.cost, sum.usage.input_tokens)));
    }
    if query.limit > 0 {
        sums.truncate(query.limit);
    }
    sums
}

fn add(sum: &mut Usage, more: &Usage) {
    sum.input_tokens = sum.input_tokens.saturating_add(more.input_tokens);
    sum.cache_read_tokens = sum.cache_read_tokens.saturating_add(more.cache_read_tokens);
    sum.cache_write_tokens = sum.cache_write_tokens.saturating_add(more.cache_write_tokens);
    sum.output_tokens = sum.output_tokens.saturating_add(more.output_tokens);
    sum.reasoning_tokens = sum.reasoning_tokens.saturating_add(more.reasoning_tokens);
    sum.cost = Usd(sum.cost.0.saturating_add(more.cost.0));
}

/// Returns `run` and all runs below it.
fn below(state: &State, run: RunId) -> HashSet<RunId> {
    let mut below = HashSet::new();
    let mut next = vec![run];
    while let Some(run) = next.pop() {
        if state.rows.contains_key(&run) && below.insert(run) {
            let children = state.rows.values().filter(|row| row.family.parent == Some(run));
            next.extend(children.map(|row| row.id));
        }
    }
    below
}
