//! Reads single keys while the screen shows something else. Nothing is echoed, and Ctrl-C is still a
//! signal. The mode of the terminal is restored on drop.

use crate::print;
use rustix::fs::{Mode, OFlags};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

/// How long the rest of a key's bytes may take. Later bytes are a new key after Escape.
const ESCAPE: Duration = Duration::from_millis(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Typed or pasted text.
    Text(String),
    Enter,
    /// Alt-Enter: a line break within the text.
    NewLine,
    Backspace,
    /// Ctrl-W: delete the last word.
    LastWord,
    /// Ctrl-U: delete everything.
    Clear,
    Up,
    Down,
    Escape,
    /// Ctrl-D: the end of the input.
    End,
    /// Anything else.
    Other,
}

pub struct Keys {
    /// The terminal, read like a pipe: waiting tasks wake up when there is input.
    terminal: Receiver,
    found: Termios,
    bytes: VecDeque<u8>,
    /// When the last of these bytes arrived.
    arrived: Instant,
}

impl Keys {
    /// Starts to read the keys of this process's terminal.
    ///
    /// # Errors
    /// If there is no terminal.
    pub fn listen() -> io::Result<Keys> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = rustix::fs::open("/dev/tty", flags, Mode::empty())?;
        let found = tcgetattr(&terminal)?;
        let mut raw = found.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        let terminal = Receiver::from_file_unchecked(File::from(terminal))?;
        tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        // Turn on bracketed paste, so that pasted text arrives as one piece.
        print::note_piece("\x1b[?2004h");
        Ok(Keys { terminal, found, bytes: VecDeque::new(), arrived: Instant::now() })
    }

    /// The next key; `None` if the terminal is gone. The future may be dropped while it waits, as often as
    /// something else happens.
    pub async fn next(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = decode(&mut self.bytes) {
                return Some(key);
            }
            let bytes = match self.bytes_are_begun() {
                true => {
                    let deadline = self.arrived + ESCAPE;
                    let read = tokio::time::timeout_at(deadline, self.read());
                    match deadline <= Instant::now() {
                        true => None,
                        false => read.await.ok(),
                    }
                }
                false => Some(self.read().await),
            };
            let Some(bytes) = bytes else {
                self.bytes.clear();
                return Some(Key::Escape);
            };
            self.bytes.extend(bytes?);
            self.arrived = Instant::now();
        }
    }

    fn bytes_are_begun(&self) -> bool {
        self.bytes.front() == Some(&0x1b) && !begins_paste(&self.bytes)
    }

    async fn read(&self) -> Option<Vec<u8>> {
        loop {
            self.terminal.readable().await.ok()?;
            let mut bytes = [0; 1024];
            match self.terminal.try_read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => return Some(bytes[..count].to_vec()),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        print::note_piece("\x1b[?2004l");
        // If this fails, the terminal is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.found);
    }
}

const PASTE: &[u8] = b"\x1b[200~";
const PASTED: &[u8] = b"\x1b[201~";

fn begins_paste(bytes: &VecDeque<u8>) -> bool {
    bytes.len() >= PASTE.len() && bytes.iter().zip(PASTE).all(|(byte, paste)| byte == paste)
}

/// Takes the first key from `bytes`; `None` if more bytes of it are needed.
fn decode(bytes: &mut VecDeque<u8>) -> Option<Key> {
    let held = bytes.make_contiguous();
    let (key, taken) = match *held.first()? {
        0x1b => escape(held)?,
        b'\r' | b'\n' => (Key::Enter, 1),
        0x7f | 0x08 => (Key::Backspace, 1),
        0x04 => (Key::End, 1),
        0x15 => (Key::Clear, 1),
        0x17 => (Key::LastWord, 1),
        0x00..0x20 => (Key::Other, 1),
        _ => text(held)?,
    };
    bytes.drain(..taken);
    Some(key)
}

/// A key that begins with Escape.
fn escape(bytes: &[u8]) -> Option<(Key, usize)> {
    if bytes.starts_with(PASTE) {
        let end = bytes.windows(PASTED.len()).position(|window| window == PASTED)?;
        let text = String::from_utf8_lossy(&bytes[PASTE.len()..end]);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        return Some((Key::Text(text), end + PASTED.len()));
    }
    match bytes.get(1)? {
        b'[' => {
            let end = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte))? + 2;
            Some((arrow(bytes[end]), end + 1))
        }
        b'O' => Some((arrow(*bytes.get(2)?), 3)),
        b'\r' | b'\n' => Some((Key::NewLine, 2)),
        // Escape twice is Escape.
        0x1b => Some((Key::Escape, 1)),
        _ => Some((Key::Other, 2)),
    }
}

fn arrow(last: u8) -> Key {
    match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        _ => Key::Other,
    }
}

/// The text up to the next key that is not text.
fn text(bytes: &[u8]) -> Option<(Key, usize)> {
    let is_key = |byte: &u8| *byte < 0x20 || *byte == 0x7f;
    let end = bytes.iter().position(is_key).unwrap_or(bytes.len());
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => Some((Key::Text(text.to_owned()), end)),
        Err(error) if error.valid_up_to() > 0 => {
            let valid = error.valid_up_to();
            Some((Key::Text(String::from_utf8_lossy(&bytes[..valid]).into_owned()), valid))
        }
        // The rest of a character is still to come, unless other bytes follow.
        Err(error) if error.error_len().is_none() && end == bytes.len() => None,
        Err(_) => Some((Key::Other, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pieces: &[&[u8]]) -> Vec<Key> {
        let mut bytes = VecDeque::new();
        let mut keys = Vec::new();
        for piece in pieces {
            bytes.extend(*piece);
            while let Some(key) = decode(&mut bytes) {
                keys.push(key);
            }
        }
        keys
    }

    #[test]
    fn bytes_become_keys_however_they_are_cut() {
        let text = |text: &str| Key::Text(text.to_owned());
        assert_eq!(keys(&[b"hi\r"]), [text("hi"), Key::Enter]);
        assert_eq!(keys(&["é".as_bytes()]), [text("é")]);
        assert_eq!(keys(&[b"a\xc3", b"\xa9"]), [text("a"), text("é")]);
        assert_eq!(keys(&[b"\x1b", b"[", b"A\x1bOB"]), [Key::Up, Key::Down]);
        assert_eq!(keys(&[b"\x1b\r\x7f\x15\x17\x04"]), {
            [Key::NewLine, Key::Backspace, Key::Clear, Key::LastWord, Key::End]
        });
        assert_eq!(keys(&[b"\x1b[200~a\rb", b"\x1b[201~c"]), [text("a\nb"), text("c")]);
        assert_eq!(keys(&[b"\xff\xffa"]), [Key::Other, Key::Other, text("a")]);
        assert_eq!(keys(&[b"\x1b"]), [], "it may be the beginning of something");
    }
}
