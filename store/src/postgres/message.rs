//! Messages to the server: statements with their values.
//!
//! The simple protocol takes any number of statements at once and needs no session between
//! messages, so it works through PgBouncer in transaction mode. It has no parameters: this module
//! quotes values, as libpq does.

use crate::engine::{Bind, BoundText, Cells};
use sqlx::postgres::PgRow;
use sqlx::{Error, Row};
use std::fmt::Write;

/// Text of the server cannot contain NUL. NUL is stored as this noncharacter and a `0`, and the
/// character itself is doubled.
const MARK: char = '\u{fdd0}';

/// A statement into which values are inserted, in the order of its placeholders.
#[derive(Clone)]
pub(super) struct Text {
    template: String,
    /// The length of the template that was written.
    at: usize,
    written: String,
}

impl Text {
    pub(super) fn new(template: &str) -> Self {
        let written = String::with_capacity(template.len() * 2);
        Text { template: template.to_owned(), at: 0, written }
    }

    /// Writes up to the next placeholder and skips it.
    fn advance(&mut self) {
        let rest = &self.template[self.at..];
        let Some(before) = rest.find('$') else { return };
        self.written.push_str(&rest[..before]);
        let number = rest[before + 1..].bytes().take_while(u8::is_ascii_digit).count();
        self.at += before + 1 + number;
    }

    /// Inserts an expression that the server computes.
    pub(super) fn expression(mut self, expression: &str) -> Self {
        self.advance();
        self.written.push_str(expression);
        self
    }

    pub(super) fn finish(mut self) -> String {
        self.written.push_str(&self.template[self.at..]);
        self.written
    }
}

impl Bind for Text {
    fn text(mut self, text: impl Into<BoundText>) -> Self {
        self.advance();
        match text.into() {
            BoundText::Nothing => self.written.push_str("NULL"),
            BoundText::Owned(text) => quote(&mut self.written, &text),
            BoundText::Shared(text) => quote(&mut self.written, &text),
            BoundText::Word(text) => quote(&mut self.written, text),
        }
        self
    }

    fn number(mut self, number: impl Into<Option<i64>>) -> Self {
        self.advance();
        let written = match number.into() {
            None => write!(self.written, "NULL"),
            // Parentheses, because the sign could follow another one.
            Some(number @ ..0) => write!(self.written, "({number})"),
            Some(number) => write!(self.written, "{number}"),
        };
        debug_assert!(written.is_ok(), "a string takes anything");
        self
    }
}

/// Writes `text` as a literal. If it contains a backslash, it is an `E` literal, so its meaning
/// does not depend on the setting `standard_conforming_strings`.
pub(super) fn quote(written: &mut String, text: &str) {
    written.reserve(text.len() + 2);
    // The space separates the letter from a word before it.
    written.push_str(if text.contains('\\') { " E'" } else { "'" });
    for piece in text.split_inclusive(['\'', '\\', '\0', MARK]) {
        let end = piece.chars().next_back();
        match end {
            Some('\0') => {
                written.push_str(&piece[..piece.len() - 1]);
                written.extend([MARK, '0']);
            }
            Some(end @ ('\'' | '\\' | MARK)) => {
                written.push_str(piece);
                written.push(end);
            }
            _ => written.push_str(piece),
        }
    }
    written.push('\'');
}

/// Reverses the encoding of NUL by [`quote`].
fn unmark(text: String) -> String {
    if !text.contains(MARK) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            MARK => match letters.next() {
                Some('0') => out.push('\0'),
                Some(other) => out.push(other),
                None => out.push(MARK),
            },
            letter => out.push(letter),
        }
    }
    out
}

impl Cells for PgRow {
    fn text(&self, index: usize) -> Result<String, Error> {
        self.try_get(index).map(unmark)
    }

    fn maybe_text(&self, index: usize) -> Result<Option<String>, Error> {
        self.try_get::<Option<String>, _>(index).map(|text| text.map(unmark))
    }

    fn integer(&self, index: usize) -> Result<i64, Error> {
        self.try_get(index)
    }

    fn maybe_integer(&self, index: usize) -> Result<Option<i64>, Error> {
        self.try_get(index)
    }
}

/// Statements that are sent to the server at once.
#[derive(Default)]
pub(super) struct Message {
    text: String,
    statements: usize,
}

impl Message {
    /// Adds a statement without values. Returns the position of its rows.
    pub(super) fn say(&mut self, statement: &str) -> usize {
        self.text.push_str(statement);
        self.text.push_str(";\n");
        self.statements += 1;
        self.statements - 1
    }

    /// Adds `count` statements at once, which return no rows.
    pub(super) fn begin(&mut self, statements: &str, count: usize) {
        self.say(statements);
        self.statements += count - 1;
    }

    /// Adds a statement with its values. Returns the position of its rows.
    pub(super) fn add(&mut self, statement: Text) -> usize {
        self.say(&statement.finish())
    }

    pub(super) fn statements(&self) -> usize {
        self.statements
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_their_placeholders_were() {
        let text = Text::new("a = $1 AND b IN ($2, $13) LIMIT $14");
        let text = text.text("it's".to_owned()).number(-3).number(None::<i64>).number(7);
        assert_eq!(text.finish(), "a = 'it''s' AND b IN ((-3), NULL) LIMIT 7");
    }

    #[test]
    fn a_value_with_a_placeholder_in_it_stays_a_value() {
        let text = Text::new("a = $1 AND b = $2").text("$2".to_owned()).text("x".to_owned());
        assert_eq!(text.finish(), "a = '$2' AND b = 'x'");
    }

    #[test]
    fn a_backslash_means_itself() {
        let mut written = String::new();
        quote(&mut written, r"\'; DROP TABLE runs; --");
        assert_eq!(written, r" E'\\''; DROP TABLE runs; --'");
    }

    #[test]
    fn text_with_a_nul_comes_back_as_it_was() {
        for text in ["a\0b", "\u{fdd0}0", "\u{fdd0}", "\0\0\u{fdd0}\0", "none"] {
            let mut written = String::new();
            quote(&mut written, text);
            assert!(!written.contains('\0'));
            assert_eq!(unmark(written.trim_matches('\'').to_owned()), text);
        }
    }
}
