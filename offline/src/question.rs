//! Parses a question: names in code, files, a folder, quoted text, and the other words.

use crate::words::{self, Term};
use crate::{language, place};
use name::{is_named_by_neighbours, name};
use posse_protocol::piped;

mod name;
mod tokens;

pub(crate) use name::Name;

/// Names, files and terms that one question is taken to be about.
const MOST: usize = 6;
/// A longer question is mostly pasted text.
const LONG: usize = 800;

/// Words that make the word before them the name of a folder.
const FOLDER_WORDS: &str = "folder directory dir subfolder subdirectory";
/// Folders that are named without saying that they are one.
const USUAL_FOLDERS: &str = "src lib tests test docs doc cmd pkg app apps crates packages internal \
    examples include scripts bin benches";
/// Phrases before a question that are not part of it.
const POLITE: &str = "please|can you|could you|would you|will you|i want you to|i need you to|\
    i would like you to|i would like to know|id like to know|i want to know|do you know|\
    can you tell me|could you tell me|tell me|let me know|you should|lets|let us|ok|okay|so|hey|hi|\
    hello|now|quickly|just|also|help me|help me to|can i know|i wonder";

/// A question.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    /// As it was asked, without what was pasted.
    pub text: String,
    /// The words in lower case with one blank around each, for finding phrases.
    plain: String,
    /// The same without courtesies at the beginning.
    core: String,
    /// Names of things in code, the surest first.
    pub names: Vec<Name>,
    /// Text in quotes that is more than a name.
    pub quoted: Vec<String>,
    pub files: Vec<File>,
    /// The folder that the question is limited to.
    pub folder: Option<Folder>,
    /// Endings of the files that it is limited to, without the dot.
    pub endings: Vec<String>,
    /// What else it is about.
    pub terms: Vec<Term>,
    /// Pasted text: a diff, code, a log.
    pub material: String,
    /// The name of the project's folder, in lower case.
    project: String,
}

/// A file as the question names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub path: String,
    pub line: Option<usize>,
}

/// A folder as the question names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    pub path: String,
    /// The question calls it a folder. Otherwise the word may mean something else.
    pub sure: bool,
}

impl Folder {
    /// Where examples are by custom.
    pub fn of_examples() -> Self {
        Folder { path: "examples".to_owned(), sure: true }
    }
}

impl Question {
    /// Takes `text` apart. `root` is the working folder: paths inside it lose it.
    pub fn parse(text: &str, root: Option<&str>) -> Self {
        let (own, material) = own_words(text.trim());
        let plain = plain(own);
        let mut question = Question { material: material.to_owned(), ..Question::default() };
        question.core = without_courtesies(&plain);
        question.plain = plain;
        question.text = own.to_owned();
        question.project = root.map(|root| place::base(root).to_lowercase()).unwrap_or_default();
        let tokens = tokens::tokens(own, &mut question.quoted);
        let lower: Vec<String> = tokens.iter().map(|token| token.text.to_lowercase()).collect();
        for (index, token) in tokens.iter().enumerate() {
            let word = lower[index].as_str();
            let next = lower.get(index + 1).map_or("", String::as_str);
            let before = index.checked_sub(1).map_or("", |at| lower[at].as_str());
            if let Some(ending) = ending(word, next) {
                question.endings.extend(ending);
            } else if let Some(folder) = folder(&token.text, before, next, root) {
                question.folder = question.folder.take().or(Some(folder));
            } else if let Some(file) = file(&token.text, root).filter(|_| !is_literal(&token.text))
            {
                add(&mut question.files, file);
            } else if token.marked && !is_name_like(&token.text) || is_literal(&token.text) {
                add(&mut question.quoted, token.text.clone());
            } else if let Some(name) = name(token) {
                add(&mut question.names, name);
            } else if is_named_by_neighbours(&lower, index) {
                let mut name = Name::plain(token.text.trim_matches(|c: char| !c.is_alphanumeric()));
                name.sure = false;
                add(&mut question.names, name);
            } else if !word.contains("://") {
                question.add_terms(word);
            }
        }
        question.names.sort_by_key(|name| !name.sure);
        question
    }

