//! All other questions: a search for their words. It quotes the passages with most of the words and
//! says which words it found. It does not claim that they answer the question.

use super::project;
use super::scope::{self, Limited, Scope};
use crate::answer::{Answer, cite, code, count};
use crate::definition::{Kind, definition};
use crate::found::{Hit, Hits, Page};
use crate::intent::SearchForm;
use crate::language::{self, Language};
use crate::notes::{Notes, Search, together};
use crate::place::{self, FileRole};
use crate::question::Question;
use crate::words::{Term, escape};
use crate::{rank, shape};

/// Lines of one search.
const LINES: usize = 400;
/// Files that are searched one by one when there are too many lines.
const FILES: usize = 6;
/// Passages that are shown.
const PASSAGES: usize = 3;
/// Lines that count as one passage.
const WINDOW: usize = 8;
/// Files that are listed.
const LISTED: usize = 15;

/// A stretch of a file that has some of the words.
struct Passage {
    /// The line that says most.
    hit: Hit,
    /// Its first and last line with one of the words.
    lines: (usize, usize),
    score: f64,
    /// Which of the words it has.
    has: Vec<bool>,
}

impl Passage {
    fn covers(&self) -> usize {
        self.has.iter().filter(|has| **has).count()
    }
}

/// A word and how telling it is: the fewer files have it, the more.
struct Weighed {
    term: Term,
    weight: f64,
}

/// Searches for what `question` is about.
pub(super) fn look(question: &Question, form: SearchForm, notes: &mut Notes<'_>) -> Option<Answer> {
    let scope = match scope::of(question, notes)? {
        Limited::To(scope) => scope,
        Limited::Missing(path) => return Some(scope::tell_missing(&path)),
    };
    if !question.quoted.is_empty() {
        return quoted(question, &scope, notes);
    }
    let names = question.names.iter().map(|name| Term::new(&name.name));
    let covering = match form {
        SearchForm::Tests => "cover covers covering exercise check",
        SearchForm::Number => "count number",
        _ => "",
    };
    let mut terms: Vec<Term> = names.chain(question.left(covering).cloned()).collect();
    terms.truncate(5);
    if terms.is_empty() && question.has("use|used") {
        terms.push(Term::new("usage"));
    }
    if terms.is_empty() {
        return Some(unclear());
    }
    let explains = question.begins("what is|what are|whats|what does|explain|describe");
    if let [only] = terms.as_slice()
        && explains
        && project::is_called(&only.word, notes)?
    {
        return project::overview(notes);
    }
    let hits = lines(&terms, &scope, notes)?;
    let mut answer = Answer::new();
    match form {
        SearchForm::Number => {
            answer.say(
                "I cannot count that: I count files, lines, tests, functions, classes and the like.",
            );
        }
        SearchForm::Reason => {
            answer.say("I cannot explain or judge that: I search and quote.");
        }
        _ => {}
    }
    let weighed = weigh(terms, &hits);
    let (known, missing): (Vec<Weighed>, Vec<Weighed>) =
        weighed.into_iter().partition(|word| word.weight > 0.0);
    if known.is_empty() {
        answer.say(format!(
            "I found nothing about {}: no line has any of these words. I searched all files but \
                ignored ones and license texts.",
            emphasised(&missing)
        ));
        return Some(answer);
    }
    if form == SearchForm::Files {
        tell_files(&known, &missing, &hits, &mut answer);
        return Some(answer);
    }
    let mut passages = passages(&hits.list, &known, explains);
    if form == SearchForm::Tests {
        passages.retain(|passage| place::is_test(&passage.hit.path));
    }
    if passages.is_empty() {
        tell_found(&known, &missing, &passages, &mut answer);
        return Some(answer);
    }
    let floor = passages.first().map_or(0.0, |best| best.score * 0.5);
    passages.retain(|passage| passage.score >= floor);
    // Passages with few of the words are quoted briefly.
    let most = passages.iter().map(Passage::covers).max().unwrap_or(0);
    if most * 3 < (known.len() + missing.len()) * 2 {
        tell_scattered(&known, &missing, &passages, &mut answer);
        return Some(answer);
    }
    passages.retain(|passage| passage.covers() == most);
    let mut around = |hit: &Hit| notes.read(&hit.path, hit.line.saturating_sub(80), 100);
    let pages = together(passages.iter().take(PASSAGES).map(|found| around(&found.hit)))?;
    tell_found(&known, &missing, &passages, &mut answer);
    if question.begins("where|which file|what file|in which file") {
        tell_namesakes(&known, &hits, &mut answer);
    }
    let is_test =
        |page: &Page, line: usize| form != SearchForm::Tests && shape::is_test(page, line);
    let mut told: Vec<(&Passage, &Page)> = passages.iter().zip(&pages).collect();
    told.sort_by_key(|(passage, page)| is_test(page, passage.hit.line));
    for (passage, page) in told {
        tell_passage(passage, page, &mut answer);
    }
    let rest: Vec<&Passage> = passages.iter().skip(pages.len()).take(4).collect();
    if !rest.is_empty() {
        answer.say("See also:");
        for passage in rest {
            answer.place(&passage.hit);
        }
    }
    Some(answer)
}

