//! One file: what is in it.

use super::{head, scope};
use crate::answer::{Answer, cite, code, count};
use crate::definition::{Kind, definition};
use crate::found::Page;
use crate::language::{self, Language};
use crate::notes::{Notes, WHOLE};
use crate::place;
use crate::question::{File, Question};
use crate::rank;
use crate::readme;
use crate::{shape, words};

/// Words of a question that narrow an outline.
const KINDS: [(&str, &[Kind]); 5] = [
    ("functions|methods", &[Kind::Function]),
    ("classes", &[Kind::Class]),
    ("structs", &[Kind::Struct]),
    ("enums", &[Kind::Enum]),
    ("traits|interfaces", &[Kind::Trait, Kind::Interface]),
];
/// Lines that are quoted of a file.
const QUOTED: usize = 60;
/// Definitions that are listed.
const LISTED: usize = 24;

/// Says what is in the files that `question` names.
pub(super) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut answer = Answer::new();
    for file in question.files.iter().take(2) {
        tell(file, question, notes, &mut answer)?;
    }
    Some(answer)
}

/// Says what is in the file at `path`, if there is such a file.
pub(super) fn at(path: &str, notes: &mut Notes<'_>) -> Option<Option<Answer>> {
    let file = File { path: path.to_owned(), line: None };
    if find(&file, notes)?.is_empty() {
        return Some(None);
    }
    let mut answer = Answer::new();
    tell(&file, &Question::default(), notes, &mut answer)?;
    Some(Some(answer))
}

/// What the one file of `question` defines, in a sentence, if there is such a file.
pub(super) fn certain(question: &Question, notes: &mut Notes<'_>) -> Option<Option<String>> {
    let [file] = question.files.as_slice() else { return Some(None) };
    let Some(path) = find(file, notes)?.into_iter().next() else { return Some(None) };
    let page = notes.read(&path, 1, WHOLE)?;
    let mut answer = Answer::new();
    tell_page(&page, question, &mut answer);
    Some((!page.lines.is_empty()).then(|| format!("What I can tell: {}", answer.into_text())))
}

/// The files that go by the name of `file`, the one that is most likely meant first.
fn find(file: &File, notes: &mut Notes<'_>) -> Option<Vec<String>> {
    let named = file.path.trim_matches('/');
    let ending = if place::base(named).contains('.') { "" } else { "*" };
    let mut found = notes.glob(&format!("**/{named}{ending}"))?.list;
    found.retain(|path| place::sort(path) != place::FileRole::Foreign || path == named);
    found.sort_by_key(|path| (path != named, place::depth(path), path.len()));
    Some(found)
}

fn tell(
    file: &File,
    question: &Question,
    notes: &mut Notes<'_>,
    answer: &mut Answer,
) -> Option<()> {
    let found = find(file, notes)?;
    let Some(path) = found.first() else {
        answer.say(scope::tell_missing(file.path.trim_matches('/')).into_text());
        return Some(());
    };
    let page = match file.line {
        Some(line) => notes.read(path, line.saturating_sub(20), 60)?,
        None => notes.read(path, 1, WHOLE)?,
    };
    if page.lines.is_empty() {
        answer.say(format!("{} is empty, or it is not text.", code(path)));
    } else if let Some(line) = file.line {
        tell_line(&page, line, answer);
    } else if question.begins("show|show me|print|cat|display|open") && asks_for_all(question) {
        tell_text(&page, question, answer);
    } else {
        tell_page(&page, question, answer);
    }
    let others: Vec<String> = found.iter().skip(1).take(4).map(|path| code(path)).collect();
    if !others.is_empty() && !file.path.contains('/') {
        answer.say(format!("There are others of that name: {}.", others.join(", ")));
    }
    Some(())
}

/// Whether the question is about a file as a whole.
fn asks_for_all(question: &Question) -> bool {
    KINDS.iter().all(|(phrases, _)| !question.has(phrases)) && !question.has("outline|sections")
}

/// Quotes the file, or the lines that `question` names.
fn tell_text(page: &Page, question: &Question, answer: &mut Answer) {
    let words = question.text.split(|c: char| !c.is_alphanumeric());
    let after = words.skip_while(|word| !matches!(*word, "line" | "lines"));
    let mut numbers = after.filter_map(|word| word.parse::<usize>().ok());
    let first = numbers.next().unwrap_or(1).max(1);
    let last = match numbers.next() {
        Some(last) => last.min(first.saturating_add(QUOTED)),
        None if first > 1 => first,
        None => QUOTED,
    };
    answer.say(format!("{}:", cite(&page.path, first)));
    answer.extract(page, first, last);
    let end = page.lines.last().map_or(0, |(number, _)| *number);
    if first > end {
        answer.say(format!("It has only {}.", count(end, "line")));
    } else if first == 1 && end > last {
        answer.say(format!("These are the first {last} of {}.", count(end, "line")));
    }
}

