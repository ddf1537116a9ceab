//! Lines that the shell joins: it removes a backslash and the newline after it, before it reads anything else. It keeps
//! both in single quotes, in comments, and in here-documents with a quoted end.

use std::collections::BTreeSet;

/// How often a text, with all texts in it, is read again because the shell keeps a line end in it.
pub(super) const READINGS: usize = 64;

/// A text without the line ends that the shell removes.
pub(super) struct Joined<'t> {
    pub(super) text: String,
    original: &'t str,
    /// Where each removed pair was: in the joined text, and in the original.
    removed: Vec<(usize, usize)>,
}

impl<'t> Joined<'t> {
    /// Joins the lines of `original`, except at the positions in `kept`.
    pub(super) fn new(original: &'t str, kept: &BTreeSet<usize>) -> Self {
        let (mut text, mut removed) = (String::with_capacity(original.len()), Vec::new());
        let mut rest = original;
        while let Some(at) = rest.find('\\') {
            let (before, after) = rest.split_at(at);
            text.push_str(before);
            let position = original.len() - after.len();
            // A backslash quotes the character after it, which may be a backslash.
            let length = 1 + after[1..].chars().next().map_or(0, char::len_utf8);
            match after.starts_with("\\\n") && !kept.contains(&position) {
                true => removed.push((text.len(), position)),
                false => text.push_str(&after[..length]),
            }
            rest = &after[length..];
        }
        text.push_str(rest);
        Joined { text, original, removed }
    }

    /// Returns the original positions of the pairs that were removed between two positions of the joined text.
    pub(super) fn removed(&self, from: usize, to: usize) -> Vec<usize> {
        let is_between = |(at, _): &&(usize, usize)| (from..=to).contains(at);
        self.removed.iter().filter(is_between).map(|(_, original)| *original).collect()
    }

    /// Returns the original text from a position of the joined text on, and where that begins. Pairs that were removed
    /// exactly there belong to it.
    fn original(&self, at: usize) -> (usize, &'t str) {
        let before = self.removed.iter().filter(|(removed, _)| *removed < at).count();
        let at = at + 2 * before;
        (at, self.original.get(at..).unwrap_or_default())
    }

    /// Returns the original positions of the pairs that were removed from the lines that begin at `at`, up to the line
    /// for which `is_end` is true, which may itself end with a backslash.
    pub(super) fn removed_from_lines(
        &self,
        at: usize,
        is_end: impl Fn(&str) -> bool,
    ) -> Vec<usize> {
        let (begin, original) = self.original(at);
        let mut end = begin;
        for line in original.split_inclusive('\n') {
            end += line.len();
            if is_end(line.strip_suffix('\n').unwrap_or(line)) {
                break;
            }
        }
        let is_within = |original: &usize| (begin..end).contains(original);
        self.removed.iter().map(|(_, original)| *original).filter(is_within).collect()
    }
}
