//! The results of a search, up to a limit, in the format of ripgrep's output.

use super::Mode;
use crate::text;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use std::fmt::Write as _;
use std::io;

/// The maximum number of bytes of a result.
const RESULT_BYTES: usize = 30_000;
/// The maximum number of characters shown of a line.
const LINE_CHARACTERS: usize = 500;

/// The entries of a result. An entry is a file, a count, or a line.
pub(super) struct Results {
    text: String,
    entries: usize,
    limit: usize,
    /// True if a match did not fit.
    full: bool,
}

impl Results {
    pub(super) fn new(limit: usize) -> Self {
        Results { text: String::new(), entries: 0, limit, full: false }
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Adds an entry. Returns false if there is no room.
    fn push(&mut self, entry: std::fmt::Arguments<'_>) -> bool {
        if self.entries >= self.limit || self.text.len() >= RESULT_BYTES {
            self.full = true;
            return false;
        }
        self.entries += 1;
        let _ = writeln!(self.text, "{entry}");
        true
    }

    /// The result as the model sees it.
    pub(super) fn finish(mut self, skipped: usize) -> String {
        if self.entries == 0 {
            self.text.push_str("No match. (Ignored and binary files are not searched.)\n");
        }
        if self.full && self.entries >= self.limit {
            let limit = self.limit;
            let _ = writeln!(
                self.text,
                "[The first {limit} entries. There are more: raise head_limit, or narrow the \
                 search by path, glob or type.]"
            );
        } else if self.full {
            let entries = self.entries;
            let _ = writeln!(
                self.text,
                "[The first {entries} entries, about {RESULT_BYTES} bytes. There are more: narrow \
                 the search by path, glob or type.]"
            );
        }
        if skipped > 0 {
            let _ = writeln!(
                self.text,
                "[{skipped} files could not be searched to their end: unreadable, or too large to \
                 hold a line (with multiline: the file) in memory.]"
            );
        }
        self.text
    }
}

/// Collects the matches in one file.
pub(super) struct Found<'a> {
    path: &'a str,
    mode: Mode,
    results: &'a mut Results,
    matches: u64,
    /// True if lines were skipped since the last one shown.
    gap: bool,
}

impl<'a> Found<'a> {
    pub(super) fn new(path: &'a str, mode: Mode, results: &'a mut Results) -> Self {
        Found { path, mode, results, matches: 0, gap: false }
    }

    /// Adds the entry that is known only at the end of the file.
    pub(super) fn finish(self) {
        if self.matches == 0 {
            return;
        }
        match self.mode {
            Mode::Files => self.results.push(format_args!("{}", self.path)),
            Mode::Count => self.results.push(format_args!("{}:{}", self.path, self.matches)),
            Mode::Content => true,
        };
    }

    fn line(&mut self, mark: char, number: Option<u64>, line: &[u8]) -> bool {
        if self.gap && !self.results.push(format_args!("--")) {
            return false;
        }
        self.gap = false;
        let line = String::from_utf8_lossy(line);
        let (shown, left_out) = text::cut(line.trim_end_matches(['\n', '\r']), LINE_CHARACTERS);
        let path = self.path;
        let rest = if left_out > 0 { " [line cut]" } else { "" };
        match number {
            Some(number) => {
                self.results.push(format_args!("{path}{mark}{number}{mark}{shown}{rest}"))
            }
            None => self.results.push(format_args!("{path}{mark}{shown}{rest}")),
        }
    }
}

impl Sink for Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        match self.mode {
            Mode::Files => Ok(false),
            Mode::Count => Ok(true),
            Mode::Content => {
                let mut number = found.line_number();
                for line in found.lines() {
                    if !self.line(':', number, line) {
                        return Ok(false);
                    }
                    number = number.map(|number| number + 1);
                }
                Ok(true)
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.mode != Mode::Content || self.line('-', context.line_number(), context.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.gap = self.matches > 0;
        Ok(true)
    }
}
