//! Answers in Markdown: statements, places in files, short extracts. Text of files goes into
//! fences or code spans that it cannot end.

use super::definition::{self, Kind};
use super::found::{Hit, Page};
use super::language::{self, Language};
use std::fmt::Write as _;

/// How the last line begins.
const SIGNATURE: &str = "*Answered by the offline model,";
/// The last line of every answer.
const NOTICE: &str = "*Answered by the offline model, which searches and quotes but does not \
    reason. For a real one set ANTHROPIC_API_KEY or another key, or start a local server; see \
    `posse models`.*";
/// Characters of a line in an extract or a list.
const LINE: usize = 120;
/// Bytes of an answer, its last line aside.
const LONGEST: usize = 12_000;

/// An answer being written.
#[derive(Default)]
pub(super) struct Answer {
    text: String,
}

impl Answer {
    pub fn new() -> Self {
        Answer::default()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What is written so far, for a place in another answer.
    pub fn into_text(self) -> String {
        self.text.trim_end().to_owned()
    }

    /// A paragraph.
    pub fn say(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.gap();
        let _ = writeln!(self.text, "{}", text.as_ref());
        self
    }

    /// A heading.
    pub fn head(&mut self, text: &str) -> &mut Self {
        self.say(format!("**{text}**"))
    }

    /// A line of a list, right below what stands above it.
    pub fn item(&mut self, text: impl AsRef<str>) -> &mut Self {
        let follows = self.text.lines().next_back().is_some_and(|last| last.starts_with("- "));
        if !follows && !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
        let _ = writeln!(self.text, "- {}", text.as_ref());
        self
    }

    /// A line of a list: a place and what stands there.
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
        let heading = page.position(line).is_some_and(|at| page.lines[at].1.starts_with('#'));
        let said = if heading { None } else { documentation(page, line) };
        if let Some(said) = said {
            self.quote(&said);
        }
        let inner = page.position(line).map_or(0..0, |at| docstring_lines(page, at));
        let last = end_of_definition(page, line, most + inner.len());
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

    /// The whole answer, with what it has to admit and the last line.
    pub fn finish(mut self, gaps: &[String]) -> String {
        self.text = cut(&self.text, LONGEST);
        if !gaps.is_empty() {
            let gaps: Vec<&str> = gaps.iter().take(3).map(String::as_str).collect();
            self.say(format!("Note: {}.", gaps.join("; ")));
        }
        self.say(NOTICE);
        self.text
    }
}

/// At most about `limit` bytes of an answer, cut at the end of a line.
pub(super) fn cut(text: &str, limit: usize) -> String {
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

/// An answer of this model without its last line, for a place in another answer.
pub(super) fn without_notice(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(SIGNATURE));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A place, as people and editors write it.
pub(super) fn cite(path: &str, line: usize) -> String {
    code(&format!("{path}:{line}"))
}

/// `text` as a code span, whatever backticks it holds.
pub(super) fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let inner = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(inner + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// At most `limit` characters of `text`.
pub(super) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// `1 file`, `2 files`.
pub(super) fn count(number: usize, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

/// The last line of the definition that begins at `first`, showing at most `most` lines.
pub(super) fn end_of_definition(page: &Page, first: usize, most: usize) -> usize {
    let Some(start) = page.position(first) else { return first };
    let language = language::of(&page.path);
    let opening = page.lines[start].1.as_str();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(opening);
    let heading =
        definition::definition(language, opening).is_some_and(|found| found.kind == Kind::Heading);
    let mut last = first;
    for (number, line) in page.lines[start + 1..].iter().take(most.saturating_sub(1)) {
        let text = line.trim();
        if heading {
            if definition::definition(language, line)
                .is_some_and(|found| found.kind == Kind::Heading)
            {
                break;
            }
        } else if !text.is_empty() && indent(line) <= own {
            let closes =
                text.starts_with(['}', ')', ']']) || text == "end" || text.starts_with("end ");
            let opens = closes && text.len() > 1 && text.ends_with(['{', ':', '>'])
                || text == "{"
                || language == Language::C && text.starts_with('{')
                || text.starts_with("where");
            if closes {
                last = *number;
            }
            if !opens {
                break;
            }
        } else if text.is_empty() && opening.trim_end().ends_with([';', ',']) {
            break;
        }
        if !text.is_empty() {
            last = *number;
        }
    }
    last
}

/// What the comment at a definition says: above it, or in a docstring below.
pub(super) fn documentation(page: &Page, line: usize) -> Option<String> {
    let at = page.position(line)?;
    let mut above: Vec<&str> = Vec::new();
    for (_, text) in page.lines[..at].iter().rev() {
        let text = text.trim();
        let attribute =
            text.starts_with("#[") || text.starts_with('@') || text.starts_with("template");
        if attribute {
            continue;
        }
        match comment(text) {
            Some(said) => above.push(said),
            None => break,
        }
    }
    above.reverse();
    if above.iter().all(|line| line.is_empty()) {
        above = docstring(page, at);
    }
    let said: Vec<&str> = above.into_iter().skip_while(|line| line.is_empty()).collect();
    let paragraph: Vec<&str> =
        said.into_iter().take_while(|line| !line.is_empty() && !line.starts_with('@')).collect();
    let text = paragraph.join(" ");
    (text.chars().filter(|c| c.is_alphabetic()).count() > 3).then(|| shortened(&text, 400))
}

/// What a line of comment says.
pub(super) fn comment(text: &str) -> Option<&str> {
    let text = text.trim();
    for mark in ["///", "//!", "//", "/**", "/*", "*/", "--", "# ", "* "] {
        if let Some(rest) = text.strip_prefix(mark) {
            return Some(rest.trim().trim_end_matches("*/").trim());
        }
    }
    matches!(text, "#" | "*").then_some("")
}

/// The words of the docstring below a definition.
fn docstring(page: &Page, at: usize) -> Vec<&str> {
    let lines = &page.lines[docstring_lines(page, at)];
    lines
        .iter()
        .map(|(_, text)| text.trim().trim_start_matches("r\"\"\"").trim_matches(['"', '\'']).trim())
        .collect()
}

/// Where the docstring below a definition of Python stands; nowhere if there is none.
fn docstring_lines(page: &Page, at: usize) -> std::ops::Range<usize> {
    if language::of(&page.path) != Language::Python {
        return 0..0;
    }
    let marks = |text: &str| text.matches("\"\"\"").count() + text.matches("\'\'\'").count();
    // The signature may take some lines; code before the string means that there is none.
    let head_ends =
        page.lines[at..].iter().take(30).position(|(_, text)| text.trim_end().ends_with(':'));
    let Some(first) = head_ends.map(|head| at + head + 1) else { return 0..0 };
    let Some((_, open)) = page.lines.get(first).filter(|(_, text)| marks(text) > 0) else {
        return 0..0;
    };
    if marks(open) > 1 {
        return first..first + 1;
    }
    let close = page.lines[first + 1..].iter().position(|(_, text)| marks(text) > 0);
    first..close.map_or(page.lines.len(), |close| first + close + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Page {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
        Page { path: path.to_owned(), lines, more: false }
    }

    #[test]
    fn text_of_files_cannot_leave_its_fence() {
        let page = page("x.md", "```sh\nrm -rf /\n```\n`a` ``b``");
        let mut answer = Answer::new();
        answer.extract(&page, 1, 3);
        let text = answer.finish(&[]);
        assert!(text.starts_with("````md\n```sh\nrm -rf /\n```\n````\n"), "{text}");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`a`"), "`` `a` ``");
    }

    #[test]
    fn an_answer_admits_gaps_and_ends_with_the_notice() {
        let mut answer = Answer::new();
        answer.say("one").item("two").item("three").say("four");
        let text = answer.finish(&["Grep failed: no".to_owned()]);
        assert!(
            text.starts_with(
                "one\n\n- two\n- three\n\nfour\n\nNote: Grep failed: no.\n\n*Answered"
            ),
            "{text}"
        );
        assert_eq!(
            without_notice(&text),
            "one\n\n- two\n- three\n\nfour\n\nNote: Grep failed: no."
        );
    }

    #[test]
    fn a_very_long_answer_is_cut_at_a_line() {
        let mut answer = Answer::new();
        answer.block(&["x\n"; 10_000].map(|line: &str| line.trim_end()), "");
        let text = answer.finish(&[]);
        assert!(text.len() < 13_000 && text.contains("\n```\n\n(There is more"), "{}", text.len());
    }

    #[test]
    fn definitions_end_where_they_end() {
        let rust = page("a.rs", "fn a() {\n    1\n}\n\nfn b() {}");
        assert_eq!(end_of_definition(&rust, 1, 10), 3);
        let c = page("a.c", "int a(void)\n{\n    return 1;\n}\nint b;");
        assert_eq!(end_of_definition(&c, 1, 10), 4);
        let python = page("a.py", "def a():\n    x\n\n    y\n\ndef b():\n    z");
        assert_eq!(end_of_definition(&python, 1, 10), 4);
        let text = page("a.md", "# A\n\nword\n\n## B");
        assert_eq!(end_of_definition(&text, 1, 10), 3);
        assert_eq!(end_of_definition(&rust, 1, 2), 2);
        let wide = page("a.rs", "fn a(\n    x: u8,\n) -> u8 {\n    x\n}\n\nfn b() {}");
        assert_eq!(end_of_definition(&wide, 1, 10), 5);
    }

    #[test]
    fn documentation_is_found_above_and_below() {
        let rust = page("a.rs", "/// Does it.\n/// Twice.\n///\n/// More.\n#[inline]\nfn a() {}");
        assert_eq!(documentation(&rust, 6).as_deref(), Some("Does it. Twice."));
        let python = page("a.py", "def a(\n    x,\n):\n    \"\"\"Does it.\"\"\"\n");
        assert_eq!(documentation(&python, 1).as_deref(), Some("Does it."));
        let long = page(
            "a.py",
            "def a(x):\n    \"\"\"Does it\n    well.\n\n    More.\n    \"\"\"\n    return x\n",
        );
        let mut answer = Answer::new();
        answer.definition(&long, 1, 9);
        assert_eq!(
            answer.into_text(),
            "> Does it well.\n\n```python\ndef a(x):\n    return x\n```"
        );
        let script = page("a.ts", "/**\n * Does it.\n */\nfunction a() {");
        assert_eq!(documentation(&script, 4).as_deref(), Some("Does it."));
        assert_eq!(documentation(&page("a.c", "int a;\nint b;"), 2), None);
    }
}
