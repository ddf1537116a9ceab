//! Anything else: a search for the words of the question, the best passages first.

use super::passage::{Passage, TESTS_BEGIN, Weighed, best_passages, tell_passage};
use crate::offline::answer::{self, Answer, cite, code, count};
use crate::offline::found::{Hit, Names, Page};
use crate::offline::notes::{Notes, Search, together};
use crate::offline::place::{self, Sort};
use crate::offline::question::Question;
use crate::offline::words::{Term, escape};

/// Words that are searched for.
const TERMS: usize = 5;
/// Files that are looked into.
const FILES: usize = 8;
/// Passages that are shown.
const PASSAGES: usize = 3;

/// What is wanted of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::offline) enum Focus {
    Passages,
    Files,
    Tests,
}

/// What kind of place is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaning {
    None,
    Code,
    Documents,
    Tests,
}

/// Phrases that ask for code.
const CODE: &str = "where is|where are|wheres|where do|where does|which function|which functions|\
    which method|which class|which struct|which component|what function|implemented|\
    implementation|which module|in the code|code|internally|internals|under the hood|wo wird|\
    wo ist|où est|dónde se";
/// Phrases that ask for documents.
const DOCUMENTS: &str = "documented|documentation|document|documents|docs|described|notes|note|\
    explained|decision records|decision record|adr|adrs|guide|guides|page|pages|manual";

impl Leaning {
    fn of(question: &Question, focus: Focus) -> Self {
        if focus == Focus::Tests {
            Leaning::Tests
        } else if question.has(DOCUMENTS) {
            Leaning::Documents
        } else if question.has(CODE) {
            Leaning::Code
        } else {
            Leaning::None
        }
    }
}

/// Searches for what `question` is about.
pub(in crate::offline) fn look(
    question: &Question,
    focus: Focus,
    notes: &mut Notes<'_>,
) -> Option<Answer> {
    let terms = sought(question);
    let literal = |text: &String| Search::new(escape(text)).any_case().at_most(40);
    let quoted = together(question.quoted.iter().map(|text| notes.lines(&literal(text))));
    let having = |term: &Term| Search::new(term.pattern()).any_case().at_most(1_000);
    let lists = together(terms.iter().map(|term| notes.files(&having(term))));
    let named = match names_pattern(&terms) {
        Some(pattern) => notes.glob(&pattern),
        None => Some(Names::default()),
    };
    let (quoted, lists, named) = (quoted?, lists?, named?);
    let quoted: Vec<Hit> = quoted.into_iter().flat_map(|hits| hits.list).collect();
    if !quoted.is_empty() {
        return Some(tell_quoted(question, &quoted));
    }
    let weighed: Vec<Weighed<'_>> = terms
        .iter()
        .zip(lists)
        .map(|(term, files)| Weighed { term, weight: term.weight * weight(&files), files })
        .collect();
    let leaning = Leaning::of(question, focus);
    let mut ranked = rank_files(&weighed, &named, focus, leaning);
    ranked.truncate(FILES);
    if ranked.is_empty() {
        return Some(tell_nothing(question, &terms));
    }
    let any: Vec<String> = terms.iter().map(Term::pattern).collect();
    let any = Search::new(format!("{}|{TESTS_BEGIN}", any.join("|"))).any_case().at_most(150);
    let lines = together(ranked.iter().map(|(path, _)| notes.lines(&any.clone().within(path))))?;
    let mut passages: Vec<Passage> = Vec::new();
    for ((path, score), hits) in ranked.iter().zip(&lines) {
        let most = if focus == Focus::Files { 1 } else { 2 };
        for found in best_passages(path, &hits.list, &weighed, focus).into_iter().take(most) {
            let score = found.score * factor(path, leaning) + score * 0.6;
            passages.push(Passage { score, ..found });
        }
    }
    passages.sort_by(|one, other| other.score.total_cmp(&one.score));
    drop_copies(&mut passages);
    let floor = passages.first().map_or(0.0, |best| best.score * 0.3);
    passages.retain(|passage| passage.score > floor);
    if focus == Focus::Files {
        return Some(tell_files(question, &passages, &lines));
    }
    let around = |hit: &Hit| notes.read(&hit.path, hit.line.saturating_sub(12), 40);
    let shown = passages.iter().take(PASSAGES).map(|found| &found.hit);
    let pages = together(shown.map(around))?;
    let mut answer = Answer::new();
    if !question.quoted.is_empty() {
        let absent: Vec<String> = question.quoted.iter().map(|text| code(text)).collect();
        answer.say(format!(
            "I found no {}, whatever the case, in any file that is not ignored.",
            absent.join(" and no ")
        ));
    }
    tell_passages(question, &weighed, &passages, &pages, focus, &mut answer);
    Some(answer)
}

