//! Reads front matter that is not valid YAML line by line: each known key with the lines up to the
//! next. Text may be anything. A field that grants or denies must be clear, or it is an error.
//!
//! Never guesses in favour of the agent: a key that restricts counts in any place, and a key that
//! only looks like one is passed on as unknown, to be refused.

use super::field::{self, Field, Shape};
use crate::front_matter::node::{Content, Key, Node, Style};
use crate::front_matter::problem::{Findings, Position};
use crate::front_matter::yaml::{self, YamlError};

/// A key and the lines up to the next.
struct Chunk<'t> {
    key: &'t str,
    /// `None` if the key is not a field.
    field: Option<Field>,
    place: Position,
    /// The rest of the line after the colon.
    rest: &'t str,
    /// The indentation of the key.
    indent: usize,
    /// The lines after it.
    more: Vec<&'t str>,
}

/// Reads `head`, which begins at line `first_line`. `wrong` says why it is not YAML.
pub(crate) fn read(
    head: &str,
    first_line: u32,
    wrong: (Position, String),
    findings: &mut Findings,
) -> Node {
    let (place, reason) = wrong;
    let chunks = chunks(head, first_line, findings);
    findings.note(
        place,
        format!("not valid YAML ({reason}); it is read line by line, each key up to the next"),
    );
    let entries = chunks.into_iter().filter_map(|chunk| {
        let key = Key { place: chunk.place, name: chunk.key.to_owned() };
        Some((key, chunk.value(findings)?))
    });
    let entries = entries.collect();
    Node { place: Position { line: first_line, column: 1 }, content: Content::Map(entries) }
}

/// Splits a line that begins with a key: the indentation, the key, and the text after the colon.
fn key_line(line: &str) -> Option<(usize, &str, &str)> {
    let trimmed = line.trim_start_matches([' ', '\t']);
    let indent = line.len() - trimmed.len();
    let (key, rest) = trimmed.split_once(':')?;
    let key = key.trim_end().trim_matches(['"', '\'']);
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let is_key = key.starts_with(|char: char| char.is_ascii_alphabetic())
        && key.chars().all(is_plain)
        // Without a space after the colon, only the name of a field is a key.
        && (rest.is_empty() || rest.starts_with([' ', '\t']) || Field::of(key).is_some());
    is_key.then_some((indent, key, rest))
}

fn chunks<'t>(head: &'t str, first_line: u32, findings: &mut Findings) -> Vec<Chunk<'t>> {
    let keys: Vec<(usize, &str)> = head
        .lines()
        .filter_map(|line| key_line(line).map(|(indent, key, _)| (indent, key)))
        .collect();
    let base = keys.first().map_or(0, |(indent, _)| *indent);
    let at_base: Vec<Field> = keys
        .iter()
        .filter(|(indent, _)| *indent <= base)
        .filter_map(|(_, key)| Field::of(key))
        .collect();
    let mut chunks: Vec<Chunk<'t>> = Vec::new();
    for (index, line) in head.lines().enumerate() {
        let last = chunks.last_mut();
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            if let Some(chunk) = last {
                chunk.more.push(line);
            }
            continue;
        }
        let shape = last.as_ref().and_then(|chunk| chunk.field).map(Field::shape);
        let begins = key_line(line).filter(|(indent, key, _)| match Field::of(key) {
            Some(_) if *indent <= base => true,
            // Indented too far; but it restricts, and no other line sets the field.
            Some(field) => {
                field.narrows() && shape != Some(Shape::Table) && !at_base.contains(&field)
            }
            None if *indent > base => false,
            None => shape != Some(Shape::Prose) || field::seems_to_restrict(key),
        });
        let place = Position { line: first_line + index as u32, column: 1 };
        match (begins, last) {
            (Some((indent, key, rest)), _) => {
                let place = Position { column: indent as u32 + 1, ..place };
                let field = Field::of(key);
                chunks.push(Chunk { key, field, place, rest, indent, more: Vec::new() });
            }
            (None, Some(chunk)) => chunk.more.push(line),
            (None, None) => {
                findings.error(place, "this line belongs to no key; write `key: value`");
            }
        }
    }
    chunks
}

