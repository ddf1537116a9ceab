//! How many files, lines, tests or definitions there are.

use crate::offline::answer::{Answer, cite, code, count};
use crate::offline::found::Counts;
use crate::offline::language;
use crate::offline::notes::{Notes, Search};
use crate::offline::place::{self, Sort};
use crate::offline::question::Question;

/// Entries of one count.
const ENTRIES: usize = 5_000;
/// Files that are listed.
const LISTED: usize = 8;

/// What is counted: a word for it, the phrases that ask for it, and how it looks.
struct Counted(&'static str, &'static str, &'static [&'static str]);

const COUNTED: [Counted; 7] = [
    Counted(
        "test",
        "tests|test|test cases|unit tests|pruebas|测试",
        &[
            r"#\[(?:\w+::)?test\b|^\s*(?:async )?def test_|^\s*(?:it|test)(?:\.\w+)?\(",
            r"^func Test\w|@Test\b|^\s*def test_|^static void test_",
        ],
    ),
    Counted("TODO or FIXME", "todo|todos|fixme|fixmes", &[r"\b(?:TODO|FIXME|XXX|HACK)\b"]),
    Counted(
        "function",
        "functions|function|methods|method|funktionen|fonctions|funciones",
        &[
            r"^\s*(?:(?:pub(?:\([^)]*\))?|export|default|async|static|unsafe|const)\s+)*(?:fn|func)\s",
            r"^\s*(?:(?:export|default|async)\s+)*(?:def|function)\s",
        ],
    ),
    Counted(
        "struct",
        "structs|struct|structures",
        &[
            r"^\s*(?:pub(?:\([^)]*\))?\s+)?struct\s|^type \w+ struct",
            r"^\s*(?:typedef )?struct \w+ *\{?$",
        ],
    ),
    Counted(
        "class",
        "classes|class|klassen|clases",
        &[r"^\s*(?:export\s+|default\s+|public\s+|abstract\s+|final\s+)*class\s"],
    ),
    Counted("enum", "enums|enum", &[r"^\s*(?:pub(?:\([^)]*\))?\s+|export\s+|public\s+)?enum\s"]),
    Counted(
        "trait or interface",
        "traits|trait|interfaces|interface",
        &[
            r"^\s*(?:pub(?:\([^)]*\))?\s+|export\s+|public\s+)?(?:trait|interface)\s",
            r"^type \w+ interface",
        ],
    ),
];

/// Counts what `question` asks for.
pub(in crate::offline) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let endings: Vec<&'static str> = question
        .plain
        .split_whitespace()
        .filter(|word| word.len() > 1)
        .flat_map(language::endings)
        .collect();
    let called = endings.first().and_then(|ending| language::called(&format!("x.{ending}")));
    let mut answer = Answer::new();
    if let Some(name) = question.names.first() {
        let counts = notes.counts(&Search::new(name.pattern()).at_most(ENTRIES))?;
        tell(&format!("line with {}", code(&name.shown())), &counts, &mut answer);
        return Some(answer);
    }
    if let Some(counted) = COUNTED.iter().find(|counted| question.has(counted.1)) {
        let search = narrowed(Search::new(counted.2.join("|")).at_most(ENTRIES), &endings);
        let counts = notes.counts(&search)?;
        tell(counted.0, &counts, &mut answer);
        return Some(answer);
    }
    // Every line counts, so a count of matches is a count of lines.
    let counts = notes.counts(&narrowed(Search::new("^").at_most(ENTRIES), &endings))?;
    let files = notes.glob(&match endings.as_slice() {
        [] => "**/*".to_owned(),
        [one] => format!("**/*.{one}"),
        many => format!("**/*.{{{}}}", many.join(",")),
    })?;
    let own: Vec<&String> =
        files.list.iter().filter(|path| place::sort(path) != Sort::Foreign).collect();
    let (what, least) = (
        called.map(|called| format!("{called} file")).unwrap_or("file".to_owned()),
        if files.cut { "At least " } else { "" },
    );
    let left_out = match files.list.len() - own.len() {
        0 => String::new(),
        number => format!(", and {number} that are vendored or generated"),
    };
    answer.say(format!("{least}{}{left_out}.", count(own.len(), &what)));
    tell("line", &counts, &mut answer);
    Some(answer)
}

fn narrowed(search: Search, endings: &[&str]) -> Search {
    match endings {
        [] => search,
        [one] => search.files_like(&format!("**/*.{one}")),
        many => search.files_like(&format!("**/*.{{{}}}", many.join(","))),
    }
}

fn tell(what: &str, counts: &Counts, answer: &mut Answer) {
    let mut own: Vec<&(String, u64)> =
        counts.list.iter().filter(|(path, _)| place::sort(path) != Sort::Foreign).collect();
    let all: u64 = own.iter().map(|(_, count)| count).sum();
    let least = if counts.cut { "At least " } else { "" };
    let noun = match (all, what.split_once(" with ").or(what.split_once(" or "))) {
        (1, _) => what.to_owned(),
        (_, Some((first, rest))) if what.contains(" with ") => format!("{first}s with {rest}"),
        (_, Some((first, rest))) => format!("{first}s or {rest}s"),
        _ if what.ends_with('s') => format!("{what}es"),
        _ => format!("{what}s"),
    };
    answer.say(format!(
        "{least}{all} {noun} in {}{}",
        count(own.len(), "file"),
        if own.is_empty() { "." } else { ", most of all in:" }
    ));
    own.sort_by_key(|(path, count)| (std::cmp::Reverse(*count), path.clone()));
    for (path, count) in own.into_iter().take(LISTED) {
        answer.item(format!("{} ({count})", cite(path, 1)));
    }
}
