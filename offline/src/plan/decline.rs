//! Questions that this model cannot answer, and questions for another agent.

use super::{file, symbol};
use crate::answer::{self, Answer, code, count};
use crate::conversation::Specialist;
use crate::intent::Need;
use crate::notes::{Notes, together};
use crate::question::Question;
use crate::words;

/// What the model is, and where to find another.
const ABOUT: &str = "I am the built-in offline model: I search files and quote them. I cannot \
    review, write, judge or fix. Set a key or start a local server for that: `posse models`.";

/// Says what it can be asked, and which agents it can ask.
pub(crate) fn help(specialists: &[Specialist]) -> Answer {
    let mut answer = Answer::new();
    answer.say(ABOUT).say("You can ask me, for example:");
    for example in [
        "What does this project do? How is it laid out?",
        "How do I build, run and test it?",
        "Where is `NAME` defined? Who uses `NAME`? Explain `NAME`.",
        "What is in FILE? List the .rs files in the tests directory. How many tests are there?",
        "List the TODOs. What are the dependencies? Who changed FILE last?",
    ] {
        answer.item(example);
    }
    if !specialists.is_empty() {
        answer.say("\"Use the NAME agent to …\" hands a task to another agent. There are:");
    }
    for agent in specialists {
        let about = agent.description.lines().next().unwrap_or_default();
        answer.item(format!("{}: {}", code(&agent.name), words::shortened(about, 120)));
    }
    answer
}

/// Says that it understands English only.
pub(super) fn foreign() -> Answer {
    let mut answer = Answer::new();
    answer.say(
        "I am the built-in offline model, and I understand questions in English only. For other \
            languages set a key or start a local server: `posse models`.",
    );
    answer
}

/// Declines, and adds the nearest fact if it is certain.
pub(super) fn look(need: Need, question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut answer = Answer::new();
    answer.say(match need {
        Need::Material => {
            "I am the built-in offline model: I search the files of this folder and quote them. I \
                cannot explain text that comes with a question. Set a key or start a local server \
                for that: `posse models`."
        }
        Need::Writing | Need::Judgement => ABOUT,
    });
    if question.has_material() {
        tell_changes(&question.material, &mut answer);
        return Some(answer);
    }
    let facts = [symbol::certain(question, notes)?, file::certain(question, notes)?];
    for fact in facts.into_iter().flatten() {
        answer.say(fact);
    }
    Some(answer)
}

/// Files of a difference that are listed.
const CHANGED: usize = 20;

/// Says which files a difference changes, if `text` is one.
fn tell_changes(text: &str, answer: &mut Answer) {
    let mut files: Vec<(&str, usize, usize)> = Vec::new();
    let mut old = "";
    let (mut left, mut right) = (0, 0);
    for line in text.lines() {
        match line.as_bytes().first() {
            // Inside a hunk, a line that begins with `---` or `+++` is a change like any other.
            Some(b'-' | b'+' | b' ') | None if left + right > 0 => {
                let Some((_, added, removed)) = files.last_mut() else { return };
                let sign = line.as_bytes().first();
                *added += usize::from(sign == Some(&b'+'));
                *removed += usize::from(sign == Some(&b'-'));
                left -= usize::from(sign != Some(&b'+')).min(left);
                right -= usize::from(sign != Some(&b'-')).min(right);
            }
            _ => {
                if let Some(path) = line.strip_prefix("--- ") {
                    old = path;
                } else if let Some(path) = line.strip_prefix("+++ ") {
                    let path = if path == "/dev/null" { old } else { path };
                    let path = path.split('\t').next().unwrap_or(path);
                    let plain = path.strip_prefix("a/").or(path.strip_prefix("b/"));
                    files.push((plain.unwrap_or(path), 0, 0));
                } else if let Some(hunk) = line.strip_prefix("@@ ") {
                    let size = |sign: char| {
                        let range = hunk.split(' ').find_map(|range| range.strip_prefix(sign));
                        let size = range.map(|range| range.split_once(',').map_or("1", |it| it.1));
                        size.and_then(|size| size.parse().ok()).unwrap_or(0)
                    };
                    (left, right) = (size('-'), size('+'));
                }
            }
        }
    }
    if files.is_empty() {
        return;
    }
    answer.say(format!("What I can tell: the change is in {}.", count(files.len(), "file")));
    for (path, added, removed) in files.iter().take(CHANGED) {
        let (added, removed) = (count(*added, "line"), count(*removed, "line"));
        answer.item(format!("{}: {added} added, {removed} removed", code(path)));
    }
    if files.len() > CHANGED {
        answer.item(format!("… and {} more", files.len() - CHANGED));
    }
}

/// Bytes of one agent's answer.
const LONGEST: usize = 10_000;

/// Hands `task` to the agents that a person asks for by name, and gives back what they say.
pub(crate) fn hand_on(agents: &[String], task: &str, notes: &mut Notes<'_>) -> Option<Answer> {
    let words: Vec<&str> = task.split_whitespace().take(5).collect();
    let description = words.join(" ");
    let told = together(agents.iter().map(|agent| notes.delegate(&description, task, agent)))?;
    let mut answer = Answer::new();
    for (agent, told) in agents.iter().zip(told) {
        match told {
            Ok(text) => {
                answer.say(format!("{} answered:", code(agent)));
                answer.say(answer::cut(inside(&text).trim(), LONGEST));
            }
            Err(reason) => {
                let reason = inside(&reason).trim().lines().next().unwrap_or_default();
                let reason = words::shortened(reason, 200);
                answer.say(format!("{} did not answer: {reason}", code(agent)));
            }
        }
    }
    Some(answer)
}

/// The text inside the block with the result of a task; all of `told` without such a block.
fn inside(told: &str) -> &str {
    let body = told.strip_prefix("<task_result ").and_then(|block| block.split_once(">\n"));
    let inside = body.and_then(|(_, body)| body.rsplit_once("\n</task_result "));
    inside.map_or(told, |(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_difference_the_files_are_counted() {
        let told = |text: &str| {
            let mut answer = Answer::new();
            tell_changes(text, &mut answer);
            answer.into_text()
        };
        let change = "diff --git a/x.sql b/x.sql\n--- a/x.sql\n+++ b/x.sql\n@@ -1,3 +1,3 @@ f\n a\n\
                      --- an old comment\n+++ b\n+c\n-d\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        let told_change = told(change);
        assert!(told_change.contains("in 2 files"), "{told_change}");
        assert!(told_change.contains("`x.sql`: 2 lines added, 2 lines removed"), "{told_change}");
        assert!(told_change.contains("`gone`: 0 lines added, 1 line removed"), "{told_change}");
        assert_eq!(told("- a list\n- of points\n"), "");
    }

    #[test]
    fn of_a_block_only_what_it_holds_is_told() {
        let block = "<task_result id=\"a\" outcome=\"completed\">\nOne.\n</task_result id=\"b\">\n\
                     Two.\n</task_result id=\"a\">";
        assert_eq!(inside(block), "One.\n</task_result id=\"b\">\nTwo.");
        assert_eq!(inside("just text"), "just text");
    }
}
