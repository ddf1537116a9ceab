//! What a run took that was there before this command: with this command, and in its whole life.

use super::line::{self, Below};
use posse::protocol::Usd;
use posse::views::Spending;
use posse::{RunId, RunRow};

#[derive(Default)]
pub struct Life {
    /// What it and all below it had cost before.
    before: Usd,
    whole: Option<Whole>,
}

struct Whole {
    own: Spending,
    below: Option<Below>,
    cost: Usd,
}

impl Life {
    /// `rows` are the run and all below it, before anything is done.
    pub fn begin(&mut self, rows: &[RunRow]) {
        self.before = cost(rows);
    }

    /// `rows` are the run `top` and all below it, now.
    pub fn sum_up(&mut self, rows: &[RunRow], top: RunId) {
        let own = rows.iter().find(|row| row.id == top).map(Spending::of);
        let (below, cost) = (Below::stored(rows, top), cost(rows));
        self.whole = own.map(|own| Whole { own, below, cost });
    }

    /// In words, if it was summed up.
    pub fn totals(&self) -> Option<String> {
        let Whole { own, below, cost } = self.whole.as_ref()?;
        let whole = line::totals(own, None, below.as_ref());
        Some(format!("{} this time · since it began: {whole}", cost.saturating_sub(self.before)))
    }
}

/// What `rows` have cost together, as far as that is known.
fn cost(rows: &[RunRow]) -> Usd {
    rows.iter().fold(Usd::ZERO, |sum, row| sum + Spending::of(row).cost())
}
