//! Budgets in settings files and on the command line: what a root and its subagents may spend.

use super::Setting;
use super::table::settings;
use super::value::{Elsewhere, dollars};
use posse_protocol::{Budget, Extra, Usd};

/// How many runs may be unfinished below a root by default: enough for any reasonable use, and it
/// stops a tree that grows by mistake.
pub const DEFAULT_CHILDREN: u64 = 10_000;

settings! {
    /// The budget of roots, and where each part came from.
    pub struct BudgetSettings, "budget.", from struct FileBudget {
        /// How many model calls they may make.
        turns: Setting<Option<u64>> = None, Lower, Anyone;
        /// How many tool calls they may make.
        tool_calls | "toolCalls": Setting<Option<u64>> = None, Lower, Anyone;
        /// How many tokens they may send.
        input_tokens | "inputTokens": Setting<Option<u64>> = None, Lower, Anyone;
        /// How many tokens they may receive.
        output_tokens | "outputTokens": Setting<Option<u64>> = None, Lower, Anyone;
        /// Sets `input_tokens` and `output_tokens`, unless you set them separately.
        tokens: Elsewhere<u64>, Elsewhere, Anyone;
        /// How many dollars they may cost; more than 0.
        cost | "usd": Setting<Option<Usd>> = None, Lower, Anyone;
        /// How many runs below the root may be unfinished at the same time.
        children: Setting<Option<u64>> = Some(DEFAULT_CHILDREN), Lower, Anyone;
    }
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
}

impl FileBudget {
    /// Copies `tokens` to the keys that it sets.
    pub(super) fn settle(&mut self) {
        self.input_tokens = self.input_tokens.or(self.tokens);
        self.output_tokens = self.output_tokens.or(self.tokens);
    }
}

/// Parses a budget like `cost=1.50,turns=200`.
///
/// # Errors
/// When a part is unknown, is there twice, or has no number.
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
                let cost = dollars(cost).map_err(|reason| format!("`cost`{reason}"))?;
                if budget.cost.replace(cost).is_some() {
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
