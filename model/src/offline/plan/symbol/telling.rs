//! What is said of a name.

use super::Symbol;
use crate::offline::answer::{Answer, cite, code, count};
use crate::offline::definition;
use crate::offline::found::{Hit, Page};
use crate::offline::language;
use crate::offline::notes::{Notes, together};
use crate::offline::rank::{self, Defined};

impl Symbol {
    /// Whether it is there. A word that only its place makes a name must be defined somewhere.
    pub(super) fn is_known(&self) -> bool {
        let mentioned = !self.uses.is_empty() || !self.tests.is_empty();
        !self.definitions.is_empty() || self.name.sure && mentioned
    }

    fn shown(&self) -> String {
        code(&self.name.shown())
    }

    /// The page that shows a definition.
    fn page(&self, found: &Defined) -> Option<&Page> {
        self.pages
            .iter()
            .find(|page| page.path == found.hit.path && page.position(found.hit.line).is_some())
    }

    /// The best definition with its comment and its first `lines` lines. False when there is none.
    fn tell_best(&self, answer: &mut Answer, lines: usize) -> bool {
        let Some(best) = self.definitions.first() else { return false };
        let place = cite(&best.hit.path, best.hit.line);
        let called = if best.name == self.name.name || best.kind == definition::Kind::Heading {
            self.shown()
        } else {
            format!("{} (written {})", self.shown(), code(&best.name))
        };
        answer.say(match best.kind {
            definition::Kind::Heading => format!("{called} has a section of its own at {place}:"),
            kind => format!("{called} is a {}, defined at {place}:", kind.word()),
        });
        let Some(page) = self.page(best) else {
            answer.block(&[best.hit.text.as_str()], language::fence(&best.hit.path));
            return true;
        };
        answer.definition(page, best.hit.line, lines);
        true
    }

    fn tell_others(&self, answer: &mut Answer) {
        let best = self.definitions.first().map_or(0, |found| found.score);
        let others: Vec<&Defined> = self
            .definitions
            .iter()
            .skip(1)
            .filter(|found| found.score > 50 && found.score > best - 70)
            .take(6)
            .collect();
        if others.is_empty() {
            return;
        }
        answer.say("Also defined under this name:");
        for found in others {
            answer.place(&found.hit);
        }
    }

    pub(super) fn tell_definition(&self, answer: &mut Answer) {
        if !self.tell_best(answer, 12) {
            answer.say(format!("I found no definition of {}, but it is mentioned:", self.shown()));
            self.list(answer, &self.uses, 8);
            self.list(answer, &self.tests, 4);
            return;
        }
        self.tell_others(answer);
        self.tell_where(answer, 3);
    }

    pub(super) fn tell_all(&self, answer: &mut Answer) {
        if !self.tell_best(answer, 28) {
            answer.say(format!("I found no definition of {}. It is mentioned here:", self.shown()));
            self.list(answer, &self.uses, 10);
            self.list(answer, &self.tests, 4);
            return;
        }
        self.tell_others(answer);
        self.tell_where(answer, 5);
        if !self.tests.is_empty() {
            answer.say(format!("Tests that mention it ({}):", self.amount(&self.tests)));
            self.list(answer, &self.tests, 3);
        }
    }

    /// Where it is used, in short.
    fn tell_where(&self, answer: &mut Answer, most: usize) {
        if self.uses.is_empty() {
            return;
        }
        answer.say(format!("Used in {}, for example:", self.amount(&self.uses)));
        for hit in one_per_file(&self.uses).iter().take(most) {
            answer.place(hit);
        }
    }

    pub(super) fn tell_uses(&self, answer: &mut Answer) {
        let all = self.uses.len() + self.tests.len();
        if all == 0 {
            answer.say(format!(
                "{} is defined and, as far as I can see, used nowhere.",
                self.shown()
            ));
        } else {
            let files = self.amount_of(self.uses.iter().chain(&self.tests));
            answer.say(format!("{} is used in {files}:", self.shown()));
            self.list(answer, &self.uses, 12);
        }
        if !self.tests.is_empty() {
            answer.say(format!("In tests ({}):", self.amount(&self.tests)));
            self.list(answer, &self.tests, if self.uses.is_empty() { 10 } else { 4 });
        }
        if let Some(best) = self.definitions.first() {
            answer.say(format!("It is defined at {}.", cite(&best.hit.path, best.hit.line)));
        }
    }

