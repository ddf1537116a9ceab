//! What the project is.

use super::layout;
use crate::offline::answer::{self, Answer, cite, code, count};
use crate::offline::found::{Names, Page};
use crate::offline::language;
use crate::offline::manifest;
use crate::offline::notes::{Notes, together};
use crate::offline::place::{self, Sort, base, depth};
use crate::offline::readme;

/// Documents that describe a project.
const READMES: &str = "**/{README*,readme*,Readme*}";
/// The `most` paths that are nearest to the top, foreign ones left out.
pub(super) fn nearest(paths: &[String], most: usize) -> Vec<String> {
    let is_own = |path: &&String| !matches!(place::sort(path), Sort::Foreign | Sort::Test);
    let mut own: Vec<&String> = paths.iter().filter(is_own).collect();
    // Examples speak for themselves only, unless there is nothing else.
    if own.iter().any(|path| place::sort(path) != Sort::Example) {
        own.retain(|path| place::sort(path) != Sort::Example);
    }
    own.sort_by_key(|path| (depth(path), preference(path)));
    own.into_iter().take(most).cloned().collect()
}

/// Translations and fragments come after the document itself.
fn preference(path: &str) -> usize {
    match base(path).matches('.').count() {
        0 | 1 => base(path).len(),
        more => 100 * more,
    }
}

/// Says what the project is.
pub(in crate::offline) fn overview(notes: &mut Notes<'_>) -> Option<Answer> {
    let (readmes, manifests) = (notes.glob(READMES), notes.glob(manifest::PATTERN));
    let (files, top) = (notes.glob("**/*"), notes.list(""));
    let (readmes, manifests, files, top) = (readmes?, manifests?, files?, top?);
    let readme = nearest(&readmes.list, 1);
    let described = nearest(&manifests.list, 3);
    // Without a README, the documents at the top say what there is.
    let is_document = |path: &String| place::sort(path) == Sort::Document;
    let mut others = nearest(&files.list, 60);
    others.retain(is_document);
    others.truncate(if readme.is_empty() { 5 } else { 0 });
    let readme = together(readme.iter().map(|path| notes.read(path, 1, 200)));
    let described = together(described.iter().map(|path| notes.read(path, 1, 80)));
    let others = together(others.iter().map(|path| notes.read(path, 1, 30)));
    let (readme, described, others) = (readme?, described?, others?);
    let mut answer = Answer::new();
    for page in &readme {
        tell_readme(page, &described, &mut answer);
    }
    let of_the_whole = described.iter().filter(|page| depth(&page.path) == 0 || readme.is_empty());
    for page in of_the_whole.take(2) {
        tell_identity(page, &mut answer);
    }
    for page in &others {
        let (name, first) = readme::beginning(page, &[]);
        let text = first.map(|(text, _)| text).or(name).unwrap_or_default();
        answer.item(format!("{} {}", cite(&page.path, 1), answer::shortened(&text, 120)));
    }
    tell_languages(&files, &mut answer);
    tell_top(&top.list, &files, &mut answer);
    if answer.is_empty() {
        answer.say("I see nothing here: no README, no manifest, no files that are not ignored.");
    }
    Some(answer)
}

fn tell_readme(page: &Page, described: &[Page], answer: &mut Answer) {
    let names = described.iter().filter_map(|page| manifest::identity(page).name);
    let names: Vec<String> = names.map(|(name, _)| base(&name).to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (title, first) = readme::beginning(page, &names);
    let title = title.as_deref().or(names.first().copied());
    let Some((text, line)) = first else {
        let place = cite(&page.path, 1);
        answer.say(format!("There is a README, {place}, without a paragraph to quote."));
        return;
    };
    let place = cite(&page.path, line);
    answer.say(match title {
        Some(title) => format!("**{title}** ({place}):"),
        None => format!("{place} says:"),
    });
    answer.quote(&answer::shortened(&text, 700));
    tell_sections(page, answer);
}

fn tell_sections(page: &Page, answer: &mut Answer) {
    let sections = readme::sections(page);
    let titles: Vec<String> = sections
        .iter()
        .filter(|section| section.level == 2 || section.level == 1 && section.line > 10)
        .map(|section| format!("{} ({})", section.title, cite(&page.path, section.line)))
        .take(6)
        .collect();
    if titles.len() > 1 {
        answer.say(format!("It goes on with {}.", titles.join(", ")));
    }
}

fn tell_identity(page: &Page, answer: &mut Answer) {
    let identity = manifest::identity(page);
    if let Some((description, line)) = identity.description {
        let name = identity.name.map_or("it".to_owned(), |(name, _)| code(&name));
        let place = cite(&page.path, line);
        answer.say(format!("Its manifest calls {name} \"{description}\" ({place})."));
    }
}

pub(super) fn tell_languages(files: &Names, answer: &mut Answer) {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for path in files.list.iter().filter(|path| place::sort(path) != Sort::Foreign) {
        let Some(called) = language::called(path) else { continue };
        match counts.iter_mut().find(|(known, _)| *known == called) {
            Some((_, count)) => *count += 1,
            None => counts.push((called, 1)),
        }
    }
    counts.sort_by_key(|(called, count)| (std::cmp::Reverse(*count), *called));
    if counts.is_empty() {
        return;
    }
    let listed: Vec<String> =
        counts.iter().take(5).map(|(called, count)| format!("{called} ({count})")).collect();
    let least = if files.cut { "Of the first " } else { "" };
    let all = count(files.list.len(), "file");
    answer.say(format!(
        "{least}{all}{} {}.",
        if files.cut { ", by language:" } else { ":" },
        listed.join(", ")
    ));
}

fn tell_top(top: &[String], files: &Names, answer: &mut Answer) {
    let parts = layout::parts("", top, files);
    let folders = parts.iter().filter(|part| part.shown.ends_with('/'));
    let folders: Vec<String> = folders.map(|part| code(&part.shown)).collect();
    if !folders.is_empty() {
        answer.say(format!("Folders at the top: {}.", folders.join(", ")));
    }
}