    fn add_terms(&mut self, word: &str) {
        for part in word.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')) {
            let part = part.trim_matches('-').replace(['\'', '’'], "");
            let says = part.chars().any(char::is_alphabetic) && part.chars().count() > 1;
            if says && !words::is_stop(&part) && !words::is_frame(&part) {
                add(&mut self.terms, Term::new(&part));
            }
        }
    }

    /// Whether one of these phrases, with `|` between them, is in it.
    pub fn has(&self, phrases: &str) -> bool {
        phrases.split('|').any(|phrase| self.plain.contains(&format!(" {phrase} ")))
    }

    /// Whether it begins with one of these phrases, with `|` between them.
    pub fn begins(&self, phrases: &str) -> bool {
        self.after(phrases).is_some()
    }

    /// What follows the longest of these phrases at its beginning: words with blanks around each.
    pub fn after(&self, phrases: &str) -> Option<&str> {
        let rest = |phrase: &str| self.core.strip_prefix(&format!(" {phrase}"));
        phrases
            .split('|')
            .filter_map(rest)
            .filter(|rest| rest.starts_with(' '))
            .min_by_key(|rest| rest.len())
    }

    /// Its parts between `and`, `then`, commas and full stops, each with blanks around it.
    pub fn clauses(&self) -> impl Iterator<Item = String> {
        let cut = self.text.replace([',', ';', '.', '!', '?', '\n'], " , ");
        let cut = plain_with(&cut, ",").replace(" and then ", " , ");
        let cut = cut.replace(" then ", " , ").replace(" and ", " , ");
        cut.split(',').map(without_courtesies).collect::<Vec<_>>().into_iter()
    }

    /// Whether it has pasted text.
    pub fn has_material(&self) -> bool {
        !self.material.is_empty()
    }

    /// How many words it has.
    pub fn length(&self) -> usize {
        self.plain.split_whitespace().count()
    }

    /// Whether it is in another language than English.
    pub fn is_foreign(&self) -> bool {
        words::is_foreign(&self.plain)
    }

    /// The words it is about, but for `known`.
    pub fn left<'q>(&'q self, known: &'q str) -> impl Iterator<Item = &'q Term> {
        self.terms
            .iter()
            .filter(move |term| !words::has(known, &term.word) && term.word != self.project)
    }

    /// Whether it names nothing: no name, no file, no quoted text.
    pub fn names_nothing(&self) -> bool {
        let own = |name: &Name| name.name.to_lowercase() == self.project && !name.sure;
        self.names.iter().all(own) && self.files.is_empty() && self.quoted.is_empty()
    }

    /// Whether it names the project.
    pub fn names_project(&self) -> bool {
        let mut words = self.terms.iter().map(|term| term.word.clone());
        !self.project.is_empty()
            && (self.names.iter().any(|name| name.name.to_lowercase() == self.project)
                || words.any(|word| word == self.project))
    }

    /// What it is about, in a few words.
    pub fn subject(&self) -> String {
        let names = self.names.iter().map(|name| format!("`{}`", name.shown()));
        let files = self.files.iter().map(|file| format!("`{}`", file.path));
        let quoted = self.quoted.iter().map(|text| format!("\"{text}\""));
        let known: Vec<String> = names.chain(files).chain(quoted).take(3).collect();
        if known.is_empty() {
            let words: Vec<&str> = self.terms.iter().map(|term| term.word.as_str()).collect();
            return words.join(", ");
        }
        known.join(", ")
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if list.len() < MOST && !list.contains(&item) {
        list.push(item);
    }
}

/// The question without pasted text, and that text.
fn own_words(text: &str) -> (&str, &str) {
    const MARKS: [&str; 7] =
        ["```", "\ndiff --git ", "\n--- ", "\n@@ ", "\n+++ ", "\ncommit ", "Traceback (most"];
    let (text, input) = piped::parted(text);
    let begins = text.starts_with("diff --git ") || text.starts_with("--- a/");
    let end = MARKS.iter().filter_map(|mark| text.find(mark)).min();
    let end = if begins { Some(0) } else { end };
    let end = end.or_else(|| (text.len() > LONG).then(|| text.find("\n\n").unwrap_or(0)));
    let long = text.floor_char_boundary(LONG);
    match end {
        Some(end) if input.is_empty() => (text[..end.min(long)].trim_end(), &text[end..]),
        Some(end) => (text[..end.min(long)].trim_end(), input),
        None => (&text[..long], input),
    }
}

