//! Reads front matter of a skill that is not valid YAML, line by line: each known key up to the
//! next. The usual cause is a description with a colon.

use super::reading::Key;
use crate::front_matter::node::{self, Content, Node, Style};
use crate::front_matter::problem::{Findings, Position};
use crate::front_matter::yaml;

/// Reads `head`, which begins at line `first_line` and is invalid YAML because of `wrong`.
pub(crate) fn read(
    head: &str,
    first_line: u32,
    wrong: (Position, &str),
    findings: &mut Findings,
) -> Node {
    let (place, reason) = wrong;
    findings.note(
        place,
        format!("not valid YAML ({reason}); it is read line by line, each key up to the next"),
    );
    let mut entries: Vec<(node::Key, Vec<&str>)> = Vec::new();
    for (index, line) in head.lines().enumerate() {
        match (key_line(line), entries.last_mut()) {
            (Some((key, rest)), _) => {
                let place = Position { line: first_line + index as u32, column: 1 };
                entries.push((node::Key { place, name: key.to_owned() }, vec![rest]));
            }
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    let entry = |(key, lines): (node::Key, Vec<&str>)| {
        let value = value(&key, &lines);
        (key, value)
    };
    let content = Content::Map(entries.into_iter().map(entry).collect());
    Node { place: Position { line: first_line, column: 1 }, content }
}

/// Splits a line that begins with a key of a skill into the key and the text after the colon.
fn key_line(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let is_key = (rest.is_empty() || rest.starts_with([' ', '\t'])) && Key::of(key).is_some();
    is_key.then_some((key, rest))
}

/// Reads the value in `lines`: as YAML if it is valid by itself, else as plain text.
fn value(key: &node::Key, lines: &[&str]) -> Node {
    let place = Position { column: key.name.len() as u32 + 3, ..key.place };
    let alone = format!("value:{}\n", lines.join("\n"));
    if let Ok(Node { content: Content::Map(mut entries), .. }) = yaml::read(&alone, 1)
        && entries.len() == 1
        && let Some((_, node)) = entries.pop()
    {
        return Node { place, content: node.content };
    }
    let words = lines.iter().flat_map(|line| line.split_whitespace());
    let text = words.collect::<Vec<_>>().join(" ");
    Node { place, content: Content::Text { text, style: Style::Plain } }
}
