//! What the project needs, from its manifests.

use super::project;
use crate::offline::answer::{Answer, cite, code, count};
use crate::offline::found::Page;
use crate::offline::manifest::{self, Dependency};
use crate::offline::notes::{Notes, Search, together};
use crate::offline::question::Question;

/// Manifests that are read.
const READ: usize = 10;
/// Dependencies of one manifest that are listed.
const LISTED: usize = 25;

/// Lists the dependencies, or where one of them is used.
pub(in crate::offline) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let manifests = notes.glob(manifest::PATTERN)?;
    let listing: Vec<String> =
        manifests.list.iter().filter(|path| manifest::names_dependencies(path)).cloned().collect();
    let nearest = project::nearest(&listing, READ);
    let pages = together(nearest.iter().map(|path| notes.read(path, 1, 400)))?;
    let found: Vec<(&Page, Vec<Dependency>)> = pages
        .iter()
        .map(|page| (page, manifest::dependencies(page)))
        .filter(|(_, list)| !list.is_empty())
        .collect();
    let mut answer = Answer::new();
    if found.is_empty() {
        tell_includes(&nearest, notes, &mut answer)?;
        return Some(answer);
    }
    tell_named(question, &found, &mut answer);
    let own: Vec<String> = pages
        .iter()
        .filter_map(|page| manifest::identity(page).name)
        .map(|(name, _)| name)
        .collect();
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

/// Dependencies that the question names come first.
fn tell_named(question: &Question, found: &[(&Page, Vec<Dependency>)], answer: &mut Answer) {
    let is_named = |name: &str| {
        let lower = name.to_lowercase();
        question.names.iter().any(|named| named.is_like(name))
            || question.terms.iter().any(|term| term.word == lower)
    };
    for (page, list) in found {
        for dependency in list.iter().filter(|dependency| is_named(&dependency.name)) {
            answer.say(format!(
                "{} is one of them: {}.",
                shown(dependency),
                cite(&page.path, dependency.line)
            ));
        }
    }
}

/// Where there is no manifest: headers and imports from outside.
fn tell_includes(looked_at: &[String], notes: &mut Notes<'_>, answer: &mut Answer) -> Option<()> {
    let includes = notes.lines(
        &Search::new(r"^\s*#\s*include\s*<[^>]+>")
            .files_like("**/*.{c,h,cc,cpp,hpp,cxx,hh}")
            .at_most(200),
    )?;
    let mut seen: Vec<(&str, &str, usize)> = Vec::new();
    for hit in &includes.list {
        if let Some(name) = hit
            .text
            .split(['<', '>'])
            .nth(1)
            .filter(|name| !seen.iter().any(|known| known.0 == *name))
        {
            seen.push((name, &hit.path, hit.line));
        }
    }
    let read = if looked_at.is_empty() {
        "there is no manifest that I know".to_owned()
    } else {
        let paths: Vec<String> = looked_at.iter().map(|path| code(path)).collect();
        format!("none is named in {}", paths.join(", "))
    };
    answer.say(format!(
        "I found no dependencies: {read} (Cargo.toml, package.json, pyproject.toml, \
            requirements.txt, go.mod, pom.xml, build.gradle, Gemfile, CMakeLists.txt and the \
            like)."
    ));
    if !seen.is_empty() {
        answer.say("Its C files include these headers:");
        for (name, path, line) in seen.iter().take(15) {
            answer.item(format!("{} ({})", code(&format!("<{name}>")), cite(path, *line)));
        }
    }
    Some(())
}
