//! Texts that differ in every run: ids of runs, folders with these ids in their names, durations of
//! tasks. Requests are compared without them, and replayed answers get the texts of the present
//! run.

use super::line::Content;
use super::scrub::Scrub;
use super::stream;
use posse_protocol::RunId;
use serde_json::Value;
use std::ops::Range;

/// Stands for the id of a run.
const RUN: &str = "{{posse:run}}";
/// Stands for a run's own folder.
const SCRATCH: &str = "{{posse:scratch}}";
/// Stands for the other texts that differ in every run.
const OTHER: &str = "{{posse:passing}}";

/// The folder that contains the runs' own folders.
const FOLDER: &str = "-scratch/";
/// The beginning and the end of a block with the result of a task.
const BLOCK: &str = "task_result id=\"";
const TOOK: &str = " duration=\"";
/// Characters of a run's id.
const ID: usize = 26;

/// Replaces the texts that differ in every run by marks, and returns these texts in order.
pub(super) fn level(value: &mut Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(value, &mut found);
    found
}

fn visit(value: &mut Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let passages = passages(text);
            if !passages.is_empty() {
                *text = marked(text, &passages, found);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, found)),
        Value::Object(fields) => fields.values_mut().for_each(|value| visit(value, found)),
        _ => {}
    }
}

fn marked(text: &str, passages: &[(Range<usize>, &str)], found: &mut Vec<String>) -> String {
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for (range, mark) in passages {
        out.push_str(&text[end..range.start]);
        out.push_str(mark);
        found.push(text[range.clone()].to_owned());
        end = range.end;
    }
    out.push_str(&text[end..]);
    out
}

/// `answer` with the texts of `now` in place of those of `then`. It may contain a name in pieces.
pub(super) fn today(answer: &str, then: &[String], now: &[String]) -> Content {
    // A short text could be anything, so it is not replaced.
    let names = then.iter().zip(now).filter(|(then, now)| then.len() >= ID && then != now);
    let names: Vec<(&str, &str)> = names.map(|(then, now)| (then.as_str(), now.as_str())).collect();
    match names.is_empty() {
        true => Content::Text(answer.to_owned()),
        false => stream::content(&Scrub::renaming(names), answer.as_bytes()),
    }
}

/// The passages of `text` that differ in every run, in order and without overlap.
fn passages(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found: Vec<(Range<usize>, &'static str)> = ids(text).collect();
    found.extend(blocks(text).map(|range| (range, OTHER)));
    found.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    found.retain(|(range, _)| {
        let free = range.start >= end;
        end = if free { range.end } else { end };
        free
    });
    found
}

/// Ids of runs, and the folders that are named after them.
fn ids(text: &str) -> impl Iterator<Item = (Range<usize>, &'static str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let words = text.split(move |c: char| !is_part(c)).filter(|word| word.len() == ID);
    words.filter(|word| word.parse::<RunId>().is_ok()).map(|word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        let end = start + word.len();
        if !text[..start].ends_with(FOLDER) {
            return (start..end, RUN);
        }
        let is_outside = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | '=');
        let path = text[..start].rfind(is_outside);
        let width = |at: usize| text[at..].chars().next().map_or(1, char::len_utf8);
        (path.map_or(0, |at| at + width(at))..end, SCRATCH)
    })
}

/// The ids of blocks of results, and how long their tasks took.
fn blocks(text: &str) -> impl Iterator<Item = Range<usize>> {
    let quoted = |from: usize| text[from..].find('"').map(|length| from..from + length);
    let starts = text.match_indices(BLOCK).map(|(at, _)| at + BLOCK.len());
    starts.flat_map(move |start| {
        let line = text[start..].find('\n').map_or(text.len(), |length| start + length);
        let took = text[start..line].find(TOOK).map(|at| start + at + TOOK.len());
        [quoted(start), took.and_then(quoted)].into_iter().flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ONE: &str = "01m7fd5x89es8b7v38nqbv8k3m";
    const TWO: &str = "01m7fd5xdgehhtx22s6ykcbk9p";

    fn request(run: &str, child: &str, fence: &str, took: &str) -> Value {
        json!({"system": format!("Folder: /w\nScratch: {{{{posse:home}}}}/p.db-scratch/{run}\nEnd."),
               "messages": [{"content": format!(
                   "<task_result id=\"{fence}\" run=\"{child}\" duration=\"{took}\">\nduration=\"1s\"\n</task_result id=\"{fence}\">")}]})
    }

    #[test]
    fn requests_that_differ_in_passing_things_only_are_the_same() {
        let mut then = request(ONE, TWO, "aabbcc", "0.1s");
        let mut now = request(TWO, ONE, "ddeeff", "2m1s");
        let (was, is) = (level(&mut then), level(&mut now));
        assert_eq!(then, now);
        assert!(then.to_string().contains("Scratch: {{posse:scratch}}\\nEnd."), "{then}");
        assert!(then.to_string().contains("duration=\\\"1s\\\""), "what the child says stays");
        assert_eq!(
            is,
            [
                format!("{{{{posse:home}}}}/p.db-scratch/{TWO}"),
                "ddeeff".to_owned(),
                ONE.to_owned(),
                "2m1s".to_owned(),
                "ddeeff".to_owned()
            ]
        );
        let answer = format!("write {{{{posse:home}}}}/p.db-scratch/{ONE}/x, resume {TWO}, aabbcc");
        let Content::Text(played) = today(&answer, &was, &is) else { panic!("it is a text") };
        assert_eq!(
            played,
            format!("write {{{{posse:home}}}}/p.db-scratch/{TWO}/x, resume {ONE}, aabbcc")
        );
    }

    #[test]
    fn other_words_stay_as_they_are() {
        let text = "abcdefghijklmnopqrstuvwxyz 01m7fd5x89es8b7v38nqbv8k3mx task_result é 日本";
        let mut value = json!(text);
        assert!(level(&mut value).is_empty());
        assert_eq!(value, text);
    }
}
