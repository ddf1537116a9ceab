//! The output of a command: limited in size, and always valid text.

use encoding_rs::{CoderResult, Decoder, UTF_8};
use std::time::{Duration, Instant};

/// Keeps the beginning and the end of a command's output.
pub(super) struct Capture {
    decoder: Decoder,
    head: String,
    tail: String,
    /// How many bytes were dropped from the tail.
    left_out: u64,
    half: usize,
}

impl Capture {
    /// Keeps at most `cap` bytes.
    pub(super) fn new(cap: usize) -> Self {
        let decoder = UTF_8.new_decoder_without_bom_handling();
        let (head, tail) = (String::new(), String::new());
        Capture { decoder, head, tail, left_out: 0, half: cap / 2 }
    }

    /// Takes the next bytes and returns their text. An incomplete character waits for its remaining bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.decode(bytes, false)
    }

    fn decode(&mut self, mut bytes: &[u8], last: bool) -> String {
        let mut text = String::with_capacity(bytes.len() + 16);
        loop {
            let (result, read, _) = self.decoder.decode_to_string(bytes, &mut text, last);
            bytes = &bytes[read..];
            match result {
                CoderResult::InputEmpty => break,
                CoderResult::OutputFull => text.reserve(bytes.len() * 3 + 16),
            }
        }
        self.keep(&text);
        text
    }

    fn keep(&mut self, text: &str) {
        let room = self.half.saturating_sub(self.head.len());
        // Once the head is full nothing more may enter it, not even a shorter character.
        let to_head = if self.tail.is_empty() && self.left_out == 0 {
            text.floor_char_boundary(room)
        } else {
            0
        };
        self.head.push_str(&text[..to_head]);
        self.tail.push_str(&text[to_head..]);
        // Trimmed only when it has doubled, so that each byte moves about once.
        if self.tail.len() > self.half * 2 {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let excess = self.tail.len().saturating_sub(self.half);
        let excess = self.tail.ceil_char_boundary(excess);
        self.tail.drain(..excess);
        self.left_out += excess as u64;
    }

    /// Returns the text, and how many bytes of the output it omits.
    pub(super) fn finish(mut self) -> (String, u64) {
        self.decode(&[], true);
        self.trim();
        let mut text = self.head;
        if self.left_out > 0 {
            text.push_str(&format!("\n[{} bytes left out]\n", self.left_out));
        }
        text.push_str(&self.tail);
        (text, self.left_out)
    }
}

/// Limits the output that is shown live: all of a usual command, a part of a flood.
pub(super) struct Meter {
    since: Instant,
    shown: usize,
}

const BYTES_PER_SECOND: usize = 64 << 10;

impl Default for Meter {
    fn default() -> Self {
        Meter { since: Instant::now(), shown: 0 }
    }
}

impl Meter {
    /// Returns true if `bytes` more may be shown now.
    pub(super) fn allows(&mut self, bytes: usize) -> bool {
        if self.since.elapsed() >= Duration::from_secs(1) {
            *self = Meter::default();
        }
        let allowed = self.shown + bytes <= BYTES_PER_SECOND;
        if allowed {
            self.shown += bytes;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capture(cap: usize, pieces: &[&[u8]]) -> (String, u64) {
        let mut capture = Capture::new(cap);
        for piece in pieces {
            capture.push(piece);
        }
        capture.finish()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        assert_eq!(capture(10, &[b"01234", b"56789"]), ("0123456789".to_owned(), 0));
    }

    #[test]
    fn the_middle_of_what_does_not_fit_is_left_out_and_counted() {
        let (text, left_out) = capture(4, &[b"abcdefgh"]);
        assert_eq!((text.as_str(), left_out), ("ab\n[4 bytes left out]\ngh", 4));
    }

    #[test]
    fn a_character_split_between_reads_is_whole() {
        assert_eq!(capture(100, &[b"\xE2\x82", b"\xAC!"]).0, "€!");
        assert_eq!(capture(100, &[b"ok \xE2\x82"]).0, "ok \u{FFFD}");
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_bounded_text(
            bytes: Vec<u8>, cap in 0usize..40, size in 1usize..9,
        ) {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let (text, left_out) = capture(cap, &pieces);
            prop_assert_eq!((&text, left_out), (&capture(cap, &[&bytes]).0, left_out));
            prop_assert!(text.len() <= cap + 40);
            if left_out == 0 {
                prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
            }
        }
    }
}