/// The words to search for, the most telling kinds first.
fn sought(question: &Question) -> Vec<Term> {
    let parts = question.names.iter().flat_map(|name| name.parts());
    let parts = parts.filter(|part| part.len() > 2).map(|part| Term::new(&part).weighing(1.5));
    let words = question.terms.iter().chain(&question.frame).cloned();
    parts.chain(words).take(TERMS).collect()
}

/// Leaves out copies of a document, one for each version or language: they say the same.
fn drop_copies(passages: &mut Vec<Passage>) {
    let mut documents: Vec<String> = Vec::new();
    passages.retain(|passage| {
        let path = &passage.hit.path;
        if place::sort(path) != Sort::Document || place::is_readme(path) {
            return true;
        }
        let same = |known: &String| known != path && place::base(known) == place::base(path);
        let copied = documents.iter().any(same);
        documents.extend((!copied).then(|| path.clone()));
        !copied
    });
}

/// A file pattern for names and folders that hold one of the words.
fn names_pattern(terms: &[Term]) -> Option<String> {
    let globs: Vec<String> = terms.iter().map(Term::glob).filter(|glob| glob.len() > 2).collect();
    if globs.is_empty() {
        return None;
    }
    let both = globs.iter().map(|glob| format!("**/*{glob}*,**/*{glob}*/**"));
    Some(format!("{{{}}}", both.collect::<Vec<_>>().join(",")))
}

fn weight(files: &Names) -> f64 {
    match files.list.len() {
        0 => 0.0,
        _ if files.cut => 0.15,
        count => (1.0 + 250.0 / count as f64).ln(),
    }
}

/// How much a file counts for what it is.
fn factor(path: &str, leaning: Leaning) -> f64 {
    match (place::sort(path), leaning) {
        (Sort::Foreign, _) => 0.15,
        (Sort::Test, Leaning::Tests) => 2.0,
        (_, Leaning::Tests) => 0.5,
        (Sort::Test, _) => 0.5,
        (Sort::Example, _) => 0.7,
        (Sort::Document, _) if is_history(path) => 0.5,
        (Sort::Document, Leaning::Code) => 0.65,
        (Sort::Document, Leaning::Documents) => 1.3,
        (Sort::Document, Leaning::None) => 1.0,
        (Sort::Source, Leaning::Documents) => 0.6,
        (Sort::Source, _) => 1.0,
    }
}

/// Documents that mention everything once.
fn is_history(path: &str) -> bool {
    let stem = place::stem(path).to_lowercase();
    ["changelog", "changes", "history", "news", "releases", "summary"].contains(&stem.as_str())
}

