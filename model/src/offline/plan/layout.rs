//! How the project, or a folder of it, is laid out.

use super::head::self_description;
use super::project::{nearest, tell_languages};
use crate::offline::answer::{self, Answer, cite, code, count};
use crate::offline::found::{Names, Page};
use crate::offline::language;
use crate::offline::notes::Notes;
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

/// Says how the project, or a folder of it, is laid out.
pub(in crate::offline) fn look(within: &str, notes: &mut Notes<'_>) -> Option<Answer> {
    let below = |pattern: &str| {
        if within.is_empty() { pattern.to_owned() } else { format!("{within}/{pattern}") }
    };
    let (files, heads) = (notes.glob(&below("**/*")), notes.glob(&below(HEADS)));
    let (top, documents) = (notes.list(within), notes.glob(&below(ARCHITECTURE)));
    let (files, heads, top, documents) = (files?, heads?, top?, documents?);
    let readmes: Vec<String> = heads.list.iter().filter(|path| is_readme(path)).cloned().collect();
    let mut guides = nearest(&documents.list, 1);
    if guides.is_empty() {
        guides.extend(nearest(&readmes, 1).into_iter().filter(|path| folder(path) == within));
    }
    let parts: Vec<String> = parts(within, &top.list, &files);
    let chosen: Vec<(&String, Option<String>)> =
        parts.iter().map(|part| (part, head_of(within, part, &heads.list, &files.list))).collect();
    let guide_pages: Vec<Option<Page>> =
        guides.iter().map(|path| notes.read(path, 1, 120)).collect();
    let pages: Vec<Option<Option<Page>>> = chosen
        .iter()
        .take(FOLDERS)
        .map(|(_, head)| match head {
            Some(path) => notes.read(path, 1, 40).map(Some),
            None => Some(None),
        })
        .collect();
    let (guide_pages, pages) = (
        guide_pages.into_iter().collect::<Option<Vec<_>>>()?,
        pages.into_iter().collect::<Option<Vec<_>>>()?,
    );
    let mut answer = Answer::new();
    for page in &guide_pages {
        tell_guide(page, &mut answer);
    }
    let place = if within.is_empty() {
        "at the top".to_owned()
    } else {
        format!("in {}", code(&format!("{within}/")))
    };
    if !parts.is_empty() {
        answer.say(format!("The parts {place}:"));
    }
    for ((part, _), page) in chosen.iter().zip(&pages) {
        let path = joined(within, part);
        let amount = files.list.iter().filter(|file| file.starts_with(&format!("{path}/"))).count();
        let amount = if amount == 0 || files.cut || !is_folder(part, &top.list) {
            String::new()
        } else {
            format!(" ({})", count(amount, "file"))
        };
        let shown = if is_folder(part, &top.list) { format!("{part}/") } else { part.to_string() };
        let said = page.as_ref().and_then(|page| {
            self_description(page).map(|(said, line)| (said, cite(&page.path, line)))
        });
        let few = chosen.len() <= 4 || said.is_none();
        let children = if few && is_folder(part, &top.list) {
            children(&path, &files.list)
        } else {
            String::new()
        };
        answer.item(match said {
            Some((said, place)) => format!(
                "{}{amount}: {} ({place}){children}",
                code(&shown),
                answer::shortened(&said, 140)
            ),
            None => format!("{}{amount}{children}", code(&shown)),
        });
    }
    tell_loose(within, &files, &mut answer);
    if answer.is_empty() {
        answer.say(format!("I see no files {place} that are not ignored."));
    }
    tell_languages(&files, &mut answer);
    Some(answer)
}

