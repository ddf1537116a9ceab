//! Names in code: where they are defined, used and tested, and what they are.

use super::scope::{self, Limited, Scope};
use super::search;
use crate::answer::{Answer, cite, code, count};
use crate::definition::{self, Kind};
use crate::found::{Hit, Hits, Page};
use crate::intent::{Aspect, SearchForm};
use crate::notes::{Notes, Search, WHOLE, together};
use crate::place::{self, FileRole};
use crate::question::{Name, Question};
use crate::rank::{self, Defined};
use crate::words::Term;
use crate::{language, shape, words};
use std::cmp::Reverse;

/// Words that announce definitions, in all languages at once.
const KEYWORDS: &str = "fn|func|fun|def|class|struct|enum|trait|interface|type|const|let|var|val|\
    static|mod|module|macro_rules!|record|object|namespace|function|message|service|define|table";
/// Lines of one search.
const LINES: usize = 400;
/// Files of Rust that are read to tell tests from the rest.
const READ: usize = 6;
/// Lines of a definition that are shown.
const SHOWN: usize = 16;

/// What is known of a name.
struct Symbol {
    name: Name,
    definitions: Vec<Defined>,
    /// Other lines that have it.
    uses: Vec<Hit>,
    /// There are more lines than were listed.
    more: bool,
    /// Pages that were read, whole files or surroundings.
    pages: Vec<Page>,
    /// What else the question is about.
    terms: Vec<Term>,
}

/// Answers about the names in `question`.
pub(super) fn look(question: &Question, aspect: Aspect, notes: &mut Notes<'_>) -> Option<Answer> {
    if question.names.is_empty() {
        return importers(question, notes);
    }
    let scope = match scope::of(question, notes)? {
        Limited::To(scope) => scope,
        Limited::Missing(path) => return Some(scope::tell_missing(&path)),
    };
    let names = &question.names[..question.names.len().min(2)];
    let symbols =
        together(names.iter().map(|name| look_up(name, question, aspect, &scope, notes)))?;
    let mut answer = Answer::new();
    for symbol in symbols.iter().filter(|symbol| symbol.is_known()) {
        match aspect {
            Aspect::Definition | Aspect::Explanation => symbol.tell_definition(&mut answer),
            Aspect::Uses => symbol.tell_uses(&mut answer),
            Aspect::Tests => symbol.tell_tests(&mut answer),
        }
    }
    let unknown: Vec<&Name> =
        symbols.iter().filter(|symbol| !symbol.is_known()).map(|symbol| &symbol.name).collect();
    if unknown.is_empty() {
        return Some(answer);
    }
    if answer.is_empty() && unknown.iter().all(|name| !name.sure) {
        // A word that counts as a name only because of its place in the sentence.
        return search::look(question, SearchForm::Passages, notes);
    }
    for name in unknown {
        tell_unknown(name, &scope, notes, &mut answer)?;
    }
    Some(answer)
}

/// Where the one name of `question` is defined, in a sentence, if there is just one such place.
pub(super) fn certain(question: &Question, notes: &mut Notes<'_>) -> Option<Option<String>> {
    let Some(name) = question.names.first() else { return Some(None) };
    let hits = lines_with(name, &Scope::default(), notes)?;
    let definitions = rank::definitions(name, &hits.list, question);
    let mut major = definitions.iter().filter(|found| is_own(found) && found.name == name.name);
    let (Some(only), None) = (major.next(), major.next()) else { return Some(None) };
    let others = hits.list.len() - 1;
    let least = if hits.cut { "at least " } else { "" };
    Some(Some(format!(
        "What I can tell: {} is a {}, defined at {}; {least}{} mention the name.",
        code(&name.shown()),
        only.kind.word(),
        cite(&only.hit.path, only.hit.line),
        count(others, "other line"),
    )))
}

fn is_own(found: &Defined) -> bool {
    found.kind.is_major() && place::sort(&found.hit.path) == FileRole::Source
}

