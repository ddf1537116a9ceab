//! How the project, or a folder of it, is laid out.

use super::head::self_description;
use super::project::{nearest, tell_languages};
use crate::offline::answer::{self, Answer, cite, code, count};
use crate::offline::found::{Names, Page};
use crate::offline::language;
use crate::offline::notes::{Notes, together};
use crate::offline::place::{self, Sort, base, depth, folder, is_readme};
use crate::offline::readme;

/// Files that say at their beginning what their folder is.
const HEADS: &str = "**/{README.md,Cargo.toml,package.json,__init__.py,lib.rs,main.rs,mod.rs,\
    index.ts,index.js,index.tsx,main.go,doc.go,main.py,app.py}";
/// Documents about the structure.
const ARCHITECTURE: &str =
    "**/{ARCHITECTURE*,architecture*,DESIGN*,design.md,structure.md,overview.md}";
/// Folders that are described.
const FOLDERS: usize = 12;

/// Says how the project, or the folder `within` it, is laid out.
pub(in crate::offline) fn look(within: &str, notes: &mut Notes<'_>) -> Option<Answer> {
    let below = |pattern: &str| joined(within, pattern);
    let (files, heads) = (notes.glob(&below("**/*")), notes.glob(&below(HEADS)));
    let (top, documents) = (notes.list(within), notes.glob(&below(ARCHITECTURE)));
    let (files, heads, top, documents) = (files?, heads?, top?, documents?);
    let mut guides = nearest(&documents.list, 1);
    if guides.is_empty() {
        let is_own = |path: &&String| is_readme(path) && folder(path) == within;
        guides.extend(heads.list.iter().filter(is_own).take(1).cloned());
    }
    let parts = parts(within, &top.list, &files);
    let read = parts.iter().take(FOLDERS);
    let chosen: Vec<Option<String>> =
        read.map(|part| part.head(&heads.list, &files.list)).collect();
    let guides = together(guides.iter().map(|path| notes.read(path, 1, 120)));
    let pages = together(chosen.iter().map(|head| match head {
        Some(path) => notes.read(path, 1, 40),
        None => Some(Page::default()),
    }));
    let (guides, pages) = (guides?, pages?);
    let mut answer = Answer::new();
    for page in &guides {
        tell_guide(page, &mut answer);
    }
    let place = match within {
        "" => "at the top".to_owned(),
        within => format!("in {}", code(&format!("{within}/"))),
    };
    if parts.is_empty() {
        answer.say(format!("I see no files {place} that are not ignored."));
    } else {
        answer.say(format!("The parts {place}:"));
    }
    for (part, page) in parts.iter().zip(&pages) {
        let said = self_description(page);
        // What has no words of its own is told by what is in it.
        let holds = if parts.len() <= FEW || said.is_none() {
            part.children(&files.list)
        } else {
            String::new()
        };
        let said = said.map(|(said, line)| {
            format!(": {} ({})", answer::shortened(&said, 140), cite(&page.path, line))
        });
        answer.item(format!(
            "{}{}{}{holds}",
            code(&part.shown),
            part.amount(&files),
            said.unwrap_or_default()
        ));
    }
    tell_loose(within, &files, &mut answer);
    tell_languages(&files, &mut answer);
    Some(answer)
}

/// A folder or file of the layout.
pub(super) struct Part {
    /// Below the workspace.
    path: String,
    /// Its own name; a folder ends in `/`.
    pub shown: String,
}

/// Parts whose contents are named although they have words of their own.
const FEW: usize = 4;
/// Names in one line.
const NAMES: usize = 12;

impl Part {
    fn of(within: &str, shown: &str) -> Self {
        let path = joined(within, shown.trim_end_matches('/'));
        Part { path, shown: shown.to_owned() }
    }

    fn holds(&self, file: &str) -> bool {
        file.strip_prefix(&self.path).is_some_and(|rest| rest.starts_with('/'))
    }

    /// How many files are in it, if that is known.
    fn amount(&self, files: &Names) -> String {
        match files.list.iter().filter(|file| self.holds(file)).count() {
            0 => String::new(),
            _ if files.cut => String::new(),
            number => format!(" ({})", count(number, "file")),
        }
    }

    /// What is right inside a folder of code, in a few names.
    fn children(&self, files: &[String]) -> String {
        let mut inside = self.path.clone();
        let mut names: Vec<&str> = Vec::new();
        // A folder that holds nothing but one folder is looked through.
        for _ in 0..3 {
            let rests = files
                .iter()
                .filter(|file| is_source(file))
                .filter_map(|file| file.strip_prefix(&inside)?.strip_prefix('/'));
            names = rests.map(|rest| rest.find('/').map_or(rest, |at| &rest[..=at])).collect();
            names.dedup();
            match names.as_slice() {
                [only] if only.ends_with('/') => {
                    inside = joined(&inside, only.trim_end_matches('/'))
                }
                _ => break,
            }
        }
        if names.len() < 2 {
            return String::new();
        }
        let inside = if inside == self.path {
            String::new()
        } else {
            format!(" in {}", code(&format!("{inside}/")))
        };
        format!("; holds{inside} {}", listed(names.iter().map(|name| code(name))))
    }

