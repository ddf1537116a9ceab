//! What the agent says: which of it is still to be shown, whole replies and pieces together. Pure.

use posse::protocol::{Message, Part};

/// Where what the agent says goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// To standard output, as it comes: a person reads it there.
    Live,
    /// To standard output, when a reply ends its turn.
    AtTheEnd,
    /// Nowhere: whoever asked takes it from the log.
    Silent,
}

/// What is to be shown of a reply.
#[derive(Debug, PartialEq)]
pub enum Rest {
    Nothing,
    /// This, after what was shown of it.
    Goes(String),
    /// All of it, on a line of its own.
    Whole(String),
    /// These, as remarks: the answer is yet to come.
    Aside(Vec<String>),
}

pub struct Speech {
    pub voice: Voice,
    /// What was shown of the present reply as it came.
    said: String,
    /// Bytes of text that was shown with its reply and whose pieces are still to come: stored
    /// events may overtake them.
    owed: usize,
    last: String,
    /// The last text has been shown on standard output.
    shown: bool,
    /// It ended a turn: no tool was called with it.
    answers: bool,
}

impl Speech {
    pub fn new(voice: Voice) -> Self {
        let (said, last) = (String::new(), String::new());
        Speech { voice, said, owed: 0, last, shown: true, answers: false }
    }

    /// A new reply is to come. Pieces of the one before that have not come were said while nobody
    /// listened.
    pub fn expect_reply(&mut self) {
        self.owed = 0;
    }

    /// What is to be shown of a piece of the present reply.
    pub fn hear<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let late = self.owed.min(text.len());
        self.owed -= late;
        // Pieces are cut as they were sent: one is late as a whole, or not at all.
        let text = text.get(late..).filter(|text| !text.is_empty())?;
        self.said.push_str(text);
        Some(text)
    }

    /// What is to be shown of a reply.
    pub fn replied(&mut self, message: &Message) -> Rest {
        let texts: Vec<&str> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        if !message.text().trim().is_empty() {
            self.last = message.text();
            self.shown = self.voice != Voice::AtTheEnd;
            self.answers = message.tool_calls().next().is_none();
        }
        let said = std::mem::take(&mut self.said);
        let whole = texts.concat();
        match self.voice {
            // A slow terminal may have missed pieces, and a watcher in another process gets none.
            Voice::Live => {
                self.owed = whole.len().saturating_sub(said.len());
                match whole.strip_prefix(said.as_str()) {
                    Some("") => Rest::Nothing,
                    Some(rest) if !said.is_empty() => Rest::Goes(rest.to_owned()),
                    _ if whole.trim().is_empty() => Rest::Nothing,
                    _ => Rest::Whole(texts.join("\n")),
                }
            }
            Voice::AtTheEnd if message.tool_calls().next().is_some() => {
                let texts = texts.iter().filter(|text| !text.trim().is_empty());
                Rest::Aside(texts.map(|text| (*text).to_owned()).collect())
            }
            Voice::AtTheEnd | Voice::Silent => Rest::Nothing,
        }
    }

    /// The answer of the turn that is over, if it has not been shown; from now on it has.
    pub fn unshown_answer(&mut self) -> Option<&str> {
        if self.answers { self.unshown() } else { None }
    }

    /// The last text could not be shown.
    pub fn keep_unshown(&mut self) {
        self.shown = false;
    }

    /// The last text does not count as an answer: the agent is asked again.
    pub fn take_back(&mut self) {
        self.answers = false;
    }

    /// The last text of the agent.
    pub fn last(&self) -> &str {
        &self.last
    }

    /// The last text, if it has not been shown; from now on it has.
    pub fn unshown(&mut self) -> Option<&str> {
        let shown = std::mem::replace(&mut self.shown, true);
        (!shown).then_some(self.last.as_str())
    }

    /// True when `text` is the last, and has been shown.
    pub fn has_shown(&self, text: &str) -> bool {
        self.shown && self.last == text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse::protocol::Role;

    fn reply(text: &str) -> Message {
        Message::new(Role::Assistant, vec![Part::text(text)])
    }

    #[test]
    fn late_pieces_of_a_reply_are_not_said_twice_and_those_of_the_next_are_said() {
        let mut speech = Speech::new(Voice::Live);
        // The reply overtakes its pieces.
        assert_eq!(speech.hear("one "), Some("one "));
        assert_eq!(speech.replied(&reply("one two")), Rest::Goes("two".to_owned()));
        assert_eq!(speech.hear("two"), None);
        speech.expect_reply();
        assert_eq!(speech.hear("three"), Some("three"));
        assert_eq!(speech.replied(&reply("three")), Rest::Nothing);
        // Nobody listened to this one: its pieces never come.
        speech.expect_reply();
        assert_eq!(speech.replied(&reply("four")), Rest::Whole("four".to_owned()));
        speech.expect_reply();
        assert_eq!(speech.hear("five"), Some("five"));
        assert_eq!(speech.replied(&reply("five")), Rest::Nothing);
    }
}
