//! What the project needs, from its manifests.

use super::project;
use crate::answer::{Answer, cite, code, count};
use crate::found::Page;
use crate::manifest::{self, Dependency};
use crate::notes::{Notes, WHOLE, together};
use crate::question::Question;

/// Manifests that are read.
const READ: usize = 10;
/// Words of a question that name no dependency.
const ABOUT: &str = "dependency dependencies depend depends third-party third party libraries \
    packages crates gems modules npm external direct indirect runtime development dev need needs \
    require requires list all python";
/// Dependencies of one manifest that are listed.
const LISTED: usize = 25;

/// Lists the dependencies, or where one of them is used.
pub(crate) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let manifests = notes.glob(manifest::PATTERN)?;
    let listing: Vec<String> =
        manifests.list.iter().filter(|path| manifest::names_dependencies(path)).cloned().collect();
    let nearest = project::nearest(&listing, READ);
    let pages = together(nearest.iter().map(|path| notes.read(path, 1, WHOLE)))?;
    let found: Vec<(&Page, Vec<Dependency>)> = pages
        .iter()
        .map(|page| (page, manifest::dependencies(page)))
        .filter(|(_, list)| !list.is_empty())
        .collect();
    let mut answer = Answer::new();
    if found.is_empty() {
        let read: Vec<String> = nearest.iter().map(|path| code(path)).collect();
        let read = match read.is_empty() {
            true => "there is no manifest that I know (Cargo.toml, package.json, pyproject.toml, \
                requirements.txt, go.mod, composer.json, Gemfile)"
                .to_owned(),
            false => format!("none is named in {}", read.join(", ")),
        };
        answer.say(format!("I found no dependencies: {read}."));
        return Some(answer);
    }
    let asked: Vec<String> = question
        .names
        .iter()
        .map(|name| name.name.to_lowercase())
        .chain(question.left(ABOUT).map(|term| term.word.clone()))
        .collect();
    if !asked.is_empty() {
        tell_named(&asked, &found, &mut answer);
        return Some(answer);
    }
    let own: Vec<String> = pages.iter().filter_map(manifest::name).map(|(name, _)| name).collect();
    let mut seen: Vec<String> = Vec::new();
    let mut lists: Vec<(&Page, Vec<Dependency>)> = Vec::new();
    for (page, list) in found {
        let mut fresh: Vec<Dependency> = Vec::new();
        for dependency in list {
            if !own.contains(&dependency.name) && !seen.contains(&dependency.name) {
                seen.push(dependency.name.clone());
                fresh.push(dependency);
            }
        }
        lists.push((page, fresh));
    }
    let many = if seen.len() == 1 { "dependency" } else { "dependencies" };
    answer.say(format!("{} {many}, by the first manifest that names them:", seen.len()));
    for (page, list) in &lists {
        tell_manifest(page, list, &mut answer);
    }
    let nothing_new: Vec<String> = lists
        .iter()
        .filter(|(_, list)| list.is_empty())
        .map(|(page, _)| code(&page.path))
        .collect();
    if !nothing_new.is_empty() {
        answer.say(format!("Nothing new in {}.", nothing_new.join(", ")));
    }
    let left_out = listing.len().saturating_sub(nearest.len());
    if left_out > 0 {
        answer.say(format!("Not read: {} further down.", count(left_out, "manifest")));
    }
    Some(answer)
}

fn tell_manifest(page: &Page, list: &[Dependency], answer: &mut Answer) {
    for (development, title) in [(false, ""), (true, ", for development or indirect")] {
        let wanted: Vec<&Dependency> =
            list.iter().filter(|one| one.for_development == development).collect();
        let Some(first) = wanted.first() else { continue };
        let mut shown: Vec<String> = wanted.iter().take(LISTED).map(|one| shown(one)).collect();
        if wanted.len() > LISTED {
            shown.push(format!("and {} more", wanted.len() - LISTED));
        }
        answer.item(format!("{}{title}: {}", cite(&page.path, first.line), shown.join(", ")));
    }
}

fn shown(dependency: &Dependency) -> String {
    let version = dependency.version.trim();
    if version.is_empty() {
        code(&dependency.name)
    } else {
        format!("{} {version}", code(&dependency.name))
    }
}

/// Says of each of these whether it is a dependency.
fn tell_named(asked: &[String], found: &[(&Page, Vec<Dependency>)], answer: &mut Answer) {
    for name in asked {
        let all = found.iter().flat_map(|(page, list)| list.iter().map(move |one| (page, one)));
        let same = |one: &Dependency| one.name.to_lowercase().rsplit('/').any(|part| part == name);
        let mut known = all.filter(|(_, one)| same(one)).peekable();
        if known.peek().is_none() {
            answer.say(format!("No manifest names a dependency called {}.", code(name)));
        }
        for (page, one) in known {
            answer.item(format!("{} ({})", shown(one), cite(&page.path, one.line)));
        }
    }
}
