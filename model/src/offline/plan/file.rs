//! One file, or one folder: what is in it.

use super::search::{self, Focus};
use super::{head, layout};
use crate::offline::answer::{self, Answer, cite, code, count};
use crate::offline::definition::{Kind, definition};
use crate::offline::found::Page;
use crate::offline::language::{self, Language};
use crate::offline::manifest;
use crate::offline::notes::Notes;
use crate::offline::place;
use crate::offline::question::{File, Name, Question};
use crate::offline::readme;

/// Lines of a file that are read.
const READ: usize = 800;
/// Definitions that are listed.
const LISTED: usize = 24;

/// Summarises the file that `question` names.
pub(in crate::offline) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut answer = Answer::new();
    for file in question.files.iter().take(2) {
        tell(file, question, notes, &mut answer)?;
    }
    Some(answer)
}

fn tell(
    file: &File,
    question: &Question,
    notes: &mut Notes<'_>,
    answer: &mut Answer,
) -> Option<()> {
    let named = file.path.trim_matches('/');
    let ending = if place::base(named).contains('.') { "" } else { "*" };
    let files = notes.glob(&format!("**/{named}{ending}"));
    let inside = notes.glob(&format!("{{{named}/**,**/{named}/**}}"));
    let (files, inside) = (files?, inside?);
    let own = |path: &&String| place::sort(path) != place::Sort::Foreign || path.as_str() == named;
    let best = files
        .list
        .iter()
        .filter(own)
        .min_by_key(|path| (path.as_str() != named, place::depth(path), path.len()));
    if best.is_none()
        && let Some(folder) =
            inside.list.iter().filter_map(|path| folder(path, named)).min_by_key(|path| path.len())
    {
        answer.say(layout::look(folder, notes)?.into_text());
        return Some(());
    }
    let Some(path) = best else {
        if !is_written_as_path(file) {
            // "The parser package" may be no folder at all.
            let mut words = question.clone();
            words.names.insert(0, Name { sure: false, ..Name::plain(named) });
            answer.say(search::look(&words, Focus::Passages, notes)?.into_text());
            return Some(());
        }
        answer.say(format!(
            "I found no file {}; I looked for it at any depth, in all folders that are not \
                ignored.",
            code(named)
        ));
        return Some(());
    };
    let page = match file.line {
        Some(line) => notes.read(path, line.saturating_sub(20), 60)?,
        None => notes.read(path, 1, READ)?,
    };
    if page.lines.is_empty() {
        answer.say(format!("{} is empty, or no text.", code(path)));
    } else if let Some(line) = file.line {
        tell_line(&page, line, answer);
    } else {
        tell_page(&page, question, answer);
    }
    let others: Vec<String> = files
        .list
        .iter()
        .filter(own)
        .filter(|other| *other != path)
        .take(4)
        .map(|path| code(path))
        .collect();
    if !others.is_empty() && place::base(named) == named {
        answer.say(format!("There are others of that name: {}.", others.join(", ")));
    }
    Some(())
}

/// The folder on the way to `path` that is called `named`.
fn folder<'p>(path: &'p str, named: &str) -> Option<&'p str> {
    let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
    ends.into_iter().find(|folder| {
        folder.strip_suffix(named).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

fn is_written_as_path(file: &File) -> bool {
    let inner = file.path.trim_end_matches('/');
    inner.contains(['/', '.']) || language::is_known_name(inner)
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
            .quote(&answer::shortened(&said, 500));
    }
    tell_on_subject(page, question, answer);
    match language {
        Language::Markdown => tell_headings(page, answer),
        _ if !manifest::dependencies(page).is_empty() => tell_manifest(page, answer),
        _ => tell_outline(page, language, answer),
    }
}

/// The lines of the file that have the question's own words.
fn tell_on_subject(page: &Page, question: &Question, answer: &mut Answer) {
    if question.terms.is_empty() {
        return;
    }
    let score = |text: &str| question.terms.iter().filter(|term| term.is_in(text)).count();
    let mut hits: Vec<(usize, usize, &str)> = page
        .texts()
        .map(|(line, text)| (score(&text.to_lowercase()), line, text))
        .filter(|(score, _, _)| *score > 0)
        .collect();
    hits.sort_by_key(|(score, line, _)| (std::cmp::Reverse(*score), *line));
    if hits.is_empty() || hits.len() > 40 {
        return;
    }
    answer.say(format!(
        "On {}:",
        question.terms.iter().map(|term| format!("*{}*", term.word)).collect::<Vec<_>>().join(", ")
    ));
    for (_, line, text) in hits.into_iter().take(5) {
        answer.item(format!(
            "{} {}",
            cite(&page.path, line),
            code(&answer::shortened(text.trim(), 120))
        ));
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

fn tell_manifest(page: &Page, answer: &mut Answer) {
    let identity = manifest::identity(page);
    if let Some((name, line)) = identity.name {
        let description =
            identity.description.map(|(text, _)| format!(": {text}")).unwrap_or_default();
        answer.say(format!(
            "It describes {} ({}){description}.",
            code(&name),
            cite(&page.path, line)
        ));
    }
    let scripts = manifest::scripts(page, "npm");
    if !scripts.is_empty() {
        let calls: Vec<String> = scripts.iter().take(12).map(|script| code(&script.call)).collect();
        answer.say(format!(
            "Commands ({}): {}.",
            cite(&page.path, scripts[0].line),
            calls.join(", ")
        ));
    }
    let needs = manifest::dependencies(page);
    let names: Vec<String> = needs.iter().take(30).map(|one| code(&one.name)).collect();
    answer.say(format!("It needs ({}): {}.", cite(&page.path, needs[0].line), names.join(", ")));
}

fn tell_outline(page: &Page, language: Language, answer: &mut Answer) {
    let minor = matches!(language, Language::Toml | Language::Yaml | Language::Json);
    let mut tests = false;
    let mut outline: Vec<(usize, Kind, &str, usize)> = Vec::new();
    for (line, text) in page.texts() {
        tests = tests || text.trim_start().starts_with("#[cfg(test)]");
        let Some(found) = definition(language, text) else { continue };
        let wanted = if minor {
            found.indent == 0 && found.kind == Kind::Key
        } else {
            found.kind.is_major() || found.kind == Kind::Declaration && found.indent == 0
        };
        let local = found.kind == Kind::Constant && found.indent > 0;
        if wanted && !local && !(tests && language == Language::Rust) {
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
    // What is nested gives way when there is much.
    if all > LISTED {
        outline.retain(|(_, _, _, indent)| *indent == 0);
    }
    let shown = outline.len().min(LISTED);
    for (line, kind, name, indent) in &outline[..shown] {
        let nested = if *indent > 0 { "  " } else { "" };
        let said = if *indent == 0 { answer::documentation(page, *line) } else { None };
        let said =
            said.map(|said| format!(": {}", answer::shortened(&said, 90))).unwrap_or_default();
        answer.item(format!(
            "{nested}{} {} ({}){said}",
            kind.word(),
            code(name),
            cite(&page.path, *line)
        ));
    }
    if all > shown {
        answer.item(format!("… and {} more", all - shown));
    }
    if tests {
        answer.say("It has its own tests at the end.");
    }
}
