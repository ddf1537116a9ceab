//! Text with places that the request fills in: `{{last_user}}`, `{{last_tool_result}}`,
//! `{{last_run}}` (the id that stands as `run="…"` in the last tool result) and `{{turn}}`. Anything else in braces stays as it is written.

use crate::ask::Ask;
use crate::json::push_escaped;

/// A text, parsed once when the script is built.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
    quoting: Quoting,
}

#[derive(Clone, Debug)]
enum Piece {
    Literal(String),
    LastUser,
    LastToolResult,
    LastRun,
    Turn,
}

/// How what is filled in must be written.
#[derive(Clone, Copy, Debug)]
enum Quoting {
    Plain,
    /// The template is JSON text and its places stand inside strings.
    InsideJsonString,
}

const PLACES: [(&str, Piece); 4] = [
    ("{{last_user}}", Piece::LastUser),
    ("{{last_tool_result}}", Piece::LastToolResult),
    ("{{last_run}}", Piece::LastRun),
    ("{{turn}}", Piece::Turn),
];

impl Template {
    pub(crate) fn plain(text: &str) -> Self {
        Template { pieces: split(text), quoting: Quoting::Plain }
    }

    /// A template of a JSON document. Braces need no escape in JSON, so the places in its strings
    /// are found in its text.
    pub(crate) fn json(document: &serde_json::Value) -> Self {
        Template { pieces: split(&document.to_string()), quoting: Quoting::InsideJsonString }
    }

    /// A template of text that is meant to be JSON, whether it is or not.
    pub(crate) fn json_text(text: &str) -> Self {
        Template { pieces: split(text), quoting: Quoting::InsideJsonString }
    }

    /// The text it was made from.
    pub(crate) fn source(&self) -> String {
        let name = |piece: &Piece| match piece {
            Piece::Literal(text) => text.clone(),
            Piece::LastUser => "{{last_user}}".to_owned(),
            Piece::LastToolResult => "{{last_tool_result}}".to_owned(),
            Piece::LastRun => "{{last_run}}".to_owned(),
            Piece::Turn => "{{turn}}".to_owned(),
        };
        self.pieces.iter().map(name).collect()
    }

    /// Whether it holds words of the request.
    pub(crate) fn quotes(&self) -> bool {
        !self.pieces.iter().all(|piece| matches!(piece, Piece::Literal(_) | Piece::Turn))
    }

    pub(crate) fn fill(&self, ask: &Ask<'_>) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::LastUser => self.quoting.push(&mut out, &ask.last_user()),
                Piece::LastToolResult => self.quoting.push(&mut out, &ask.last_result()),
                Piece::LastRun => self.quoting.push(&mut out, run_in(&ask.last_result())),
                Piece::Turn => out.push_str(&ask.turn.to_string()),
            }
        }
        out
    }
}

/// The id of the run that `result` tells of.
fn run_in(result: &str) -> &str {
    let after = result.split_once(" run=\"").map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default()
}

impl Quoting {
    fn push(self, out: &mut String, text: &str) {
        match self {
            Quoting::Plain => out.push_str(text),
            Quoting::InsideJsonString => push_escaped(out, text),
        }
    }
}

fn split(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        literal.push_str(&rest[..start]);
        rest = &rest[start..];
        if let Some((name, piece)) = PLACES.iter().find(|(name, _)| rest.starts_with(name)) {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(piece.clone());
            rest = &rest[name.len()..];
        } else {
            literal.push('{');
            rest = &rest[1..];
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    pieces
}
