//! What runs take: turns, tool calls, tokens, money. Counted from events or from rows, and summed.

use crate::format;
use posse::protocol::{Event, Limit, Outcome, Purpose, Tally, Usage, Usd};
use posse::store::Spent;
use posse::{Budget, RunRow};
use serde::Serialize;

/// What one run has taken, or several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    pub turns: u64,
    pub tool_calls: u64,
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
            // Made again, it is still the same turn.
            Event::ModelFailed(failed) => {
                self.turns = self.turns.saturating_sub(u64::from(failed.remedy.is_some()));
            }
            Event::ToolStarted(_) => self.tool_calls += 1,
            _ => {}
        }
    }

    /// What `row` says. A call that is under way does not count.
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
        Spending { turns: row.turns, tool_calls: row.tool_calls, tally }
    }

    /// What the store has summed up.
    pub fn summed(sum: &posse::store::Spending) -> Self {
        let (known, uncertain) = (sum.usage.clone(), sum.uncertain.clone());
        let tally = Tally { known, uncertain, cut: sum.unanswered, open: None };
        Spending { tally, ..Spending::default() }
    }

    pub fn add(&mut self, other: &Spending) {
        self.turns += other.turns;
        self.tool_calls += other.tool_calls;
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

    /// What is known to have been spent.
    pub fn cost(&self) -> Usd {
        self.tally.known.cost
    }

    /// What calls that were cut short may have cost besides.
    pub fn uncertain_cost(&self) -> Usd {
        self.tally.uncertain.cost
    }

    /// The money, with a `+` where more may have been spent: `$0.0061+`.
    pub fn money(&self) -> String {
        money(self.cost(), self.uncertain_cost())
    }

    /// The money in words: `$0.0061, up to $1.28 more for 1 call cut short`.
    pub fn money_in_words(&self) -> String {
        match self.uncertain_cost() {
            Usd::ZERO => self.cost().to_string(),
            more => {
                let calls = format::count(self.tally.cut, "call");
                format!("{}, up to {more} more for {calls} cut short", self.cost())
            }
        }
    }
}

/// What is known, with a `+` where more may have been spent.
pub fn money(known: Usd, uncertain: Usd) -> String {
    match uncertain {
        Usd::ZERO => known.to_string(),
        _ => format!("{known}+"),
    }
}

/// What to do about a run that ended because its next model call did not fit, and what of its money
/// is `uncertain`.
pub fn hint(outcome: &Outcome, uncertain: Usd) -> Vec<String> {
    let (Outcome::Stopped { limit, .. } | Outcome::OutOfBudget { limit, .. }) = outcome else {
        return Vec::new();
    };
    let mut hints = Vec::new();
    match limit {
        Limit::Cost => {
            if uncertain > Usd::ZERO {
                hints.push(format!(
                    "{uncertain} of it counts for calls that were cut short: nobody knows what the \
                     provider charges for them"
                ));
            }
            hints.push(
                "start a run that may spend more with --max-cost (or `cost` under [limits] and \
                 [budget] in your settings), or choose a cheaper model: `posse models` shows prices"
                    .to_owned(),
            );
        }
        Limit::InputTokens | Limit::OutputTokens => hints.push(
            "tell it to go on: `posse runs resume`; if the limit is yours and not the model's, allow \
             more with --budget (or with `input_tokens` and `output_tokens` under [limits] and \
             [budget] in your settings)"
                .to_owned(),
        ),
        Limit::Turns => {
            let option = match outcome {
                Outcome::OutOfBudget { .. } => "--budget turns=N",
                _ => "--max-turns",
            };
            hints.push(format!("allow more with {option}, or tell it to go on: `posse runs resume`"));
        }
        _ => {}
    }
    hints
}

/// How much of the budget of `row` is used, of those of `limits` that it has: `3 of 10 turns`. What a
/// call that is under way has reserved is told apart.
pub fn of_budget(row: &RunRow, limits: &[Limit]) -> String {
    let Some(budget) = &row.budget else { return String::new() };
    let drawn = row.drawn.unwrap_or_default();
    let part = |limit: &Limit| {
        let held = row.held.of(*limit);
        let used = limit.amount(drawn.of(*limit).saturating_sub(held));
        let of = limit.amount(budget.of(*limit)?);
        let part = match limit {
            Limit::Cost => format!("{used} of {of}"),
            // Runs below are not used up.
            Limit::Children => {
                return Some(format!("{} of {of} {limit}", drawn.of(*limit)));
            }
            limit => format!("{used} of {of} {limit}"),
        };
        Some(match held {
            0 => part,
            held => format!("{part} ({} reserved)", limit.amount(held)),
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
    /// What is known to have been spent.
    pub cost_usd: f64,
    /// What calls that were cut short may have cost besides.
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
            uncertain_cost_usd: sum.uncertain_cost().dollars(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_option_that_sets_the_limit() {
        let said = |outcome: Outcome| hint(&outcome, Usd::ZERO).join("\n");
        assert!(said(Outcome::stopped(Limit::Turns, "")).contains("--max-turns"));
        let budget = said(Outcome::out_of_budget(Limit::Turns, posse::RunId::new(), ""));
        assert!(budget.contains("--budget turns=N") && !budget.contains("--max-turns"), "{budget}");
    }
}
