//! The description of a file at its beginning.

use crate::found::Page;
use crate::language;
use crate::manifest;
use crate::place::{base, is_readme};
use crate::{readme, shape};

/// The description of the file on `page`, and its place.
pub(super) fn self_description(page: &Page) -> Option<(String, usize)> {
    if manifest::names_dependencies(base(&page.path)) {
        return manifest::value(page, "description");
    }
    if language::of(&page.path) == language::Language::Markdown || is_readme(&page.path) {
        let (title, first) = readme::beginning(page, &[]);
        return first.or(title.map(|title| (title, 1)));
    }
    first_comment(page)
}

/// The first paragraph of comment before any code, without comments about rights and for tools. A
/// title is joined with the paragraph below it.
fn first_comment(page: &Page) -> Option<(String, usize)> {
    let mut paragraphs: Vec<(Vec<&str>, usize)> = Vec::new();
    let (mut quoted, mut open) = (false, false);
    for (line, text) in page.texts().take(60) {
        let text = text.trim();
        if is_for_tools(text) {
            open = false;
            continue;
        }
        let plain = text.strip_prefix('r').filter(|it| it.starts_with("\"\"\"")).unwrap_or(text);
        let marks = plain.matches("\"\"\"").count() + plain.matches("\'\'\'").count();
        let docstring = quoted || plain.starts_with("\"\"\"") || plain.starts_with("\'\'\'");
        quoted ^= docstring && marks % 2 == 1;
        let said = match docstring {
            true => Some(plain.trim_matches(['"', '\''])),
            false => shape::comment(plain),
        };
        let words = said.filter(|said| said.contains(char::is_alphanumeric));
        match (words, paragraphs.last_mut()) {
            (Some(words), Some((last, _))) if open => last.push(words),
            (Some(words), _) => paragraphs.push((vec![words], line)),
            (None, _) if said.is_some() || plain.is_empty() || plain.starts_with(['#', '<']) => {}
            (None, _) => break,
        }
        open = words.is_some();
    }
    paragraphs.retain(|(said, _)| !said.iter().any(|words| is_boilerplate(words)));
    let (first, line) = paragraphs.first().map(|(said, line)| (said.join(" "), *line))?;
    let is_title = !first.ends_with('.') && first.split(' ').count() < 6;
    let text = match paragraphs.get(1).filter(|_| is_title) {
        Some((second, _)) => format!("{first}: {}", second.join(" ")),
        None => first,
    };
    (text.chars().filter(|c| c.is_alphabetic()).count() > 5).then_some((text, line))
}

/// Lines about rights, which say nothing about the file.
fn is_boilerplate(words: &str) -> bool {
    const MARKS: &str = "copyright|spdx-|licen|warrant|all rights reserved|permission|redistribut|\
        do not edit|generated";
    let lower = words.to_lowercase();
    MARKS.split('|').any(|mark| lower.contains(mark))
}

/// A line for a tool, also within other text.
fn is_for_tools(line: &str) -> bool {
    const MARKS: &str = "eslint|@ts-|-*-|vim:|pylint|noqa|clang-format|@format|use strict|#!/";
    let lower = line.to_lowercase();
    MARKS.split('|').any(|mark| lower.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: Option<(&str, usize)>) {
        let found = self_description(&Page::of(path, text));
        assert_eq!(found.as_ref().map(|(said, line)| (said.as_str(), *line)), expected, "{text}");
    }

    #[test]
    fn a_file_speaks_through_its_first_comment() {
        check("a.rs", "//! The loop.\n//! Small.\n//!\n//! More.\n", Some(("The loop. Small.", 1)));
        check(
            "a.py",
            "#!/bin/py\n\"\"\"Getting feeds.\"\"\"\nimport x",
            Some(("Getting feeds.", 2)),
        );
        check("a.py", "r\"\"\"\nTagged\n~~~\n\nDoes it.\n\"\"\"\n", Some(("Tagged: Does it.", 2)));
        let go = "// Copyright 2020 X\n// All rights reserved.\n\n// Package a does.\npackage a";
        check("a.go", go, Some(("Package a does.", 4)));
        check("a.py", "# -*- coding: utf-8 -*-\n\"\"\"A client.\"\"\"\n", Some(("A client.", 2)));
        check("a.c", "int main(void)\n{\n    /* not this one */\n}\n", None);
    }
}
