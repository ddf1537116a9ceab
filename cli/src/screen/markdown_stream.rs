//! The agent's text as it arrives: Markdown, block by block. Pure.
//!
//! A block gets its final layout when it has ended, a line of code when it is complete. The open block
//! has a preliminary layout, which is redrawn.

use super::line::Look;
use super::markdown;
use crate::terminal::fitted;

/// The most bytes of an open block. A longer one is formatted in parts.
const LONGEST: usize = 16 << 10;
/// The most bytes of an open block that are formatted while it is open.
const OPEN: usize = 4 << 10;

#[derive(Default)]
pub struct MarkdownStream {
    /// The complete lines of the open block.
    block: String,
    /// The incomplete last line.
    line: String,
    /// The open block has had an empty line.
    blank: bool,
    /// The fence of the open code block at the top level.
    code: Option<Fence>,
    /// The fence of a code block within the open block.
    inner: Option<Fence>,
    /// Some text was already formatted.
    spoke: bool,
    /// The next text belongs to the text that was formatted last.
    goes_on: bool,
}

#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    count: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Fence> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let count = text.chars().take_while(|c| *c == mark).count();
        let rest = &text[count..];
        (count >= 3 && !(mark == '`' && rest.contains('`'))).then_some(Fence { mark, count })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let text = line.trim();
        text.chars().count() >= self.count && text.chars().all(|c| c == self.mark)
    }
}

impl MarkdownStream {
    /// Adds text. Returns the permanent lines.
    pub fn hear(&mut self, text: &str, look: Look) -> Vec<String> {
        let mut out = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, look, &mut out);
            }
        }
        // The first letter of the next block ends this one.
        let is_over = self.blank && self.inner.is_none();
        if is_over && self.line.starts_with(|first: char| !first.is_whitespace()) {
            self.end_block(look, &mut out);
        }
        if self.line.len() > LONGEST {
            let cut = self.line.rfind(' ').map_or(self.line.len(), |space| space + 1);
            let rest = self.line.split_off(cut);
            let line = std::mem::replace(&mut self.line, rest);
            match self.code {
                Some(_) => out.push(markdown::code_line(&line)),
                None => self.block.push_str(&line),
            }
        }
        if self.block.len() > LONGEST {
            self.end_block(look, &mut out);
            self.goes_on = true;
        }
        out
    }

    /// Ends the text. Returns the remaining lines.
    pub fn end(&mut self, look: Look) -> Vec<String> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, look, &mut out);
        }
        self.end_block(look, &mut out);
        *self = MarkdownStream::default();
        out
    }

    /// The last `rows` lines of the open block.
    pub fn open(&self, look: Look, rows: usize) -> Vec<String> {
        if self.block.is_empty() && self.line.trim().is_empty() {
            return Vec::new();
        }
        let mut lines = match self.code {
            Some(_) => vec![markdown::code_line(&self.line)],
            None => {
                let text = format!("{}{}", self.block, self.line);
                let mut from = text.len().saturating_sub(OPEN);
                while !text.is_char_boundary(from) {
                    from += 1;
                }
                markdown::lines(&text[from..], look)
            }
        };
        lines.drain(..lines.len().saturating_sub(rows));
        // A redrawn line must fill exactly one row.
        let fits = |line: String| match line.contains('\x1b') {
            true => line,
            false => fitted(&line, look.columns),
        };
        lines.into_iter().map(fits).collect()
    }

    fn take_line(&mut self, line: &str, look: Look, out: &mut Vec<String>) {
        if let Some(fence) = self.code {
            match fence.is_closed_by(line) {
                true => self.code = None,
                false => out.push(markdown::code_line(line)),
            }
            return;
        }
        if let Some(fence) = self.inner {
            if fence.is_closed_by(line) {
                self.inner = None;
            }
            self.block.push_str(line);
            return;
        }
        if line.trim().is_empty() {
            if !self.block.is_empty() {
                self.block.push_str(line);
                self.blank = true;
            }
            return;
        }
        let is_indented = line.starts_with([' ', '\t']);
        if let Some(fence) = Fence::opened_by(line) {
            if is_indented && !self.block.is_empty() {
                self.inner = Some(fence);
            } else {
                self.end_block(look, out);
                self.begin_block(out);
                self.code = Some(fence);
                return;
            }
        } else if self.blank && !is_indented {
            self.end_block(look, out);
        }
        self.blank = false;
        self.block.push_str(line);
    }

    /// Adds an empty line between blocks.
    fn begin_block(&mut self, out: &mut Vec<String>) {
        if std::mem::replace(&mut self.spoke, true) && !std::mem::take(&mut self.goes_on) {
            out.push(String::new());
        }
    }

    fn end_block(&mut self, look: Look, out: &mut Vec<String>) {
        self.inner = None;
        self.blank = false;
        let block = std::mem::take(&mut self.block);
        let lines = markdown::lines(&block, look);
        if !lines.is_empty() {
            self.begin_block(out);
            out.extend(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::Paint;

    const PAGE: Look = Look { paint: Paint { on: false }, columns: 40 };

    const TEXT: &str = "# Title\n\nA paragraph\nof two lines.\n\n1. one\n\n   ```\n   a\n\n   b\n   ```\n\n\
                        2. two\n\n```sh\nls\n\ncat\n```\nafter";

    #[test]
    fn however_it_is_cut_the_same_lines_come_out() {
        let whole = {
            let mut prose = MarkdownStream::default();
            let mut lines = prose.hear(TEXT, PAGE);
            lines.extend(prose.end(PAGE));
            lines
        };
        let expected = "# Title\n\nA paragraph of two lines.\n\n1. one\n\n     a\n\n     b\n\n2. two\n\n  \
                        ls\n\n  cat\n\nafter";
        assert_eq!(whole.join("\n").replace("\n   \n", "\n\n"), expected);
        for size in 1..9 {
            let mut prose = MarkdownStream::default();
            let mut lines = Vec::new();
            let characters: Vec<char> = TEXT.chars().collect();
            for piece in characters.chunks(size) {
                let piece: String = piece.iter().collect();
                lines.extend(prose.hear(&piece, PAGE));
            }
            lines.extend(prose.end(PAGE));
            assert_eq!(lines, whole, "{size}");
        }
    }

    #[test]
    fn what_is_open_is_shown_as_far_as_it_goes() {
        let mut prose = MarkdownStream::default();
        assert!(prose.hear("One **two", PAGE).is_empty());
        assert_eq!(prose.open(PAGE, 5), ["One **two"]);
        assert_eq!(prose.hear("**\n\nnext", PAGE), ["One **two**"]);
        assert_eq!(prose.open(PAGE, 5), ["next"]);
        assert_eq!(prose.end(PAGE), ["", "next"]);
        assert!(prose.open(PAGE, 5).is_empty());
    }

    #[test]
    fn a_line_of_code_is_shown_when_it_is_whole() {
        let mut prose = MarkdownStream::default();
        assert_eq!(prose.hear("```\nls\nca", PAGE), ["  ls"]);
        assert_eq!(prose.open(PAGE, 5), ["  ca"]);
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_back_for_ever() {
        let mut prose = MarkdownStream::default();
        let lines = prose.hear(&"word ".repeat(8_000), PAGE);
        assert!(lines.len() > 100, "{}", lines.len());
        let rest = prose.end(PAGE);
        let said: usize = lines.iter().chain(&rest).map(|line| line.matches("word").count()).sum();
        assert_eq!(said, 8_000);
        assert!(!lines.iter().chain(&rest).any(|line| line.is_empty()));
    }
}