/// The lines that have one of `terms`. Where there are too many, those of the files that have most
/// of the terms.
fn lines(terms: &[Term], scope: &Scope, notes: &mut Notes<'_>) -> Option<Hits> {
    let any = terms.iter().map(Term::pattern).collect::<Vec<_>>().join("|");
    let any = Search::new(any).any_case().at_most(LINES);
    let mut hits = notes.lines(&scope.narrow(any.clone()))?;
    if hits.cut {
        let having = |term: &Term| Search::new(term.pattern()).any_case().at_most(1_000);
        let lists = terms.iter().map(|term| notes.files(&scope.narrow(having(term))));
        let lists = together(lists)?;
        let mut files: Vec<(&String, f64)> = Vec::new();
        for list in &lists {
            let weight = (1.0 + 200.0 / list.list.len().max(1) as f64).ln();
            for path in &list.list {
                match files.iter_mut().find(|(known, _)| *known == path) {
                    Some((_, score)) => *score += weight,
                    None => files.push((path, weight)),
                }
            }
        }
        let score = |(path, score): &(&String, f64)| {
            let named = terms.iter().filter(|term| term.is_in(place::stem(path))).count();
            (score + named as f64 * 2.0) * factor(path)
        };
        files.sort_by(|one, other| score(other).total_cmp(&score(one)).then(one.0.cmp(other.0)));
        let best = files.iter().take(FILES);
        let found = together(best.map(|(path, _)| notes.lines(&any.clone().within(path))))?;
        hits = Hits { list: found.into_iter().flat_map(|hits| hits.list).collect(), cut: true };
    }
    hits.list.retain(|hit| {
        !is_license(&hit.path)
            && !hit.text.starts_with("#!/")
            && terms.iter().any(|term| term.is_in(&hit.text))
    });
    Some(hits)
}

fn weigh(terms: Vec<Term>, hits: &Hits) -> Vec<Weighed> {
    let weight = |term: &Term| {
        let mut paths: Vec<&str> =
            hits.list.iter().filter(|hit| term.is_in(&hit.text)).map(|hit| &*hit.path).collect();
        paths.dedup();
        match paths.len() {
            0 => 0.0,
            files => (1.0 + 40.0 / files as f64).ln(),
        }
    };
    terms.into_iter().map(|term| Weighed { weight: weight(&term), term }).collect()
}

/// Whether a file is the text of a license, which contains many words and answers no question.
fn is_license(path: &str) -> bool {
    let stem = place::stem(path).to_lowercase();
    let first = stem.split('-').next().unwrap_or_default();
    crate::words::has("license licence copying unlicense", first) && !language::is_code(path)
}

/// How much a file counts for its kind. Files that mention everything once come last.
fn factor(path: &str) -> f64 {
    let stem = place::stem(path).to_lowercase();
    let passing = "changelog changes history news releases notice authors";
    match place::sort(path) {
        _ if crate::words::has(passing, stem.split('-').next().unwrap_or_default()) => 0.1,
        FileRole::Foreign => 0.1,
        FileRole::Test => 0.5,
        FileRole::Example => 0.7,
        FileRole::Document | FileRole::Source => 1.0,
    }
}

