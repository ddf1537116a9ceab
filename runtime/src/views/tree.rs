//! A tree as it is stored: its runs, their parents, and what they spent.

use super::run::RunView;
use super::spending::{Spending, SumView};
use crate::error::Error;
use crate::moment::now;
use crate::runtime::Runtime;
use posse_protocol::{RunId, Status, Usd};
use posse_store::{Filter, Kin, RunRow};
use std::collections::{HashMap, HashSet};

/// A whole tree, starting at its root.
pub struct Tree {
    /// Oldest first.
    rows: Vec<RunRow>,
    /// Indexes of children in `rows`, by their parent.
    children: HashMap<RunId, Vec<usize>>,
    /// The places of queued runs in the queue.
    positions: HashMap<RunId, u64>,
    /// Models with an unknown price.
    unpriced: HashSet<String>,
}

/// More runs than any tree has.
const ALL: usize = usize::MAX >> 1;

impl Tree {
    /// Returns the tree that contains `row`.
    pub async fn of(runtime: &Runtime, row: &RunRow) -> Result<Self, Error> {
        Tree::newest(runtime, row, ALL).await
    }

    /// Returns the newest runs of the tree that contains `row`, at most `limit`.
    pub async fn newest(runtime: &Runtime, row: &RunRow, limit: usize) -> Result<Self, Error> {
        let filter = Filter { kin: Kin::TreeOf(row.family.root), limit, ..Filter::default() };
        let mut rows = runtime.list(&filter).await?;
        rows.sort_by_key(|row| row.id);
        let mut children: HashMap<RunId, Vec<usize>> = HashMap::new();
        for (place, row) in rows.iter().enumerate() {
            if let Some(parent) = row.family.parent {
                children.entry(parent).or_default().push(place);
            }
        }
        let queued = rows.iter().filter(|row| row.status == Status::Queued);
        let queued: Vec<RunId> = queued.map(|row| row.id).collect();
        let positions = runtime.positions(&queued).await?;
        let models: HashSet<&String> = rows.iter().map(|row| &row.about.model).collect();
        // The price of a model may be in the settings of someone else. Costs that are stored count all the same.
        let is_unpriced = |model: &&&String| {
            !matches!(runtime.models().abilities(model).map(|it| it.priced), Ok(true))
        };
        let unpriced = models.iter().filter(is_unpriced).map(|model| (*model).clone()).collect();
        Ok(Tree { rows, children, positions, unpriced })
    }

    /// Returns how many runs of the tree were read.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    pub fn find(&self, run: RunId) -> Option<&RunRow> {
        let place = self.rows.binary_search_by_key(&run, |row| row.id).ok()?;
        self.rows.get(place)
    }

    /// Returns the children of `run`, oldest first.
    pub fn children(&self, run: RunId) -> impl DoubleEndedIterator<Item = &RunRow> {
        let places = self.children.get(&run).map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|place| self.rows.get(*place))
    }

    /// Returns all subagents of `run`, each before its own subagents.
    pub fn below(&self, run: RunId) -> Vec<&RunRow> {
        let mut found = Vec::new();
        let mut ahead: Vec<&RunRow> = self.children(run).rev().collect();
        while let Some(row) = ahead.pop() {
            found.push(row);
            ahead.extend(self.children(row.id).rev());
        }
        found
    }

    /// Returns what `row` spent, with all its subagents.
    pub fn sum(&self, row: &RunRow) -> Spending {
        let mut sum = self.spending(row);
        self.below(row.id).into_iter().for_each(|below| sum.add(&self.spending(below)));
        sum
    }

    /// Returns what `row` itself spent.
    pub fn spending(&self, row: &RunRow) -> Spending {
        let mut spending = Spending::of(row);
        spending.unpriced = !self.knows_cost(row);
        spending
    }

    /// Returns the view of `row`, with the sum of its subtree.
    pub fn view(&self, row: &RunRow) -> RunView {
        let below = self.below(row.id).len() as u64;
        let subtree = Some(self.sum_view(row));
        let (position, status) = (self.position(row), self.standing(row));
        let cost_known = self.knows_cost(row);
        RunView { status, subtree, position, cost_known, ..RunView::of(row).with_below(below) }
    }

    /// Returns what `row` spent, with all its subagents, as JSON.
    pub fn sum_view(&self, row: &RunRow) -> SumView {
        let below = self.below(row.id);
        let cost_known = self.knows_cost(row) && below.iter().all(|below| self.knows_cost(below));
        SumView { cost_known, ..SumView::of(1 + below.len() as u64, &self.sum(row)) }
    }

    /// False if `row` has used a model with an unknown price.
    pub fn knows_cost(&self, row: &RunRow) -> bool {
        let spending = Spending::of(row);
        spending.cost() != Usd::ZERO
            || spending.tokens() == 0
            || !self.unpriced.contains(&row.about.model)
    }

    /// Returns the place of `row` in the queue; 1 is next.
    pub fn position(&self, row: &RunRow) -> Option<u64> {
        self.positions.get(&row.id).copied()
    }

    /// Returns the status to show for `row`. A waiting run shows the status of its most active
    /// subagent. A subagent whose result it does not expect counts only while it is queued or
    /// crashed.
    pub fn standing(&self, row: &RunRow) -> Status {
        if row.status != Status::Waiting {
            return row.status;
        }
        let below = self.below(row.id);
        let is_there = |wanted: &Status| below.iter().any(|row| row.status == *wanted);
        let waits = row.family.awaits + row.family.expects > 0;
        let running = waits.then_some(Status::Running);
        let liveliest = running.into_iter().chain([Status::Crashed, Status::Queued]);
        liveliest.into_iter().find(is_there).unwrap_or(row.status)
    }
}

impl Tree {
    /// Returns how many children of `row` have not ended, if it waits for them.
    pub fn waited_for(&self, row: &RunRow) -> u64 {
        let waits = row.state.outcome.is_none()
            && row.work.owner.is_none()
            && row.family.awaits + row.family.expects > 0;
        let open = self.children(row.id).filter(|child| child.state.outcome.is_none());
        if waits { open.count() as u64 } else { 0 }
    }
}

/// True for a chat without messages: there is nothing to see or to continue.
pub fn is_empty_chat(row: &RunRow) -> bool {
    row.about.session && row.about.title.is_empty() && row.log.damaged.is_none()
}

/// Returns the age of a run in milliseconds; if it is neither running nor queued, the time until
/// its last event.
pub fn took(row: &RunRow) -> u64 {
    let until = match row.status {
        Status::Running | Status::Queued => now(),
        _ => row.updated_at,
    };
    until.saturating_sub(row.created_at)
}
