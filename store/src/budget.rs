//! Budgets: a run draws what it spends, in the same transaction, from the nearest account above it
//! that limits it.
//!
//! An account is the row of a run with a budget. `drawn` is the amount that is spent or reserved,
//! `held` the part of it that may be released. The functions here are pure: they take rows and
//! change rows. They can refuse a reservation, but always count what has been spent.

use crate::error::StoreError;
use crate::row::RunRow;
use posse_protocol::{Amount, Budget, Event, Limit, Outcome, RunId, Share, Usd};
use std::collections::HashMap;

/// A run leaves one part in this many of a budget of money to the runs above it.
const KEPT_OF_MUCH: u64 = 8;
/// Of a small budget it leaves [`A_LAST_REPLY`], but at most one part in this many.
const KEPT_OF_LITTLE: u64 = 4;
const A_LAST_REPLY: Usd = Usd(20_000_000);
/// The most accounts above a run. No tree is that deep.
const DEEPEST: usize = 64;

/// Returns what `run` may still draw under each limit. `chain` contains its row and the accounts
/// above it. [`Limit::Children`] is left out, because no run draws it for itself.
pub fn shares(run: RunId, chain: &[RunRow]) -> Vec<Share> {
    let find = |id: RunId| chain.iter().find(|row| row.id == id);
    let own = find(run).map_or_else(Amount::default, |row| used(row).1);
    let spent = Budget::DIMENSIONS.into_iter().filter(|limit| *limit != Limit::Children);
    let from = find(run).or(chain.first()).map(|row| row.id);
    spent
        .filter_map(|limit| {
            let row = find(holder(find, from, run, limit)?)?;
            let held = row.funds.held.of(limit).saturating_sub(own.of(limit));
            Some(Share { limit, holder: row.id, left: left_to(find(run), row, limit), held })
        })
        .collect()
}

/// The effect of an event on the accounts that its run draws on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    /// The run starts.
    Opened,
    /// An ended run continues, with its whole budget unless it `keeps` the drawn amount.
    Reopened { keeps: bool },
    /// The used amount of the run changes from the first to the second value, and so does the
    /// reserved part of it.
    Used { used: [Amount; 2], reserved: [Amount; 2], may_be_refused: bool },
    /// The run ends.
    Ended,
}

/// Returns the amount that a run has used (spent or reserved), and the reserved part of it.
fn used(row: &RunRow) -> (Amount, Amount) {
    let reserved = Amount {
        input_tokens: row.spending.reserved.input_tokens,
        output_tokens: row.spending.reserved.output_tokens,
        cost: row.spending.reserved.cost,
        ..Amount::default()
    };
    let used = Amount {
        input_tokens: row.spending.spent.input_tokens.saturating_add(reserved.input_tokens),
        output_tokens: row.spending.spent.output_tokens.saturating_add(reserved.output_tokens),
        cost: row.spending.spent.cost + reserved.cost,
        turns: row.spending.turns,
        tool_calls: row.spending.tool_calls,
        children: 0,
    };
    (used, reserved)
}

/// The part of a row before an event that matters to accounts.
pub(crate) struct Before {
    used: Amount,
    reserved: Amount,
    ended: bool,
    /// True for a session that has not run out of budget. Each turn of a session may end the run,
    /// so it keeps its drawn amount when it continues.
    goes_on: bool,
}

impl Before {
    pub(crate) fn of(row: &RunRow) -> Self {
        let (used, reserved) = used(row);
        let outcome = row.state.outcome.as_deref();
        let goes_on = row.about.session && outcome != Some(Outcome::OUT_OF_BUDGET);
        Before { used, reserved, ended: outcome.is_some(), goes_on }
    }

    /// Returns the effects of `event`, which changed the row to `after`.
    pub(crate) fn entries(self, event: &Event, after: &RunRow) -> impl Iterator<Item = Entry> {
        let (used, reserved) = used(after);
        let opened = match event {
            Event::RunStarted(_) => Some(Entry::Opened),
            _ if self.ended && after.state.outcome.is_none() => {
                Some(Entry::Reopened { keeps: self.goes_on })
            }
            _ => None,
        };
        let may_be_refused = matches!(event, Event::ModelCalled(_) | Event::ToolStarted(_));
        let moved = (self.used, self.reserved) != (used, reserved);
        let used = moved.then_some(Entry::Used {
            used: [self.used, used],
            reserved: [self.reserved, reserved],
            may_be_refused,
        });
        let ended = (!self.ended && after.state.outcome.is_some()).then_some(Entry::Ended);
        opened.into_iter().chain(used).chain(ended)
    }
}

