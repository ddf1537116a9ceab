//! How far an agent may go, as its definition says it. A limit that is not understood is an error:
//! it would hold nothing back.

use super::definition::Budget;
use super::field::Field;
use super::node::{Content, Node};
use super::problem::{Findings, quoted};
use super::values;
use crate::config::parse_duration;
use serde_json::Value;

/// A number of calls, at least one.
pub(crate) fn count(node: &Node, field: Field, findings: &mut Findings) -> Option<u32> {
    values::whole(node, field, (1, u64::from(u32::MAX)), findings).map(|count| count as u32)
}

pub(crate) fn read(node: &Node, findings: &mut Findings) -> Option<Budget> {
    let Content::Map(entries) = &node.content else {
        values::mismatch(node, Field::Budget, "a table such as {turns: 20, cost: 0.5}", findings);
        return None;
    };
    let mut budget = Budget::default();
    let mut seen = Vec::new();
    for (key, value) in entries {
        let name = key.name.replace(['-', '_'], "").to_lowercase();
        if seen.contains(&name) {
            let reason = format!("`budget` has {} twice; keep one of them", quoted(&key.name));
            findings.error(key.place, reason);
            continue;
        }
        let tokens =
            |findings: &mut Findings| values::whole(value, Field::Budget, (1, u64::MAX), findings);
        match name.as_str() {
            "tokens" => {
                budget.tokens = tokens(findings);
                let reason = "`tokens` holds for those sent and for those received, each by \
                              itself; their sum is not counted yet";
                findings.not_in_force(key.place, reason);
            }
            "inputtokens" => budget.input_tokens = tokens(findings),
            "outputtokens" => budget.output_tokens = tokens(findings),
            "toolcalls" => budget.tool_calls = count(value, Field::Budget, findings),
            "turns" => budget.turns = count(value, Field::Budget, findings),
            "cost" => budget.cost = cost(value, findings),
            "time" => budget.time = time(value, findings),
            _ => {
                let reason = format!(
                    "`budget` has {}: it can have tokens, inputTokens, outputTokens, cost, time, \
                     toolCalls and turns",
                    quoted(&key.name)
                );
                findings.error(key.place, reason);
            }
        }
        seen.push(name);
    }
    Some(budget)
}

fn cost(node: &Node, findings: &mut Findings) -> Option<f64> {
    let dollars = match &node.content {
        Content::Plain { value: Value::Number(number), .. } => number.as_f64(),
        Content::Text { text, .. } => text.trim().trim_start_matches('$').parse().ok(),
        _ => None,
    };
    let found = dollars.filter(|dollars| dollars.is_finite() && *dollars > 0.0);
    if found.is_none() {
        values::mismatch(node, Field::Budget, "a `cost` in dollars, more than 0", findings);
    }
    found
}

fn time(node: &Node, findings: &mut Findings) -> Option<String> {
    let text = node.text().map(str::trim).unwrap_or_default();
    match parse_duration(text) {
        Ok(_) => Some(text.to_owned()),
        Err(reason) => {
            findings.error(node.place, format!("`budget.time`: {reason}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::problem::Place;
    use serde_json::json;

    fn check(value: Value) -> Result<Budget, String> {
        let mut findings = Findings::default();
        let budget = read(&Node::of_json(Place::UNKNOWN, value), &mut findings);
        match findings.first_error() {
            Some(error) => Err(error.reason.clone()),
            None => Ok(budget.unwrap_or_default()),
        }
    }

    #[test]
    fn a_budget_is_read_whatever_its_keys_are_joined_by() {
        let budget = check(json!({
            "inputTokens": 1000, "output_tokens": 10, "cost": "$0.5", "time": "10m",
            "tool-calls": 7, "turns": "3"
        }));
        let expected = Budget {
            tokens: None,
            input_tokens: Some(1000),
            output_tokens: Some(10),
            cost: Some(0.5),
            time: Some("10m".to_owned()),
            tool_calls: Some(7),
            turns: Some(3),
        };
        assert_eq!(budget, Ok(expected));
    }

    #[test]
    fn a_limit_that_is_none_is_an_error() {
        for (value, says) in [
            (json!({"turn": 3}), "`budget` has `turn`"),
            (json!({"turns": 0}), "at least 1"),
            (json!({"turns": -1}), "whole number"),
            (json!({"cost": 0}), "more than 0"),
            (json!({"cost": "much"}), "more than 0"),
            (json!({"time": "soon"}), "`soon` is not a duration"),
            (json!({"time": true}), "not a duration"),
            (json!({"tokens": 5.5}), "whole number"),
            (json!({"turns": 3, "Turns": 9}), "twice"),
            (json!(5), "a table"),
            (json!([]), "a table"),
        ] {
            let reason = check(value).expect_err("refused");
            assert!(reason.contains(says), "{reason}");
        }
    }
}
