//! Markdown for a terminal: formats text as styled lines that fit its width. Pure.
//!
//! The colours work on light and on dark backgrounds. Without colours, the marks of headings, code
//! and strong text stay. The output has no control characters, whatever the text is.

use crate::clean::clean;
use crate::screen::line::Look;
use crate::screen::wrap::{Span, Style, painted, width_of, wrapped};
use crate::terminal::columns;
use pulldown_cmark::{Alignment, Event, LinkType, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// Spaces before a line of code.
pub const CODE_INDENT: &str = "  ";
/// Columns between the cells of a table.
const GAP: usize = 2;
/// The least columns of a table cell.
const NARROWEST_CELL: usize = 6;
/// The longest horizontal rule.
const RULE: usize = 40;

/// `source` as lines. Lines of code are not wrapped, so that they can be copied.
pub fn lines(source: &str, look: Look) -> Vec<String> {
    let source = clean(source);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut layout = Layout::new(look);
    for (event, range) in Parser::new_ext(&source, options).into_offset_iter() {
        match mark_of_name(&source, &event, range) {
            Some(mark) => layout.text(mark),
            None => layout.take(event),
        }
    }
    layout.end_block();
    layout.out
}

/// The underscores of a name such as `a/__init__.py`, which Markdown parses as emphasis.
fn mark_of_name(source: &str, event: &Event<'_>, range: Range<usize>) -> Option<&'static str> {
    let mark = match event {
        Event::Start(Tag::Strong) | Event::End(TagEnd::Strong) => "__",
        Event::Start(Tag::Emphasis) | Event::End(TagEnd::Emphasis) => "_",
        _ => return None,
    };
    if !source.get(range.clone())?.starts_with(mark) {
        return None;
    }
    let is_part = |it: char| it.is_alphanumeric() || matches!(it, '/' | '\\');
    let before = source[..range.start].chars().next_back();
    let mut after = source[range.end..].chars();
    let goes_on = match after.next() {
        // A dot ends a sentence, unless more of the name follows.
        Some('.') => after.next().is_some_and(char::is_alphanumeric),
        next => next.is_some_and(is_part),
    };
    (goes_on || before.is_some_and(|it| is_part(it) || it == '.')).then_some(mark)
}

/// A line of code with its indentation.
pub fn code_line(line: &str) -> String {
    let line = clean(line).replace('\t', "    ");
    format!("{CODE_INDENT}{}", line.trim_end()).trim_end().to_owned()
}

/// The prefixes of the lines of a list item or a quote.
struct Indent {
    /// The prefix of the next line, used once.
    first: Option<String>,
    /// The prefix of all other lines.
    rest: String,
}

struct Link {
    url: String,
    /// The number of spans before its text.
    from: usize,
    is_plain: bool,
}

struct Layout {
    look: Look,
    out: Vec<String>,
    spans: Vec<Span>,
    style: Style,
    indents: Vec<Indent>,
    /// The number of the next item of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    links: Vec<Link>,
    code: Option<String>,
    table: Option<Vec<Vec<Vec<Span>>>>,
    /// The alignments of the columns of that table.
    alignments: Vec<Alignment>,
    /// The present item has no content yet.
    fresh: bool,
}

impl Layout {
    fn new(look: Look) -> Self {
        Layout {
            look,
            out: Vec::new(),
            spans: Vec::new(),
            style: Style::default(),
            indents: Vec::new(),
            lists: Vec::new(),
            links: Vec::new(),
            code: None,
            table: None,
            alignments: Vec::new(),
            fresh: true,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            // Entities such as `&#27;` become control characters only here.
            Event::Text(text) => self.text(&clean(&text)),
            Event::Code(code) => {
                let plain = !self.look.paint.on;
                let mark = if plain { "`" } else { "" };
                let style = Style { code: true, ..self.style };
                self.spans.push(Span::new(style, format!("{mark}{}{mark}", clean(&code))));
            }
            Event::Html(html) | Event::InlineHtml(html) => self.text(&clean(&html)),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.begin_block();
                let width = self.room().min(RULE);
                let rule = if self.look.paint.on { "─".repeat(width) } else { "---".to_owned() };
                let rule = self.look.paint.dim(&rule);
                self.put(&rule);
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.text(&format!("[{}]", clean(&name))),
            Event::InlineMath(math) | Event::DisplayMath(math) => self.text(&clean(&math)),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.style.bold = true;
                if !self.look.paint.on {
                    self.text(&format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = if self.look.paint.on { "│ " } else { "> " };
                let bar = self.look.paint.dim(bar);
                self.indents.push(Indent { first: None, rest: bar });
                self.fresh = true;
            }
            Tag::CodeBlock(_) => {
                self.begin_block();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                match self.lists.is_empty() {
                    true => self.begin_block(),
                    false => self.end_block(),
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_block();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ if self.look.paint.on => "• ".to_owned(),
                    _ => "- ".to_owned(),
                };
                let rest = " ".repeat(columns(&marker));
                self.indents.push(Indent { first: Some(marker), rest });
                self.fresh = true;
            }
            Tag::Emphasis => self.style.italic = true,
            Tag::Strong => self.strong(true),
            Tag::Strikethrough => self.style.strike = true,
            Tag::Link { link_type, dest_url, .. } => {
                let is_plain = matches!(link_type, LinkType::Autolink | LinkType::Email);
                self.links.push(Link { url: clean(&dest_url), from: self.spans.len(), is_plain });
            }
            Tag::Image { dest_url, .. } => {
                self.links.push(Link {
                    url: clean(&dest_url),
                    from: self.spans.len(),
                    is_plain: false,
                });
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.alignments = alignments;
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(rows) = &mut self.table {
                    rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.end_block();
                self.style.bold = false;
            }
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.indents.pop();
            }
            TagEnd::CodeBlock => {
                for line in self.code.take().unwrap_or_default().lines() {
                    self.put(&code_line(line));
                }
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                // An item without text still shows its number.
                if self.fresh && self.spans.is_empty() {
                    self.put("");
                }
                self.end_block();
                self.indents.pop();
                self.fresh = false;
            }
            TagEnd::Emphasis => self.style.italic = false,
            TagEnd::Strong => self.strong(false),
            TagEnd::Strikethrough => self.style.strike = false,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let rows = self.table.take().unwrap_or_default();
                self.put_table(rows);
            }
            _ => {}
        }
    }

    fn strong(&mut self, on: bool) {
        self.style.bold = on;
        if !self.look.paint.on {
            self.text("**");
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => self.spans.push(Span::new(self.style, text)),
        }
    }

    /// Adds the address of a link after its text, unless both are the same.
    fn end_link(&mut self) {
        let Some(link) = self.links.pop() else { return };
        let said: String = self.spans[link.from..].iter().map(|span| span.text.as_str()).collect();
        if !link.is_plain && !link.url.is_empty() && said != link.url {
            let before = if said.is_empty() { "" } else { " " };
            let style = Style { dim: true, ..self.style };
            self.spans.push(Span::new(style, format!("{before}({})", link.url)));
        }
    }

    /// Adds an empty line between blocks, except at the beginning of an item.
    fn begin_block(&mut self) {
        self.end_block();
        if !self.fresh && !self.out.is_empty() {
            let indent: String = self.indents.iter().map(|indent| indent.rest.as_str()).collect();
            self.out.push(indent.trim_end().to_owned());
        }
        self.fresh = false;
    }

    /// Formats the text since the last block.
    fn end_block(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if spans.iter().all(|span| span.text.trim().is_empty()) {
            return;
        }
        for line in wrapped(&spans, self.room()) {
            let line = painted(&line, self.look.paint);
            self.put(&line);
        }
    }

    /// The columns that are left for text.
    fn room(&self) -> usize {
        let indent: usize = self.indents.iter().map(|indent| columns(&indent.rest)).sum();
        self.look.columns.saturating_sub(indent).max(NARROWEST_CELL)
    }

    /// Adds a line to the output.
    fn put(&mut self, line: &str) {
        self.fresh = false;
        let mut out = String::new();
        for indent in &mut self.indents {
            out.push_str(&indent.first.take().unwrap_or_else(|| indent.rest.clone()));
        }
        out.push_str(line);
        self.out.push(out.trim_end().to_owned());
    }

    fn put_table(&mut self, rows: Vec<Vec<Vec<Span>>>) {
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let natural = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| width_of(cell)).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..count).map(natural).collect();
        let room = self.room().saturating_sub(GAP * count.saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > NARROWEST_CELL => *widest -= 1,
                _ => break,
            }
        }
        for (index, row) in rows.iter().enumerate() {
            let cells: Vec<Vec<Vec<Span>>> =
                row.iter().zip(&widths).map(|(cell, width)| wrapped(cell, *width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let mut text = String::new();
                for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                    let spans = cell.get(line).map(Vec::as_slice).unwrap_or_default();
                    let bold = spans.iter().map(|span| span.with_bold(index == 0));
                    let bold: Vec<Span> = bold.collect();
                    let free = width.saturating_sub(width_of(spans));
                    let before = match self.alignments.get(column) {
                        Some(Alignment::Right) => free,
                        Some(Alignment::Center) => free / 2,
                        _ => 0,
                    };
                    text.push_str(&" ".repeat(before));
                    text.push_str(&painted(&bold, self.look.paint));
                    text.push_str(&" ".repeat(free - before + GAP));
                }
                self.put(text.trim_end());
            }
            if index == 0 {
                let mark = if self.look.paint.on { "─" } else { "-" };
                let rules = widths.iter().map(|width| mark.repeat(*width));
                let rule = rules.collect::<Vec<_>>().join(&" ".repeat(GAP));
                let rule = self.look.paint.dim(&rule);
                self.put(&rule);
            }
        }
    }
}

#[cfg(test)]
#[path = "markdown/tests.rs"]
mod tests;
