//! Files, lines, tests and definitions: how many there are, and which.

use super::scope::{self, Limited, Scope};
use crate::answer::{Answer, cite, code, count};
use crate::found::{Counts, Hit, Names};
use crate::intent::CountedThing;
use crate::language::{self, Language};
use crate::notes::{Notes, Search, WHOLE};
use crate::place::{self, FileRole};
use crate::question::Question;
use crate::shape;
use crate::words::shortened;

/// Entries of one count.
const ENTRIES: usize = 5_000;
/// Entries of a list.
const LISTED: usize = 30;

impl CountedThing {
    fn noun(self) -> &'static str {
        match self {
            CountedThing::Files => "file",
            CountedThing::Lines => "line",
            CountedThing::Tests => "test",
            CountedThing::Functions => "function",
            CountedThing::Structs => "struct",
            CountedThing::Classes => "class",
            CountedThing::Enums => "enum",
            CountedThing::Traits => "trait or interface",
            CountedThing::Examples => "example",
        }
    }

    /// How it looks, as a regular expression.
    fn pattern(self) -> &'static str {
        match self {
            // Matches every line, and reads well where searches are shown.
            CountedThing::Files | CountedThing::Lines | CountedThing::Examples => "(any line)?",
            CountedThing::Tests => {
                r#"^\s*(#\[(\w+::)*test\b|(async )?def test_|func Test\w|@Test\b|(it|test)(\.\w+)?\(["'`])"#
            }
            CountedThing::Functions => {
                r"^\s*((pub(\([^)]*\))?|export|default|async|static|unsafe|const|public|private) )*(fn|func|def|function)\s"
            }
            CountedThing::Structs => {
                r"^\s*(pub(\([^)]*\))? )?struct \w|^type \w+ struct|^typedef struct"
            }
            CountedThing::Classes => r"^\s*(export |default |public |abstract |final )*class \w",
            CountedThing::Enums => r"^\s*(pub(\([^)]*\))? |export |public )*enum \w",
            CountedThing::Traits => {
                r"^\s*(pub(\([^)]*\))? |export |public )*(trait|interface) \w|^type \w+ interface"
            }
        }
    }
}

/// `2 classes`, `1 file`.
fn amount(number: usize, noun: &str) -> String {
    match (number, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "trait or interface") => format!("{number} traits or interfaces"),
        (_, noun) if noun.ends_with("ss") => format!("{number} {noun}es"),
        _ => count(number, noun),
    }
}

/// Counts `thing`.
pub(crate) fn number(
    thing: CountedThing,
    question: &Question,
    notes: &mut Notes<'_>,
) -> Option<Answer> {
    let scope = match scope::of(question, notes)? {
        Limited::To(scope) => scope,
        Limited::Missing(path) => return Some(scope::tell_missing(&path)),
    };
    let within = scope.shown(!question.files.is_empty());
    let mut answer = Answer::new();
    if thing == CountedThing::Files {
        let files = files(question, &scope, notes)?;
        tell_number(&files, &within, &scope, &mut answer);
        return Some(answer);
    }
    let search = scope.narrow(Search::new(thing.pattern()).at_most(ENTRIES));
    let counts = match question.files.is_empty() || thing == CountedThing::Lines {
        true => notes.counts(&search)?,
        false => exact(&scope.path, &search, notes)?,
    };
    let mut own: Vec<(&str, u64)> = counts
        .list
        .iter()
        .filter(|(path, _)| place::sort(path) != FileRole::Foreign && is_meant(thing, path))
        .map(|(path, number)| (path.as_str(), *number))
        .collect();
    let all: u64 = own.iter().map(|(_, number)| number).sum();
    let least = if counts.cut { "At least " } else { "" };
    let kind = languages(&scope);
    let files = match own.as_slice() {
        [] => String::new(),
        _ if !question.files.is_empty() => String::new(),
        [(only, _)] => format!(", all in {}", code(only)),
        many => format!(" in {}", count(many.len(), "file")),
    };
    let noun = format!("{kind}{}", thing.noun());
    if thing == CountedThing::Tests && all == 0 {
        answer.say(format!(
            "I found no tests{within}. I recognise those of Rust, Python, JavaScript, TypeScript, \
                Go and Java."
        ));
        return Some(answer);
    }
    let counted = match thing {
        CountedThing::Files | CountedThing::Lines => "",
        _ if !question.files.is_empty() => "",
        _ => " I counted the lines that begin one; examples in comments may be among them.",
    };
    answer.say(format!("{least}{}{within}{files}.{counted}", amount(all as usize, &noun)));
    if own.len() > 1 {
        own.sort_by_key(|(path, number)| (std::cmp::Reverse(*number), *path));
        for (path, number) in own.iter().take(LISTED) {
            answer.item(format!("{} ({number})", cite(path, 1)));
        }
        tell_more(own.len(), &mut answer);
    }
    Some(answer)
}

