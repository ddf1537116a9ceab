//! What runs have taken, in words.

use crate::format;
use posse::protocol::{Limit, Outcome, Usd};
use posse::views::Spending;
use posse::{RunId, RunRow, Runtime};

/// What stands in the place of money that nobody knows.
pub const UNKNOWN: &str = "?";

/// True when nobody knows what `model` costs. One that is gone from the settings counts as known: what it
/// has cost is stored.
pub fn is_unpriced(runtime: &Runtime, model: &str) -> bool {
    matches!(runtime.models().abilities(model).map(|it| it.priced), Ok(false))
}

/// True when `row` has spent tokens of a model, and nobody knows what they cost.
pub fn costs_unknown(runtime: &Runtime, row: &RunRow, spending: &Spending) -> bool {
    let is_unknown = spending.cost() == Usd::ZERO && spending.tokens() > 0;
    is_unknown && is_unpriced(runtime, &row.about.model)
}

/// The money, with a `+` where more may have been spent: `$0.0061+`.
pub fn money(spending: &Spending) -> String {
    sum(spending.cost(), spending.uncertain_cost())
}

/// The money in words: `$0.0061, up to $1.28 more for 1 call cut short`.
pub fn money_in_words(spending: &Spending) -> String {
    match spending.uncertain_cost() {
        Usd::ZERO => spending.cost().to_string(),
        more => {
            let calls = format::count(spending.cut_calls(), "call");
            format!("{}, up to {more} more for {calls} cut short", spending.cost())
        }
    }
}

/// What is known, with a `+` where more may have been spent.
pub fn sum(known: Usd, uncertain: Usd) -> String {
    match uncertain {
        Usd::ZERO => known.to_string(),
        _ => format!("{known}+"),
    }
}

/// What to do about a run that did not complete, and what of its money is `uncertain`.
pub fn hint(outcome: &Outcome, run: RunId, uncertain: Usd) -> Vec<String> {
    let short = run.short();
    match outcome {
        Outcome::Failed { deaths: 1.., .. } => {
            return vec![format!(
                "`posse runs log {short}` shows its last calls; to try it again: `posse runs resume {short}`"
            )];
        }
        // Whoever replays a cassette cannot continue the run: what to do is said with the difference.
        Outcome::Failed { reason, .. } if reason.contains("is not as recorded") => {
            return Vec::new();
        }
        Outcome::Failed { .. } => {
            return vec![format!(
                "fix this, then continue the run: `posse runs resume {short} \"go on\"`"
            )];
        }
        _ => {}
    }
    let (Outcome::Stopped { limit, .. } | Outcome::OutOfBudget { limit, .. }) = outcome else {
        return Vec::new();
    };
    let mut hints = Vec::new();
    match limit {
        Limit::Cost => {
            if uncertain > Usd::ZERO {
                hints.push(format!(
                    "{uncertain} of it counts for calls that were cut short: Posse does not know what the \
                     vendor charges for them"
                ));
            }
            hints.push(continued(&short));
            hints.push(
                "to let new runs spend more, use --max-cost (or `cost` under [limits] and [budget] in \
                 your settings); `posse models` shows prices"
                    .to_owned(),
            );
        }
        Limit::InputTokens | Limit::OutputTokens => {
            hints.push(continued(&short));
            hints.push(
                "if the limit is yours and not the model's, allow new runs more with --budget (or with \
                 `input_tokens` and `output_tokens` under [limits] and [budget] in your settings)"
                    .to_owned(),
            );
        }
        Limit::Turns => {
            let option = match outcome {
                Outcome::OutOfBudget { .. } => "--budget turns=N",
                _ => "--max-turns",
            };
            hints.push(continued(&short));
            hints.push(format!("to allow new runs more, use {option}"));
        }
        _ => {}
    }
    hints
}

/// How a run goes on that reached a limit. Its limits and its budget then start again.
fn continued(short: &str) -> String {
    format!(
        "to continue it with the limits it was started with: `posse runs resume {short} \"go on\"`"
    )
}

/// How much of the budget of `row` is used, of those of `limits` that it has: `3 of 10 turns`. What a
/// call that is under way has reserved is told apart.
pub fn of_budget(row: &RunRow, limits: &[Limit]) -> String {
    let Some(budget) = &row.funds.budget else { return String::new() };
    let drawn = row.funds.drawn.unwrap_or_default();
    let part = |limit: &Limit| {
        let held = row.funds.held.of(*limit);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_option_that_sets_the_limit() {
        let said = |outcome: Outcome| hint(&outcome, posse::RunId::new(), Usd::ZERO).join("\n");
        assert!(said(Outcome::stopped(Limit::Turns, "")).contains("--max-turns"));
        let budget = said(Outcome::out_of_budget(Limit::Turns, posse::RunId::new(), ""));
        assert!(budget.contains("--budget turns=N") && !budget.contains("--max-turns"), "{budget}");
    }
}