/// The passages with most of the words, the best first, without neighbours. For questions that want
/// an explanation, documents come first.
fn passages(hits: &[Hit], weighed: &[Weighed], explains: bool) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    for (at, hit) in hits.iter().enumerate() {
        let near = |other: &&Hit| other.path == hit.path && other.line < hit.line + WINDOW;
        let window: Vec<&Hit> = hits[at..].iter().take_while(near).collect();
        let has: Vec<bool> = weighed
            .iter()
            .map(|word| window.iter().any(|hit| word.term.is_in(&hit.text)))
            .collect();
        let score: f64 =
            weighed.iter().zip(&has).filter(|(_, has)| **has).map(|(word, _)| word.weight).sum();
        // The best line represents the passage.
        let bonus = |hit: &&Hit| bonus(hit, weighed);
        let Some(best) = window.iter().copied().max_by(|one, other| {
            bonus(one).total_cmp(&bonus(other)).then(other.line.cmp(&one.line))
        }) else {
            continue;
        };
        let stem = place::stem(&hit.path);
        let named = weighed.iter().filter(|word| word.term.is_in(stem)).map(|word| word.weight);
        let score = (score + bonus(&best) + 0.3 * named.sum::<f64>()) * factor(&hit.path);
        let told = explains && place::sort(&hit.path) == FileRole::Document;
        let score = if told { score * 1.6 } else { score };
        let last = window.last().map_or(hit.line, |last| last.line);
        found.push(Passage { hit: best.clone(), lines: (hit.line, last), score, has });
    }
    found.sort_by(|one, other| {
        let places = || (&one.hit.path, one.hit.line).cmp(&(&other.hit.path, other.hit.line));
        other.score.total_cmp(&one.score).then_with(places)
    });
    let mut apart: Vec<Passage> = Vec::new();
    for passage in found {
        let beside = |known: &Passage| {
            known.hit.path == passage.hit.path
                && known.hit.line.abs_diff(passage.hit.line) < WINDOW * 2
        };
        let of_file = apart.iter().filter(|known| known.hit.path == passage.hit.path).count();
        if of_file < 2 && !apart.iter().any(beside) {
            apart.push(passage);
        }
    }
    apart
}

/// The score of a line: for its words, and more if it is a definition or heading with such a name.
fn bonus(hit: &Hit, weighed: &[Weighed]) -> f64 {
    if rank::is_import(&hit.text) {
        return 0.0;
    }
    let sum = |text: &str| -> f64 {
        weighed.iter().filter(|word| word.term.is_in(text)).map(|word| word.weight).sum()
    };
    let named = match definition(language::of(&hit.path), &hit.text) {
        Some(found) if found.kind.is_major() || found.kind == Kind::Heading => sum(found.name),
        _ => 0.0,
    };
    0.4 * sum(&hit.text) + 0.8 * named
}

fn emphasised(words: &[Weighed]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("*{}*", word.term.word)).collect();
    words.join(", ")
}

/// Says what was found, and which words were not.
fn tell_found(known: &[Weighed], missing: &[Weighed], found: &[Passage], answer: &mut Answer) {
    if !missing.is_empty() {
        answer.say(format!("Nothing mentions {}.", emphasised(missing)));
    }
    let Some(best) = found.first() else {
        answer.say(format!("I found nothing in tests about {}.", emphasised(known)));
        return;
    };
    let all = best.has.iter().all(|has| *has);
    answer.say(match (known.len(), all) {
        (1, _) => format!("Lines about {}:", emphasised(known)),
        (_, true) => format!("Passages with {}:", emphasised(known)),
        (_, false) => {
            format!("No passage has all of {}. The closest:", emphasised(known))
        }
    });
}

/// Source files whose name is one of the words.
fn tell_namesakes(known: &[Weighed], hits: &Hits, answer: &mut Answer) {
    let mut paths: Vec<&str> = hits
        .list
        .iter()
        .map(|hit| hit.path.as_str())
        .filter(|path| place::sort(path) == FileRole::Source)
        .filter(|path| known.iter().any(|word| word.term.is_form_of(place::stem(path))))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    let paths: Vec<String> = paths.into_iter().take(3).map(code).collect();
    if !paths.is_empty() {
        answer.say(format!("By name: {}.", paths.join(", ")));
    }
}

/// Lines that have one of the words each, when none has enough of them.
fn tell_scattered(known: &[Weighed], missing: &[Weighed], found: &[Passage], answer: &mut Answer) {
    if !missing.is_empty() {
        answer.say(format!("Nothing mentions {}.", emphasised(missing)));
    }
    answer.say(match known.len() {
        1 => format!("I found no answer. Lines with {}:", emphasised(known)),
        _ => format!("No passage has {} together. Lines with some of them:", emphasised(known)),
    });
    for passage in found.iter().take(5) {
        answer.place(&passage.hit);
    }
}