/// What is right inside a folder of code, in a few names.
fn children(path: &str, files: &[String]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut inside = path.to_owned();
    // A folder that holds nothing but one folder is looked through.
    for _ in 0..3 {
        let below = |file: &'_ &String| file.starts_with(&format!("{inside}/"));
        let of_code = files
            .iter()
            .filter(below)
            .filter(|file| language::is_code(file) && place::sort(file) == Sort::Source);
        let rests: Vec<&str> = of_code.map(|file| &file[inside.len() + 1..]).collect();
        names.clear();
        for rest in rests {
            let name = rest.find('/').map_or(rest, |at| &rest[..=at]);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match names.as_slice() {
            [only] if only.ends_with('/') => {
                inside = format!("{inside}/{}", only.trim_end_matches('/'))
            }
            _ => break,
        }
    }
    if names.len() < 2 {
        return String::new();
    }
    let mut shown: Vec<String> = names.iter().take(12).map(|name| code(name)).collect();
    if names.len() > 12 {
        shown.push(format!("and {} more", names.len() - 12));
    }
    let inside =
        if inside == path { String::new() } else { format!(" in {}", code(&format!("{inside}/"))) };
    format!("; holds{inside} {}", shown.join(", "))
}

/// Files of code that lie beside the folders.
fn tell_loose(within: &str, files: &Names, answer: &mut Answer) {
    let is_source = |file: &&String| {
        language::is_code(file)
            && place::sort(file) == Sort::Source
            && !language::is_known_name(base(file))
    };
    let beside = |file: &&String| folder(file) == within && is_source(file);
    let loose: Vec<&String> = files.list.iter().filter(beside).collect();
    if loose.is_empty() || !within.is_empty() {
        return;
    }
    let mut shown: Vec<String> = loose.iter().take(12).map(|file| cite(file, 1)).collect();
    if loose.len() > 12 {
        shown.push(format!("and {} more", loose.len() - 12));
    }
    answer.say(format!("Beside them: {}.", shown.join(", ")));
}

fn is_folder(part: &str, top: &[String]) -> bool {
    top.iter().any(|name| name.strip_suffix('/') == Some(part))
}

fn joined(within: &str, part: &str) -> String {
    if within.is_empty() { part.to_owned() } else { format!("{within}/{part}") }
}

/// The folders to describe; in a folder without any, its files.
fn parts(within: &str, top: &[String], files: &Names) -> Vec<String> {
    let own =
        |name: &&str| !name.starts_with('.') && place::sort(&format!("{name}/x")) != Sort::Foreign;
    let folders = top.iter().filter_map(|name| name.strip_suffix('/')).filter(own);
    // Ignored folders hold no files that a search would see.
    const OUTPUT: [&str; 6] = ["target", "build", "out", "coverage", "tmp", "bin"];
    let seen = |name: &&str| {
        files.cut && !OUTPUT.contains(name)
            || files.list.iter().any(|file| file.starts_with(&format!("{}/", joined(within, name))))
    };
    let mut parts: Vec<String> = folders.filter(seen).map(str::to_owned).collect();
    if parts.is_empty() || !within.is_empty() {
        let plain = top.iter().filter(|name| !name.ends_with('/') && !name.starts_with('.'));
        parts.extend(plain.filter(|name| place::sort(name) != Sort::Foreign).take(20).cloned());
    }
    parts
}

/// The file that says what a folder is.
fn head_of(within: &str, part: &str, heads: &[String], files: &[String]) -> Option<String> {
    let path = joined(within, part);
    if files.contains(&path) {
        return Some(path);
    }
    let below = |file: &&String| file.starts_with(&format!("{path}/"));
    let order = |file: &&String| {
        const FIRST: [&str; 6] =
            ["README.md", "lib.rs", "__init__.py", "doc.go", "Cargo.toml", "package.json"];
        let preferred = FIRST.iter().position(|name| *name == base(file)).unwrap_or(FIRST.len());
        (depth(file).saturating_sub(usize::from(file.contains("/src/"))), preferred)
    };
    let head = heads.iter().filter(below).min_by_key(order);
    let same_name = || files.iter().filter(below).find(|file| place::stem(file) == part);
    let any = || {
        files
            .iter()
            .filter(below)
            .filter(|file| !place::is_test(file))
            .min_by_key(|file| (depth(file), !language::is_code(file)))
    };
    head.or_else(same_name).or_else(any).cloned()
}

fn tell_guide(page: &Page, answer: &mut Answer) {
    let sections = readme::sections(page);
    let wanted = |title: &str| {
        let title = title.to_lowercase();
        let always = [
            "layout",
            "structure",
            "architecture",
            "bird",
            "code map",
            "modules",
            "folders",
            "crates",
            "organi",
        ];
        always.iter().any(|word| title.contains(word))
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
