//! Parses JSON into nodes with places, for the map of agents that the command line gives.

use crate::front_matter::node::{Content, Key, Node};
use crate::front_matter::problem::{Finding, Level, Position};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// How many levels of values get places of their own. A deeper value has the place of its parent.
const PLACED: usize = 4;

/// Reads a map. Returns its entries in order, including duplicates.
pub(crate) fn read(text: &str) -> Result<Vec<(Key, Node)>, Finding> {
    let wrong = |error: serde_json::Error| {
        let place = Position { line: error.line() as u32, column: error.column() as u32 };
        finding(place, format!("not valid JSON: {}", without_place(&error)))
    };
    let whole: &RawValue = serde_json::from_str(text).map_err(wrong)?;
    let mut cursor = Cursor { text, offset: 0, place: Position { line: 1, column: 1 } };
    let node = cursor.node(whole, 0).map_err(|place| {
        finding(place, "this is nested too deeply; agents need no more than a few levels")
    })?;
    match node.content {
        Content::Map(entries) => Ok(entries),
        _ => Err(finding(
            node.place,
            format!(
                "this is {}: give a map of agents, {{\"name\": {{\"description\": …, \"prompt\": …}}}}",
                node.kind()
            ),
        )),
    }
}

fn finding(place: Position, reason: impl Into<String>) -> Finding {
    Finding { place, level: Level::Error, reason: reason.into() }
}

fn without_place(error: &serde_json::Error) -> String {
    let reason = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    reason.trim_end_matches(&place).to_owned()
}

/// The position up to which lines and columns are counted. Values must be visited in text order.
struct Cursor<'t> {
    text: &'t str,
    offset: usize,
    place: Position,
}

impl<'t> Cursor<'t> {
    /// The node of `raw`, or the place where it is nested too deeply.
    fn node(&mut self, raw: &'t RawValue, level: usize) -> Result<Node, Position> {
        let place = self.advance(raw);
        let first = raw.get().bytes().next();
        let content = match first {
            Some(b'{') if level < PLACED => {
                let Entries(entries) = serde_json::from_str(raw.get()).map_err(|_| place)?;
                let mut map = Vec::with_capacity(entries.len());
                for (name, value) in entries {
                    let node = self.node(value, level + 1)?;
                    map.push((Key { place: node.place, name }, node));
                }
                Content::Map(map)
            }
            Some(b'[') if level < PLACED => {
                let values: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| place)?;
                let nodes = values.into_iter().map(|value| self.node(value, level + 1));
                Content::List(nodes.collect::<Result<_, _>>()?)
            }
            _ => {
                let value: Value = serde_json::from_str(raw.get()).map_err(|_| place)?;
                return Ok(Node::of_json(place, value));
            }
        };
        Ok(Node { place, content })
    }

    /// Moves to the start of `raw`, a slice of the text, and returns its place.
    fn advance(&mut self, raw: &RawValue) -> Position {
        let start = (raw.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        if let Some(passed) = self.text.get(self.offset..start) {
            for char in passed.chars() {
                match char {
                    '\n' => self.place = Position { line: self.place.line + 1, column: 1 },
                    _ => self.place.column += 1,
                }
            }
            self.offset = start;
        }
        self.place
    }
}

/// The entries of a map, in order.
struct Entries<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        from.deserialize_map(EntriesVisitor)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_their_places_and_their_doubles() {
        let entries =
            read("{\n  \"a\": {\"x\": 1},\n  \"b\": [\"ü\", true], \"a\": null\n}").unwrap();
        let names: Vec<&str> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "a"]);
        let Content::List(list) = &entries[1].1.content else { panic!() };
        assert_eq!(list[1].place, Position { line: 3, column: 14 });
    }

    #[test]
    fn what_is_no_map_of_agents_is_refused_with_its_place() {
        for (text, reason) in [
            ("[1]", "this is a list"),
            ("{\"a\": }", "not valid JSON: expected value"),
            ("{} {}", "not valid JSON: trailing characters"),
            ("", "not valid JSON: EOF"),
        ] {
            let finding = read(text).unwrap_err();
            assert!(finding.reason.contains(reason), "{finding:?}");
            assert_eq!(finding.place.line, 1, "{finding:?}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_overflows_nothing() {
        for open in ["[", "{\"a\":"] {
            let close = if open == "[" { "]" } else { "}" };
            let deep = format!("{{\"a\": {}1{}}}", open.repeat(50_000), close.repeat(50_000));
            assert!(read(&deep).unwrap_err().reason.contains("nested too deeply"));
        }
    }
}
