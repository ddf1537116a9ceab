//! Wraps styled text into lines of a given width. Pure.
//!
//! Lines break between words. A word is cut only if it is wider than a whole line.

use crate::paint::Paint;
use crate::terminal::columns;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The indentation of the continuation of a line.
const INDENT: &str = "  ";

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub strike: bool,
    pub code: bool,
}

impl Style {
    fn codes(self) -> String {
        let codes = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.strike, "9"),
            (self.code, "36"),
        ];
        let on = codes.iter().filter(|(on, _)| *on).map(|(_, code)| *code);
        on.collect::<Vec<_>>().join(";")
    }
}

/// A piece of text in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub style: Style,
    pub text: String,
}

impl Span {
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Span { style, text: text.into() }
    }

    /// The same, bold if `bold` is set.
    pub fn with_bold(&self, bold: bool) -> Span {
        let style = Style { bold: self.style.bold || bold, ..self.style };
        Span { style, text: self.text.clone() }
    }
}

/// Columns that `spans` fill in one line.
pub fn width_of(spans: &[Span]) -> usize {
    spans.iter().map(|span| span.text.width()).sum()
}

/// A line with colours.
pub fn painted(spans: &[Span], paint: Paint) -> String {
    spans.iter().map(|span| paint.with(&span.style.codes(), &span.text)).collect()
}

/// `text` in lines of at most `width` columns.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let lines = wrapped(&[Span::new(Style::default(), text)], width);
    lines.iter().map(|line| line.iter().map(|span| span.text.as_str()).collect()).collect()
}

/// `lines` with their colours, wrapped between words where one is wider than `width`.
pub fn folded(lines: &str, width: usize) -> String {
    let fold = |line: &str| {
        if columns(line) <= width {
            return line.to_owned();
        }
        let (mut out, mut used) = (String::new(), 0);
        for (place, word) in line.split(' ').enumerate() {
            let wide = columns(word);
            match place {
                0 => {}
                _ if used + 1 + wide > width && used > INDENT.len() => {
                    out.push('\n');
                    out.push_str(INDENT);
                    used = INDENT.len();
                }
                _ => {
                    out.push(' ');
                    used += 1;
                }
            }
            out.push_str(word);
            used += wide;
        }
        out
    };
    lines.split('\n').map(fold).collect::<Vec<_>>().join("\n")
}

/// `spans` in lines of at most `width` columns. Line breaks in the text are kept.
pub fn wrapped(spans: &[Span], width: usize) -> Vec<Vec<Span>> {
    let mut page = Lines { columns: width.max(1), lines: vec![Vec::new()], used: 0 };
    let mut word: Vec<Span> = Vec::new();
    // The style of the space before the word.
    let mut space: Option<Style> = None;
    for span in spans {
        for character in span.text.chars() {
            match character {
                '\n' => {
                    page.add(std::mem::take(&mut word), space.take());
                    page.next_line();
                }
                ' ' | '\t' => {
                    if !word.is_empty() {
                        page.add(std::mem::take(&mut word), space.take());
                    }
                    space = space.or(Some(span.style));
                }
                _ => push(&mut word, span.style, character),
            }
        }
    }
    page.add(word, space);
    page.lines
}

fn push(spans: &mut Vec<Span>, style: Style, character: char) {
    match spans.last_mut().filter(|last| last.style == style) {
        Some(last) => last.text.push(character),
        None => spans.push(Span::new(style, character)),
    }
}

struct Lines {
    columns: usize,
    lines: Vec<Vec<Span>>,
    used: usize,
}

impl Lines {
    fn next_line(&mut self) {
        self.lines.push(Vec::new());
        self.used = 0;
    }

    fn add(&mut self, word: Vec<Span>, space: Option<Style>) {
        let width = width_of(&word);
        if width == 0 {
            return;
        }
        let space = space.filter(|_| self.used > 0);
        if self.used + usize::from(space.is_some()) + width > self.columns && self.used > 0 {
            self.next_line();
        } else if let Some(style) = space {
            self.put(style, ' ', 1);
        }
        for span in word {
            for character in span.text.chars() {
                let width = character.width().unwrap_or(0);
                if self.used + width > self.columns && self.used > 0 {
                    self.next_line();
                }
                self.put(span.style, character, width);
            }
        }
    }

    fn put(&mut self, style: Style, character: char, width: usize) {
        self.used += width;
        if let Some(line) = self.lines.last_mut() {
            push(line, style, character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_and_only_too_long_ones_are_cut() {
        assert_eq!(lines("one two three", 7), ["one two", "three"]);
        assert_eq!(lines("a ANTHROPIC_API_KEY b", 17), ["a", "ANTHROPIC_API_KEY", "b"]);
        assert_eq!(lines("x abcdefghij y", 4), ["x", "abcd", "efgh", "ij y"]);
        assert_eq!(lines("日本語の文章", 7), ["日本語", "の文章"]);
        assert_eq!(lines("  a  \n\n b", 9), ["a", "", "b"]);
        assert_eq!(lines("", 9), [""]);
    }

    #[test]
    fn a_coloured_line_is_broken_between_words() {
        assert_eq!(folded("\x1b[2mone two three\x1b[0m", 8), "\x1b[2mone two\n  three\x1b[0m");
        assert_eq!(folded("short\n  and two", 20), "short\n  and two");
        assert_eq!(folded("a/very/long/path b", 6), "a/very/long/path\n  b");
    }

    #[test]
    fn a_word_of_two_styles_is_one_word() {
        let bold = Style { bold: true, ..Style::default() };
        let spans = [Span::new(Style::default(), "one tw"), Span::new(bold, "o")];
        let lines = wrapped(&spans, 6);
        assert_eq!(lines.len(), 2);
        assert_eq!(painted(&lines[1], Paint { on: true }), "tw\x1b[1mo\x1b[0m");
    }
}
