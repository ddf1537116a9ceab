//! A question taken apart: names of code, files, quoted text, and the words that are left.

use super::words::{self, Term};
use super::{language, place};
use name::{Style, is_named_by_neighbours, name};

mod name;
mod tokens;

pub(super) use name::Name;

/// Characters of a question that are looked at; what follows is material, such as a pasted log.
const LOOKED_AT: usize = 4_000;
/// Names, files and terms that one question is taken to be about.
const MOST: usize = 6;

/// Words after which a question says what it is about.
const ABOUT: [&str; 8] =
    ["about", "regarding", "concerning", "mention", "mentions", "über", "sobre", "concernant"];

/// A question.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    pub text: String,
    /// The words in lower case with one blank around each, for finding phrases.
    pub plain: String,
    /// Names of things in code, the surest first.
    pub names: Vec<Name>,
    /// Text in quotes that is no name.
    pub quoted: Vec<String>,
    pub files: Vec<File>,
    /// What else it is about.
    pub terms: Vec<Term>,
    /// Words for parts of code, which say a little.
    pub frame: Vec<Term>,
    /// What the project's folder is called, in lower case.
    pub project: String,
}

/// A file or folder as it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub path: String,
    pub line: Option<usize>,
}

/// Words that make the word before them the name of a folder.
const FOLDER_WORDS: [&str; 12] = [
    "folder",
    "directory",
    "dir",
    "crate",
    "package",
    "subfolder",
    "ordner",
    "verzeichnis",
    "dossier",
    "carpeta",
    "directorio",
    "workspace",
];

fn is_folder_name(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    plain
        && !words::is_stop(word)
        && !words::is_frame(word)
        && !matches!(word, "top" | "root" | "working" | "current" | "main" | "npm" | "each")
}

/// `HTTP/2`, `UTF-8`: a name with its number.
fn is_versioned(word: &str) -> bool {
    let parts = word.split_once(['/', '-']);
    parts.is_some_and(|(name, number)| {
        name.len() > 1
            && name.chars().all(|c| c.is_ascii_alphabetic())
            && number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '.')
    })
}

impl Question {
    /// Takes `text` apart. `folder` is the working folder: paths inside it lose it.
    pub fn parse(text: &str, folder: Option<&str>) -> Self {
        let text: String = text.trim().chars().take(LOOKED_AT).collect();
        let mut question = Question { plain: plain(&text), ..Question::default() };
        let tokens = tokens::tokens(&text, &mut question.quoted);
        let lower: Vec<String> = tokens.iter().map(|token| token.text.to_lowercase()).collect();
        let style = Style {
            german: words::is_german(lower.iter().map(String::as_str)),
            han: is_han(&text),
        };
        question.project =
            folder.map(|folder| place::base(folder).to_lowercase()).unwrap_or_default();
        for (index, token) in tokens.iter().enumerate() {
            let word = lower[index].as_str();
            let next = lower.get(index + 1).map_or("", String::as_str);
            if let Some(file) = file(&token.text, folder) {
                add(&mut question.files, file);
            } else if FOLDER_WORDS.contains(&next) && is_folder_name(word) {
                add(&mut question.files, File { path: format!("{}/", token.text), line: None });
            } else if is_versioned(&token.text) {
                add(&mut question.quoted, token.text.clone());
            } else if let Some(name) = name(token, style) {
                add(&mut question.names, name);
            } else if is_named_by_neighbours(&lower, index) {
                let name = Name::plain(token.text.trim_matches(|c: char| !c.is_alphanumeric()));
                add(&mut question.names, Name { sure: false, ..name });
            } else if !word.contains("://") {
                let about = lower[..index].iter().any(|before| ABOUT.contains(&before.as_str()));
                for part in word.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
                    question.add_term(part, if about { 2.0 } else { 1.0 });
                }
            }
        }
        question.text = text;
        question
    }

    fn add_term(&mut self, word: &str, weight: f64) {
        if word.chars().count() < 2
            || words::is_stop(word)
            || !word.chars().any(char::is_alphabetic)
        {
            return;
        }
        let list = if words::is_frame(word) { &mut self.frame } else { &mut self.terms };
        let weight = if words::is_frame(word) { 0.35 } else { weight };
        let term = Term::new(word).weighing(weight);
        if !list.iter().any(|known| known.stems == term.stems) && list.len() < MOST {
            list.push(term);
        }
    }

    /// Whether one of these phrases, with `|` between them, is in it.
    pub fn has(&self, phrases: &str) -> bool {
        phrases.split('|').any(|phrase| {
            if is_han(phrase) {
                self.plain.contains(phrase)
            } else {
                self.plain.contains(&format!(" {phrase} "))
            }
        })
    }

    /// Whether it begins with one of these phrases, with `|` between them.
    pub fn begins(&self, phrases: &str) -> bool {
        phrases.split('|').any(|phrase| {
            if is_han(phrase) {
                self.plain.trim_start().starts_with(phrase)
            } else {
                self.plain.starts_with(&format!(" {phrase} "))
            }
        })
    }

    /// Whether it says what it is about.
    pub fn has_subject(&self) -> bool {
        !(self.names.is_empty()
            && self.files.is_empty()
            && self.quoted.is_empty()
            && self.terms.is_empty())
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

/// Whether there is a sign of Chinese, Japanese or Korean in it.
pub(super) fn is_han(text: &str) -> bool {
    let is_one = |c| matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}');
    text.chars().any(is_one)
}

