//! Names in code: where they are defined, used and tested, and what they are.

use crate::offline::answer::{Answer, cite, code};
use crate::offline::found::{Hit, Page};
use crate::offline::notes::{Notes, Search, together};
use crate::offline::place;
use crate::offline::question::{Name, Question};
use crate::offline::rank::{self, Defined};
use crate::offline::words::{self, Term};
use crate::offline::{definition, language};

mod telling;

/// Words that announce definitions, in all languages at once.
const KEYWORDS: &str = "fn|func|fun|def|defp|defmodule|class|struct|enum|trait|interface|type|\
    const|let|var|val|static|mod|module|macro_rules!|union|record|object|namespace|function|sub|\
    message|service|rpc|protocol|typedef|table|view|index|procedure|trigger|task|alias|\
    add_library|add_executable|option|set|project";
/// Files that hold tests by their place or name.
const TEST_FILES: &str = "{**/test/**,**/tests/**,**/spec/**,**/specs/**,**/__tests__/**,\
    **/e2e/**,**/*_test.*,**/test_*,**/*.test.*,**/*.spec.*,**/*Test.*,**/*Tests.*,**/*_spec.*}";
/// Definitions that are read.
const READ: usize = 3;

/// What is asked about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::offline) enum Aspect {
    Definition,
    Explanation,
    Uses,
    Tests,
}

impl Aspect {
    fn shows_code(self) -> bool {
        matches!(self, Aspect::Definition | Aspect::Explanation)
    }
}

/// What is known of a name.
struct Symbol {
    name: Name,
    definitions: Vec<Defined>,
    uses: Vec<Hit>,
    tests: Vec<Hit>,
    /// There are more uses than were listed.
    more: bool,
    pages: Vec<Page>,
    /// Test files that are named after it.
    named_after: Vec<String>,
}

/// Answers about the names in `question`; `None` in the answer when none of them is anywhere.
pub(in crate::offline) fn look(
    question: &Question,
    aspect: Aspect,
    notes: &mut Notes<'_>,
) -> Option<Option<Answer>> {
    let names = &question.names[..question.names.len().min(2)];
    let symbols = together(names.iter().map(|name| look_up(name, question, aspect, notes)))?;
    let known: Vec<&Symbol> = symbols.iter().filter(|symbol| symbol.is_known()).collect();
    if known.is_empty() {
        return Some(None);
    }
    let mut answer = Answer::new();
    for symbol in &known {
        match aspect {
            Aspect::Definition => symbol.tell_definition(&mut answer),
            Aspect::Explanation => symbol.tell_all(&mut answer),
            Aspect::Uses => symbol.tell_uses(&mut answer),
            Aspect::Tests => symbol.tell_tests(&mut answer),
        }
    }
    for symbol in symbols.iter().filter(|symbol| !symbol.is_known() && symbol.name.sure) {
        answer.say(format!("I found no {} in any spelling.", code(&symbol.name.shown())));
    }
    Some(Some(answer))
}

/// What to say of names that are nowhere, with names that come near.
pub(in crate::offline) fn unknown(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut answer = Answer::new();
    let shown: Vec<String> =
        question.names.iter().take(3).map(|name| code(&name.shown())).collect();
    answer.say(format!(
        "I found no {}: I searched all files that are not ignored, for any spelling of it.",
        shown.join(" and no ")
    ));
    let Some(part) =
        question.names.first().and_then(|name| name.parts().into_iter().max_by_key(String::len))
    else {
        return Some(answer);
    };
    let lines = notes
        .lines(&Search::new(definition_pattern(&words::escape(&part))).any_case().at_most(100))?;
    let defined = lines
        .list
        .iter()
        .filter_map(|hit| Some((hit, definition::definition(language::of(&hit.path), &hit.text)?)));
    let comes_near = |found: &definition::Definition<'_>| {
        found.kind.is_major() && found.name.to_lowercase().contains(&part)
    };
    let mut near: Vec<_> =
        defined.filter(|(_, found)| part.len() > 3 && comes_near(found)).collect();
    near.sort_by_key(|(hit, found)| {
        (place::sort(&hit.path) != place::Sort::Source, found.name.len())
    });
    if !near.is_empty() {
        answer.say("Names that come near:");
    }
    for (hit, found) in near.iter().take(4) {
        answer.item(format!(
            "{} {}, a {}",
            cite(&hit.path, hit.line),
            code(found.name),
            found.kind.word()
        ));
    }
    Some(answer)
}