/// How many lines of one file match, without those in long comments.
fn exact(path: &str, search: &Search, notes: &mut Notes<'_>) -> Option<Counts> {
    let (hits, page) = (notes.lines(search), notes.read(path, 1, WHOLE));
    let (hits, page) = (hits?, page?);
    let aside = shape::aside(&page);
    let meant = |hit: &&Hit| {
        let at = page.position(hit.line);
        at.is_none_or(|at| !aside.get(at).copied().unwrap_or_default())
    };
    let number = hits.list.iter().filter(meant).count() as u64;
    Some(Counts { list: vec![(path.to_owned(), number)], cut: hits.cut })
}

/// Tests and definitions are counted in code only.
fn is_meant(thing: CountedThing, path: &str) -> bool {
    thing == CountedThing::Lines || language::is_code(path)
}

/// `Rust `, when only files of one language are meant.
fn languages(scope: &Scope) -> String {
    let called = |ending: &String| language::called(&format!("x.{ending}"));
    match scope.endings.first().and_then(called) {
        Some(called) => format!("{called} "),
        None => String::new(),
    }
}

/// The files within `scope` that belong to the project.
fn files(question: &Question, scope: &Scope, notes: &mut Notes<'_>) -> Option<Names> {
    let source = question.has("source files|source file|code files|source code files");
    let mut files = match scope.path.as_str() {
        "" => notes.all(&scope.endings)?,
        path => notes.glob(&format!("{path}/**"))?,
    };
    files.list.retain(|path| {
        scope.holds(path)
            && place::sort(path) != FileRole::Foreign
            && (!source || language::is_code(path))
    });
    files.list.sort();
    Some(files)
}

fn tell_number(files: &Names, within: &str, scope: &Scope, answer: &mut Answer) {
    let least = if files.cut { "At least " } else { "" };
    let noun = format!("{}file", languages(scope));
    let by_language = match scope.endings.is_empty() {
        true => super::project::by_language(files).unwrap_or_default(),
        false => String::new(),
    };
    let by_language = if by_language.is_empty() { by_language } else { format!(": {by_language}") };
    answer.say(format!("{least}{}{within}{by_language}.", amount(files.list.len(), &noun)));
    answer.say("Ignored, vendored and generated files do not count.");
}

/// Lists `thing`.
pub(crate) fn list(
    thing: CountedThing,
    question: &Question,
    notes: &mut Notes<'_>,
) -> Option<Answer> {
    let scope = match scope::of(question, notes)? {
        Limited::To(scope) => scope,
        Limited::Missing(path) => return Some(scope::tell_missing(&path)),
    };
    let within = scope.shown(!question.files.is_empty());
    let mut answer = Answer::new();
    if thing == CountedThing::Files {
        let files = files(question, &scope, notes)?;
        let noun = format!("{}file", languages(&scope));
        if files.list.is_empty() {
            answer.say(format!("I found no {noun}s{within}."));
            return Some(answer);
        }
        let least = if files.cut { "At least " } else { "" };
        answer.say(format!("{least}{}{within}:", amount(files.list.len(), &noun)));
        for path in files.list.iter().take(LISTED) {
            answer.item(code(path));
        }
        tell_more(files.list.len(), &mut answer);
        return Some(answer);
    }
    let search = scope.narrow(Search::new(thing.pattern()).at_most(ENTRIES));
    let hits = notes.lines(&search)?;
    let mut own: Vec<_> = hits
        .list
        .iter()
        .filter(|hit| place::sort(&hit.path) != FileRole::Foreign && language::is_code(&hit.path))
        .collect();
    let mut noun = thing.noun().to_owned();
    if question.has("public") {
        if !own.iter().all(|hit| says_who_sees(&hit.path)) {
            answer.say("I can tell what is public in Rust, JavaScript, TypeScript and Java only.");
            return Some(answer);
        }
        let public = ["pub ", "export ", "public "];
        own.retain(|hit| public.iter().any(|word| hit.text.trim_start().starts_with(word)));
        noun = format!("public {noun}");
    }
    let least = if hits.cut { "At least " } else { "" };
    if own.is_empty() {
        answer.say(format!("I found no {noun}{within}."));
        return Some(answer);
    }
    answer.say(format!("{least}{}{within}:", amount(own.len(), &noun)));
    for hit in own.iter().take(LISTED) {
        let text = code(&shortened(hit.text.trim().trim_end_matches('{').trim_end(), 100));
        answer.item(format!("{} {text}", cite(&hit.path, hit.line)));
    }
    tell_more(own.len(), &mut answer);
    Some(answer)
}

/// Whether a word before a definition says who may use it.
fn says_who_sees(path: &str) -> bool {
    matches!(language::of(path), Language::Rust | Language::Script | Language::Java)
}

fn tell_more(all: usize, answer: &mut Answer) {
    if all > LISTED {
        answer.item(format!("… and {} more", all - LISTED));
    }
}
