//! The forms in which a secret may appear in a text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;
use std::ops::Range;

/// Returns `secret` itself, and its encodings that Posse looks for.
pub fn forms_of_secret(secret: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.as_bytes().to_vec()];
    let json = Value::from(secret).to_string();
    forms.push(json.as_bytes()[1..json.len() - 1].to_vec());
    for digits in ["0123456789ABCDEF", "0123456789abcdef"] {
        forms.push(percent(secret, digits.as_bytes()));
        forms.push(hex(secret, digits.as_bytes()));
    }
    for engine in [STANDARD, URL_SAFE] {
        forms.extend((0..3).map(|offset| base64(secret, offset, &engine)));
    }
    forms.push(secret.bytes().rev().collect());
    forms
}

/// A text with decoded percent escapes such as `%73`, and the origin of each byte. Any byte may be
/// escaped, with letters of either case.
pub struct Unescaped {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where each byte begins in the text, and where the last one ends.
    starts: Vec<usize>,
}

impl Unescaped {
    /// Decodes `text`; `None` if it has no escapes.
    pub fn of(text: &[u8]) -> Option<Unescaped> {
        if !text.windows(3).any(|signs| escaped(signs).is_some()) {
            return None;
        }
        let (mut bytes, mut starts, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(&byte) = text.get(at) {
            starts.push(at);
            let escaped = escaped(&text[at..]);
            bytes.push(escaped.unwrap_or(byte));
            at += if escaped.is_some() { 3 } else { 1 };
        }
        starts.push(text.len());
        Some(Unescaped { bytes, starts })
    }

    /// Returns the part of the text that `range` of the bytes came from.
    pub fn place(&self, range: Range<usize>) -> Range<usize> {
        let end = self.starts.last().copied().unwrap_or_default();
        let start = |at: usize| self.starts.get(at).copied().unwrap_or(end);
        start(range.start)..start(range.end)
    }

    /// True when a byte in `range` was escaped.
    pub fn is_escaped(&self, range: Range<usize>) -> bool {
        self.place(range.clone()).len() > range.len()
    }
}

/// Returns the byte that the first three of `signs` encode.
fn escaped(signs: &[u8]) -> Option<u8> {
    let digit = |sign: u8| (sign as char).to_digit(16).map(|digit| digit as u8);
    match signs {
        [b'%', high, low, ..] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

fn percent(secret: &str, digits: &[u8]) -> Vec<u8> {
    let mut form = Vec::new();
    for byte in secret.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => form.push(byte),
            _ => form.extend([b'%', high(byte, digits), low(byte, digits)]),
        }
    }
    form
}

fn hex(secret: &str, digits: &[u8]) -> Vec<u8> {
    secret.bytes().flat_map(|byte| [high(byte, digits), low(byte, digits)]).collect()
}

fn high(byte: u8, digits: &[u8]) -> u8 {
    digits[usize::from(byte >> 4)]
}

fn low(byte: u8, digits: &[u8]) -> u8 {
    digits[usize::from(byte & 15)]
}

/// Returns the characters that depend on `secret` alone if it begins `offset` bytes after a
/// boundary.
fn base64(secret: &str, offset: usize, engine: &impl Engine) -> Vec<u8> {
    let mut bytes = vec![0; offset];
    bytes.extend(secret.bytes());
    let encoded = engine.encode(&bytes).into_bytes();
    let first = (offset * 8).div_ceil(6);
    let whole = bytes.len() * 8 / 6;
    encoded[first..whole].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_read_wherever_they_stand_and_their_place_is_known() {
        assert!(Unescaped::of(b"50% of 100%, %zz").is_none());
        let read = Unescaped::of("é%73k%2D1 5%".as_bytes()).unwrap();
        assert_eq!(read.bytes, "ésk-1 5%".as_bytes());
        assert_eq!(read.place(2..6), 2..10);
        assert!(read.is_escaped(2..6) && !read.is_escaped(6..8));
        assert_eq!(read.place(0..read.bytes.len()), 0..13);
    }
}