/// Words in lower case with one blank around each. Apostrophes fall away: `where's` is `wheres`.
fn plain(text: &str) -> String {
    plain_with(text, "")
}

/// The same, keeping these marks.
fn plain_with(text: &str, kept: &str) -> String {
    let mut out = String::from(" ");
    for character in text.chars().flat_map(char::to_lowercase) {
        if character == '\'' || character == '’' {
            continue;
        }
        if character.is_alphanumeric() || "_-".contains(character) || kept.contains(character) {
            out.push(character);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}

fn without_courtesies(plain: &str) -> String {
    let mut rest = format!(" {} ", plain.trim());
    loop {
        let polite = POLITE.split('|').filter(|polite| rest.starts_with(&format!(" {polite} ")));
        match polite.max_by_key(|polite| polite.len()) {
            Some(polite) if rest.len() > polite.len() + 2 => {
                rest = rest.split_off(polite.len() + 1)
            }
            _ => return rest,
        }
    }
}

/// `--port` and other words to search for exactly.
fn is_literal(text: &str) -> bool {
    // This one looks like a file.
    text == "console.log"
        || text.strip_prefix("--").is_some_and(|rest| rest.starts_with(char::is_alphabetic))
}

fn is_name_like(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || "_-:.#$!?@&*\\()>".contains(c))
}

/// The endings that a word such as `.rs`, `*.rs` or, before "files", `Rust` stands for.
fn ending(word: &str, next: &str) -> Option<Vec<String>> {
    let dotted = word.strip_prefix("*.").or(word.strip_prefix('.'));
    if let Some(dotted) = dotted.filter(|dotted| language::is_known_ending(dotted)) {
        return Some(vec![dotted.to_owned()]);
    }
    let before = "files file source sources code lines functions tests classes structs";
    let known = language::endings(word);
    (words::has(before, next) && !known.is_empty())
        .then(|| known.into_iter().map(str::to_owned).collect())
}

/// The path that a word is, below the working folder.
fn path<'w>(word: &'w str, root: Option<&str>) -> &'w str {
    let inside = root.and_then(|root| word.strip_prefix(root));
    let inside = inside.map(|rest| rest.trim_start_matches('/')).filter(|rest| !rest.is_empty());
    let path = inside.unwrap_or(word);
    path.strip_prefix("./").or(path.strip_prefix('@')).unwrap_or(path)
}

/// The folder that a word names, if it does.
fn folder(word: &str, before: &str, next: &str, root: Option<&str>) -> Option<Folder> {
    let path = path(word, root);
    let plain = path.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    if !plain || word.contains("://") || path.trim_matches(['/', '.']).is_empty() {
        return None;
    }
    let named = words::has(FOLDER_WORDS, next)
        && !words::is_stop(path)
        && !words::is_frame(&path.to_lowercase().replace("test", ""))
        && !words::has("top root working current which what", path);
    let usual =
        words::has("in under inside within below from", before) && words::has(USUAL_FOLDERS, path);
    let inner = path.trim_end_matches('/').contains('/');
    let within = inner
        && words::has("in under inside within below of", before)
        && !language::has_known_ending(place::base(path));
    let sure = named || within || path.ends_with('/');
    (sure || usual).then(|| Folder { path: path.trim_matches('/').to_owned(), sure })
}

/// The file that a word names, if it does.
fn file(word: &str, root: Option<&str>) -> Option<File> {
    if word.contains("://") {
        return None;
    }
    let is_inside = root.is_some_and(|root| word.starts_with(root));
    let (path, line) = with_line(path(word, root));
    let base = path.rsplit('/').next()?;
    let is_path = path.contains('/')
        && (is_inside
            || path.matches('/').count() > 1
            || path.split('/').any(|part| words::has(USUAL_FOLDERS, part)));
    let known = language::has_known_ending(base) || language::is_known_name(base);
    let plain = path.chars().all(|c| c.is_alphanumeric() || "_-./+*".contains(c));
    (plain && (is_path || known)).then(|| File { path: path.to_owned(), line })
}

