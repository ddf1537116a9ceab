//! What the project is.

use super::head::self_description;
use super::layout;
use crate::answer::{Answer, cite, code, count};
use crate::found::{Names, Page};
use crate::language;
use crate::manifest;
use crate::notes::{Notes, WHOLE, together};
use crate::place::{self, FileRole, base, depth};
use crate::{readme, words};

/// Documents that describe a project.
const READMES: &str = "**/{README*,readme*,Readme*}";
/// The `most` paths that are nearest to the top, foreign ones left out.
pub(super) fn nearest(paths: &[String], most: usize) -> Vec<String> {
    let is_own = |path: &&String| !matches!(place::sort(path), FileRole::Foreign | FileRole::Test);
    let mut own: Vec<&String> = paths.iter().filter(is_own).collect();
    // Examples count only if there is nothing else.
    if own.iter().any(|path| place::sort(path) != FileRole::Example) {
        own.retain(|path| place::sort(path) != FileRole::Example);
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

/// Files that say in their first comment what the project is, where there is no README.
const HEADS: [&str; 7] =
    ["__init__.py", "src/lib.rs", "lib.rs", "doc.go", "index.js", "index.ts", "src/main.rs"];

/// Says what the project is.
pub(crate) fn overview(notes: &mut Notes<'_>) -> Option<Answer> {
    let (readmes, manifests) = (notes.glob(READMES), notes.glob(manifest::PATTERN));
    let (files, top) = (notes.glob("**/*"), notes.list(""));
    let (readmes, manifests, files, top) = (readmes?, manifests?, files?, top?);
    let is_top = |path: &String| depth(path) == 0;
    let mut readme = nearest(&readmes.list, 1);
    readme.retain(is_top);
    let mut described = nearest(&manifests.list, 6);
    described.retain(|path| is_top(path) && manifest::names_dependencies(path));
    // Without a README: the first comment of the main file, or the documents at the top.
    let head = HEADS.iter().find(|head| files.list.iter().any(|path| path == *head));
    let program = |path: &&String| {
        depth(path) < 3 && words::has("main.go doc.go __main__.py main.py", base(path))
    };
    let head = head.map(|head| (*head).to_owned());
    let head = head.or_else(|| files.list.iter().find(program).cloned());
    let mut others = nearest(&files.list, 60);
    others.retain(|path| is_top(path) && place::sort(path) == FileRole::Document);
    others.truncate(if readme.is_empty() { 5 } else { 0 });
    let readme = together(readme.iter().map(|path| notes.read(path, 1, 200)));
    let described = together(described.iter().map(|path| notes.read(path, 1, WHOLE)));
    let head = together(head.iter().map(|path| notes.read(path, 1, 60)));
    let others = together(others.iter().map(|path| notes.read(path, 1, 30)));
    let (readme, described, head, others) = (readme?, described?, head?, others?);
    let mut answer = Answer::new();
    let mut told = tell_identity(&described, &mut answer);
    for page in &readme {
        told |= tell_readme(page, &described, &mut answer);
    }
    if !told && let Some((said, line)) = head.first().and_then(self_description) {
        answer.say(format!("{} says of itself:", cite(&head[0].path, line)));
        answer.quote(&words::shortened(&said, 600));
        told = true;
    }
    if !told && others.is_empty() && !files.list.is_empty() {
        answer.say(match readme.first() {
            Some(page) => {
                format!("{} does not say what this is, and no manifest does.", cite(&page.path, 1))
            }
            None => "I found no README and no manifest that says what this is.".to_owned(),
        });
    }
    for page in &others {
        let (name, first) = readme::beginning(page, &[]);
        let text = first.map(|(text, _)| text).or(name).unwrap_or_default();
        answer.item(format!("{} {}", cite(&page.path, 1), words::shortened(&text, 120)));
    }
    tell_contents(&top.list, &files, &mut answer);
    if answer.is_empty() {
        answer.say("I see nothing here: no README, no manifest, no files that are not ignored.");
    }
    Some(answer)
}

/// Whether a manifest at the top calls the project `name`.
pub(super) fn is_called(name: &str, notes: &mut Notes<'_>) -> Option<bool> {
    let manifests = notes.glob(manifest::PATTERN)?;
    let mut near = nearest(&manifests.list, 3);
    near.retain(|path| depth(path) == 0 && manifest::names_dependencies(path));
    let pages = together(near.iter().map(|path| notes.read(path, 1, WHOLE)))?;
    let mut names = pages.iter().filter_map(manifest::name);
    Some(names.any(|(own, _)| base(&own).eq_ignore_ascii_case(name)))
}

/// What the manifests call the project. False when they do not say what it is.
fn tell_identity(described: &[Page], answer: &mut Answer) -> bool {
    for page in described {
        let Some((description, line)) = manifest::value(page, "description") else { continue };
        let name = manifest::name(page)
            .map_or("The project".to_owned(), |(name, _)| format!("**{name}**"));
        let end = if description.ends_with(['.', '!']) { "" } else { "." };
        answer.say(format!("{name}: {description}{end} ({})", cite(&page.path, line)));
        return true;
    }
    false
}

/// Quotes the README. False when it has no paragraph that says what the project is.
fn tell_readme(page: &Page, described: &[Page], answer: &mut Answer) -> bool {
    let names = described.iter().filter_map(manifest::name);
    let names: Vec<String> = names.map(|(name, _)| base(&name).to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (title, first) = readme::beginning(page, &names);
    match (first, title) {
        (Some((text, line)), _) => {
            answer.say(format!("{} says:", cite(&page.path, line)));
            answer.quote(&words::shortened(&text, 700));
            true
        }
        // A title such as "name -- what it is" says something too.
        (None, Some(title)) if title.split_whitespace().count() > 2 && answer.is_empty() => {
            answer.say(format!("{} has the title \"{title}\".", cite(&page.path, 1)));
            true
        }
        _ => false,
    }
}

/// `Rust (12), Markdown (3)`: the languages of these files.
pub(super) fn by_language(files: &Names) -> Option<String> {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for path in files.list.iter().filter(|path| place::sort(path) != FileRole::Foreign) {
        let Some(called) = language::called(path) else { continue };
        match counts.iter_mut().find(|(known, _)| *known == called) {
            Some((_, count)) => *count += 1,
            None => counts.push((called, 1)),
        }
    }
    counts.sort_by_key(|(called, count)| (std::cmp::Reverse(*count), *called));
    counts.truncate(5);
    let listed: Vec<String> =
        counts.iter().map(|(called, count)| format!("{called} ({count})")).collect();
    let others = files.list.len() - counts.iter().map(|(_, count)| count).sum::<usize>();
    let others = (others > 0).then(|| format!("other ({others})"));
    (!listed.is_empty()).then(|| listed.into_iter().chain(others).collect::<Vec<_>>().join(", "))
}

/// What the project consists of: folders, and files by language.
fn tell_contents(top: &[String], files: &Names, answer: &mut Answer) {
    let parts = layout::parts("", top, files);
    let folders = parts.iter().filter(|part| part.shown.ends_with('/'));
    let folders: Vec<String> = folders.map(|part| code(&part.shown)).take(20).collect();
    if !folders.is_empty() {
        answer.say(format!("Folders at the top: {}.", folders.join(", ")));
    }
    let all = count(files.list.len(), "file");
    match by_language(files) {
        _ if files.cut => drop(answer.say(format!("More than {all}."))),
        Some(languages) => drop(answer.say(format!("{all}: {languages}."))),
        None => {}
    }
}