/// Lines that have `name` as a whole word.
fn lines_with(name: &Name, scope: &Scope, notes: &mut Notes<'_>) -> Option<Hits> {
    let mut hits = notes.lines(&scope.narrow(Search::new(name.pattern()).at_most(LINES)))?;
    hits.list.retain(|hit| name.stands_in(&hit.text));
    if hits.cut {
        // The definition may be among the lines that were left out.
        let defines = format!("({KEYWORDS}) +{}\\b", words::escape(&name.name));
        let more = notes.lines(&scope.narrow(Search::new(defines).at_most(LINES)))?;
        hits.list.extend(more.list);
        hits.list.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
        hits.list.dedup();
    }
    Some(hits)
}

fn look_up(
    name: &Name,
    question: &Question,
    aspect: Aspect,
    scope: &Scope,
    notes: &mut Notes<'_>,
) -> Option<Symbol> {
    let mut hits = lines_with(name, scope, notes)?;
    if hits.list.is_empty() && name.parts().len() > 1 {
        let loose = Search::new(name.loose_pattern()).any_case().at_most(LINES);
        hits = notes.lines(&scope.narrow(loose))?;
    }
    let mut definitions = rank::definitions(name, &hits.list, question);
    if let Some(within) = name.within.last() {
        keep_those_of(within, &mut definitions, notes)?;
    }
    let uses = rank::uses(&hits.list, &definitions);
    let pages = match aspect {
        Aspect::Definition | Aspect::Explanation => {
            let best = definitions.iter().take(1).map(|found| &found.hit);
            let read = |hit: &Hit| notes.read(&hit.path, hit.line.saturating_sub(30), 120);
            together(best.map(read))?
        }
        Aspect::Uses | Aspect::Tests => {
            let mut paths: Vec<&str> = uses.iter().map(|hit| hit.path.as_str()).collect();
            paths.sort_unstable();
            paths.dedup();
            let named = aspect == Aspect::Tests;
            let wanted = |path: &&str| {
                path.ends_with(".rs") && !place::is_test(path) || named && place::is_test(path)
            };
            let read = paths.into_iter().filter(wanted).take(READ);
            together(read.map(|path| notes.read(path, 1, WHOLE)))?
        }
    };
    let terms = question.terms.clone();
    Some(Symbol { name: name.clone(), definitions, uses, more: hits.cut, pages, terms })
}

