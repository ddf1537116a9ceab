//! Budgets of runs: the budget that a run starts with, and what it may still draw while it works.
//! The store prevents overdrafts; this module only looks ahead.

use posse_agent::Allowance;
use posse_protocol::{AgentSpec, Budget, Event, Extra, Limit, RunId, RunSpec, RunStarted};
use posse_store::{Filter, RunRow, Store, StoreError, shares};
use std::sync::OnceLock;

/// The budget of a run. A root gets the requested budget, else that of its agent, else `general`,
/// that of the settings. Any other run draws on the budgets above it: its request can only reduce
/// the budget of its agent.
pub(crate) fn budget_of(spec: &RunSpec, agent: &AgentSpec, general: Option<&Budget>) -> Budget {
    match general {
        Some(general) => replaced(&replaced(&spec.budget, &agent.budget), general),
        None => smaller(&spec.budget, &agent.budget),
    }
}

/// Whether budgets limit a run, according to its first event. Posse looks up what a run may draw
/// only if they do.
#[derive(Default)]
pub(crate) struct BudgetCheck(OnceLock<Limited>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Limited {
    /// A budget limits something that the run itself uses.
    Yes,
    /// At most the number of subagents is limited.
    No,
}

impl BudgetCheck {
    /// Remembers what the run's first event says.
    pub(crate) fn observe(&self, event: &Event) {
        if let Event::RunStarted(started) = event {
            self.0.get_or_init(|| limited(started));
        }
    }

    /// True when a budget limits something that the run itself uses.
    pub(crate) fn is_limited(&self) -> bool {
        self.0.get() == Some(&Limited::Yes)
    }

    /// What the stored run `run` may still draw.
    pub(crate) async fn allowance(
        &self,
        store: &dyn Store,
        run: RunId,
    ) -> Result<Allowance, StoreError> {
        let mut chain: Vec<RunRow> = Vec::new();
        let mut next = Some(run);
        while let Some(id) = next.take() {
            let filter = Filter { id: Some(id), limit: 1, ..Filter::default() };
            if let Some(row) = store.list(&filter).await?.pop() {
                next = row.funds.account.filter(|above| chain.iter().all(|row| row.id != *above));
                chain.push(row);
            }
        }
        Ok(Allowance(shares(run, &chain)))
    }
}

fn limited(started: &RunStarted) -> Limited {
    let above = started.parent.as_ref().map_or(&[][..], |parent| &parent.limited);
    let own = &started.grant.budget;
    let is_limited = |limit: &Limit| {
        *limit != Limit::Children && (own.of(*limit).is_some() || above.contains(limit))
    };
    match Budget::DIMENSIONS.iter().any(is_limited) {
        true => Limited::Yes,
        false => Limited::No,
    }
}

/// The values of `change`, else those of `budget`.
pub(crate) fn replaced(change: &Budget, budget: &Budget) -> Budget {
    Budget {
        input_tokens: change.input_tokens.or(budget.input_tokens),
        output_tokens: change.output_tokens.or(budget.output_tokens),
        cost: change.cost.or(budget.cost),
        turns: change.turns.or(budget.turns),
        tool_calls: change.tool_calls.or(budget.tool_calls),
        children: change.children.or(budget.children),
        extra: budget.extra.clone(),
    }
}

/// The smaller value in each dimension.
pub(crate) fn smaller(one: &Budget, other: &Budget) -> Budget {
    replaced(&narrowed(one, &Budget::default(), other), other)
}

/// The values of `change`, as far as they are stricter than `budget`, or than `general` where
/// `budget` sets nothing.
pub(crate) fn narrowed(change: &Budget, budget: &Budget, general: &Budget) -> Budget {
    fn least<T: Ord + Copy>(change: Option<T>, general: Option<T>) -> Option<T> {
        change.map(|change| general.map_or(change, |general| change.min(general)))
    }
    let general = replaced(budget, general);
    let change = Budget {
        input_tokens: least(change.input_tokens, general.input_tokens),
        output_tokens: least(change.output_tokens, general.output_tokens),
        cost: least(change.cost, general.cost),
        turns: least(change.turns, general.turns),
        tool_calls: least(change.tool_calls, general.tool_calls),
        children: least(change.children, general.children),
        extra: Extra::default(),
    };
    replaced(&change, budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_s_change_can_only_narrow() {
        let turns = |turns| Budget { turns, ..Budget::default() };
        for (change, own, general, expected) in [
            (Some(50), None, Some(10), Some(10)),
            (Some(5), None, Some(10), Some(5)),
            (Some(50), Some(20), Some(10), Some(20)),
            (Some(50), None, None, Some(50)),
            (None, None, Some(10), None),
        ] {
            let found = narrowed(&turns(change), &turns(own), &turns(general));
            assert_eq!(found, turns(expected));
        }
    }
}
