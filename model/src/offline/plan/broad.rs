//! Questions too broad for one search: shared out to other agents when that is offered, otherwise
//! a tour of the facts that are known without judgement.

use super::{layout, project, todo};
use crate::offline::answer::{self, Answer, cite, count};
use crate::offline::conversation::PART_OF;
use crate::offline::language;
use crate::offline::notes::{Notes, Search, together};
use crate::offline::place::{self, Sort};
use crate::offline::question::Question;
use posse_protocol::ToolSpec;

/// What is asked of other agents: what it is called, the question, and who is to answer.
const SHARES: [(&str, &str, &[&str]); 4] = [
    ("What it is", "What does this project do?", &["explore"]),
    (
        "How it is laid out",
        "How is the code of this project laid out? Name the folders and what each is for.",
        &["explore"],
    ),
    ("How it is built and tested", "How do I build this project and run its tests?", &["explore"]),
    ("What is left to do", "List the TODO and FIXME comments.", &["plan", "explore"]),
];

/// Bytes of one agent's answer.
const LONGEST: usize = 3_000;

/// Hands the parts of a broad question to others and merges what they say.
pub(in crate::offline) fn look(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut answer = Answer::new();
    match notes.delegation() {
        Some(task) => delegated(question, task, notes, &mut answer)?,
        None => alone(notes, &mut answer)?,
    }
    if question.has("plan|propose|suggest|refactoring|improvements|review|audit|重构计划") {
        answer.say(
            "I cannot judge code, so I propose no plan of my own. The longest files and the open \
                marks above are where one usually begins.",
        );
    }
    Some(answer)
}

fn delegated(
    question: &Question,
    task: &ToolSpec,
    notes: &mut Notes<'_>,
    answer: &mut Answer,
) -> Option<()> {
    let told = together(SHARES.iter().map(|(title, prompt, agents)| {
        let prompt = format!("{prompt}{PART_OF}{}", question.text);
        notes.delegate(title, &prompt, &agent(task, agents))
    }));
    let sizes = notes.counts(&sizes());
    let (told, sizes) = (told?, sizes?);
    for ((title, _, _), told) in SHARES.iter().zip(told) {
        answer.head(title);
        answer.say(match told {
            Ok(text) => answer::cut(&answer::without_notice(inside(&text)), LONGEST),
            Err(reason) => {
                let reason = inside(&reason).lines().next().unwrap_or_default();
                let reason = answer::shortened(reason, 200);
                format!("The agent asked for this did not answer: {reason}")
            }
        });
    }
    tell_longest(&sizes.list, answer);
    Some(())
}

/// What stands inside the block in which the end of a task is told; all of `told` if it is none.
fn inside(told: &str) -> &str {
    let body = told.strip_prefix("<task_result ").and_then(|block| block.split_once(">\n"));
    let inside = body.and_then(|(_, body)| body.rsplit_once("\n</task_result "));
    inside.map_or(told, |(inside, _)| inside)
}

/// The first of `wanted` that the tool offers; if it names none, the first of them all the same.
fn agent(task: &ToolSpec, wanted: &[&str]) -> String {
    let named = &task.schema["properties"]["subagent_type"]["enum"];
    let offered: Vec<&str> =
        named.as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
    let fits = |name: &&&str| {
        offered.contains(name) || offered.is_empty() && task.description.contains(**name)
    };
    let chosen = wanted.iter().find(fits).or(wanted.last().filter(|_| offered.is_empty()));
    chosen.copied().or(offered.first().copied()).unwrap_or("explore").to_owned()
}

fn sizes() -> Search {
    Search::new("^").at_most(5_000)
}

fn alone(notes: &mut Notes<'_>, answer: &mut Answer) -> Option<()> {
    let (overview, layout) = (project::overview(notes), layout::look("", notes));
    let (todos, sizes) = (todo::look(notes), notes.counts(&sizes()));
    let (overview, layout, todos, sizes) = (overview?, layout?, todos?, sizes?);
    for ((title, _, _), told) in [(SHARES[0], overview), (SHARES[1], layout), (SHARES[3], todos)] {
        answer.head(title).say(answer::cut(&told.into_text(), LONGEST));
    }
    tell_longest(&sizes.list, answer);
    Some(())
}

fn tell_longest(sizes: &[(String, u64)], answer: &mut Answer) {
    let is_code = |path: &str| language::is_code(path) && place::sort(path) == Sort::Source;
    let mut code: Vec<&(String, u64)> = sizes.iter().filter(|(path, _)| is_code(path)).collect();
    code.sort_by_key(|(path, lines)| (std::cmp::Reverse(*lines), path.clone()));
    if code.is_empty() {
        return;
    }
    answer.head("The longest source files");
    for (path, lines) in code.into_iter().take(6) {
        answer.item(format!("{} ({})", cite(path, 1), count(*lines as usize, "line")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::intent::{self, Intent};

    #[test]
    fn of_a_block_only_what_it_holds_is_told() {
        let block = "<task_result id=\"a\" run=\"r\" outcome=\"completed\">\nOne.\n</task_result id=\"b\">\n\
                     Two.\n</task_result id=\"a\">";
        assert_eq!(inside(block), "One.\n</task_result id=\"b\">\nTwo.");
        assert_eq!(inside("no task was started: no"), "no task was started: no");
    }

    #[test]
    fn what_is_handed_on_is_narrow() {
        let wanted = SHARES.map(|(_, prompt, _)| intent::of(&Question::parse(prompt, None)));
        let expected = [Intent::Overview, Intent::Layout, Intent::Commands, Intent::Todos];
        assert_eq!(wanted, expected);
    }
}