/// Keeps definitions that stand inside `within`: a class, an `impl`, a module, a receiver.
fn keep_those_of(
    within: &str,
    definitions: &mut Vec<Defined>,
    notes: &mut Notes<'_>,
) -> Option<()> {
    let mut paths: Vec<&str> = definitions.iter().map(|found| found.hit.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let pages = paths.into_iter().take(READ).map(|path| notes.read(path, 1, WHOLE));
    let pages = together(pages)?;
    let inside = |found: &Defined| {
        let module = place::stem(&found.hit.path).eq_ignore_ascii_case(within);
        let page = pages.iter().find(|page| page.path == found.hit.path);
        module || page.is_some_and(|page| shape::is_inside(page, found.hit.line, within))
    };
    if definitions.iter().any(inside) {
        definitions.retain(inside);
    }
    Some(())
}

impl Symbol {
    /// Whether it exists. A word that is a name only by its place must be defined somewhere.
    fn is_known(&self) -> bool {
        let defined = self.definitions.iter().any(|found| found.kind.weight() > 60);
        defined || self.name.sure && !(self.definitions.is_empty() && self.uses.is_empty())
    }

    fn shown(&self) -> String {
        code(&self.name.shown())
    }

    fn page(&self, hit: &Hit) -> Option<&Page> {
        self.pages.iter().find(|page| page.path == hit.path && page.position(hit.line).is_some())
    }

    /// Definitions that count as much as the best one.
    fn equals(&self) -> Vec<&Defined> {
        let best = self.definitions.first().map_or(0, |found| found.score);
        self.definitions.iter().filter(|found| found.score + 6 > best).collect()
    }

    fn tell_definition(&self, answer: &mut Answer) {
        let equals = self.equals();
        let Some(best) = equals.first() else {
            answer.say(format!(
                "I found no definition of {} here, but {}:",
                self.shown(),
                self.amount(&self.uses)
            ));
            self.list(answer, &self.uses, 6);
            return;
        };
        let place = cite(&best.hit.path, best.hit.line);
        let called = match best.name == self.name.name {
            true => self.shown(),
            false => format!("{} (written {})", self.shown(), code(&best.name)),
        };
        let article = if best.kind.word().starts_with(['a', 'e', 'i']) { "an" } else { "a" };
        answer.say(match equals.len() {
            1 => format!("{called} is {article} {}, defined at {place}:", best.kind.word()),
            many => format!("{called} has {many} definitions. One is at {place}:"),
        });
        match self.page(&best.hit) {
            Some(page) => answer.definition(page, best.hit.line, SHOWN),
            None => answer.block(&[best.hit.text.as_str()], language::fence(&best.hit.path)),
        };
        if equals.len() > 1 {
            answer.say("The others:");
            for found in equals.iter().skip(1).take(8) {
                answer.place(&found.hit);
            }
            let left = equals.len().saturating_sub(9);
            if left > 0 {
                answer.item(format!("… and {left} more"));
            }
        }
        if !self.uses.is_empty() {
            answer.say(format!("Besides, {}, for example:", self.amount(&self.uses)));
            let mut examples = one_per_file(&self.uses);
            let near = |hit: &&Hit| {
                let said = |term: &&Term| term.is_in(&hit.text) || term.is_in(&hit.path);
                Reverse(self.terms.iter().filter(said).count())
            };
            examples.sort_by_key(near);
            for hit in examples.iter().take(3) {
                answer.place(hit);
            }
        }
    }

    /// The lines that use it: outside tests, and in tests.
    fn told_apart(&self) -> (Vec<Hit>, Vec<Hit>) {
        let is_test = |hit: &Hit| {
            place::is_test(&hit.path)
                || self.page(hit).is_some_and(|page| shape::is_test(page, hit.line))
        };
        let (tests, uses) = self.uses.iter().cloned().partition(is_test);
        (uses, tests)
    }

    fn tell_uses(&self, answer: &mut Answer) {
        let (uses, tests) = self.told_apart();
        if self.uses.is_empty() {
            answer.say(format!("{} is defined, but no other line mentions it.", self.shown()));
        } else {
            answer.say(format!("{}: {}.", self.shown(), self.amount(&self.uses)));
        }
        if !uses.is_empty() {
            self.list(answer, &uses, 12);
        }
        if !tests.is_empty() {
            answer.say(format!("In tests ({}):", count(tests.len(), "line")));
            self.list(answer, &tests, if uses.is_empty() { 10 } else { 4 });
        }
        self.tell_place(answer);
    }

    fn tell_tests(&self, answer: &mut Answer) {
        let (_, tests) = self.told_apart();
        let named: Vec<&Hit> = tests.iter().filter(|hit| !rank::is_import(&hit.text)).collect();
        if named.is_empty() {
            answer.say(format!(
                "No test that I see mentions {} by name. It may still be tested through other code.",
                self.shown()
            ));
        } else {
            let tests = count(named.len(), "line");
            answer.say(format!("{} is mentioned in tests, in {tests}:", self.shown()));
        }
        for hit in named.iter().take(10) {
            let test = self.page(hit).and_then(|page| enclosing_test(page, hit.line));
            match test {
                Some(name) => {
                    answer.item(format!("{} in {}", cite(&hit.path, hit.line), code(&name)))
                }
                None => answer.place(hit),
            };
        }
        self.tell_place(answer);
    }

    /// Where it is defined, if that is certain.
    fn tell_place(&self, answer: &mut Answer) {
        if let [only] = self.equals().as_slice() {
            answer.say(format!("It is defined at {}.", cite(&only.hit.path, only.hit.line)));
        }
    }

    fn list(&self, answer: &mut Answer, hits: &[Hit], most: usize) {
        for hit in hits.iter().take(most) {
            answer.place(hit);
        }
        if hits.len() > most {
            answer.item(format!("… and {} more", hits.len() - most));
        }
    }

    /// `3 lines of 2 files mention the name`.
    fn amount(&self, hits: &[Hit]) -> String {
        let mut paths: Vec<&str> = hits.iter().map(|hit| hit.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        let least = if self.more { "at least " } else { "" };
        let (lines, files) = (count(hits.len(), "line"), count(paths.len(), "file"));
        let one = hits.len() == 1;
        if !self.name.within.is_empty() {
            let verb = if one { "has" } else { "have" };
            let word = code(&self.name.name);
            return format!(
                "{least}{lines} of {files} {verb} the word {word}, some perhaps for another one"
            );
        }
        let verb = if one { "mentions" } else { "mention" };
        format!("{least}{lines} of {files} {verb} the name")
    }
}

/// The name of the test around a line.
fn enclosing_test(page: &Page, line: usize) -> Option<String> {
    let at = page.position(line)?;
    let described = page.lines[..=at].iter().rev().find_map(|(_, text)| {
        let plain = text.trim();
        let starts = ["it(", "test(", "it.each", "t.Run("];
        let is_one = starts.iter().any(|start| plain.starts_with(start));
        is_one.then(|| plain.split(['"', '\'', '`']).nth(1).map(str::to_owned))
    });
    if language::of(&page.path) == language::Language::Script {
        return described?;
    }
    shape::around(page, line)
        .filter(|(_, kind, _)| *kind == Kind::Function)
        .map(|(_, _, name)| name.to_owned())
}

/// Says that a name was not found, with similar names.
fn tell_unknown(
    name: &Name,
    scope: &Scope,
    notes: &mut Notes<'_>,
    answer: &mut Answer,
) -> Option<()> {
    let within = scope.shown(place::base(&scope.path).contains('.'));
    answer.say(format!(
        "I found no {}{within}: I searched all files that are not ignored, in any spelling.",
        code(&name.shown())
    ));
    let Some(part) = name.parts().into_iter().max_by_key(String::len).filter(|it| it.len() > 3)
    else {
        return Some(());
    };
    let lines = notes.lines(&Search::new(words::escape(&part)).any_case().at_most(LINES))?;
    let mut near: Vec<(&Hit, Kind, &str)> = Vec::new();
    for hit in lines.list.iter().filter(|hit| place::sort(&hit.path) == FileRole::Source) {
        if let Some(found) = definition::definition(language::of(&hit.path), &hit.text)
            && found.kind.is_major()
            && found.name.to_lowercase().contains(&part)
            && !near.iter().any(|(_, _, name)| *name == found.name)
        {
            near.push((hit, found.kind, found.name));
        }
    }
    near.sort_by_key(|(_, _, name)| name.len());
    if !near.is_empty() {
        answer.say("Names that come near:");
    }
    for (hit, kind, name) in near.iter().take(4) {
        answer.item(format!("{} {}, a {}", cite(&hit.path, hit.line), code(name), kind.word()));
    }
    Some(())
}

/// Lines that import the file which `question` names.
fn importers(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut answer = Answer::new();
    for file in question.files.iter().take(2) {
        let stem = place::stem(&file.path);
        if words::has("mod lib main index __init__ README", stem) {
            answer.say(format!(
                "I cannot tell who imports {}: its name does not say.",
                code(&file.path)
            ));
            continue;
        }
        let hits = notes.lines(&Search::new(Name::plain(stem).pattern()).at_most(LINES))?;
        let imports: Vec<&Hit> = hits
            .list
            .iter()
            .filter(|hit| rank::is_import(&hit.text) && Name::plain(stem).stands_in(&hit.text))
            .collect();
        let (path, lines) = (code(&file.path), count(imports.len(), "line"));
        answer.say(match imports.len() {
            0 => format!("I found no line that imports {path} by the name {}.", code(stem)),
            _ => format!("{lines} import something called {} ({path}):", code(stem)),
        });
        for hit in imports.iter().take(12) {
            answer.place(hit);
        }
    }
    Some(answer)
}

/// The first of `hits` in each file, imports left out.
fn one_per_file(hits: &[Hit]) -> Vec<&Hit> {
    let mut first: Vec<&Hit> = Vec::new();
    for hit in hits.iter().filter(|hit| !rank::is_import(&hit.text)) {
        if !first.iter().any(|known| known.path == hit.path) {
            first.push(hit);
        }
    }
    if first.is_empty() { hits.iter().collect() } else { first }
}
