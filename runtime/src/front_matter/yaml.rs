//! Parses YAML into nodes, within strict limits: a definition is small and needs no aliases.

use super::node::{Content, Key, Node, Style};
use super::problem::Position;
use crate::error::quoted;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, Options, Spanned};
use std::fmt;

/// The maximum number of values in a front matter.
const NODES: usize = 4_000;
/// The maximum number of aliases, and of values that they expand to.
const ALIASES: usize = 16;
const REPLAYED: usize = 2_000;
const DEPTH: usize = 32;

/// Why a text cannot be read.
#[derive(Debug)]
pub(crate) enum YamlError {
    /// It is not valid YAML.
    Syntax { place: Position, reason: String },
    /// It is YAML that must not be read, not even line by line.
    Refused { place: Position, reason: String },
}

/// Reads `text`, whose first line is line `first_line` of its file.
pub(crate) fn read(text: &str, first_line: u32) -> Result<Node, YamlError> {
    let spanned: Spanned<Raw> = serde_saphyr::from_str_with_options(text, options())
        .map_err(|error| explain(&error, first_line))?;
    Ok(node(spanned, text, first_line))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: NODES,
            max_events: 3 * NODES,
            max_aliases: ALIASES,
            max_anchors: ALIASES,
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
            max_documents: 1,
            max_recorded_anchor_events: REPLAYED,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: REPLAYED,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}

fn explain(error: &Error, first_line: u32) -> YamlError {
    let error = error.without_snippet();
    let location = error.location();
    let place = location.map_or(Position::UNKNOWN, |location| place(&location, first_line));
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let which = key.as_ref().map_or_else(String::new, |key| format!(" {}", quoted(key)));
            let reason = format!("the key{which} stands there twice; keep one of them");
            YamlError::Refused { place, reason }
        }
        Error::MergeKeyNotAllowed { .. } => {
            let reason = "`<<` is not read here; write the keys themselves".to_owned();
            YamlError::Refused { place, reason }
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => YamlError::Refused {
            place,
            reason: format!(
                "it has too many values, levels, documents or aliases: at most {NODES} values, \
                 {DEPTH} levels, one document and {ALIASES} aliases are read"
            ),
        },
        error => {
            let mut reason = error.to_string();
            if let Some(location) = location {
                let where_it_is =
                    format!(" at line {}, column {}", location.line(), location.column());
                reason = reason.trim_end_matches(&where_it_is).to_owned();
            }
            YamlError::Syntax { place, reason }
        }
    }
}

fn place(location: &Location, first_line: u32) -> Position {
    match location.line() as u32 {
        0 => Position::UNKNOWN,
        line => Position { line: line + first_line - 1, column: location.column() as u32 },
    }
}

/// A value as the parser returns it.
enum Raw {
    Null,
    Plain(Value),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn node(spanned: Spanned<Raw>, text: &str, first_line: u32) -> Node {
    let (location, defined) = (spanned.referenced, spanned.defined);
    let written = || written(&defined, text).unwrap_or_default();
    let content = match spanned.value {
        Raw::Null => Content::Null,
        Raw::Text(value) => Content::Text { style: style(written()), text: value },
        Raw::Plain(value) => Content::Plain { written: written().to_owned(), value },
        Raw::List(values) => {
            Content::List(values.into_iter().map(|value| node(value, text, first_line)).collect())
        }
        Raw::Map(entries) => {
            let entry = |(key, value): (Spanned<String>, Spanned<Raw>)| {
                let place = place(&key.referenced, first_line);
                (Key { place, name: key.value }, node(value, text, first_line))
            };
            Content::Map(entries.into_iter().map(entry).collect())
        }
    };
    Node { place: place(&location, first_line), content }
}

fn style(written: &str) -> Style {
    match written.bytes().next() {
        Some(b'"') => Style::Escaped,
        Some(b'\'') => Style::Quoted,
        _ => Style::Plain,
    }
}

/// The part of `text` at `location`.
fn written<'t>(location: &Location, text: &'t str) -> Option<&'t str> {
    let span = location.span();
    let start = span.byte_offset()? as usize;
    let end = start.checked_add(span.byte_len()? as usize)?;
    text.get(start..end)
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Raw, D::Error> {
        Raw::deserialize(from)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Plain(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn refusal(text: &str) -> (Position, String) {
        match read(text, 2).unwrap_err() {
            YamlError::Refused { place, reason } => (place, reason),
            YamlError::Syntax { reason, .. } => panic!("only no YAML: {reason}"),
        }
    }

    #[test]
    fn values_know_their_places_and_their_spelling() {
        let node = read("name: 1.10\ntools:\n  - Read\n", 2).unwrap();
        let Content::Map(entries) = &node.content else { panic!("{node:?}") };
        assert_eq!(entries[0].1.text(), Some("1.10"));
        let Content::List(tools) = &entries[1].1.content else { panic!("{node:?}") };
        assert_eq!(tools[0].place, Position { line: 4, column: 5 });
        assert_eq!(entries[1].0.place, Position { line: 3, column: 1 });
    }

    #[test]
    fn a_bomb_of_aliases_is_refused_at_once() {
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for pair in "abcdefghi".as_bytes().windows(2) {
            let (from, to) = (pair[0] as char, pair[1] as char);
            let aliases = vec![format!("*{from}"); 9].join(",");
            bomb.push_str(&format!("{to}: &{to} [{aliases}]\n"));
        }
        let began = Instant::now();
        let (_, reason) = refusal(&bomb);
        assert!(reason.contains("aliases"), "{reason}");
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[test]
    fn many_values_and_deep_nesting_are_refused_at_once() {
        let began = Instant::now();
        let wide = format!("a: [{}]", "x,".repeat(5_000));
        assert!(refusal(&wide).1.contains("too many values"));
        assert!(read(&"[".repeat(60_000), 1).is_err());
        assert!(read(&"- ".repeat(30_000), 1).is_err());
        assert!(read(&"{a: ".repeat(15_000), 1).is_err());
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }

    #[test]
    fn a_key_that_stands_there_twice_is_refused_with_its_place() {
        let (place, reason) = refusal("tools: Read\ntools: Bash\n");
        assert_eq!(place, Position { line: 3, column: 1 });
        assert!(reason.contains("the key `tools` stands there twice"), "{reason}");
    }

    #[test]
    fn merge_keys_and_second_documents_are_refused() {
        assert!(refusal("<<: {tools: Bash}\n").1.contains("`<<`"));
        assert!(refusal("a: 1\n...\n---\nb: 2\n").1.contains("one document"));
    }

    #[test]
    fn what_is_no_yaml_says_so_without_repeating_its_place() {
        let YamlError::Syntax { place, reason } = read("a: b: c\n", 2).unwrap_err() else {
            panic!("refused");
        };
        assert_eq!(place.line, 2);
        assert_eq!(reason, "mapping values are not allowed in this context");
    }
}
