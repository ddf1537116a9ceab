//! Single values of a definition: words, numbers, lists of names. A value of the wrong kind is an
//! error or is read in the stricter way, never in a less strict one.

use super::field::Field;
use crate::error::quoted;
use crate::front_matter::node::{Content, Node, Style};
use crate::front_matter::problem::{Findings, Position};
use posse_protocol::Context;
use serde_json::Value;

/// A name in a list, and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) place: Position,
}

/// Reports that `node` is not a value for `field`.
pub(crate) fn mismatch(node: &Node, field: Field, wanted: &str, findings: &mut Findings) {
    let what = match node.text() {
        Some(text) => quoted(text),
        None => node.kind().to_owned(),
    };
    findings.error(node.place, format!("`{}` is {what}: give {wanted}", field.name()));
}

/// A text that is not empty.
pub(crate) fn text(node: &Node, field: Field, findings: &mut Findings) -> Option<String> {
    match node.text().map(str::trim) {
        Some("") | None => {
            mismatch(node, field, "a text", findings);
            None
        }
        Some(text) => Some(text.to_owned()),
    }
}

/// The value of one of `words`, compared without regard to case, `-` and `_`.
pub(crate) fn word<T: Copy>(
    node: &Node,
    field: Field,
    words: &[(&str, T)],
    findings: &mut Findings,
) -> Option<T> {
    let plain = |text: &str| text.trim().replace(['-', '_'], "").to_lowercase();
    let found = node.text().and_then(|text| {
        let wanted = plain(text);
        let word = words.iter().find(|(word, _)| plain(word) == wanted)?;
        Some((text, word))
    });
    match found {
        Some((written, (word, value))) => {
            if written != *word {
                let reason = format!("`{}` is {}, read as `{word}`", field.name(), quoted(written));
                findings.note(node.place, reason);
            }
            Some(*value)
        }
        None => {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            mismatch(node, field, &format!("one of {}", known.join(", ")), findings);
            None
        }
    }
}

/// True or false.
pub(crate) fn switch(node: &Node, field: Field, findings: &mut Findings) -> Option<bool> {
    match &node.content {
        Content::Plain { value: Value::Bool(value), .. } => Some(*value),
        Content::Text { .. } => word(node, field, &[("true", true), ("false", false)], findings),
        _ => {
            mismatch(node, field, "true or false", findings);
            None
        }
    }
}

/// A whole number from `least` to `most`.
pub(crate) fn whole(
    node: &Node,
    field: Field,
    (least, most): (u64, u64),
    findings: &mut Findings,
) -> Option<u64> {
    let number = match &node.content {
        Content::Plain { value: Value::Number(number), .. } => number.as_u64().or_else(|| {
            let exact = |number: &f64| number.fract() == 0.0 && (0.0..9e15).contains(number);
            number.as_f64().filter(exact).map(|number| number as u64)
        }),
        Content::Text { text, .. } => text.trim().parse().ok(),
        _ => None,
    };
    let found = number.filter(|number| (least..=most).contains(number));
    if found.is_none() {
        let wanted = if most >= u64::from(u32::MAX) {
            format!("a whole number, at least {least}")
        } else {
            format!("a whole number from {least} to {most}")
        };
        mismatch(node, field, &wanted, findings);
    }
    found
}

/// How much of a conversation a child takes over: a switch, or a number of turns.
pub(crate) fn fork(node: &Node, findings: &mut Findings) -> Option<Context> {
    let field = Field::ForkContext;
    let is_number = match &node.content {
        Content::Plain { value, .. } => value.is_number(),
        Content::Text { text, .. } => text.trim().parse::<u64>().is_ok(),
        _ => false,
    };
    if is_number {
        let turns = whole(node, field, (1, u64::from(u32::MAX)), findings)?;
        return Some(Context::ForkTurns(turns as u32));
    }
    let whole = switch(node, field, findings)?;
    Some(if whole { Context::Fork } else { Context::Fresh })
}