    /// The file that says what it is.
    fn head(&self, heads: &[String], files: &[String]) -> Option<String> {
        if files.contains(&self.path) {
            return Some(self.path.clone());
        }
        let order = |file: &&String| {
            const FIRST: &str = "README.md|lib.rs|__init__.py|doc.go|Cargo.toml|package.json";
            let preferred = FIRST.split('|').position(|name| name == base(file)).unwrap_or(9);
            (depth(file).saturating_sub(usize::from(file.contains("/src/"))), preferred)
        };
        let own = |file: &&String| self.holds(file) && !place::is_test(file);
        // A README speaks for its own folder only.
        let speaks = |file: &&String| !is_readme(file) || folder(file) == self.path;
        let head = heads.iter().filter(own).filter(speaks).min_by_key(order);
        let namesake =
            || files.iter().filter(own).find(|file| place::stem(file) == base(&self.path));
        let any =
            || files.iter().filter(own).min_by_key(|file| (depth(file), !language::is_code(file)));
        head.or_else(namesake).or_else(any).cloned()
    }
}

fn joined(within: &str, part: &str) -> String {
    if within.is_empty() { part.to_owned() } else { format!("{within}/{part}") }
}

fn is_source(file: &str) -> bool {
    let code = language::is_code(file) && !language::is_known_name(base(file));
    code && place::sort(file) == Sort::Source
}

/// The first of these names, and how many there are more.
fn listed(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    if names.len() > NAMES {
        let more = names.len() - NAMES;
        names.truncate(NAMES);
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// Files of code that lie beside the folders at the top.
fn tell_loose(within: &str, files: &Names, answer: &mut Answer) {
    let beside = |file: &&String| within.is_empty() && folder(file).is_empty() && is_source(file);
    let loose: Vec<&String> = files.list.iter().filter(beside).collect();
    if !loose.is_empty() {
        answer.say(format!("Beside them: {}.", listed(loose.iter().map(|file| cite(file, 1)))));
    }
}

/// The folders to describe; inside a folder, and where there is none, the files too.
pub(super) fn parts(within: &str, top: &[String], files: &Names) -> Vec<Part> {
    // What is ignored holds no files that a search would see; of a long list that is not known.
    const OUTPUT: [&str; 6] = ["target", "build", "out", "coverage", "tmp", "bin"];
    let all = top.iter().filter(|name| !name.starts_with('.')).map(|name| Part::of(within, name));
    let own = all.filter(|part| place::sort(&format!("{}/x", part.path)) != Sort::Foreign);
    let (mut folders, plain): (Vec<Part>, Vec<Part>) =
        own.partition(|part| part.shown.ends_with('/'));
    folders.retain(|part| {
        let unknown = files.cut && !OUTPUT.contains(&part.shown.trim_end_matches('/'));
        unknown || files.list.iter().any(|file| part.holds(file))
    });
    if folders.is_empty() || !within.is_empty() {
        let is_own = |part: &Part| place::sort(&part.path) != Sort::Foreign;
        folders.extend(plain.into_iter().filter(is_own).take(20));
    }
    folders
}

fn tell_guide(page: &Page, answer: &mut Answer) {
    let sections = readme::sections(page);
    let wanted = |title: &str| {
        let title = title.to_lowercase();
        let always = "layout|structure|architecture|bird|code map|modules|folders|crates|organi";
        always.split('|').any(|word| title.contains(word))
            || !is_readme(&page.path) && title.contains("overview")
    };
    if let Some(section) = sections.iter().find(|section| {
        wanted(&section.title)
            && section.line > 1
            && section.lines.iter().any(|(_, line)| line.len() > 20)
    }) {
        answer.say(format!("{}, \"{}\":", cite(&page.path, section.line), section.title));
        let lines: Vec<&str> = section
            .lines
            .iter()
            .map(|(_, line)| line.as_str())
            .skip_while(|line| line.trim().is_empty())
            .take(14)
            .collect();
        let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1);
        answer.block(&lines[..end], language::fence(&page.path));
        return;
    }
    if let (_, Some((text, line))) = readme::beginning(page, &[]) {
        answer.say(format!("{}:", cite(&page.path, line))).quote(&answer::shortened(&text, 240));
    }
}
