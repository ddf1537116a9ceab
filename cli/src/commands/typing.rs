//! Text that a person types while the agent works. It is shown below everything else, and kept for
//! the next turn.

use crate::clean::clean_line;
use crate::paint::Paint;
use crate::terminal::keys::{Key, Keys};
use crate::terminal::{self, columns};
use std::collections::VecDeque;

/// The most waiting messages that are shown.
const SHOWN: usize = 5;

/// The input during a turn.
#[derive(Default)]
pub struct Typing {
    /// The keys of the terminal, while they are read.
    keys: Option<Keys>,
    draft: Draft,
}

/// The message that the person is typing, and the messages that wait for their turn.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Draft {
    text: String,
    queued: VecDeque<String>,
}

/// What a key asks for in addition.
#[derive(Debug, PartialEq, Eq)]
pub enum KeyRequest {
    Nothing,
    /// Stop the turn.
    Stop,
}

impl Typing {
    /// Starts reading keys. Does nothing without a terminal.
    pub fn listen(&mut self) {
        if self.keys.is_none() {
            self.keys = Keys::listen().ok();
        }
    }

    /// Stops reading, so that other code can read the terminal. Typed text stays.
    pub fn stop(&mut self) {
        self.keys = None;
    }

    /// True while keys are read.
    pub fn is_listening(&self) -> bool {
        self.keys.is_some()
    }

    /// The next key. Waits for ever if keys are not read.
    pub async fn key(&mut self) -> Key {
        if let Some(keys) = &mut self.keys
            && let Some(key) = keys.next().await
        {
            return key;
        }
        self.keys = None;
        std::future::pending().await
    }

    pub fn take(&mut self, key: Key) -> KeyRequest {
        self.draft.take(key)
    }

    /// The lines to show.
    pub fn lines(&self, paint: Paint) -> Vec<String> {
        self.draft.lines(paint, terminal::width() - 1)
    }

    /// The next waiting message.
    pub fn next(&mut self) -> Option<String> {
        self.draft.queued.pop_front()
    }

    /// The unfinished text, for the person to continue.
    pub fn unfinished(&mut self) -> String {
        std::mem::take(&mut self.draft.text)
    }

    /// Moves all waiting messages back into the draft, because the turn was stopped and the person
    /// should see them first.
    pub fn take_all_back(&mut self) {
        let Draft { text, queued } = std::mem::take(&mut self.draft);
        let parts = queued.into_iter().chain(Some(text)).filter(|part| !part.is_empty());
        self.draft.text = parts.collect::<Vec<_>>().join("\n");
    }
}

impl Draft {
    fn take(&mut self, key: Key) -> KeyRequest {
        match key {
            Key::Text(text) => self.text.push_str(&text),
            Key::NewLine => self.text.push('\n'),
            Key::Enter if self.text.trim() == "/cancel" => {
                self.text.clear();
                return KeyRequest::Stop;
            }
            Key::Enter => self.enter(),
            Key::Backspace => {
                self.text.pop();
            }
            Key::LastWord => {
                let kept = self.text.trim_end();
                let kept = kept.rfind(char::is_whitespace).map_or(0, |space| space + 1);
                self.text.truncate(kept);
            }
            Key::Clear if !self.text.is_empty() => self.text.clear(),
            Key::Up | Key::Clear if self.text.is_empty() => {
                self.text = self.queued.pop_back().unwrap_or_default();
            }
            Key::Escape => return KeyRequest::Stop,
            Key::Up | Key::Down | Key::Clear | Key::End | Key::Other => {}
        }
        KeyRequest::Nothing
    }

    fn enter(&mut self) {
        if let Some(line) = self.text.strip_suffix('\\') {
            self.text = format!("{line}\n");
        } else if !self.text.trim().is_empty() {
            self.queued.push_back(std::mem::take(&mut self.text));
        } else {
            self.text.clear();
        }
    }

    fn lines(&self, paint: Paint, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let more = self.queued.len().saturating_sub(SHOWN);
        if more > 0 {
            lines.push(paint.dim(&format!("  … {more} more queued")));
        }
        for text in self.queued.iter().skip(more) {
            let line = format!("  queued: {}", clean_line(text, width.saturating_sub(11)));
            lines.push(paint.dim(&terminal::fitted(&line, width)));
        }
        if !lines.is_empty() && self.text.is_empty() {
            let hint = "  sent when the answer is complete; Up takes the last one back";
            lines.push(paint.dim(&terminal::fitted(hint, width)));
        }
        if !self.text.is_empty() {
            lines.push(format!("› {}", ending(&self.text, width.saturating_sub(3))));
        }
        lines
    }
}

/// The end of the typed text, in one line of `room` columns.
pub fn ending(text: &str, room: usize) -> String {
    // Line breaks become visible, and a space at the end stays, because the cursor is after it.
    let text = text.replace('\n', "⏎ ").replace('\t', " ");
    let safe: String = text.chars().filter(|character| !character.is_control()).collect();
    if columns(&safe) <= room {
        return safe;
    }
    let mut kept: &str = &safe;
    while columns(kept) + 1 > room {
        let mut characters = kept.chars();
        if characters.next().is_none() {
            break;
        }
        kept = characters.as_str();
    }
    format!("…{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint { on: false };

    fn typed(draft: &mut Draft, text: &str) {
        draft.take(Key::Text(text.to_owned()));
    }

    #[test]
    fn what_is_typed_waits_and_can_be_taken_back() {
        let mut draft = Draft::default();
        draft.take(Key::Enter);
        assert!(draft.lines(PLAIN, 40).is_empty(), "a stray Enter is nothing");
        typed(&mut draft, "first thing");
        draft.take(Key::Enter);
        typed(&mut draft, "second\\");
        draft.take(Key::Enter);
        typed(&mut draft, "line");
        assert_eq!(draft.lines(PLAIN, 40), ["  queued: first thing", "› second⏎ line"]);
        draft.take(Key::Enter);
        assert_eq!(draft.queued, ["first thing", "second\nline"]);
        draft.take(Key::Up);
        assert_eq!(draft.text, "second\nline");
        draft.take(Key::Clear);
        draft.take(Key::Clear);
        assert_eq!((draft.text.as_str(), draft.queued.len()), ("first thing", 0));
        draft.take(Key::LastWord);
        draft.take(Key::Backspace);
        assert_eq!(draft.text, "first");
        assert_eq!(draft.take(Key::Escape), KeyRequest::Stop);
    }

    #[test]
    fn what_is_longer_than_the_line_shows_its_end() {
        let mut draft = Draft::default();
        typed(&mut draft, "0123456789");
        assert_eq!(draft.lines(PLAIN, 9), ["› …56789"]);
    }

    #[test]
    fn a_turn_that_is_stopped_sends_nothing_by_itself() {
        let mut typing = Typing::default();
        for text in ["one", "two"] {
            typed(&mut typing.draft, text);
            typing.draft.take(Key::Enter);
        }
        typed(&mut typing.draft, "thr");
        typing.take_all_back();
        assert_eq!(typing.next(), None);
        assert_eq!(typing.unfinished(), "one\ntwo\nthr");
    }
}