/// Names: a list, or a text with commas between them. Only texts can be names.
pub(crate) fn names(node: &Node, field: Field, findings: &mut Findings) -> Option<Vec<Name>> {
    let mut found = Vec::new();
    let nodes = match &node.content {
        Content::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
    for node in nodes {
        match &node.content {
            Content::Text { text, style } => split(text, *style, node.place, &mut found),
            _ => {
                mismatch(node, field, "names, as a list or with commas between them", findings);
                return None;
            }
        }
    }
    Some(joined(found))
}

/// The parts of `text` between commas outside of parentheses. Without a comma or parenthesis,
/// spaces separate names.
fn split(text: &str, style: Style, place: Position, found: &mut Vec<Name>) {
    let quote = u32::from(style != Style::Plain);
    let by_space = !text.contains([',', '(']);
    let mut depth = 0_u32;
    let mut start = 0;
    let mut push = |from: usize, to: usize| {
        let part = &text[from..to];
        let trimmed = part.trim();
        if !trimmed.is_empty() {
            let before = from + part.len() - part.trim_start().len();
            let column = match text.contains('\n') {
                false => place.column + quote + text[..before].chars().count() as u32,
                true => place.column,
            };
            let place =
                if place == Position::UNKNOWN { place } else { Position { column, ..place } };
            found.push(Name { text: trimmed.to_owned(), place });
        }
    };
    for (index, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            char if depth == 0 && (char == ',' || by_space && char.is_whitespace()) => {
                push(start, index);
                start = index + char.len_utf8();
            }
            _ => {}
        }
    }
    push(start, text.len());
}

/// Joins names that YAML split: `[Read, Task(explore, plan)]` has three elements in YAML.
fn joined(names: Vec<Name>) -> Vec<Name> {
    let is_open = |text: &str| text.matches('(').count() > text.matches(')').count();
    let mut whole: Vec<Name> = Vec::with_capacity(names.len());
    for name in names {
        match whole.last_mut().filter(|last| is_open(&last.text)) {
            Some(last) => last.text = format!("{}, {}", last.text, name.text),
            None => whole.push(name),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(value: Value) -> Node {
        Node::of_json(Position { line: 1, column: 8 }, value)
    }

    fn check_names(value: Value, expected: &[&str]) {
        let mut findings = Findings::default();
        let names = names(&node(value), Field::Tools, &mut findings).unwrap_or_default();
        let names: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
        assert_eq!(names, expected, "{findings:?}");
        assert_eq!(findings, Findings::default());
    }

    #[test]
    fn names_are_a_list_or_a_text_with_commas() {
        check_names(json!("Read, Grep,Bash"), &["Read", "Grep", "Bash"]);
        check_names(json!("Read Grep\tBash"), &["Read", "Grep", "Bash"]);
        check_names(json!(["Read", "Grep, List"]), &["Read", "Grep", "List"]);
        check_names(json!("Task(explore, plan), Read"), &["Task(explore, plan)", "Read"]);
        check_names(json!(["Task(explore", "plan)", "Read"]), &["Task(explore, plan)", "Read"]);
        check_names(json!("Bash(git diff:*)"), &["Bash(git diff:*)"]);
        check_names(json!(" , ,"), &[]);
        check_names(json!([]), &[]);
    }

    #[test]
    fn a_name_knows_its_character() {
        let mut findings = Findings::default();
        let plain = Node {
            place: Position { line: 3, column: 8 },
            content: Content::Text { text: "Réad, Raed".to_owned(), style: Style::Plain },
        };
        let names = names(&plain, Field::Tools, &mut findings).unwrap_or_default();
        assert_eq!(names[1].place, Position { line: 3, column: 14 });
    }

    #[test]
    fn what_is_no_name_is_an_error() {
        for value in [json!(5), json!(true), json!({"Read": true}), json!([["Read"]]), json!([1])] {
            let mut findings = Findings::default();
            assert_eq!(names(&node(value), Field::Tools, &mut findings), None);
            assert!(findings.first_error().is_some());
        }
    }

    #[test]
    fn numbers_are_whole_and_within_bounds() {
        let check = |value: Value, expected: Option<u64>| {
            let mut findings = Findings::default();
            let found = whole(&node(value.clone()), Field::MaxDepth, (0, 8), &mut findings);
            assert_eq!(found, expected, "{value}");
            assert_eq!(findings.first_error().is_none(), expected.is_some(), "{value}");
        };
        check(json!(8), Some(8));
        check(json!(2.0), Some(2));
        check(json!("3"), Some(3));
        for value in [json!(9), json!(-1), json!(1.9), json!("many"), json!(true), json!([1])] {
            check(value, None);
        }
    }

    #[test]
    fn a_fork_is_a_switch_or_a_number_of_turns() {
        let check = |value: Value, expected: Option<Context>| {
            assert_eq!(fork(&node(value), &mut Findings::default()), expected);
        };
        check(json!(true), Some(Context::Fork));
        check(json!("false"), Some(Context::Fresh));
        check(json!(5), Some(Context::ForkTurns(5)));
        check(json!(0), None);
        check(json!("all"), None);
    }
}
