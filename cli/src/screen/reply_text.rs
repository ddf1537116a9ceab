//! Decides which text of the agent is still to be shown, from deltas and whole replies. Pure.

use posse::protocol::{Message, Part};

/// Where the agent's text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextTarget {
    /// To standard output as it arrives, for a person.
    Live,
    /// To standard output when a reply ends its turn.
    AtTheEnd,
    /// Nowhere: the caller takes it from the log.
    Silent,
}

/// The part of a reply that is still to be shown.
#[derive(Debug, PartialEq)]
pub enum PendingText {
    Nothing,
    /// This rest, after the part that was shown.
    Goes(String),
    /// All of it, on a new line.
    Whole(String),
    /// These texts as remarks: the answer is yet to come.
    Aside(Vec<String>),
}

pub struct ReplyText {
    pub target: TextTarget,
    /// The text of the present reply that was shown as it arrived.
    said: String,
    /// Bytes of text that was shown with its reply and whose deltas are still to come. Stored
    /// events may overtake deltas.
    owed: usize,
    last: String,
    /// The last text was shown on standard output.
    shown: bool,
    /// The last text ended a turn, without a tool call.
    answers: bool,
}

impl ReplyText {
    pub fn new(target: TextTarget) -> Self {
        let (said, last) = (String::new(), String::new());
        ReplyText { target, said, owed: 0, last, shown: true, answers: false }
    }

    /// Expects a new reply. Missing deltas of the previous one were sent before this viewer started.
    pub fn expect_reply(&mut self) {
        self.owed = 0;
    }

    /// The part of a delta that is to be shown.
    pub fn hear<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let late = self.owed.min(text.len());
        self.owed -= late;
        // Deltas are not split further: one is late as a whole, or not at all.
        let text = text.get(late..).filter(|text| !text.is_empty())?;
        self.said.push_str(text);
        Some(text)
    }

    /// The part of a reply that is to be shown.
    pub fn replied(&mut self, message: &Message) -> PendingText {
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
            self.shown = self.target != TextTarget::AtTheEnd;
            self.answers = message.tool_calls().next().is_none();
        }
        let said = std::mem::take(&mut self.said);
        let whole = texts.concat();
        match self.target {
            // A slow terminal may have missed deltas, and a viewer in another process gets none.
            TextTarget::Live => {
                self.owed = whole.len().saturating_sub(said.len());
                match whole.strip_prefix(said.as_str()) {
                    Some("") => PendingText::Nothing,
                    Some(rest) if !said.is_empty() => PendingText::Goes(rest.to_owned()),
                    _ if whole.trim().is_empty() => PendingText::Nothing,
                    _ => PendingText::Whole(texts.join("\n")),
                }
            }
            TextTarget::AtTheEnd if message.tool_calls().next().is_some() => {
                let texts = texts.iter().filter(|text| !text.trim().is_empty());
                PendingText::Aside(texts.map(|text| (*text).to_owned()).collect())
            }
            TextTarget::AtTheEnd | TextTarget::Silent => PendingText::Nothing,
        }
    }

    /// The answer of the ended turn, if it is not shown yet. Marks it as shown.
    pub fn unshown_answer(&mut self) -> Option<&str> {
        if self.answers { self.unshown() } else { None }
    }

    /// Marks the last text as not shown, after an error.
    pub fn keep_unshown(&mut self) {
        self.shown = false;
    }

    /// The last text does not count as an answer, because the agent has to answer again.
    pub fn take_back(&mut self) {
        self.answers = false;
    }

    /// The last text of the agent.
    pub fn last(&self) -> &str {
        &self.last
    }

    /// The last text, if it is not shown yet. Marks it as shown.
    pub fn unshown(&mut self) -> Option<&str> {
        let shown = std::mem::replace(&mut self.shown, true);
        (!shown).then_some(self.last.as_str())
    }

    /// True when `text` is the last text and was shown.
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
        let mut speech = ReplyText::new(TextTarget::Live);
        // The reply overtakes its deltas.
        assert_eq!(speech.hear("one "), Some("one "));
        assert_eq!(speech.replied(&reply("one two")), PendingText::Goes("two".to_owned()));
        assert_eq!(speech.hear("two"), None);
        speech.expect_reply();
        assert_eq!(speech.hear("three"), Some("three"));
        assert_eq!(speech.replied(&reply("three")), PendingText::Nothing);
        // The deltas of this reply were sent before the viewer started, and never arrive.
        speech.expect_reply();
        assert_eq!(speech.replied(&reply("four")), PendingText::Whole("four".to_owned()));
        speech.expect_reply();
        assert_eq!(speech.hear("five"), Some("five"));
        assert_eq!(speech.replied(&reply("five")), PendingText::Nothing);
    }
}