/// A regular expression for lines that may define what `name`, itself one, matches. What they
/// define is told line by line afterwards.
fn definition_pattern(name: &str) -> String {
    // Words that may stand before a name that no keyword announces.
    let modifiers = "export|readonly|local|static|async|public|private|get|set|-";
    let before = format!(r"(?:(?:pub(?:\([^)]*\))?|{modifiers})\s+|self\.|@|attr_\w+ :)*");
    let typed = r"^\s*\w[\w*&<>:,\[\]\s]*[\s*&:~]";
    [
        format!(r"\b(?:{KEYWORDS})\b.{{0,80}}{name}"),
        format!(r"^\s*#\s*define\s+{name}"),
        format!(r#"^\s*{before}["'\[]*{name}["'\]]*\s*(?:[:=?{{,<]|$|\([^;]*\{{)"#),
        format!(r"^{name}\s*\([^;]*$"),
        format!(r"{typed}{name}\s*\("),
        format!(r"^#+\s.*{name}"),
        format!(r"^\}}\s*{name}\s*;"),
        format!(r"^\s+\w[\w<>\[\], .]*\s{name}\s*[;=]"),
    ]
    .join("|")
}

/// A file pattern for names that hold `name` in any spelling.
fn names_pattern(name: &Name) -> String {
    let parts: Vec<String> = name.parts().iter().map(|part| Term::plain(part).glob()).collect();
    let spelled = ["", "-", "_"].map(|between| format!("**/*{}*", parts.join(between)));
    format!("{{{}}}", spelled.join(","))
}

fn look_up(
    name: &Name,
    question: &Question,
    aspect: Aspect,
    notes: &mut Notes<'_>,
) -> Option<Symbol> {
    let exact = name.pattern();
    let search = |pattern: &str| {
        let search = Search::new(pattern).at_most(250);
        if name.is_word() { search.any_case() } else { search }
    };
    let defining = notes.lines(&search(&definition_pattern(&exact)));
    let all = notes.lines(&search(&exact));
    let in_tests = match aspect {
        Aspect::Tests => notes.lines(&search(&exact).files_like(TEST_FILES)),
        _ => Some(Default::default()),
    };
    let named_after = match aspect {
        Aspect::Tests => notes.glob(&names_pattern(name)),
        _ => Some(Default::default()),
    };
    let (mut defining, mut all, in_tests, named_after) = (defining?, all?, in_tests?, named_after?);
    all.list.extend(in_tests.list);
    all.list.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    all.list.dedup();
    if defining.list.is_empty() && all.list.len() < 3 {
        let loose = name.loose_pattern();
        let defining_loosely =
            notes.lines(&Search::new(definition_pattern(&loose)).any_case().at_most(100));
        let all_loosely = notes.lines(&Search::new(loose).any_case().at_most(150));
        (defining, all) = (defining_loosely?, all_loosely?);
    }
    let mut definitions = rank::definitions(name, &defining.list, question);
    if let Some(within) = name.within.last() {
        prefer_files_of(within, question, &mut definitions, notes)?;
    }
    let in_rust = all.list.iter().any(|hit| hit.path.ends_with(".rs"));
    let rust_tests = if in_rust {
        notes
            .lines(&Search::new(r"^\s*#\[cfg\((?:all\()?test\b").files_like("**/*.rs").at_most(500))
    } else {
        Some(Default::default())
    };
    let read = if aspect.shows_code() { READ } else { 0 };
    let around = |hit: &Hit| (hit.path.clone(), hit.line.saturating_sub(12));
    let best: Vec<_> = definitions.iter().take(read).map(|found| around(&found.hit)).collect();
    let pages = together(best.iter().map(|(path, first)| notes.read(path, *first, 60)));
    let (rust_tests, pages) = (rust_tests?, pages?);
    let is_test = |hit: &Hit| {
        place::is_test(&hit.path)
            || rust_tests.list.iter().any(|mark| mark.path == hit.path && mark.line < hit.line)
    };
    let (mut tests, uses): (Vec<Hit>, Vec<Hit>) =
        rank::uses(&all.list, &definitions).into_iter().partition(is_test);
    // A test file that is named after it is about it.
    let squeezed = name.parts().concat();
    tests.sort_by_key(|hit| {
        !place::stem(&hit.path).to_lowercase().replace(['_', '-'], "").contains(&squeezed)
    });
    let mut symbol = Symbol {
        name: name.clone(),
        definitions,
        uses,
        tests,
        more: all.cut,
        pages,
        named_after: Vec::new(),
    };
    symbol.named_after =
        named_after.list.into_iter().filter(|path| place::is_test(path)).take(4).collect();
    if aspect == Aspect::Tests {
        symbol.pages = symbol.test_pages(notes)?;
    }
    Some(symbol)
}

/// Moves definitions up that stand in the file where what they belong to is defined.
fn prefer_files_of(
    within: &str,
    question: &Question,
    definitions: &mut [Defined],
    notes: &mut Notes<'_>,
) -> Option<()> {
    let owner = Name::plain(within);
    let hits = notes.lines(&Search::new(definition_pattern(&owner.pattern())).at_most(60))?;
    let owners = rank::definitions(&owner, &hits.list, question);
    for found in definitions.iter_mut() {
        let together =
            owners.iter().any(|owner| owner.kind.is_major() && owner.hit.path == found.hit.path);
        found.score += if together { 40 } else { 0 };
    }
    definitions.sort_by_key(|found| -found.score);
    Some(())
}
