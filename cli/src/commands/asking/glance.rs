//! Shows the important parts of a question next to the prompt, whatever its size, so that no part of
//! a command scrolls off the screen unnoticed.

use unicode_width::UnicodeWidthChar;

/// The most blanks in a row that are shown as they are.
const BLANKS: usize = 60;
/// The most characters of a word in the short form.
const WORD: usize = 48;
/// The most rows of the screen for the short form of a command.
const ROWS: usize = 4;
/// Columns between two tab stops.
const TAB: usize = 8;

/// The size of a screen.
#[derive(Clone, Copy)]
pub(super) struct Screen {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Screen {
    /// The size of the terminal.
    pub(super) fn now() -> Screen {
        Screen { width: crate::terminal::width(), height: crate::terminal::height() }
    }

    /// The number of rows that `text` fills.
    pub(super) fn rows(self, text: &str) -> usize {
        let width = self.width.max(1);
        let columns = |line: &str| {
            line.chars().fold(0, |column, character| match character {
                '\t' => (column / TAB + 1) * TAB,
                other => column + other.width().unwrap_or(0),
            })
        };
        text.split('\n').map(|line| columns(line).div_ceil(width).max(1)).sum()
    }
}

/// `line` with long runs of blanks replaced by their number.
pub(super) fn counted(line: &str) -> String {
    shortened(line, BLANKS, usize::MAX)
}

/// A command in a few rows of `screen`: runs of blanks are replaced by their number, and long words
/// by their ends and their length.
pub(super) fn short(text: &str, screen: Screen) -> String {
    let line = shortened(&text.replace('\n', " ↵ "), TAB, WORD);
    middle_cut(&line, screen.width.max(20) * ROWS)
}

/// `text` with its middle replaced by its length, if it has more than `most` characters.
pub(super) fn middle_cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (first, last) = (most * 2 / 3, most / 4);
    let head: String = text.chars().take(first).collect();
    let tail: String = text.chars().skip(count - last).collect();
    format!("{head}…({} characters)…{tail}", count - first - last)
}

/// `line` with runs of at most `blanks` blanks, and words of at most `longest` characters.
fn shortened(line: &str, blanks: usize, longest: usize) -> String {
    let mut out = String::with_capacity(line.len().min(4_096));
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_blank = |it: char| it == ' ' || it == '\t';
        let same = |it: char| is_blank(it) == is_blank(first);
        let end = rest.find(|it| !same(it)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        match is_blank(first) {
            true if piece.len() > blanks => {
                let tabs = piece.matches('\t').count();
                let name = match tabs {
                    0 => "spaces",
                    all if all == piece.len() => "tabs",
                    _ => "spaces and tabs",
                };
                out.push_str(&format!(" …({} {name})… ", piece.len()));
            }
            true => out.push_str(piece),
            false => out.push_str(&middle_cut(piece, longest)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_screen() {
        let screen = Screen { width: 10, height: 5 };
        assert_eq!(screen.rows("a\n\nb"), 3);
        assert_eq!(screen.rows(&"x".repeat(21)), 3);
        assert_eq!(screen.rows("\t\t"), 2, "a tab fills up to eight columns");
        assert_eq!(screen.rows("中中中中中中"), 2);
    }

    #[test]
    fn blanks_are_counted_and_long_words_have_their_length() {
        let line = format!("a{}b{}c  d", " ".repeat(3_000), "\t".repeat(70));
        assert_eq!(counted(&line), "a …(3000 spaces)… b …(70 tabs)… c  d");
        assert_eq!(counted("    a b"), "    a b");
        let screen = Screen { width: 80, height: 24 };
        let command = format!("echo {}; touch x", "y".repeat(5_000));
        let text = short(&command, screen);
        assert!(text.starts_with("echo yyy") && text.ends_with("; touch x"), "{text}");
        assert!(text.contains("…(4957 characters)…") && screen.rows(&text) <= 2, "{text}");
    }
}
