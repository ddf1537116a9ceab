//! From a question to what is done about it: one file for each family of questions.
//!
//! A plan is told the question and may ask [`Notes`]. What files say is data to it: it chooses
//! what to look at by names, places and counts, and never by what a text demands.

use super::answer::Answer;
use super::intent::Intent;
use super::notes::Notes;
use super::place;
use super::question::{Name, Question};
use search::Focus;
use symbol::Aspect;

mod broad;
mod commands;
mod count;
mod dependencies;
mod file;
mod head;
mod history;
mod layout;
mod passage;
mod project;
mod search;
mod symbol;
mod todo;
mod topics;

/// The answer to `question`, or nothing while something is still to be found out.
pub(super) fn pursue(question: &Question, intent: Intent, notes: &mut Notes<'_>) -> Option<Answer> {
    match intent {
        Intent::Greeting => Some(greeting()),
        Intent::Broad => broad::look(question, notes),
        Intent::Change => change(question, notes),
        Intent::History => history::look(question, notes),
        Intent::Todos => todo::look(notes),
        Intent::Dependencies => dependencies::look(question, notes),
        Intent::Count => count::look(question, notes),
        Intent::Commands => commands::look(question, notes),
        Intent::Tests => named(question, Aspect::Tests, notes),
        Intent::Uses => named(question, Aspect::Uses, notes),
        Intent::Definition => named(question, Aspect::Definition, notes),
        Intent::Explanation => named(question, Aspect::Explanation, notes),
        Intent::File => file::look(question, notes),
        Intent::Layout => layout::look("", notes),
        Intent::Overview => project::overview(notes),
        Intent::Files => search::look(question, Focus::Files, notes),
        Intent::Topic(topic) => match topics::look(topic, question, notes)? {
            Some(answer) => Some(answer),
            None => search::look(question, Focus::Passages, notes),
        },
        Intent::Search => search::look(question, Focus::Passages, notes),
    }
}

/// What is done in words, while tools are called for the first time.
pub(super) fn intention(question: &Question, intent: Intent) -> String {
    let subject = question.subject();
    match intent {
        Intent::Broad => "Taking stock of the project.".to_owned(),
        Intent::History => "Asking the history.".to_owned(),
        Intent::Todos => "Looking for marks of open work.".to_owned(),
        Intent::Dependencies => "Reading the manifests.".to_owned(),
        Intent::Count => "Counting.".to_owned(),
        Intent::Commands => "Reading the documents and manifests.".to_owned(),
        Intent::Layout | Intent::Overview => "Looking at the project as a whole.".to_owned(),
        Intent::Topic(topic) => format!("Looking for: {}.", topic.title.to_lowercase()),
        Intent::File => format!("Reading {subject}."),
        _ if subject.is_empty() => "Searching.".to_owned(),
        _ => format!("Searching for {subject}."),
    }
}

/// About names if there are any; else about the words.
fn named(question: &Question, aspect: Aspect, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut question = question.clone();
    if question.names.is_empty() {
        // A file goes by the name that others import it by.
        let stems = question.files.iter().map(|file| Name::plain(place::stem(&file.path)));
        question.names = stems.filter(|_| matches!(aspect, Aspect::Uses | Aspect::Tests)).collect();
    }
    let focus = if aspect == Aspect::Tests { Focus::Tests } else { Focus::Passages };
    if question.names.is_empty() {
        return search::look(&question, focus, notes);
    }
    if let Some(answer) = symbol::look(&question, aspect, notes)? {
        return Some(answer);
    }
    if !question.names.iter().any(|name| name.sure) {
        return search::look(&question, focus, notes);
    }
    let missing = symbol::unknown(&question, notes)?;
    if question.terms.is_empty() {
        return Some(missing);
    }
    // The other words may still lead somewhere; what was not found is said first.
    let others = Question { names: Vec::new(), ..question };
    let mut answer = Answer::new();
    answer.say(missing.into_text());
    answer.say(search::look(&others, focus, notes)?.into_text());
    Some(answer)
}

/// Places that matter to a change that this model cannot make.
fn change(question: &Question, notes: &mut Notes<'_>) -> Option<Answer> {
    let mut answer = Answer::new();
    answer.say(
        "I cannot write or change code: I am a search, not a language model. These are the \
            places that seem to matter.",
    );
    let places = if !question.files.is_empty() && question.names.is_empty() {
        file::look(question, notes)?
    } else if question.names.is_empty() {
        search::look(question, Focus::Passages, notes)?
    } else {
        named(question, Aspect::Explanation, notes)?
    };
    answer.say(places.into_text());
    Some(answer)
}

fn greeting() -> Answer {
    let mut answer = Answer::new();
    answer.say(
        "Hello. I answer questions about the files in this folder by searching them. For example:",
    );
    for example in [
        "What does this project do, and how is it laid out?",
        "How do I build, run and test it?",
        "Where is `NAME` defined, used, tested? Explain `NAME`.",
        "Summarise FILE. Which files are about X?",
        "List the TODOs. Which dependencies are there? Who changed FILE last?",
    ] {
        answer.item(example);
    }
    answer
}