impl Chunk<'_> {
    /// The value, if it is clear.
    fn value(&self, findings: &mut Findings) -> Option<Node> {
        let place =
            Position { column: self.place.column + self.key.len() as u32 + 2, ..self.place };
        let Some(field) = self.field else {
            return Some(Node { place, content: Content::Null });
        };
        let (at, reason) = match self.as_yaml() {
            Ok(node) => return Some(node),
            Err(YamlError::Refused { place, reason }) => {
                findings.error(place, reason);
                return None;
            }
            Err(YamlError::Syntax { place, reason }) => (place, reason),
        };
        let content = match field.shape() {
            Shape::Prose => Some(self.prose()),
            Shape::Words => self.words(place),
            Shape::Table => None,
        };
        if content.is_none() {
            findings.error(at, format!("`{}` cannot be read: {reason}", field.name()));
        }
        Some(Node { place, content: content? })
    }

    /// The chunk read as YAML on its own. Tabs in the indentation count as spaces.
    fn as_yaml(&self) -> Result<Node, YamlError> {
        let mut text = format!("value:{}\n", self.rest);
        for line in &self.more {
            let bare = line.trim_start_matches([' ', '\t']);
            let indent: usize = line[..line.len() - bare.len()]
                .chars()
                .map(|char| if char == '\t' { 2 } else { 1 })
                .sum();
            text.push_str(&" ".repeat(indent.saturating_sub(self.indent)));
            text.push_str(bare);
            text.push('\n');
        }
        let no_value =
            || YamlError::Syntax { place: self.place, reason: "this is not one value".to_owned() };
        match yaml::read(&text, self.place.line)?.content {
            Content::Map(mut entries) if entries.len() == 1 => {
                let (_, mut node) = entries.pop().ok_or_else(no_value)?;
                if node.place.line == self.place.line {
                    // The text has `value` in place of the key.
                    let moved = self.key.len() + self.indent;
                    node.place.column += moved as u32;
                    node.place.column = node.place.column.saturating_sub("value".len() as u32);
                }
                Ok(node)
            }
            _ => Err(no_value()),
        }
    }

    /// The chunk as running text.
    fn prose(&self) -> Content {
        let first = self.rest.trim();
        let first = if matches!(first, "|" | ">" | "|-" | ">-" | "|+" | ">+") { "" } else { first };
        let mut lines: Vec<&str> = vec![first];
        lines.extend(self.more.iter().map(|line| line.trim()));
        let text = lines.join("\n");
        let text = text.trim();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let text = inner.map_or_else(|| text.to_owned(), |inner| inner.replace("\\\"", "\""));
        Content::Text { text, style: Style::Plain }
    }

    /// The chunk as names: in one line, in brackets, or in lines that begin with `-`.
    fn words(&self, place: Position) -> Option<Content> {
        let field = self.field?;
        let lists = [Field::Tools, Field::DisallowedTools, Field::Agents, Field::Skills];
        let said = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let more: Vec<&str> = self.more.iter().filter(said).map(|line| line.trim()).collect();
        let first = uncommented(self.rest);
        if !lists.contains(&field) || first.is_empty() == more.is_empty() {
            return None;
        }
        let item = |text: &str| {
            let text = uncommented(text).trim_matches(['"', '\'']).trim().to_owned();
            Node { place, content: Content::Text { text, style: Style::Plain } }
        };
        if let Some(inner) = first.strip_prefix('[') {
            let inner = inner.strip_suffix(']')?;
            let items = inner.split(',').filter(|part| !part.trim().is_empty());
            return Some(Content::List(items.map(item).collect()));
        }
        if more.is_empty() {
            return (!first.starts_with(['{', '"', '\'', '&', '!', '|', '>', '%']))
                .then(|| Content::Text { text: first.to_owned(), style: Style::Plain });
        }
        let items: Option<Vec<Node>> =
            more.iter().map(|line| line.strip_prefix("- ").map(item)).collect();
        items.map(Content::List)
    }
}

/// `text` without a comment at its end.
fn uncommented(text: &str) -> &str {
    let text = text.trim();
    if text.starts_with('#') {
        return "";
    }
    text.split_once(" #").map_or(text, |(before, _)| before).trim_end()
}
