//! The prompt for an answer: reads single keys, or whole lines on a simple terminal.

use crate::commands::typing::ending;
use crate::print;
use crate::terminal;
use crate::terminal::keys::{Key, Keys};
use crate::terminal::{columns, fitted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinHandle;

/// The most bytes of an answer.
const LONGEST: usize = 4_096;

const WORDS: &str = "  allow it? ";

/// What the person did.
#[derive(Debug, PartialEq, Eq)]
pub enum PromptAnswer {
    Line(String),
    /// They pressed Escape.
    No,
    /// They are still typing.
    Nothing,
    /// They closed the input.
    Gone,
}

/// Reads the terminal until it is dropped.
pub enum Prompt {
    Keys { keys: Keys, typed: String, about: Option<String> },
    Lines(Lines),
}

/// Lines that the terminal itself lets a person edit.
pub struct Lines {
    next: JoinHandle<Option<String>>,
    stop: Arc<AtomicBool>,
}

impl Prompt {
    /// Opens the prompt. It reads single keys if the terminal can redraw lines.
    pub fn open(is_dumb: bool) -> Prompt {
        forget_typed();
        match Keys::listen() {
            Ok(keys) if !is_dumb => Prompt::Keys { keys, typed: String::new(), about: None },
            _ => Prompt::Lines(Lines::read()),
        }
    }

    /// The text of the prompt, if the screen has to draw it.
    pub fn line(&self) -> Option<String> {
        match self {
            Prompt::Keys { typed, about, .. } => {
                let words = match about {
                    None => WORDS.to_owned(),
                    Some(about) => {
                        let room = terminal::width().saturating_sub(WORDS.len()) / 2;
                        format!("  {} ·{}", fitted(about, room), &WORDS[1..])
                    }
                };
                let room = terminal::width().saturating_sub(columns(&words) + 1);
                Some(format!("{words}{}", ending(typed, room)))
            }
            Prompt::Lines(_) => None,
        }
    }

    /// Names in the prompt what it is about, while the question is not right above it.
    pub fn name(&mut self, subject: Option<String>) {
        if let Prompt::Keys { about, .. } = self {
            *about = subject;
        }
    }

    /// True when the person has typed nothing yet.
    pub fn is_untouched(&self) -> bool {
        matches!(self, Prompt::Keys { typed, .. } if typed.is_empty())
    }

    /// The next action of the person. The future may be dropped while it waits.
    pub async fn next(&mut self) -> PromptAnswer {
        match self {
            Prompt::Keys { keys, typed, .. } => match keys.next().await {
                Some(key) => take(typed, key),
                None => PromptAnswer::Gone,
            },
            Prompt::Lines(lines) => match (&mut lines.next).await.ok().flatten() {
                Some(line) => {
                    // The terminal makes Escape a part of the line.
                    let typed = line.replace('\x1b', "");
                    let is_escape = typed.trim().is_empty() && typed != line;
                    if is_escape { PromptAnswer::No } else { PromptAnswer::Line(typed) }
                }
                None => PromptAnswer::Gone,
            },
        }
    }

    /// Reads another line, after one that was not understood.
    pub fn again(&mut self) {
        if let Prompt::Lines(lines) = self {
            *lines = Lines::read();
        }
    }

    /// Stops reading, so that the next reader of the terminal gets nothing typed here.
    pub async fn close(mut self) {
        if let Prompt::Lines(lines) = &mut self {
            lines.stop.store(true, Ordering::Relaxed);
            if !lines.next.is_finished() {
                let _ = (&mut lines.next).await;
            }
        }
    }
}

impl Lines {
    fn read() -> Lines {
        print::note_piece(WORDS);
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        Lines { next: tokio::task::spawn_blocking(move || read_until(&told)), stop }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn take(typed: &mut String, key: Key) -> PromptAnswer {
    match key {
        Key::Text(text) if typed.len() + text.len() <= LONGEST => typed.push_str(&text),
        Key::NewLine => typed.push(' '),
        Key::Enter => return PromptAnswer::Line(std::mem::take(typed)),
        Key::Backspace => {
            typed.pop();
        }
        Key::LastWord => {
            let kept = typed.trim_end();
            let kept = kept.rfind(char::is_whitespace).map_or(0, |space| space + 1);
            typed.truncate(kept);
        }
        // Escape first clears the text.
        Key::Escape if typed.is_empty() => return PromptAnswer::No,
        Key::Clear | Key::Escape => typed.clear(),
        Key::End if typed.is_empty() => return PromptAnswer::Gone,
        Key::Text(_) | Key::Up | Key::Down | Key::End | Key::Other => {}
    }
    PromptAnswer::Nothing
}

/// Discards what was typed before a question is shown, because it was not meant as an answer.
pub fn forget_typed() {
    if let Ok(terminal) = File::open("/dev/tty") {
        let _ = tcflush(&terminal, QueueSelector::IFlush);
    }
}

/// Asks `question` on the terminal, and says whether the answer is yes. Keys that were typed before the
/// question was there do not answer it.
///
/// # Errors
/// When the terminal cannot be read.
pub fn agrees(question: &str) -> io::Result<bool> {
    forget_typed();
    loop {
        print::note_piece(&format!("{question} [y/N] "));
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "" | "n" | "no" => return Ok(false),
            // Perhaps a message for the agent.
            _ => print::note("this was not understood; type y or n"),
        }
    }
}

fn read_until(stop: &AtomicBool) -> Option<String> {
    let mut terminal = File::open("/dev/tty").ok()?;
    let mut line = Vec::new();
    let tick = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !stop.load(Ordering::Relaxed) && line.len() < LONGEST {
        let mut events = [PollFd::new(&terminal, PollFlags::IN)];
        if poll(&mut events, Some(&tick)).is_ok_and(|ready| ready == 0)
            || stop.load(Ordering::Relaxed)
        {
            continue;
        }
        let mut byte = [0];
        match terminal.read(&mut byte) {
            Ok(1) if byte[0] == b'\n' => break,
            Ok(1) => line.push(byte[0]),
            _ if line.is_empty() => return None,
            _ => break,
        }
    }
    Some(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Key {
        Key::Text(text.to_owned())
    }

    #[test]
    fn a_line_is_typed_and_escape_takes_it_back_or_says_no() {
        let mut typed = String::new();
        for key in [text("n not  that"), Key::LastWord, text("thiss"), Key::Backspace, Key::End] {
            assert_eq!(take(&mut typed, key), PromptAnswer::Nothing);
        }
        assert_eq!(take(&mut typed, Key::Enter), PromptAnswer::Line("n not  this".to_owned()));
        take(&mut typed, text("y"));
        assert_eq!(take(&mut typed, Key::Escape), PromptAnswer::Nothing);
        assert_eq!(typed, "");
        assert_eq!(take(&mut typed, Key::Escape), PromptAnswer::No);
        assert_eq!(take(&mut typed, Key::End), PromptAnswer::Gone);
        take(&mut typed, text(&"y".repeat(LONGEST + 1)));
        assert_eq!(typed, "", "what is far too long is no answer");
    }
}
