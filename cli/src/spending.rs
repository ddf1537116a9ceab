//! What runs take: turns, tool calls, tokens, money. Counted from events or from rows, and summed.

use posse::protocol::{Event, Limit, Purpose, Usage, Usd};
use posse::{Budget, RunRow};
use serde::Serialize;

/// What one run has taken, or several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    pub turns: u64,
    pub tool_calls: u64,
    usage: Usage,
    /// What a model call may spend that has not come back.
    reserved: Usage,
}

impl Spending {
    /// Counts an event of the run.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::ModelCalled(called) => {
                self.give_up();
                self.reserved = called.reserved.clone();
                self.turns += u64::from(called.purpose == Purpose::Turn);
            }
            Event::ModelReplied(replied) => self.settle(&replied.usage),
            Event::ModelFailed(failed) => {
                self.settle(&failed.usage);
                // Made again, it is still the same turn.
                self.turns = self.turns.saturating_sub(u64::from(failed.remedy.is_some()));
            }
            Event::Compacted(compacted) => self.settle(&compacted.usage),
            Event::ToolStarted(_) => self.tool_calls += 1,
            Event::RunFinished(_) => self.give_up(),
            _ => {}
        }
    }

    /// A model call came to its end: what it spent counts.
    fn settle(&mut self, spent: &Usage) {
        self.reserved = Usage::default();
        self.usage += spent;
    }

    /// A model call never will: what it may have spent counts.
    fn give_up(&mut self) {
        let unanswered = std::mem::take(&mut self.reserved);
        self.usage += &unanswered;
    }

    /// What `row` says, unanswered model calls as they were reserved.
    pub fn of(row: &RunRow) -> Self {
        let usage = Usage {
            input_tokens: row.spent.input_tokens.saturating_add(row.reserved.input_tokens),
            output_tokens: row.spent.output_tokens.saturating_add(row.reserved.output_tokens),
            cost: row.cost(),
            ..Usage::default()
        };
        let (turns, tool_calls) = (row.turns, row.tool_calls);
        Spending { turns, tool_calls, usage, reserved: Usage::default() }
    }

    pub fn add(&mut self, other: &Spending) {
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
        self.usage += &other.usage;
    }

    pub fn input_tokens(&self) -> u64 {
        self.usage.all_input_tokens()
    }

    pub fn output_tokens(&self) -> u64 {
        self.usage.output_tokens
    }

    /// Tokens sent and received.
    pub fn tokens(&self) -> u64 {
        self.input_tokens().saturating_add(self.output_tokens())
    }

    pub fn cost(&self) -> Usd {
        self.usage.cost
    }
}

/// How much of the budget of `row` is drawn, of those of `limits` that it has: `3 of 10 turns`.
pub fn of_budget(row: &RunRow, limits: &[Limit]) -> String {
    let Some(budget) = &row.budget else { return String::new() };
    let drawn = row.drawn.unwrap_or_default();
    let part = |limit: &Limit| {
        let (drawn, of) = (limit.amount(drawn.of(*limit)), limit.amount(budget.of(*limit)?));
        Some(match limit {
            Limit::Cost => format!("{drawn} of {of}"),
            limit => format!("{drawn} of {of} {limit}"),
        })
    };
    limits.iter().filter_map(part).collect::<Vec<_>>().join(", ")
}

/// A part of a budget, as `--json` prints it; money in dollars.
#[derive(Serialize)]
pub struct BudgetView {
    limit: Limit,
    of: serde_json::Number,
    /// Spent or reserved.
    drawn: serde_json::Number,
    /// What of that may come back.
    held: serde_json::Number,
}

impl BudgetView {
    /// The parts that the budget of `row` has.
    pub fn of(row: &RunRow) -> Option<Vec<Self>> {
        let budget = row.budget.as_ref()?;
        let drawn = row.drawn.unwrap_or_default();
        let number = |limit: Limit, amount: u64| match limit {
            Limit::Cost => serde_json::Number::from_f64(Usd(amount).dollars()),
            _ => Some(amount.into()),
        };
        let part = |limit: Limit| {
            Some(BudgetView {
                limit,
                of: number(limit, budget.of(limit)?)?,
                drawn: number(limit, drawn.of(limit))?,
                held: number(limit, row.held.of(limit))?,
            })
        };
        Some(Budget::DIMENSIONS.into_iter().filter_map(part).collect())
    }
}

/// A sum, as `--json` prints it.
#[derive(Serialize)]
pub struct SumView {
    /// How many runs it is of.
    pub runs: u64,
    pub turns: u64,
    pub tool_calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost_usd: f64,
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
        }
    }
}
