//! Passages: which lines of a file say most about some words, and how they are shown.

use super::search::Focus;
use crate::offline::answer::{Answer, cite, code};
use crate::offline::definition::{Kind, definition};
use crate::offline::found::{Hit, Names, Page};
use crate::offline::language::{self, Language};
use crate::offline::rank;
use crate::offline::words::Term;

/// Lines that count as one passage.
const WINDOW: usize = 10;

/// A word and how telling it is: the fewer files have it, the more.
pub(super) struct Weighed<'q> {
    pub term: &'q Term,
    pub weight: f64,
    pub files: Names,
}

/// Lines of a file that belong together.
pub(super) struct Passage {
    pub hit: Hit,
    pub score: f64,
    /// How many of the words it has.
    pub covers: usize,
}

/// Where the tests of a file of Rust begin.
pub(super) const TESTS_BEGIN: &str = r"^#\[cfg\(test\)\]";

/// The stretches of a file that have most of the words, the best first, none beside another.
pub(super) fn best_passages(
    path: &str,
    hits: &[Hit],
    weighed: &[Weighed<'_>],
    focus: Focus,
) -> Vec<Passage> {
    let beginning = Hit { path: path.to_owned(), line: 1, text: String::new() };
    let mut found = vec![Passage { hit: beginning, score: 0.0, covers: 0 }];
    let tests = hits
        .iter()
        .find(|hit| hit.text.starts_with("#[cfg(test)]"))
        .map_or(usize::MAX, |hit| hit.line);
    let lower: Vec<String> = hits.iter().map(|hit| hit.text.to_lowercase()).collect();
    for (at, hit) in hits.iter().enumerate() {
        let end = hits[at..].iter().take_while(|other| other.line < hit.line + WINDOW).count();
        let window = &lower[at..at + end];
        let (mut score, mut covers) = (0.0, 0);
        for word in weighed {
            let own = window.iter().filter(|line| word.term.is_in(line)).count();
            let near = window.iter().any(|line| word.term.is_near(line));
            covers += usize::from(own > 0);
            score += match own {
                0 if near => 0.4 * word.weight,
                0 => 0.0,
                count => word.weight * (1.0 + 0.1 * (count.min(4) - 1) as f64),
            };
        }
        // The line that says most stands for the passage.
        let bonuses = (at..at + end).map(|at| (line_bonus(&hits[at], &lower[at], weighed), at));
        let (bonus, anchor) =
            bonuses.fold((0.0, at), |best, next| if next.0 > best.0 { next } else { best });
        score += bonus;
        score *= if hit.line > tests && focus != Focus::Tests { 0.5 } else { 1.0 };
        found.push(Passage { hit: hits[anchor].clone(), score, covers });
    }
    found.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then(one.hit.line.cmp(&other.hit.line))
    });
    let mut apart: Vec<Passage> = Vec::new();
    for passage in found {
        if apart.len() < 2
            && apart.iter().all(|kept| kept.hit.line.abs_diff(passage.hit.line) > WINDOW)
        {
            apart.push(passage);
        }
    }
    apart
}

/// What the first line of a passage adds: definitions and headings that are about the words.
fn line_bonus(hit: &Hit, lower: &str, weighed: &[Weighed<'_>]) -> f64 {
    let own: f64 =
        weighed.iter().filter(|word| word.term.is_in(lower)).map(|word| word.weight).sum();
    if rank::is_import(&hit.text) {
        return 0.0;
    }
    let Some(found) = definition(language::of(&hit.path), &hit.text) else {
        return 0.35 * own;
    };
    let name = found.name.to_lowercase();
    let named: f64 =
        weighed.iter().filter(|word| word.term.is_in(&name)).map(|word| word.weight).sum();
    let share = match found.kind {
        Kind::Heading => 0.9,
        kind if kind.is_major() => 0.9,
        Kind::Declaration => 0.6,
        _ => 0.3,
    };
    share * named + 0.35 * own
}

pub(super) fn tell_passage(answer: &mut Answer, passage: &Passage, page: &Page) {
    let (path, line) = (&passage.hit.path, passage.hit.line);
    let Some(at) = page.position(line) else {
        answer.place(&passage.hit);
        return;
    };
    let language = language::of(path);
    let around = page.lines[..=at].iter().rev().find_map(|(number, text)| {
        let found = definition(language, text)?;
        (found.kind.is_major() || found.kind == Kind::Heading)
            .then_some((*number, found.kind, found.name))
    });
    match around {
        Some((number, kind, name)) if number == line => {
            answer.say(format!("{}: {} {}", cite(path, line), kind.word(), code(name)));
            answer.definition(page, line, 9);
        }
        Some((_, kind, name)) => {
            answer.say(format!("{}, in {} {}:", cite(path, line), kind.word(), code(name)));
            let (first, last) = stretch(page, at, language);
            answer.extract(page, first, last);
        }
        None => {
            answer.say(format!("{}:", cite(path, line)));
            let (first, last) = stretch(page, at, language);
            answer.extract(page, first, last);
        }
    }
}

/// The lines around a line that are shown: its paragraph, or a few lines of code.
fn stretch(page: &Page, at: usize, language: Language) -> (usize, usize) {
    // An item of a list, or a row of a table, stands for itself.
    let is_item = |at: usize| {
        let text = page.lines[at].1.trim_start();
        text.starts_with("- ")
            || text.starts_with("* ")
            || text.starts_with('|')
            || text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(". ")
    };
    if language == Language::Markdown && is_item(at) {
        let last = (at + 1..page.lines.len().min(at + 5))
            .take_while(|at| !page.lines[*at].1.trim().is_empty() && !is_item(*at))
            .last();
        return (page.lines[at].0, page.lines[last.unwrap_or(at)].0);
    }
    let before = if language == Language::Markdown { 3 } else { 2 };
    let after = if language == Language::Markdown { 6 } else { 5 };
    let blank = |at: &usize| page.lines[*at].1.trim().is_empty();
    let first =
        (at.saturating_sub(before)..at).rev().take_while(|at| !blank(at)).last().unwrap_or(at);
    let end = (at + after + 1).min(page.lines.len());
    let last = (at + 1..end).take_while(|at| !blank(at)).last().unwrap_or(at);
    (page.lines[first].0, page.lines[last].0)
}