fn rank_files(
    weighed: &[Weighed<'_>],
    named: &Names,
    focus: Focus,
    leaning: Leaning,
) -> Vec<(String, f64)> {
    let for_name = if focus == Focus::Files { 2.5 } else { 1.5 };
    let mut paths: Vec<&String> =
        weighed.iter().flat_map(|word| &word.files.list).chain(&named.list).collect();
    paths.sort();
    paths.dedup();
    let total = weighed.len().max(1) as f64;
    let mut ranked: Vec<(String, f64)> = Vec::new();
    for path in paths {
        let (folder, name) = (place::folder(path).to_lowercase(), place::stem(path).to_lowercase());
        let (mut score, mut covered) = (0.0, 0.0);
        for word in weighed {
            let weight = word.weight.max(0.5);
            // A list that was cut says nothing about files that come later in it.
            let within = word.files.cut || word.files.list.contains(path);
            let (in_name, in_folder) = (word.term.is_in(&name), word.term.is_in(&folder));
            score += if within { weight } else { 0.0 };
            score += if in_name {
                for_name * weight
            } else if word.term.is_near(&name) {
                0.9 * weight
            } else {
                0.0
            };
            score += if in_folder { 0.6 * weight } else { 0.0 };
            covered += f64::from(u8::from(within || in_name));
        }
        score *= (0.4 + covered / total) * factor(path, leaning);
        if score > 0.0 {
            ranked.push((path.clone(), score));
        }
    }
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    ranked
}

fn tell_quoted(question: &Question, hits: &[Hit]) -> Answer {
    let mut answer = Answer::new();
    let quoted: Vec<String> = question.quoted.iter().map(|text| code(text)).collect();
    answer.say(format!("{} stands in {}:", quoted.join(", "), count(hits.len(), "place")));
    let mut ordered: Vec<&Hit> = hits.iter().collect();
    ordered.sort_by_key(|hit| -crate::offline::rank::place_score(&hit.path));
    for hit in ordered.into_iter().take(12) {
        answer.place(hit);
    }
    answer
}

fn tell_nothing(question: &Question, terms: &[Term]) -> Answer {
    let mut answer = Answer::new();
    let mut sought: Vec<String> = terms.iter().map(|term| format!("*{}*", term.word)).collect();
    sought.extend(question.quoted.iter().map(|text| code(text)));
    if sought.is_empty() {
        answer.say(
            "I do not know what to search for. Name a file, a function, or a word that the code \
                would use.",
        );
        return answer;
    }
    answer.say(format!(
        "I found nothing about {}: no line and no file name has any of these words, in all files \
            that are not ignored.",
        sought.join(", ")
    ));
    answer
}

fn tell_files(
    question: &Question,
    passages: &[Passage],
    lines: &[crate::offline::found::Hits],
) -> Answer {
    let mut answer = Answer::new();
    answer.say(format!("Files about {}, the closest first:", emphasised(question)));
    for passage in passages.iter().filter(|passage| passage.score > 0.0) {
        let hits = lines
            .iter()
            .find(|hits| hits.list.first().is_some_and(|hit| hit.path == passage.hit.path));
        let amount = hits.map_or(0, |hits| hits.list.len());
        let text = answer::shortened(passage.hit.text.trim(), 100);
        let place = cite(&passage.hit.path, passage.hit.line);
        answer.item(match amount {
            0 => format!("{place} by its name"),
            _ => format!("{place} ({}) {}", count(amount, "line"), code(&text)),
        });
    }
    answer
}

fn emphasised(question: &Question) -> String {
    let words = question.terms.iter().map(|term| format!("*{}*", term.word));
    let names = question.names.iter().map(|name| code(&name.shown()));
    names.chain(words).collect::<Vec<_>>().join(", ")
}

fn tell_passages(
    question: &Question,
    weighed: &[Weighed<'_>],
    passages: &[Passage],
    pages: &[Page],
    focus: Focus,
    answer: &mut Answer,
) {
    let missing: Vec<String> = weighed
        .iter()
        .filter(|word| word.files.list.is_empty())
        .map(|word| format!("*{}*", word.term.word))
        .collect();
    let best = passages.first().map_or(0, |passage| passage.covers);
    let what = emphasised(question);
    let tests = if focus == Focus::Tests { " in tests" } else { "" };
    answer.say(if !missing.is_empty() {
        format!("Nothing mentions {}. The closest I found to {what}{tests}:", missing.join(" or "))
    } else if best * 2 < weighed.len() {
        format!("No place has all of {what}. The closest I found{tests}:")
    } else {
        format!("The closest I found to {what}{tests}:")
    });
    for (passage, page) in passages.iter().zip(pages) {
        tell_passage(answer, passage, page);
    }
    let rest: Vec<&Passage> =
        passages.iter().skip(pages.len()).filter(|other| other.covers > 0).take(4).collect();
    if !rest.is_empty() {
        answer.say("See also:");
        for passage in rest {
            answer.place(&passage.hit);
        }
    }
}
