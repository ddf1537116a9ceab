//! What this model cannot do, and whom it asks when a person names another agent.

use super::{file, symbol};
use crate::offline::answer::{self, Answer, code};
use crate::offline::intent::Need;
use crate::offline::notes::{Notes, together};
use crate::offline::question::Question;

/// What the model is, and where to find another.
const ABOUT: &str = "I am the built-in offline model: I search files and quote them. I cannot \
    review, write, judge or fix. Set a key or start a local server for that: `posse models`.";

/// Says what it can be asked.
pub(super) fn help() -> Answer {
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
    if need == Need::Material || question.has_material {
        return Some(answer);
    }
    for fact in [symbol::certain(question, notes)?, file::certain(question, notes)?] {
        if let Some(fact) = fact {
            answer.say(fact);
        }
    }
    Some(answer)
}

/// Bytes of one agent's answer.
const LONGEST: usize = 10_000;

/// Hands `task` to the agents that a person asks for by name, and gives back what they say.
pub(in crate::offline) fn hand_on(
    agents: &[String],
    task: &str,
    notes: &mut Notes<'_>,
) -> Option<Answer> {
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
                let reason = answer::shortened(reason, 200);
                answer.say(format!("{} did not answer: {reason}", code(agent)));
            }
        }
    }
    Some(answer)
}

/// What stands inside the block in which the end of a task is told; all of `told` if it is none.
fn inside(told: &str) -> &str {
    let body = told.strip_prefix("<task_result ").and_then(|block| block.split_once(">\n"));
    let inside = body.and_then(|(_, body)| body.rsplit_once("\n</task_result "));
    inside.map_or(told, |(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_block_only_what_it_holds_is_told() {
        let block = "<task_result id=\"a\" outcome=\"completed\">\nOne.\n</task_result id=\"b\">\n\
                     Two.\n</task_result id=\"a\">";
        assert_eq!(inside(block), "One.\n</task_result id=\"b\">\nTwo.");
        assert_eq!(inside("just text"), "just text");
    }
}