fn tell_files(known: &[Weighed], missing: &[Weighed], hits: &Hits, answer: &mut Answer) {
    let mut files: Vec<(&str, Vec<bool>, usize)> = Vec::new();
    for hit in &hits.list {
        let has: Vec<bool> = known.iter().map(|word| word.term.is_in(&hit.text)).collect();
        match files.last_mut().filter(|(path, _, _)| *path == hit.path) {
            Some((_, all, lines)) => {
                all.iter_mut().zip(has).for_each(|(all, has)| *all |= has);
                *lines += 1;
            }
            None => files.push((&hit.path, has, 1)),
        }
    }
    if !missing.is_empty() {
        answer.say(format!("Nothing mentions {}.", emphasised(missing)));
    }
    let complete = |(_, has, _): &(&str, Vec<bool>, usize)| has.iter().all(|has| *has);
    let whole = files.iter().any(complete);
    if whole {
        files.retain(complete);
    }
    files.sort_by(|one, other| {
        let rank = |file: &(&str, Vec<bool>, usize)| {
            let named = known.iter().filter(|word| word.term.is_in(place::stem(file.0))).count();
            (1 + named * 3) as f64 * factor(file.0) * (file.2 as f64).sqrt()
        };
        rank(other).total_cmp(&rank(one)).then(one.0.cmp(other.0))
    });
    let words = emphasised(known);
    let least = if hits.cut { "at least " } else { "" };
    answer.say(match whole {
        true => format!("{least}{} with {words}:", count(files.len(), "file")),
        false => format!("No file has all of {words}. With some of them:"),
    });
    for (path, _, lines) in files.iter().take(LISTED) {
        answer.item(format!("{} ({})", cite(path, 1), count(*lines, "line")));
    }
    if files.len() > LISTED {
        answer.item(format!("… and {} more", files.len() - LISTED));
    }
}

fn unclear() -> Answer {
    let mut answer = Answer::new();
    answer.say(
        "I do not know what to search for. Name a file, a function, or a word that the files would \
            have. `help` shows what I can answer.",
    );
    answer
}

/// Lines that have a text as it stands.
fn quoted(question: &Question, scope: &Scope, notes: &mut Notes<'_>) -> Option<Answer> {
    let literal = |text: &String| Search::new(escape(text)).any_case().at_most(40);
    let lists = question.quoted.iter().map(|text| notes.lines(&scope.narrow(literal(text))));
    let lists = together(lists)?;
    let mut answer = Answer::new();
    for (text, hits) in question.quoted.iter().zip(lists) {
        if hits.list.is_empty() {
            answer.say(format!("I found no {} in any file that is not ignored.", code(text)));
            continue;
        }
        let least = if hits.cut { "at least " } else { "" };
        answer.say(format!("{} is in {least}{}:", code(text), count(hits.list.len(), "line")));
        let mut ordered: Vec<&Hit> = hits.list.iter().collect();
        ordered.sort_by_key(|hit| -rank::place_score(&hit.path));
        for hit in ordered.into_iter().take(12) {
            answer.place(hit);
        }
    }
    Some(answer)
}

fn tell_passage(passage: &Passage, page: &Page, answer: &mut Answer) {
    let (path, line) = (&passage.hit.path, passage.hit.line);
    let Some(at) = page.position(line) else {
        answer.place(&passage.hit);
        return;
    };
    let language = language::of(path);
    let own = definition(language, &page.lines[at].1)
        .filter(|found| found.kind.is_major() && language::is_code(path));
    if let Some(found) = own {
        answer.say(format!("{}, {} {}:", cite(path, line), found.kind.word(), code(found.name)));
        answer.definition(page, line, 9);
        return;
    }
    let around = match shape::around(page, line) {
        Some((_, kind, name)) => format!(", in {} {}", kind.word(), code(name)),
        None => String::new(),
    };
    answer.say(format!("{}{around}:", cite(path, line)));
    let (first, last) = stretch(page, at, language);
    answer.extract(page, first.min(passage.lines.0), last.max(passage.lines.1));
}

/// The lines around a line that are shown: its paragraph, or a few lines of code.
fn stretch(page: &Page, at: usize, language: Language) -> (usize, usize) {
    // An item of a list or a row of a table is shown alone.
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
    let (before, after) = if language == Language::Markdown { (3, 6) } else { (2, 5) };
    let blank = |at: &usize| page.lines[*at].1.trim().is_empty();
    let first =
        (at.saturating_sub(before)..at).rev().take_while(|at| !blank(at)).last().unwrap_or(at);
    let end = (at + after + 1).min(page.lines.len());
    // A heading is shown with the paragraph below it.
    let heading = page.lines[at].1.starts_with('#') && language == Language::Markdown;
    let skip =
        if heading && page.lines.get(at + 1).is_some_and(|_| blank(&(at + 1))) { 2 } else { 1 };
    let last = (at + skip..end).take_while(|at| !blank(at)).last().unwrap_or(at);
    (page.lines[first].0, page.lines[last].0)
}