fn tell_line(page: &Page, line: usize, answer: &mut Answer) {
    answer.say(format!("{}:", cite(&page.path, line)));
    answer.extract(page, line.saturating_sub(6), line + 8);
}

fn tell_page(page: &Page, question: &Question, answer: &mut Answer) {
    let language = language::of(&page.path);
    let lines = page.lines.last().map_or(0, |(number, _)| *number);
    let least = if page.more { "more than " } else { "" };
    let called =
        language::called(&page.path).map(|called| format!(" of {called}")).unwrap_or_default();
    answer.say(format!("{} has {least}{}{called}.", code(&page.path), count(lines, "line")));
    if let Some((said, line)) = head::self_description(page) {
        answer
            .say(format!("It says of itself ({}):", cite(&page.path, line)))
            .quote(&words::shortened(&said, 500));
    }
    match language {
        Language::Markdown => tell_headings(page, answer),
        _ => tell_outline(page, language, question, answer),
    }
}

fn tell_headings(page: &Page, answer: &mut Answer) {
    let sections = readme::sections(page);
    let titled: Vec<_> = sections.iter().filter(|section| !section.title.is_empty()).collect();
    if titled.is_empty() {
        let lines: Vec<&str> = page.texts().map(|(_, line)| line).take(10).collect();
        answer
            .say(format!("It begins ({}):", cite(&page.path, 1)))
            .block(&lines, language::fence(&page.path));
        return;
    }
    answer.say("Its sections:");
    for section in titled.iter().take(LISTED) {
        let indent = "  ".repeat(section.level.saturating_sub(1).min(3));
        answer.item(format!("{indent}{} ({})", section.title, cite(&page.path, section.line)));
    }
    if titled.len() > LISTED {
        answer.item(format!("… and {} more", titled.len() - LISTED));
    }
}

fn tell_outline(page: &Page, language: Language, question: &Question, answer: &mut Answer) {
    let minor = matches!(language, Language::Toml | Language::Yaml | Language::Json);
    let kinds: Vec<Kind> = KINDS
        .iter()
        .filter(|(phrases, _)| question.has(phrases))
        .flat_map(|(_, kinds)| kinds.iter().copied())
        .collect();
    let mut tests = false;
    let mut outline: Vec<(usize, Kind, &str, usize)> = Vec::new();
    let aside = shape::aside(page);
    for ((line, text), _) in page.texts().zip(&aside).filter(|(_, aside)| !**aside) {
        let Some(found) = definition(language, text) else { continue };
        if shape::is_test(page, line) {
            tests = true;
            continue;
        }
        let wanted = if minor {
            found.indent == 0 && found.kind == Kind::Key
        } else {
            found.kind.is_major() || found.kind == Kind::Declaration && found.indent == 0
        };
        let asked = kinds.is_empty() || kinds.contains(&found.kind);
        let local =
            found.kind == Kind::Constant && found.indent > 0 || rank::is_import(text) || !asked;
        if wanted && !local {
            outline.push((line, found.kind, found.name, found.indent));
        }
    }
    if outline.is_empty() {
        let lines: Vec<&str> = page.texts().map(|(_, line)| line).take(12).collect();
        answer
            .say(format!("It begins ({}):", cite(&page.path, 1)))
            .block(&lines, language::fence(&page.path));
        return;
    }
    answer.say("It defines:");
    let all = outline.len();
    // Nested definitions are left out of a long list.
    if all > LISTED {
        outline.retain(|(_, _, _, indent)| *indent == 0);
    }
    let shown = outline.len().min(LISTED);
    for (line, kind, name, indent) in &outline[..shown] {
        let said = if *indent == 0 { shape::documentation(page, *line) } else { None };
        let said =
            said.map(|said| format!(": {}", words::shortened(&said, 90))).unwrap_or_default();
        answer.item(format!("{} {} ({}){said}", kind.word(), code(name), cite(&page.path, *line)));
    }
    if all > shown {
        answer.item(format!("… and {} more", all - shown));
    }
    if tests {
        answer.say("It has tests of its own, which are left out here.");
    }
}
