//! The totals of a run that existed before this command: with this command, and since its start.

use super::line::{self, Below};
use posse::protocol::Usd;
use posse::views::Spending;
use posse::{RunId, RunRow};

#[derive(Default)]
pub struct RunTotals {
    /// The cost of the run and its subagents before this command.
    before: Usd,
    whole: Option<Whole>,
}

struct Whole {
    own: Spending,
    below: Option<Below>,
    cost: Usd,
}

impl RunTotals {
    /// Starts with `rows`, the run and its subagents before this command does anything.
    pub fn begin(&mut self, rows: &[RunRow]) {
        self.before = cost(rows);
    }

    /// Sums up `rows`, the run `top` and its subagents now.
    pub fn sum_up(&mut self, rows: &[RunRow], top: RunId) {
        let own = rows.iter().find(|row| row.id == top).map(Spending::of);
        let (below, cost) = (Below::stored(rows, top), cost(rows));
        self.whole = own.map(|own| Whole { own, below, cost });
    }

    /// The totals in words, if they were summed up.
    pub fn totals(&self) -> Option<String> {
        let Whole { own, below, cost } = self.whole.as_ref()?;
        let whole = line::totals(own, None, below.as_ref());
        Some(format!("{} this time · since it began: {whole}", cost.saturating_sub(self.before)))
    }
}

/// The known cost of `rows` together.
fn cost(rows: &[RunRow]) -> Usd {
    rows.iter().fold(Usd::ZERO, |sum, row| sum + Spending::of(row).cost())
}
