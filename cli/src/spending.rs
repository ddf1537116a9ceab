//! Spending of runs in words.

use crate::format;
use posse::protocol::{Limit, Outcome, Usd};
use posse::views::Spending;
use posse::{RunId, RunRow, Runtime};

/// The text for an unknown cost.
pub const UNKNOWN: &str = "?";

/// True when the price of `model` is unknown here. It may be in the settings of someone else, or in former ones. Then
/// the costs that are stored count, and nothing that is stored is no proof that the calls were free.
pub fn is_unpriced(runtime: &Runtime, model: &str) -> bool {
    !matches!(runtime.models().abilities(model).map(|it| it.priced), Ok(true))
}

/// True when `row` has used tokens of a model whose price is unknown.
pub fn costs_unknown(runtime: &Runtime, row: &RunRow, spending: &Spending) -> bool {
    let is_unknown = spending.cost() == Usd::ZERO && spending.tokens() > 0;
    is_unknown && is_unpriced(runtime, &row.about.model)
}

/// The cost, with a `+` if more may have been spent: `$0.0061+`.
pub fn money(spending: &Spending) -> String {
    match spending.cost() {
        cost if !spending.unpriced => sum(cost, spending.uncertain_cost()),
        Usd::ZERO => UNKNOWN.to_owned(),
        cost => format!("{cost}+"),
    }
}

/// The cost in words: `$0.0061, up to $1.28 more for 1 call cut short`.
pub fn money_in_words(spending: &Spending) -> String {
    match spending.uncertain_cost() {
        _ if spending.unpriced => {
            format!("{} (the price of the model is not known)", money(spending))
        }
        Usd::ZERO => spending.cost().to_string(),
        more => {
            let calls = format::count(spending.cut_calls(), "call");
            format!("{}, up to {more} more for {calls} cut short", spending.cost())
        }
    }
}

/// The known cost, with a `+` if more may have been spent.
pub fn sum(known: Usd, uncertain: Usd) -> String {
    match uncertain {
        Usd::ZERO => known.to_string(),
        _ => format!("{known}+"),
    }
}

/// Advice for a run that did not complete, and about its `uncertain` cost.
pub fn hint(outcome: &Outcome, run: RunId, spent: &Spending) -> Vec<String> {
    let short = run.short();
    match outcome {
        Outcome::Failed { deaths: 1.., .. } => {
            return vec![format!(
                "`posse runs log {short}` shows its last calls; to try it again: `posse runs resume {short}`"
            )];
        }
        // A replayed run cannot be continued. The message about the difference gives advice.
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
            let uncertain = spent.uncertain_cost();
            if uncertain > Usd::ZERO {
                hints.push(format!(
                    "{uncertain} of it counts for calls that were cut short: Posse does not know what the \
                     vendor charges for them"
                ));
            }
            // The same limit would stop it again before its first call.
            if spent.turns > 0 {
                hints.push(continued(&short));
            }
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

/// Advice to continue a run that reached a limit. Its limits and its budget then start again.
fn continued(short: &str) -> String {
    format!(
        "to continue it with the limits it was started with: `posse runs resume {short} \"go on\"`"
    )
}

/// How much of the budget of `row` is used, for each of `limits`: `3 of 10 turns`. The reserved amount
/// of an open call is shown separately.
pub fn of_budget(row: &RunRow, limits: &[Limit]) -> String {
    let Some(budget) = &row.funds.budget else { return String::new() };
    let drawn = row.funds.drawn.unwrap_or_default();
    let part = |limit: &Limit| {
        let held = row.funds.held.of(*limit);
        let used = limit.amount(drawn.of(*limit).saturating_sub(held));
        let of = limit.amount(budget.of(*limit)?);
        let part = match limit {
            Limit::Cost => format!("{used} of {of}"),
            // Children give their part of the budget back when they end.
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
        let said_after = |outcome: Outcome, turns| {
            let mut spent = Spending::default();
            spent.turns = turns;
            hint(&outcome, posse::RunId::new(), &spent).join("\n")
        };
        let said = |outcome: Outcome| said_after(outcome, 1);
        assert!(said(Outcome::stopped(Limit::Turns, "")).contains("--max-turns"));
        let budget = said(Outcome::out_of_budget(Limit::Turns, posse::RunId::new(), ""));
        assert!(budget.contains("--budget turns=N") && !budget.contains("--max-turns"), "{budget}");
        // To continue a run helps only if its limit allowed a call.
        for turns in [0, 1] {
            let told = said_after(Outcome::stopped(Limit::Cost, ""), turns);
            assert_eq!(told.contains("runs resume"), turns > 0, "{told}");
            assert!(told.contains("--max-cost"), "{told}");
        }
    }
}
