//! What the project is.

use crate::offline::answer::{self, Answer, cite, code, count};
use crate::offline::found::{Names, Page};
use crate::offline::language;
use crate::offline::manifest;
use crate::offline::notes::Notes;
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
    let readme = nearest(&readmes.list, 1).pop();
    let described = nearest(&manifests.list, 3);
    // Without a README, the documents at the top say what there is.
    let others: Vec<String> = match readme {
        Some(_) => Vec::new(),
        None => nearest(&files.list, 60)
            .into_iter()
            .filter(|path| place::sort(path) == Sort::Document)
            .take(5)
            .collect(),
    };
    let readme_page = readme.as_deref().map(|path| notes.read(path, 1, 200));
    let pages: Vec<Option<Page>> = described.iter().map(|path| notes.read(path, 1, 80)).collect();
    let other_pages: Vec<Option<Page>> =
        others.iter().map(|path| notes.read(path, 1, 30)).collect();
    let readme_page = match readme_page {
        Some(page) => Some(page?),
        None => None,
    };
    let (pages, other_pages) = (
        pages.into_iter().collect::<Option<Vec<_>>>()?,
        other_pages.into_iter().collect::<Option<Vec<_>>>()?,
    );
    let mut answer = Answer::new();
    let mut title = None;
    if let Some(page) = &readme_page {
        let names: Vec<String> = pages
            .iter()
            .filter_map(|page| manifest::identity(page).name)
            .map(|(name, _)| base(&name).to_owned())
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (name, first) = readme::beginning(page, &names);
        title = name.or(names.first().map(|name| (*name).to_owned()));
        match (&title, first) {
            (Some(name), Some((text, line))) => {
                answer
                    .say(format!("**{name}** ({}):", cite(&page.path, line)))
                    .quote(&answer::shortened(&text, 700));
            }
            (None, Some((text, line))) => {
                answer
                    .say(format!("{} says:", cite(&page.path, line)))
                    .quote(&answer::shortened(&text, 700));
            }
            (_, None) => {
                answer.say(format!(
                    "There is a README, {}, without a paragraph to quote.",
                    cite(&page.path, 1)
                ));
            }
        }
        tell_sections(page, &mut answer);
    }
    let own: Vec<&Page> =
        pages.iter().filter(|page| depth(&page.path) == 0 || readme_page.is_none()).collect();
    tell_identity(&own, title.as_deref(), &mut answer);
    for page in &other_pages {
        let (name, first) = readme::beginning(page, &[]);
        let text = first.map(|(text, _)| text).or(name).unwrap_or_default();
        answer.item(format!("{} {}", cite(&page.path, 1), answer::shortened(&text, 120)));
    }
    tell_languages(&files, &mut answer);
    tell_top(&top.list, &mut answer);
    if answer.is_empty() {
        answer.say("I see nothing here: no README, no manifest, no files that are not ignored.");
    }
    Some(answer)
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

fn tell_identity(pages: &[&Page], title: Option<&str>, answer: &mut Answer) {
    let described = pages.iter().map(|page| (page, manifest::identity(page)));
    for (page, identity) in described.filter(|(_, identity)| identity.description.is_some()).take(2)
    {
        let Some((description, line)) = identity.description else { continue };
        let name =
            identity.name.map(|(name, _)| name).or(title.map(str::to_owned)).unwrap_or_default();
        answer.say(format!(
            "Its manifest calls {} \"{description}\" ({}).",
            code(&name),
            cite(&page.path, line)
        ));
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

fn tell_top(top: &[String], answer: &mut Answer) {
    let is_shown = |name: &&String| {
        name.ends_with('/')
            && !name.starts_with('.')
            && place::sort(&format!("{name}x")) != Sort::Foreign
    };
    let folders: Vec<String> = top.iter().filter(is_shown).map(|name| code(name)).collect();
    if !folders.is_empty() {
        answer.say(format!("Folders at the top: {}.", folders.join(", ")));
    }
}
