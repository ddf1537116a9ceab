//! Shows the last messages of a session that is continued.

use super::super::follow::{Viewer, read};
use crate::clean::clean;
use crate::exit::Failure;
use crate::format;
use posse::protocol::{Event, Message, Part, Sender};
use posse::{RunRow, Runtime};

/// The number of exchanges to show.
const EXCHANGES: usize = 2;
/// The most lines of one message.
const LINES: usize = 30;

/// A message of the person or of the agent.
#[derive(Debug, PartialEq, Eq)]
enum RecapMessage {
    ByPerson(String),
    ByAgent(String),
}

/// Shows the end of the conversation in the log of `row`.
pub async fn show(runtime: &Runtime, row: &RunRow, viewer: &mut Viewer) -> Result<(), Failure> {
    let mut said = Vec::new();
    read(runtime, row, |record| match &record.event {
        Event::MessageReceived(received) if received.from == Sender::User => {
            said.extend(first_text(&received.message).map(RecapMessage::ByPerson));
        }
        // Replies with tool calls are left out; they are not answers.
        Event::ModelReplied(replied) if replied.message.tool_calls().next().is_none() => {
            let text = replied.message.text();
            said.extend((!text.trim().is_empty()).then_some(RecapMessage::ByAgent(text)));
        }
        _ => {}
    })
    .await?;
    let from = beginning(&said);
    if from > 0 {
        let earlier = format::count(from as u64, "earlier message");
        viewer.screen.remark(&format!("… {earlier}"));
    }
    for said in &said[from..] {
        match said {
            RecapMessage::ByPerson(text) => {
                let lines = clean(text.trim_end()).replace('\n', "\n  ");
                viewer.screen.note(&format!("› {}", cut(lines.lines().map(str::to_owned))));
            }
            RecapMessage::ByAgent(text) => {
                let lines = viewer.screen.laid_out(text);
                viewer.screen.note(&cut(lines.into_iter()));
            }
        }
    }
    Ok(())
}

/// The text that the person typed; remarks of the runtime follow it.
fn first_text(message: &Message) -> Option<String> {
    message.parts.iter().find_map(|part| match part {
        Part::Text(text) if !text.text.trim().is_empty() => Some(text.text.clone()),
        _ => None,
    })
}

/// The index where the last exchanges begin.
fn beginning(said: &[RecapMessage]) -> usize {
    let by_person = |(_, said): &(usize, &RecapMessage)| matches!(said, RecapMessage::ByPerson(_));
    let mut questions = said.iter().enumerate().rev().filter(by_person);
    questions.nth(EXCHANGES - 1).map_or(0, |(place, _)| place)
}

/// The first lines of a message.
fn cut(lines: impl Iterator<Item = String>) -> String {
    let mut lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        lines.truncate(LINES);
        lines.push(format!("… {}", format::count(more as u64, "more line")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_two_exchanges_are_shown() {
        let person = || RecapMessage::ByPerson("q".to_owned());
        let agent = || RecapMessage::ByAgent("a".to_owned());
        assert_eq!(beginning(&[]), 0);
        assert_eq!(beginning(&[person(), agent(), person()]), 0);
        assert_eq!(beginning(&[person(), agent(), person(), agent(), person(), agent()]), 2);
        let long = cut((0..40).map(|line| line.to_string()));
        assert!(long.ends_with("29\n… 10 more lines"), "{long}");
    }
}