/// Rows by run. They are boxed because they are large and move between maps.
pub type Rows = HashMap<RunId, Box<RunRow>>;

/// The rows that entries change.
pub(crate) struct Accounts<'a> {
    /// The rows before the transaction.
    pub(crate) stored: &'a Rows,
    /// The rows that the transaction changed.
    pub(crate) changed: &'a mut Rows,
}

impl Accounts<'_> {
    /// Applies an entry of `run`, whose row must be in `changed`.
    pub(crate) fn enter(&mut self, run: RunId, entry: Entry) -> Result<(), StoreError> {
        let Some(row) = self.get(run) else { return Ok(()) };
        let (above, budget) = (row.funds.account, row.funds.budget.clone().unwrap_or_default());
        match entry {
            Entry::Opened | Entry::Reopened { .. } => self.open(run, above, &budget, entry),
            Entry::Used { used, reserved, may_be_refused } => {
                for limit in Budget::DIMENSIONS {
                    let [before, after] = used.map(|amount| i128::from(amount.of(limit)));
                    let [held, holds] = reserved.map(|amount| i128::from(amount.of(limit)));
                    // Leave unchanged amounts alone: another account may be the nearest now.
                    if (before, held) == (after, holds) {
                        continue;
                    }
                    if may_be_refused && after > before {
                        let own = held.unsigned_abs() as u64;
                        self.check(run, Some(run), limit, (after - before) as u64, own)?;
                    }
                    // Release the old reservation before the new one, each at its own account.
                    self.add(run, Some(run), limit, 0, -held);
                    self.add(run, Some(run), limit, after - before, holds);
                }
                Ok(())
            }
            Entry::Ended => {
                self.close(run, above, &budget);
                Ok(())
            }
        }
    }

    /// Draws the budget of `run`, and the run itself as a child, from the accounts above.
    fn open(
        &mut self,
        run: RunId,
        above: Option<RunId>,
        budget: &Budget,
        entry: Entry,
    ) -> Result<(), StoreError> {
        for limit in Budget::DIMENSIONS {
            let itself = u64::from(limit == Limit::Children);
            let carved = budget.of(limit).unwrap_or_default();
            let limited_above = self.holder(run, above, limit).is_some();
            if limited_above && carved + itself > 0 {
                self.check(run, above, limit, carved.saturating_add(itself), 0)?;
                let taken = i128::from(carved) + i128::from(itself);
                self.add(run, above, limit, taken, taken);
            }
            let Entry::Reopened { keeps } = entry else { continue };
            // Draw again what the accounts above got back when the run ended.
            if (limited_above || !keeps)
                && budget.of(limit).is_some()
                && let Some(row) = self.get_mut(run)
            {
                // If an account above has taken over the reservations of the runs below, they are
                // released there. Otherwise they stay with this account.
                if limited_above && let Some(held) = row.funds.held.of_mut(limit) {
                    *held = 0;
                }
                let held = row.funds.held.of(limit);
                if let Some(drawn) = row.funds.drawn.get_or_insert_default().of_mut(limit) {
                    *drawn = held;
                }
            }
        }
        Ok(())
    }

    /// Returns the rest of the budget of `run` to the accounts above.
    fn close(&mut self, run: RunId, above: Option<RunId>, budget: &Budget) {
        for limit in Budget::DIMENSIONS {
            let itself = i128::from(limit == Limit::Children);
            let (mut drawn, mut held) = (-itself, -itself);
            if let (Some(carved), Some(row)) = (budget.of(limit), self.get(run)) {
                let used = row.funds.drawn.unwrap_or_default();
                drawn += i128::from(used.of(limit)) - i128::from(carved);
                held += i128::from(row.funds.held.of(limit)) - i128::from(carved);
            }
            self.add(run, above, limit, drawn, held);
        }
    }

    /// Fails if the account has less than `wanted` left. `own` is the part of the held amount that
    /// belongs to the run.
    fn check(
        &self,
        run: RunId,
        from: Option<RunId>,
        limit: Limit,
        wanted: u64,
        own: u64,
    ) -> Result<(), StoreError> {
        let holder = self.holder(run, from, limit).and_then(|holder| self.get(holder));
        let Some(row) = holder else { return Ok(()) };
        let left = left_to(self.get(run), row, limit);
        if wanted <= left {
            return Ok(());
        }
        let held = row.funds.held.of(limit).saturating_sub(own);
        Err(StoreError::OverBudget { run, holder: row.id, limit, wanted, left, held })
    }

    /// Changes the drawn and held amounts at the account that `run` draws on from `from` upwards.
    /// What is returned beyond the amount of this account goes to the next one.
    fn add(&mut self, run: RunId, from: Option<RunId>, limit: Limit, drawn: i128, held: i128) {
        let (mut from, mut drawn, mut held) = (from, drawn, held);
        while (drawn, held) != (0, 0)
            && let Some(row) = self.holder(run, from, limit).and_then(|holder| self.get_mut(holder))
        {
            drawn = put(row.funds.drawn.get_or_insert_default(), limit, drawn);
            held = put(&mut row.funds.held, limit, held);
            from = row.funds.account;
        }
    }

    fn holder(&self, run: RunId, from: Option<RunId>, limit: Limit) -> Option<RunId> {
        holder(|id| self.get(id), from, run, limit)
    }

    fn get(&self, run: RunId) -> Option<&RunRow> {
        self.changed.get(&run).or_else(|| self.stored.get(&run)).map(|row| &**row)
    }

    fn get_mut(&mut self, run: RunId) -> Option<&mut RunRow> {
        if !self.changed.contains_key(&run) {
            self.changed.insert(run, self.stored.get(&run)?.clone());
        }
        self.changed.get_mut(&run).map(|row| &mut **row)
    }
}