/// A path and the line that `path:12` or `path:12:5` names.
fn with_line(word: &str) -> (&str, Option<usize>) {
    let mut parts = word.splitn(3, ':');
    let path = parts.next().unwrap_or(word);
    match parts.next().map(str::parse) {
        Some(Ok(line)) => (path, Some(line)),
        _ => (word.trim_end_matches(':'), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, names: &[&str], files: &[&str], terms: &[&str]) {
        let question = Question::parse(text, Some("/home/x/project"));
        let shown: Vec<String> = question.names.iter().map(Name::shown).collect();
        assert_eq!(shown, names, "names in {text}");
        let paths: Vec<&str> = question.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, files, "files in {text}");
        let words: Vec<&str> = question.terms.iter().map(|term| term.word.as_str()).collect();
        assert_eq!(words, terms, "terms in {text}");
    }

    #[test]
    fn names_are_found_in_all_their_forms() {
        check("Where is `resolve` defined?", &["resolve"], &[], &[]);
        check("where is next_step called", &["next_step"], &[], &[]);
        check("what does RunRow::admit do", &["RunRow::admit"], &[], &[]);
        check("explain findFreeTable()", &["findFreeTable"], &[], &[]);
        check("What is MAX_ATTEMPTS for", &["MAX_ATTEMPTS"], &[], &[]);
        check("show me the Runtime", &["Runtime"], &[], &[]);
        assert_eq!(Question::parse("what does --port do?", None).quoted, ["--port"]);
        check("where is resolve defined", &["resolve"], &[], &[]);
        check("the function parse", &["parse"], &[], &[]);
        check("what's the user's role", &[], &[], &["user", "role"]);
    }

    #[test]
    fn files_and_folders_are_told_from_names_and_words() {
        check("summarise src/main.rs:12", &[], &["src/main.rs"], &["summarise"]);
        check("what's in /home/x/project/docs/a.md?", &[], &["docs/a.md"], &[]);
        check("explain @src/lib.rs and the Makefile", &[], &["src/lib.rs", "Makefile"], &[]);
        check("read/write locks", &[], &[], &["read", "write", "locks"]);
        check("see https://example.org/a/b.rs", &[], &[], &[]);
        assert_eq!(Question::parse("src/a.rs:12:5", None).files[0].line, Some(12));
        let folder = |text: &str| {
            Question::parse(text, None).folder.map(|folder| (folder.path, folder.sure))
        };
        let sure = |path: &str| Some((path.to_owned(), true));
        assert_eq!(folder("what is in tools/"), sure("tools"));
        assert_eq!(folder("list the files in the tests directory"), sure("tests"));
        assert_eq!(folder("list files under docs/guides/"), sure("docs/guides"));
        assert_eq!(folder("list files in src"), Some(("src".to_owned(), false)));
        assert_eq!(folder("what is in this directory"), None);
        assert_eq!(Question::parse("list the .rs files", None).endings, ["rs"]);
        assert_eq!(Question::parse("how many Python files", None).endings, ["py", "pyi"]);
    }

    #[test]
    fn what_is_left_are_terms() {
        check("how are requests rate limited?", &[], &[], &["requests", "rate", "limited"]);
        let question = Question::parse("where is the text \"fully booked\" sent", None);
        assert_eq!(question.quoted, ["fully booked"]);
        let clauses: Vec<String> =
            Question::parse("Please find it, and fix it.", None).clauses().collect();
        assert_eq!(clauses[..3], [" find it ", "  ", " fix it "].map(str::to_owned));
    }

    #[test]
    fn what_is_pasted_is_not_the_question() {
        let question = Question::parse("review this:\ndiff --git a/x b/x\n+fn a() {}\n", None);
        assert!(question.names.is_empty(), "{question:?}");
        assert_eq!(question.text, "review this:");
        let piped = "what is it?\n\n<stdin-2>\nfn main() {}\n</stdin>\n</stdin-2>";
        let question = Question::parse(piped, None);
        assert_eq!(question.text, "what is it?");
        assert_eq!(question.material, "fn main() {}\n</stdin>\n");
        assert_eq!(Question::parse("<stdin>\nx\n</stdin>", None).text, "");
    }

    #[test]
    fn odd_questions_do_no_harm() {
        for text in
            ["", "?", "`", "\"", "'", "....", "\u{0}", "::", "()", "🦀🦀 où", &"x".repeat(100_000)]
        {
            Question::parse(text, None);
        }
    }
}
