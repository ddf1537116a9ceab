//! Budgets in settings files and on the command line: how much a root and everything below it may
//! spend together.

use super::{Origin, Setting};
use posse_protocol::{Budget, Extra, Usd};
use serde::Deserialize;

/// Runs that may be at work below a root when nobody says otherwise: enough for any sound use, and
/// an end to a tree that grows by mistake.
pub const DEFAULT_CHILDREN: u64 = 10_000;

/// The budget of roots, and where each part came from.
#[derive(Clone, Debug)]
pub struct BudgetSettings {
    /// Tokens sent.
    pub input_tokens: Setting<Option<u64>>,
    /// Tokens received.
    pub output_tokens: Setting<Option<u64>>,
    /// Money.
    pub cost: Setting<Option<Usd>>,
    /// Model calls.
    pub turns: Setting<Option<u64>>,
    /// Tool calls.
    pub tool_calls: Setting<Option<u64>>,
    /// Runs below that have not ended.
    pub children: Setting<Option<u64>>,
}

impl BudgetSettings {
    /// The budget without its origins.
    pub fn budget(&self) -> Budget {
        Budget {
            input_tokens: self.input_tokens.value,
            output_tokens: self.output_tokens.value,
            cost: self.cost.value,
            turns: self.turns.value,
            tool_calls: self.tool_calls.value,
            children: self.children.value,
            extra: Extra::default(),
        }
    }

    /// Nothing but a number of runs is limited.
    pub(super) fn usual() -> Self {
        BudgetSettings {
            input_tokens: Setting::default(None),
            output_tokens: Setting::default(None),
            cost: Setting::default(None),
            turns: Setting::default(None),
            tool_calls: Setting::default(None),
            children: Setting::default(Some(DEFAULT_CHILDREN)),
        }
    }

    /// Takes over what a file says: all of the user's, of a project's what is stricter.
    pub(super) fn set(&mut self, budget: Budget, origin: &Origin) {
        fn put<T: PartialOrd>(to: &mut Setting<Option<T>>, value: Option<T>, origin: &Origin) {
            match origin {
                Origin::Project(_) => to.narrow(value, origin),
                _ => to.set_some(value, origin),
            }
        }
        put(&mut self.input_tokens, budget.input_tokens, origin);
        put(&mut self.output_tokens, budget.output_tokens, origin);
        put(&mut self.cost, budget.cost, origin);
        put(&mut self.turns, budget.turns, origin);
        put(&mut self.tool_calls, budget.tool_calls, origin);
        put(&mut self.children, budget.children, origin);
    }
}

/// `[budget]` as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileBudget {
    #[serde(alias = "inputTokens")]
    input_tokens: Option<u64>,
    #[serde(alias = "outputTokens")]
    output_tokens: Option<u64>,
    tokens: Option<u64>,
    #[serde(alias = "usd")]
    cost: Option<f64>,
    turns: Option<u64>,
    #[serde(alias = "toolCalls")]
    tool_calls: Option<u64>,
    children: Option<u64>,
}

impl FileBudget {
    pub(super) fn check(self) -> Result<Budget, String> {
        let cost = self.cost.map(dollars).transpose();
        Ok(Budget {
            input_tokens: self.input_tokens.or(self.tokens),
            output_tokens: self.output_tokens.or(self.tokens),
            cost: cost.map_err(|reason| format!("in [budget]: {reason}"))?,
            turns: self.turns,
            tool_calls: self.tool_calls,
            children: self.children,
            extra: Extra::default(),
        })
    }
}

fn dollars(amount: f64) -> Result<Usd, String> {
    match amount.is_finite() && amount > 0.0 {
        true => Ok(Usd::from_dollars(amount)),
        false => Err(format!("`cost` is {amount}: give dollars, more than 0")),
    }
}

/// A budget like `cost=1.50,turns=200`.
///
/// # Errors
/// When a part is none, stands there twice, or has no number.
pub fn parse_budget(text: &str) -> Result<Budget, String> {
    let mut budget = Budget::default();
    for part in text.split(',').map(str::trim) {
        let Some((name, amount)) = part.split_once('=') else {
            return Err(format!("`{part}` is not a budget key: write it like cost=1.50"));
        };
        let (name, amount) = (name.trim(), amount.trim());
        let number = || {
            let number = amount.parse::<u64>();
            number.map_err(|_| format!("`{name}` is `{amount}`: give a whole number"))
        };
        let fields = match name.replace(['-', '_'], "").to_lowercase().as_str() {
            "cost" | "usd" => {
                let Ok(cost) = amount.trim_start_matches('$').parse() else {
                    return Err(format!("`cost` is `{amount}`: give dollars, such as 0.50"));
                };
                if budget.cost.replace(dollars(cost)?).is_some() {
                    return Err(format!("`{name}` stands there twice; keep one"));
                }
                continue;
            }
            "inputtokens" => [Some(&mut budget.input_tokens), None],
            "outputtokens" => [Some(&mut budget.output_tokens), None],
            "tokens" => [Some(&mut budget.input_tokens), Some(&mut budget.output_tokens)],
            "turns" => [Some(&mut budget.turns), None],
            "toolcalls" => [Some(&mut budget.tool_calls), None],
            "children" => [Some(&mut budget.children), None],
            _ => {
                return Err(format!(
                    "`{name}` is not a budget key: it can have cost, turns, tool_calls, \
                     tokens, input_tokens, output_tokens and children"
                ));
            }
        };
        for field in fields.into_iter().flatten() {
            if field.replace(number()?).is_some() {
                return Err(format!("`{name}` stands there twice; keep one"));
            }
        }
    }
    Ok(budget)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_read_as_people_write_it() {
        let budget = parse_budget("cost=$1.5, turns=200,tool-calls=7,children=0").unwrap();
        let expected = Budget {
            cost: Some(Usd::from_dollars(1.5)),
            turns: Some(200),
            tool_calls: Some(7),
            children: Some(0),
            ..Budget::default()
        };
        assert_eq!(budget, expected);
        let both = parse_budget("tokens=9").unwrap();
        assert_eq!((both.input_tokens, both.output_tokens), (Some(9), Some(9)));
        for (text, says) in [
            ("", "write it like"),
            ("turns", "write it like"),
            ("turns=many", "`turns` is `many`"),
            ("cost=0", "more than 0"),
            ("cost=nan", "more than 0"),
            ("time=5m", "`time` is not a budget key"),
            ("turns=1,Turns=2", "twice"),
            ("tokens=1,input_tokens=2", "twice"),
        ] {
            let reason = parse_budget(text).unwrap_err();
            assert!(reason.contains(says), "{text}: {reason}");
        }
    }
}