/// Returns the nearest account from `from` upwards that limits `limit` and whose run has not ended
/// or is `acting`. If all have ended, returns the topmost: no account has taken over from it.
fn holder<'a>(
    find: impl Fn(RunId) -> Option<&'a RunRow>,
    from: Option<RunId>,
    acting: RunId,
    limit: Limit,
) -> Option<RunId> {
    let chain =
        std::iter::successors(from.and_then(&find), |row| row.funds.account.and_then(&find));
    let mut last = None;
    for row in chain.take(DEEPEST) {
        if row.funds.budget.as_ref().is_some_and(|budget| budget.of(limit).is_some()) {
            last = Some(row.id);
            if row.state.outcome.is_none() || row.id == acting {
                break;
            }
        }
    }
    last
}

/// Returns the amount that an account has left for `drawer`. A run leaves something to the runs
/// above it that draw on the same account and must still report: one turn each, and some money.
fn left_to(drawer: Option<&RunRow>, row: &RunRow, limit: Limit) -> u64 {
    let above = drawer.map_or(0, |drawer| drawer.family.depth.saturating_sub(row.family.depth));
    let kept = match limit {
        Limit::Turns => u64::from(above),
        Limit::Cost if above > 0 => {
            let all = allotted(row, limit);
            (all / KEPT_OF_MUCH).max(A_LAST_REPLY.0.min(all / KEPT_OF_LITTLE))
        }
        _ => 0,
    };
    left(row, limit).saturating_sub(kept)
}

/// Returns the amount that is left of an account.
fn left(row: &RunRow, limit: Limit) -> u64 {
    allotted(row, limit).saturating_sub(row.funds.drawn.unwrap_or_default().of(limit))
}

/// Returns the initial amount of an account.
fn allotted(row: &RunRow, limit: Limit) -> u64 {
    row.funds.budget.as_ref().and_then(|budget| budget.of(limit)).unwrap_or(u64::MAX)
}

/// Adds `change` and returns the rest that would make the amount negative.
fn put(amount: &mut Amount, limit: Limit, change: i128) -> i128 {
    let Some(number) = amount.of_mut(limit) else { return 0 };
    let sum = i128::from(*number) + change;
    *number = sum.clamp(0, i128::from(u64::MAX)) as u64;
    sum.min(0)
}
