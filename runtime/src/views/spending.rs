//! What runs spend: turns, tool calls, tokens, money. Counted from events or from rows, and summed.

use posse_protocol::{Budget, Event, Limit, Purpose, Tally, Usage, Usd};
use posse_store::{RunRow, Spent};
use serde::Serialize;

/// What one run has spent, or several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    pub turns: u64,
    pub tool_calls: u64,
    /// A model with an unknown price was used, so the cost is higher than known.
    pub unpriced: bool,
    tally: Tally,
}

impl Spending {
    /// Counts an event of the run.
    pub fn observe(&mut self, event: &Event) {
        self.tally.observe(event);
        match event {
            Event::ModelCalled(called) => {
                self.turns += u64::from(called.purpose == Purpose::Turn);
            }
            // A retry is still the same turn.
            Event::ModelFailed(failed) => {
                self.turns = self.turns.saturating_sub(u64::from(failed.remedy.is_some()));
            }
            Event::ToolStarted(_) => self.tool_calls += 1,
            _ => {}
        }
    }

    /// Returns the spending in `row`, as if all prices were known. A call in progress does not count.
    pub fn of(row: &RunRow) -> Self {
        let usage = |spent: Spent| Usage {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cost: spent.cost,
            ..Usage::default()
        };
        let (uncertain, cut) = row.unsure();
        let (known, uncertain) = (usage(row.known()), usage(uncertain));
        let tally = Tally { known, uncertain, cut, open: None };
        let (turns, tool_calls) = (row.spending.turns, row.spending.tool_calls);
        Spending { turns, tool_calls, unpriced: false, tally }
    }

    /// Converts a sum of the store.
    pub fn summed(sum: &posse_store::Spending) -> Self {
        let (known, uncertain) = (sum.usage.clone(), sum.uncertain.clone());
        let tally = Tally { known, uncertain, cut: sum.unanswered, open: None };
        Spending { tally, ..Spending::default() }
    }

    /// Returns how many model calls were interrupted.
    pub fn cut_calls(&self) -> u64 {
        self.tally.cut
    }

    /// Adds the spending of another run.
    pub fn add(&mut self, other: &Spending) {
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
        self.unpriced |= other.unpriced;
        self.tally.known += &other.tally.known;
        self.tally.uncertain += &other.tally.uncertain;
        self.tally.cut += other.tally.cut;
    }

    pub fn input_tokens(&self) -> u64 {
        self.tally.known.all_input_tokens()
    }

    pub fn output_tokens(&self) -> u64 {
        self.tally.known.output_tokens
    }

    /// Tokens sent and received.
    pub fn tokens(&self) -> u64 {
        self.input_tokens().saturating_add(self.output_tokens())
    }

    /// Known cost.
    pub fn cost(&self) -> Usd {
        self.tally.known.cost
    }

    /// The most that interrupted calls may have cost in addition.
    pub fn uncertain_cost(&self) -> Usd {
        self.tally.uncertain.cost
    }
}

/// A part of a budget; money in dollars.
#[derive(Serialize)]
pub struct BudgetView {
    limit: Limit,
    of: serde_json::Number,
    /// Spent or reserved.
    drawn: serde_json::Number,
    /// The part of it that may be returned.
    held: serde_json::Number,
}

impl BudgetView {
    /// Returns the parts of the budget of `row`.
    pub fn of(row: &RunRow) -> Option<Vec<Self>> {
        let budget = row.funds.budget.as_ref()?;
        let drawn = row.funds.drawn.unwrap_or_default();
        let number = |limit: Limit, amount: u64| match limit {
            Limit::Cost => serde_json::Number::from_f64(Usd(amount).dollars()),
            _ => Some(amount.into()),
        };
        let part = |limit: Limit| {
            Some(BudgetView {
                limit,
                of: number(limit, budget.of(limit)?)?,
                drawn: number(limit, drawn.of(limit))?,
                held: number(limit, row.funds.held.of(limit))?,
            })
        };
        Some(Budget::DIMENSIONS.into_iter().filter_map(part).collect())
    }
}

/// The sum over several runs.
#[derive(Serialize)]
pub struct SumView {
    /// How many runs.
    pub runs: u64,
    pub turns: u64,
    pub tool_calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Known cost.
    pub cost_usd: f64,
    /// False if one of them used a model with an unknown price: then they cost more.
    pub cost_known: bool,
    /// The most that interrupted calls may have cost in addition.
    pub uncertain_cost_usd: f64,
}

impl SumView {
    pub fn of(runs: u64, sum: &Spending) -> Self {
        SumView {
            runs,
            turns: sum.turns,
            tool_calls: sum.tool_calls,
            input_tokens: sum.input_tokens(),
            output_tokens: sum.output_tokens(),
            cost_usd: sum.cost().dollars(),
            cost_known: true,
            uncertain_cost_usd: sum.uncertain_cost().dollars(),
        }
    }
}
