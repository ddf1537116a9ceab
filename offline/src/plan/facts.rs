//! Facts that a manifest or a well-known file states: the license, the version, the last changes.

use super::{project, search};
use crate::answer::{Answer, cite, code};
use crate::found::Page;
use crate::intent::SearchForm;
use crate::manifest;
use crate::notes::{Notes, WHOLE, together};
use crate::place::{base, depth};
use crate::question::Question;
use crate::readme;

/// Files that hold a license.
const LICENSES: &str = "**/{LICENSE*,LICENCE*,COPYING*,UNLICENSE*,license*,License*}";

/// Licenses by a phrase of their text, the narrower first.
const KNOWN: [(&str, &str); 12] = [
    ("gnu affero general public license", "AGPL"),
    ("gnu lesser general public license", "LGPL"),
    ("gnu general public license", "GPL"),
    ("apache license", "Apache License"),
    ("mozilla public license", "Mozilla Public License"),
    ("permission is hereby granted, free of charge", "MIT License"),
    ("mit license", "MIT License"),
    ("isc license", "ISC License"),
    ("bsd 3-clause", "BSD 3-Clause License"),
    ("bsd 2-clause", "BSD 2-Clause License"),
    ("unencumbered software released into the public domain", "Unlicense"),
    ("boost software license", "Boost Software License"),
];

/// The manifests at the top, read.
fn manifests(notes: &mut Notes<'_>) -> Option<Vec<Page>> {
    let found = notes.glob(manifest::PATTERN)?;
    let mut near = project::nearest(&found.list, 3);
    let least = near.first().map_or(0, |path| depth(path));
    near.retain(|path| depth(path) == least && manifest::names_dependencies(path));
    together(near.iter().map(|path| notes.read(path, 1, WHOLE)))
}

/// Says under which license the project is.
pub(super) fn license(notes: &mut Notes<'_>) -> Option<Answer> {
    let (files, pages) = (notes.glob(LICENSES), manifests(notes));
    let (files, pages) = (files?, pages?);
    let top: Vec<String> = files.list.into_iter().filter(|path| depth(path) == 0).take(4).collect();
    let texts = together(top.iter().map(|path| notes.read(path, 1, 40)))?;
    let mut answer = Answer::new();
    for page in &pages {
        for key in ["license", "license-expression", "license-file"] {
            if let Some((value, line)) = manifest::value(page, key) {
                let place = cite(&page.path, line);
                answer.item(format!("{} says `{key}`: {value} ({place})", code(&page.path)));
            }
        }
    }
    for page in &texts {
        let text: Vec<&str> = page.texts().map(|(_, text)| text.trim()).collect();
        let lower = text.join(" ").to_lowercase();
        let known = KNOWN.iter().find(|(phrase, _)| lower.contains(phrase));
        let title = text.iter().find(|line| !line.is_empty()).copied().unwrap_or_default();
        let place = cite(&page.path, 1);
        answer.item(match known {
            Some((_, name)) => format!("{place} has the text of the {name}"),
            None => format!("{place} begins with {}", code(title)),
        });
    }
    if answer.is_empty() {
        answer.say(
            "I found no license: no LICENSE or COPYING file at the top, and no manifest that \
            names one.",
        );
    }
    Some(answer)
}

/// Says which version the project has, or which version of its language it needs.
pub(super) fn version(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let pages = manifests(notes)?;
    let needed = question.has("rust|python|node|go|msrv|minimum|minimal|supported|required|java");
    let keys: &[&str] = match needed {
        _ if question.has("edition") => &["edition"],
        true => &["rust-version", "requires-python", "python_requires", "node", "go"],
        false => &["version"],
    };
    let mut answer = Answer::new();
    for page in &pages {
        for key in keys {
            if let Some((value, line)) = manifest::value(page, key) {
                let place = cite(&page.path, line);
                answer.item(format!("`{key}` is {value} ({place})"));
            }
        }
    }
    if answer.is_empty() && needed {
        // A document may say what no manifest states.
        return search::look(question, SearchForm::Passages, notes);
    }
    if answer.is_empty() {
        let read: Vec<&str> = pages.iter().map(|page| base(&page.path)).collect();
        let read = if read.is_empty() {
            "there is no manifest that I know".to_owned()
        } else {
            format!("{} does not state one", read.join(", "))
        };
        answer.say(format!("I found no version: {read}."));
    }
    Some(answer)
}

/// Files that say what changed.
const CHANGELOGS: &str = "{CHANGELOG*,CHANGES*,HISTORY*,NEWS*,RELEASES*,Changelog*,changelog*}";
/// Lines of a changelog that are shown.
const CHANGED: usize = 24;

/// Quotes what the changelog says of the version in `question`, or of the newest.
pub(super) fn changes(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let found = notes.glob(CHANGELOGS)?;
    let mut answer = Answer::new();
    let Some(path) = found.list.first() else {
        answer.say("I found no changelog at the top of the project.");
        return Some(answer);
    };
    let page = notes.read(path, 1, WHOLE)?;
    let is_version =
        |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    let plain =
        |word: &str| word.trim_start_matches('v').trim_end_matches(['.', '?', '!', ',']).to_owned();
    let words: Vec<String> = question.text.split_whitespace().map(plain).collect();
    let asked = words.iter().map(String::as_str).find(is_version);
    let sections = readme::sections(&page);
    let mut entries = sections.iter().enumerate().filter(|(_, section)| {
        section.title.contains(|c: char| c.is_ascii_digit()) || section.title.contains("Unreleased")
    });
    let entry = match asked {
        Some(version) => entries.find(|(_, section)| section.title.contains(version)),
        None => entries.next(),
    };
    let Some((at, entry)) = entry else {
        answer.say(match asked {
            Some(version) => format!("{} has no heading for version {version}.", code(path)),
            None => format!("{} has no heading with a version.", code(path)),
        });
        return Some(answer);
    };
    let next = sections[at + 1..].iter().find(|section| section.level <= entry.level);
    let end = next.map_or(usize::MAX, |next| next.line);
    let lines = page.texts().filter(|(line, _)| (entry.line + 1..end).contains(line));
    let mut lines: Vec<&str> = lines.map(|(_, text)| text).take(CHANGED).collect();
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    answer.say(format!("{}, \"{}\":", cite(path, entry.line), entry.title));
    answer.block(&lines, "md");
    Some(answer)
}
