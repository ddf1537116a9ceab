//! Answers to questions that come up in every project.

use crate::offline::answer::{self, Answer, cite, code};
use crate::offline::definition::definition;
use crate::offline::found::{Hit, Names};
use crate::offline::language;
use crate::offline::notes::{Notes, Search};
use crate::offline::place::{self, Sort};
use crate::offline::question::Question;
use crate::offline::rank;
use crate::offline::topic::{self, Topic};

/// Places that are listed.
const LISTED: usize = 14;
/// Places in one file that are listed.
const PER_FILE: usize = 8;

/// Answers from how the topic looks in code. Gives nothing when there is no trace of it.
pub(in crate::offline) fn look(
    topic: &Topic,
    question: &Question,
    notes: &mut Notes<'_>,
) -> Option<Option<Answer>> {
    let hits = notes.lines(&Search::new(topic.pattern()).at_most(200));
    let files = match topic.files {
        Some(pattern) => notes.glob(pattern),
        None => Some(Names::default()),
    };
    let (hits, files) = (hits?, files?);
    let files: Vec<&String> =
        files.list.iter().filter(|path| place::sort(path) != Sort::Foreign).take(6).collect();
    let mut found: Vec<&Hit> = hits.list.iter().filter(|hit| is_telling(hit)).collect();
    let narrowing: Vec<_> = topic::narrowing(topic, question).collect();
    let score = |hit: &&Hit| {
        let lower = format!("{} {}", hit.path, hit.text).to_lowercase();
        let named = narrowing.iter().filter(|term| term.is_in(&lower)).count() as i32;
        let comment = if answer::comment(&hit.text).is_some() { -15 } else { 0 };
        rank::place_score(&hit.path) + 30 * named + comment
    };
    // A file that has much of it is where it is done.
    let amount =
        |path: &str| hits.list.iter().filter(|hit| hit.path == path).count().min(12) as i32;
    found.sort_by_cached_key(|hit| (-(score(hit) + 2 * amount(&hit.path)), hit.path.clone()));
    let mut kept: Vec<(&str, usize)> = Vec::new();
    found.retain(|hit| match kept.iter_mut().find(|(path, _)| *path == hit.path) {
        Some((_, count)) => {
            *count += 1;
            *count <= PER_FILE
        }
        None => {
            kept.push((&hit.path, 1));
            true
        }
    });
    if found.is_empty() && files.is_empty() {
        return Some(None);
    }
    let mut answer = Answer::new();
    answer.say(format!("{}, as far as the code shows:", topic.title));
    for path in &files {
        answer.item(cite(path, 1));
    }
    for hit in found.iter().take(LISTED) {
        answer.place(hit);
    }
    if found.len() > LISTED || hits.cut {
        answer.item("… and more");
    }
    let best = found
        .first()
        .and_then(|hit| definition(language::of(&hit.path), &hit.text).map(|found| (*hit, found)));
    if let Some((hit, defined)) =
        best.filter(|(_, defined)| defined.kind.is_major() && files.is_empty())
    {
        let page = notes.read(&hit.path, hit.line.saturating_sub(6), 30)?;
        answer.say(format!("The first of them, {}:", code(defined.name)));
        answer.definition(&page, hit.line, 16);
    }
    Some(Some(answer))
}

/// Data and minified code have every word in them.
fn is_telling(hit: &Hit) -> bool {
    place::sort(&hit.path) != Sort::Foreign && hit.text.len() < 300
}
