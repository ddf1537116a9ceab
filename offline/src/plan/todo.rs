//! Marks such as TODO in code.

use super::scope::{self, Limited};
use crate::answer::{Answer, cite, code, count};
use crate::found::Hit;
use crate::notes::{Notes, Search};
use crate::place::{self, FileRole};
use crate::question::Question;
use crate::words::shortened;

/// Marks that are listed.
const LISTED: usize = 30;

/// Lists the marks people leave in code.
pub(crate) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let scope = match scope::of(question, notes)? {
        Limited::To(scope) => scope,
        Limited::Missing(path) => return Some(scope::tell_missing(&path)),
    };
    let marks = notes.lines(&scope.narrow(Search::new(r"\b(TODO|FIXME|XXX|HACK)\b").at_most(250)));
    let boxes = Search::new(r"^\s*[-*] \[ \] ").files_like("**/*.{md,txt,org}").at_most(60);
    let boxes = notes.lines(&scope.narrow(boxes));
    let (marks, boxes) = (marks?, boxes?);
    let own = marks.list.iter().filter(|hit| place::sort(&hit.path) != FileRole::Foreign);
    // Only a mark at the beginning of a comment counts, not one in a sentence about marks.
    let (mut found, mentioned): (Vec<&Hit>, Vec<&Hit>) = own.partition(|hit| is_meant(hit));
    found.sort_by_key(|hit| place::is_test(&hit.path));
    let mut answer = Answer::new();
    if found.is_empty() && boxes.list.is_empty() && !mentioned.is_empty() {
        answer.say(
            "No comment begins with `TODO`, `FIXME`, `XXX` or `HACK`. These lines mention one:",
        );
        for hit in mentioned.iter().take(10) {
            answer.place(hit);
        }
        return Some(answer);
    }
    if found.is_empty() && boxes.list.is_empty() {
        answer.say(
            "I found no `TODO`, `FIXME`, `XXX` or `HACK`, and no open check box, in any file \
                that is not ignored.",
        );
        return Some(answer);
    }
    let least = if marks.cut { "At least " } else { "" };
    let kinds: Vec<String> = ["TODO", "FIXME", "XXX", "HACK"]
        .iter()
        .map(|kind| (kind, found.iter().filter(|hit| hit.text.contains(*kind)).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if !found.is_empty() {
        answer.say(format!("{least}{} ({}):", count(found.len(), "mark"), kinds.join(", ")));
    }
    for hit in found.iter().take(LISTED) {
        answer.item(format!(
            "{} {}",
            cite(&hit.path, hit.line),
            code(&shortened(hit.text.trim(), 120))
        ));
    }
    if found.len() > LISTED {
        answer.item(format!("… and {} more", found.len() - LISTED));
    }
    if !mentioned.is_empty() && !found.is_empty() {
        answer
            .say(format!("Besides, {} only mention such a word.", count(mentioned.len(), "line")));
    }
    if !boxes.list.is_empty() {
        answer.say(format!(
            "{}:",
            count(boxes.list.len(), "open check box").replace("boxs", "boxes")
        ));
        for hit in boxes.list.iter().take(10) {
            answer.place(hit);
        }
    }
    Some(answer)
}

/// Whether a mark begins the comment: `// TODO: x`, not "the word TODO is searched for".
fn is_meant(hit: &Hit) -> bool {
    ["TODO", "FIXME", "XXX", "HACK"].iter().any(|mark| {
        hit.text.split_once(mark).is_some_and(|(before, after)| {
            let before = before.trim_end();
            let begins = before.is_empty()
                || before.ends_with(['/', '#', '*', '-', ';', '!', '%', '(', '['])
                || before.ends_with("<!--");
            begins && !after.starts_with(['"', '`', '|', '\''])
        })
    })
}