/// Words in lower case with one blank around each. Apostrophes fall away: `where's` is `wheres`.
fn plain(text: &str) -> String {
    let mut out = String::from(" ");
    for character in text.chars().flat_map(char::to_lowercase) {
        if character == '\'' || character == '’' {
            continue;
        }
        let keeps = character.is_alphanumeric() || matches!(character, '_' | '-');
        if keeps {
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

/// The file that a word names, if it does.
fn file(word: &str, folder: Option<&str>) -> Option<File> {
    const FOLDERS: [&str; 16] = [
        "src", "lib", "tests", "test", "docs", "doc", "cmd", "pkg", "app", "apps", "crates",
        "packages", "internal", "examples", "include", "scripts",
    ];
    if word.contains("://") {
        return None;
    }
    let inside = folder
        .and_then(|folder| word.strip_prefix(folder))
        .map(|rest| rest.trim_start_matches('/'));
    let word = inside.filter(|rest| !rest.is_empty()).unwrap_or(word);
    let (path, line) = with_line(word);
    let path = path.strip_prefix("./").unwrap_or(path);
    let base = path.trim_end_matches('/').rsplit('/').next()?;
    let is_path = path.contains('/')
        && (path.ends_with('/')
            || inside.is_some()
            || path.matches('/').count() > 1
            || path.split('/').any(|part| FOLDERS.contains(&part)));
    let known = language::has_known_ending(base) || language::is_known_name(base);
    let plain = path.chars().all(|c| c.is_alphanumeric() || "_-./@+*".contains(c));
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
        check("what does --max-turns do?", &["max-turns"], &[], &[]);
        check("where is resolve defined", &["resolve"], &[], &[]);
        check("the function parse", &["parse"], &[], &[]);
        check("ring_init在哪里定义？", &["ring_init"], &[], &[]);
        check("Wo ist die Abhängigkeit definiert", &[], &[], &["abhängigkeit"]);
        check("where is the items table created", &["items"], &[], &["table", "created"]);
    }

    #[test]
    fn files_are_told_from_names_and_words() {
        check("summarise src/main.rs:12", &[], &["src/main.rs"], &[]);
        check("what's in /home/x/project/docs/a.md?", &[], &["docs/a.md"], &[]);
        check("explain the Makefile", &[], &["Makefile"], &[]);
        check("read/write locks", &[], &[], &["read", "write", "locks"]);
        check("see https://example.org/a/b.rs", &[], &[], &[]);
        check("what is in tools/", &[], &["tools/"], &[]);
        assert_eq!(Question::parse("src/a.rs:12:5", None).files[0].line, Some(12));
    }

    #[test]
    fn what_is_left_are_terms() {
        check("how are requests rate limited?", &[], &[], &["requests", "rate", "limited"]);
        check("What happens when a server is busy?", &[], &[], &["server", "busy"]);
        let question = Question::parse("where is the text \"fully booked\" sent", None);
        assert_eq!(question.quoted, ["fully booked"]);
    }

    #[test]
    fn spellings_of_a_name_are_alike() {
        let name = Name::plain("max-turns");
        assert!(name.is_like("max_turns") && name.is_like("maxTurns") && !name.is_like("max_turn"));
        assert_eq!(name.loose_pattern(), "max[-_ ]?turns");
        assert_eq!(Name::plain("next_step").pattern(), "\\bnext_step\\b");
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
