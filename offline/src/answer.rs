//! Answers in Markdown: statements, places in files, short extracts. Text from files is in fences
//! or code spans that it cannot close.

use crate::found::{Hit, Page};
use crate::words::shortened;
use crate::{language, shape};
use std::fmt::Write as _;

/// Characters of a line in an extract or a list.
const LINE: usize = 120;
/// Bytes of an answer.
const LONGEST: usize = 12_000;

/// An answer being written.
#[derive(Default)]
pub(crate) struct Answer {
    text: String,
}

impl Answer {
    pub fn new() -> Self {
        Answer::default()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text so far, for use in another answer.
    pub fn into_text(self) -> String {
        self.text.trim_end().to_owned()
    }

    /// A paragraph.
    pub fn say(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.gap();
        let _ = writeln!(self.text, "{}", text.as_ref());
        self
    }

    /// A line of a list, without a blank line before it.
    pub fn item(&mut self, text: impl AsRef<str>) -> &mut Self {
        let follows = self.text.lines().next_back().is_some_and(|last| last.starts_with("- "));
        if !follows && !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
        let _ = writeln!(self.text, "- {}", text.as_ref());
        self
    }

    /// A line of a list: a place and the text there.
    pub fn place(&mut self, hit: &Hit) -> &mut Self {
        let text = code(&shortened(hit.text.trim(), LINE));
        let place = cite(&hit.path, hit.line);
        self.item(if text.is_empty() { place } else { format!("{place} {text}") })
    }

    /// Lines of a file.
    pub fn extract(&mut self, page: &Page, first: usize, last: usize) -> &mut Self {
        let wanted = page.texts().filter(|(number, _)| (first..=last).contains(number));
        let lines: Vec<&str> = wanted.map(|(_, line)| line).collect();
        self.block(&lines, language::fence(&page.path))
    }

    /// A definition: what its comment says, and at most `most` of its lines.
    pub fn definition(&mut self, page: &Page, line: usize, most: usize) -> &mut Self {
        if let Some(said) = shape::documentation(page, line) {
            self.quote(&said);
        }
        let inner = page.position(line).map_or(0..0, |at| shape::docstring(page, at));
        let last = shape::end_of_definition(page, line, most + inner.len());
        let wanted = page
            .lines
            .iter()
            .enumerate()
            .filter(|(at, (number, _))| (line..=last).contains(number) && !inner.contains(at));
        let lines: Vec<&str> = wanted.map(|(_, (_, text))| text.as_str()).take(most).collect();
        self.block(&lines, language::fence(&page.path))
    }

    /// A fenced block of these lines, without the indentation they share.
    pub fn block(&mut self, lines: &[&str], fence: &str) -> &mut Self {
        let full = lines.iter().filter(|line| !line.trim().is_empty());
        let Some(shared) = full.map(|line| line.len() - line.trim_start().len()).min() else {
            return self;
        };
        let inner = lines.iter().flat_map(|line| line.split(|c| c != '`')).map(str::len).max();
        let ticks = "`".repeat(inner.unwrap_or(0).max(2) + 1);
        self.gap();
        let _ = writeln!(self.text, "{ticks}{fence}");
        for line in lines {
            let line = line.get(shared..).unwrap_or_default();
            let _ = writeln!(self.text, "{}", shortened(line.trim_end(), LINE));
        }
        let _ = writeln!(self.text, "{ticks}");
        self
    }

    /// Text of a file as a quotation.
    pub fn quote(&mut self, text: &str) -> &mut Self {
        self.gap();
        for line in text.lines() {
            let _ = writeln!(self.text, "> {}", line.trim());
        }
        self
    }

    fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// The whole answer, with its caveats.
    pub fn finish(mut self, gaps: &[String]) -> String {
        self.text = cut(&self.text, LONGEST);
        if !gaps.is_empty() {
            let gaps: Vec<&str> = gaps.iter().take(3).map(String::as_str).collect();
            self.say(format!("Note: {}.", gaps.join("; ")));
        }
        self.into_text()
    }
}

/// At most about `limit` bytes of an answer, cut at the end of a line.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    let end = text[..end].rfind('\n').unwrap_or(end);
    let mut out = text[..end].to_owned();
    // A fence that was cut open is closed.
    let mut open: Option<&str> = None;
    for line in text[..end].lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match open {
            None if ticks.len() >= 3 => open = Some(ticks),
            Some(fence) if line == fence => open = None,
            _ => {}
        }
    }
    if let Some(fence) = open {
        let _ = write!(out, "\n{fence}");
    }
    out.push_str("\n\n(There is more than fits here.)\n");
    out
}

/// A place, as people and editors write it.
pub(crate) fn cite(path: &str, line: usize) -> String {
    code(&format!("{path}:{line}"))
}

/// `text` as a code span, whatever backticks it holds.
pub(crate) fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let inner = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(inner + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_files_cannot_leave_its_fence() {
        let page = Page::of("x.md", "```sh\nrm -rf /\n```\n`a` ``b``");
        let mut answer = Answer::new();
        answer.extract(&page, 1, 3);
        let text = answer.finish(&[]);
        assert_eq!(text, "````md\n```sh\nrm -rf /\n```\n````");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`a`"), "`` `a` ``");
    }

    #[test]
    fn an_answer_admits_gaps() {
        let mut answer = Answer::new();
        answer.say("one").item("two").item("three").say("four");
        let text = answer.finish(&["Grep failed: no".to_owned()]);
        assert_eq!(text, "one\n\n- two\n- three\n\nfour\n\nNote: Grep failed: no.");
    }

    #[test]
    fn a_very_long_answer_is_cut_at_a_line() {
        let mut answer = Answer::new();
        answer.block(&["x"; 10_000], "");
        let text = answer.finish(&[]);
        assert!(text.len() < 13_000 && text.contains("\n```\n\n(There is more"), "{}", text.len());
    }
}
