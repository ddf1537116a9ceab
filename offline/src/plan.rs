//! The plans: one file for each family of questions.
//!
//! A plan gets the question and may ask [`Notes`]. It treats the text of files as data: names,
//! places and counts decide what it looks at, never instructions in a text.

use crate::answer::Answer;
use crate::intent::{CountedThing, Intent};
use crate::notes::Notes;
use crate::question::{Folder, Question};

mod commands;
mod count;
mod decline;
mod dependencies;
mod facts;
mod file;
mod head;
mod history;
mod layout;
mod project;
mod scope;
mod search;
mod symbol;
mod todo;

pub(crate) use decline::{hand_on, help};

/// The answer to `question`, or nothing while results are missing.
pub(crate) fn pursue(question: &Question, intent: Intent, notes: &mut Notes<'_>) -> Option<Answer> {
    match intent {
        Intent::Help => Some(decline::help(&[])),
        Intent::Foreign => Some(decline::foreign()),
        Intent::Decline(need) => decline::look(need, question, notes),
        Intent::History => history::look(question, notes),
        Intent::Changes => facts::changes(question, notes),
        Intent::Todos => todo::look(question, notes),
        Intent::Dependencies => dependencies::look(question, notes),
        Intent::License => facts::license(notes),
        Intent::Version => facts::version(question, notes),
        Intent::Count(CountedThing::Examples) | Intent::List(CountedThing::Examples) => {
            let folder = question.folder.clone().unwrap_or_else(Folder::of_examples);
            let mut within = question.clone();
            within.folder = Some(folder);
            count::list(CountedThing::Files, &within, notes)
        }
        Intent::Count(thing) if question.has("public") => count::list(thing, question, notes),
        Intent::Count(thing) => count::number(thing, question, notes),
        Intent::List(CountedThing::Tests) => count::number(CountedThing::Tests, question, notes),
        Intent::List(thing) => count::list(thing, question, notes),
        Intent::Commands => commands::look(question, notes),
        Intent::Symbol(aspect) => symbol::look(question, aspect, notes),
        Intent::File => file::look(question, notes),
        Intent::Layout => layout::look(question, notes),
        Intent::Overview => project::overview(notes),
        Intent::Search(manner) => search::look(question, manner, notes),
    }
}

/// The text beside the first tool calls.
pub(crate) fn intention(question: &Question, intent: Intent) -> String {
    let subject = question.subject();
    match intent {
        Intent::History => "Asking git.".to_owned(),
        Intent::Todos => "Looking for TODO comments.".to_owned(),
        Intent::Dependencies | Intent::Version => "Reading the manifests.".to_owned(),
        Intent::License => "Looking for the license.".to_owned(),
        Intent::Changes => "Looking for a changelog.".to_owned(),
        Intent::Count(_) => "Counting.".to_owned(),
        Intent::List(_) => "Listing.".to_owned(),
        Intent::Commands => "Reading the documents and manifests.".to_owned(),
        Intent::Layout | Intent::Overview => "Looking at the project as a whole.".to_owned(),
        Intent::File => format!("Reading {subject}."),
        _ if subject.is_empty() => "Searching.".to_owned(),
        _ => format!("Searching for {subject}."),
    }
}