    /// The surroundings of the first tests, to name them by.
    pub(super) fn test_pages(&self, notes: &mut Notes<'_>) -> Option<Vec<Page>> {
        let first = one_per_file(&self.tests);
        let read = |hit: &Hit| notes.read(&hit.path, hit.line.saturating_sub(40), 60);
        together(first.iter().take(4).map(read))
    }

    pub(super) fn tell_tests(&self, answer: &mut Answer) {
        if !self.named_after.is_empty() {
            let files: Vec<String> = self.named_after.iter().map(|path| cite(path, 1)).collect();
            answer.say(format!("Named after it: {}.", files.join(", ")));
        }
        if self.tests.is_empty() {
            answer.say(format!(
                "No test mentions {} by name. I looked in test folders, in files named like \
                    tests, and below `#[cfg(test)]`.",
                self.shown()
            ));
        } else {
            answer.say(format!("{} is tested in {}:", self.shown(), self.amount(&self.tests)));
            for hit in self.tests.iter().filter(|hit| !rank::is_import(&hit.text)).take(10) {
                match self.enclosing_test(hit) {
                    Some((line, name)) => answer.item(format!(
                        "{} in {} ({})",
                        cite(&hit.path, hit.line),
                        code(&name),
                        cite(&hit.path, line)
                    )),
                    None => answer.place(hit),
                };
            }
        }
        if let Some(best) = self.definitions.first() {
            answer.say(format!("It is defined at {}.", cite(&best.hit.path, best.hit.line)));
        }
    }

    /// The test around a line: its own line and its name.
    fn enclosing_test(&self, hit: &Hit) -> Option<(usize, String)> {
        let page = self
            .pages
            .iter()
            .find(|page| page.path == hit.path && page.position(hit.line).is_some())?;
        let at = page.position(hit.line)?;
        let language = language::of(&page.path);
        page.lines[..=at].iter().rev().find_map(|(number, text)| {
            let plain = text.trim();
            let described = ["it(", "test(", "describe(", "it.each", "t.Run("]
                .iter()
                .any(|start| plain.starts_with(start));
            if described {
                let quoted = plain.split(['"', '\'', '`']).nth(1)?;
                return Some((*number, quoted.to_owned()));
            }
            let found = definition::definition(language, text)?;
            (found.kind == definition::Kind::Function && *number != hit.line)
                .then(|| (*number, found.name.to_owned()))
        })
    }

    fn list(&self, answer: &mut Answer, hits: &[Hit], most: usize) {
        for hit in hits.iter().take(most) {
            answer.place(hit);
        }
        if hits.len() > most {
            answer.item(format!("… and {} more", hits.len() - most));
        }
    }

    fn amount(&self, hits: &[Hit]) -> String {
        self.amount_of(hits.iter())
    }

    fn amount_of<'h>(&self, hits: impl Iterator<Item = &'h Hit>) -> String {
        let mut paths: Vec<&str> = Vec::new();
        let mut places = 0;
        for hit in hits {
            places += 1;
            if !paths.contains(&hit.path.as_str()) {
                paths.push(&hit.path);
            }
        }
        let least = if self.more { "at least " } else { "" };
        format!("{least}{} of {}", count(places, "line"), count(paths.len(), "file"))
    }
}

/// The first of `hits` in each file.
fn one_per_file(hits: &[Hit]) -> Vec<Hit> {
    let mut seen: Vec<&str> = Vec::new();
    let mut first = Vec::new();
    for hit in hits.iter().filter(|hit| !rank::is_import(&hit.text)) {
        if !seen.contains(&hit.path.as_str()) {
            seen.push(&hit.path);
            first.push(hit.clone());
        }
    }
    if first.is_empty() { hits.to_vec() } else { first }
}
