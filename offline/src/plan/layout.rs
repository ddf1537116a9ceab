//! How the project, or a folder of it, is laid out.

use super::head::self_description;
use super::project::{by_language, nearest};
use super::{file, scope};
use crate::answer::{Answer, cite, code, count};
use crate::found::{Names, Page};
use crate::language;
use crate::notes::{Notes, WHOLE, together};
use crate::place::{self, FileRole, folder, is_readme};
use crate::question::Question;
use crate::{readme, words};

/// Files of a folder that describe it, the best first.
const HEADS: [&str; 7] =
    ["README.md", "Cargo.toml", "package.json", "__init__.py", "src/lib.rs", "mod.rs", "doc.go"];
/// Documents about the structure.
const ARCHITECTURE: &str = "**/{ARCHITECTURE*,architecture*,README.md}";
/// Parts that are described, and that are listed.
const DESCRIBED: usize = 12;
const LISTED: usize = 40;

/// Says how the project, or the folder that `question` names, is laid out.
pub(super) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    match &question.folder {
        None => of("", notes),
        Some(folder) => match scope::find_folder(&folder.path, notes)? {
            Some(path) => of(&path, notes),
            // `bin/release` may be a file.
            None => match file::at(&folder.path, notes)? {
                Some(answer) => Some(answer),
                None => Some(scope::tell_missing(&format!("{}/", folder.path))),
            },
        },
    }
}

fn of(within: &str, notes: &mut Notes<'_>) -> Option<Answer> {
    let (files, top) = (notes.glob(&joined(within, "**/*")), notes.list(within));
    let guides = notes.glob(&joined(within, ARCHITECTURE));
    let heads = notes.glob(&joined(within, &format!("*/{{{}}}", HEADS.join(","))));
    let (files, top, mut guides, known) = (files?, top?, guides?, heads?);
    guides.list.retain(|path| folder(path) == within);
    guides.list.sort_by_key(|path| is_readme(path));
    let guides = nearest(&guides.list, 2);
    let parts = parts(within, &top.list, &files);
    let heads: Vec<Option<String>> =
        parts.iter().take(DESCRIBED).map(|part| part.head(&known.list)).collect();
    let guides = together(guides.iter().map(|path| notes.read(path, 1, 120)));
    let pages = together(heads.iter().map(|head| match head {
        Some(path) => notes.read(path, 1, WHOLE),
        None => Some(Page::default()),
    }));
    let (guides, pages) = (guides?, pages?);
    let mut answer = Answer::new();
    if let Some((page, section)) = guides.iter().find_map(|page| Some((page, guide(page)?))) {
        answer.say(format!("{}, \"{}\":", cite(&page.path, section.line), section.title));
        let texts = section.lines.iter().map(|(_, line)| line.as_str());
        let lines: Vec<&str> = texts.skip_while(|line| line.trim().is_empty()).take(14).collect();
        let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1);
        answer.block(&lines[..end], language::fence(&page.path));
    }
    let place = match within {
        "" => "at the top".to_owned(),
        within => format!("in {}", code(&format!("{within}/"))),
    };
    answer.say(match parts.is_empty() {
        true => format!("I see no files {place} that are not ignored."),
        false => format!("The parts {place}:"),
    });
    for (at, part) in parts.iter().take(LISTED).enumerate() {
        let said = pages.get(at).and_then(self_description).map(|(said, line)| {
            format!(": {} ({})", words::shortened(&said, 140), cite(&pages[at].path, line))
        });
        let amount = part.amount(&files);
        answer.item(format!("{}{amount}{}", code(&part.shown), said.unwrap_or_default()));
    }
    if let Some(languages) = by_language(&files).filter(|_| !files.cut) {
        answer.say(format!("{}: {languages}.", count(files.list.len(), "file")));
    }
    Some(answer)
}

/// A folder or file of the layout.
pub(super) struct Part {
    /// Below the workspace.
    path: String,
    /// Its own name; a folder ends in `/`.
    pub shown: String,
}

impl Part {
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

    /// The file that says what it is.
    fn head(&self, known: &[String]) -> Option<String> {
        if !self.shown.ends_with('/') {
            return Some(self.path.clone());
        }
        HEADS.iter().map(|head| joined(&self.path, head)).find(|head| known.contains(head))
    }
}

fn joined(within: &str, part: &str) -> String {
    if within.is_empty() { part.to_owned() } else { format!("{within}/{part}") }
}

/// The folders to describe. Inside a folder, or without folders, also the files.
pub(super) fn parts(within: &str, top: &[String], files: &Names) -> Vec<Part> {
    // Ignored folders have no files in the search. For a cut list this is not known.
    const OUTPUT: [&str; 6] = ["target", "build", "out", "coverage", "tmp", "bin"];
    let part = |name: &String| Part {
        path: joined(within, name.trim_end_matches('/')),
        shown: name.to_owned(),
    };
    let all = top.iter().filter(|name| !name.starts_with('.')).map(part);
    let own = all.filter(|part| place::sort(&format!("{}/x", part.path)) != FileRole::Foreign);
    let (mut folders, plain): (Vec<Part>, Vec<Part>) =
        own.partition(|part| part.shown.ends_with('/'));
    folders.retain(|part| {
        let unknown = files.cut && !OUTPUT.contains(&part.shown.trim_end_matches('/'));
        unknown || files.list.iter().any(|file| part.holds(file))
    });
    if folders.is_empty() || !within.is_empty() {
        let is_own = |part: &Part| place::sort(&part.path) != FileRole::Foreign;
        folders.extend(plain.into_iter().filter(is_own));
    }
    folders
}

/// The section of a document that describes the structure.
fn guide(page: &Page) -> Option<readme::Section> {
    const TITLES: &str =
        "layout|structure|architecture|bird|code map|modules|folders|crates|organi";
    readme::sections(page).into_iter().find(|section| {
        let title = section.title.to_lowercase();
        section.line > 1
            && TITLES.split('|').any(|word| title.contains(word))
            && section.lines.iter().any(|(_, line)| line.len() > 20)
    })
}
