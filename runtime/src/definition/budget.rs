//! The limits and the budget of an agent, according to its definition. A value that Posse does not
//! understand is an error: otherwise it would limit nothing.

use super::Measure;
use super::field::Field;
use super::values;
use crate::error::quoted;
use crate::front_matter::node::{Content, Node};
use crate::front_matter::problem::Findings;
use crate::limits::{parse_duration, parse_size};
use serde_json::Value;

/// A number of calls, at least one.
pub(crate) fn count(node: &Node, field: Field, findings: &mut Findings) -> Option<u32> {
    values::whole(node, field, (1, u64::from(u32::MAX)), findings).map(|count| count as u32)
}

/// Reads `limits` or `budget`, whichever `field` is.
pub(crate) fn read(node: &Node, field: Field, findings: &mut Findings) -> Option<Measure> {
    let Content::Map(entries) = &node.content else {
        values::mismatch(node, field, "a table such as {turns: 20, cost: 0.5}", findings);
        return None;
    };
    let table = field.name();
    let mut measure = Measure::default();
    let mut seen = Vec::new();
    for (key, value) in entries {
        let mut name = key.name.replace(['-', '_'], "").to_lowercase();
        if name == "usd" {
            name = "cost".to_owned();
        }
        if seen.contains(&name) {
            let reason = format!("`{table}` has {} twice; keep one of them", quoted(&key.name));
            findings.error(key.place, reason);
            continue;
        }
        let tokens = |findings: &mut Findings| values::whole(value, field, (1, u64::MAX), findings);
        match name.as_str() {
            "tokens" => {
                measure.tokens = tokens(findings);
                let reason = "`tokens` holds for those sent and for those received, each by \
                              itself; their sum is not counted yet";
                findings.not_in_force(key.place, reason);
            }
            "inputtokens" => measure.input_tokens = tokens(findings),
            "outputtokens" => measure.output_tokens = tokens(findings),
            "toolcalls" => measure.tool_calls = count(value, field, findings),
            "turns" => measure.turns = count(value, field, findings),
            "cost" => measure.cost = cost(value, field, findings),
            "time" => measure.time = parsed(value, field, "time", parse_duration, findings),
            "written" if field == Field::Limits => {
                measure.written = parsed(value, field, "written", parse_size, findings);
            }
            "children" if field == Field::Budget => {
                measure.children = values::whole(value, field, (0, u64::MAX), findings);
            }
            _ => {
                let more = if field == Field::Budget { "children" } else { "written" };
                let reason = format!(
                    "`{table}` has {}: it can have tokens, inputTokens, outputTokens, cost, time, \
                     {more}, toolCalls and turns",
                    quoted(&key.name)
                );
                findings.error(key.place, reason);
            }
        }
        seen.push(name);
    }
    Some(measure)
}

fn cost(node: &Node, field: Field, findings: &mut Findings) -> Option<f64> {
    let dollars = match &node.content {
        Content::Plain { value: Value::Number(number), .. } => number.as_f64(),
        Content::Text { text, .. } => text.trim().trim_start_matches('$').parse().ok(),
        _ => None,
    };
    let found = dollars.filter(|dollars| dollars.is_finite() && *dollars > 0.0);
    if found.is_none() {
        values::mismatch(node, field, "a `cost` in dollars, more than 0", findings);
    }
    found
}

/// The text of the key `name`, if `parse` accepts it.
fn parsed(
    node: &Node,
    field: Field,
    name: &str,
    parse: fn(&str) -> Result<u64, String>,
    findings: &mut Findings,
) -> Option<String> {
    let text = node.text().map(str::trim).unwrap_or_default();
    match parse(text) {
        Ok(_) => Some(text.to_owned()),
        Err(reason) => {
            findings.error(node.place, format!("`{}.{name}`: {reason}", field.name()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_matter::problem::Position;
    use serde_json::json;

    fn check(value: Value) -> Result<Measure, String> {
        let mut findings = Findings::default();
        let node = Node::of_json(Position::UNKNOWN, value);
        let budget = read(&node, Field::Budget, &mut findings);
        match findings.first_error() {
            Some(error) => Err(error.reason.clone()),
            None => Ok(budget.unwrap_or_default()),
        }
    }

    #[test]
    fn a_budget_is_read_whatever_its_keys_are_joined_by() {
        let budget = check(json!({
            "inputTokens": 1000, "output_tokens": 10, "cost": "$0.5", "time": "10m",
            "tool-calls": 7, "turns": "3", "Children": 0
        }));
        let expected = Measure {
            tokens: None,
            input_tokens: Some(1000),
            output_tokens: Some(10),
            cost: Some(0.5),
            time: Some("10m".to_owned()),
            tool_calls: Some(7),
            turns: Some(3),
            children: Some(0),
            written: None,
        };
        assert_eq!(budget, Ok(expected));
    }

    #[test]
    fn limits_count_no_children() {
        let mut findings = Findings::default();
        let node = Node::of_json(Position::UNKNOWN, json!({"children": 3}));
        read(&node, Field::Limits, &mut findings);
        let reason = findings.first_error().map(|error| error.reason.as_str());
        assert!(reason.is_some_and(|reason| reason.contains("`limits` has `children`")));
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
            (json!({"cost": 3, "usd": 9}), "twice"),
            (json!(5), "a table"),
            (json!([]), "a table"),
        ] {
            let reason = check(value).expect_err("refused");
            assert!(reason.contains(says), "{reason}");
        }
    }
}
