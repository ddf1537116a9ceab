//! The forms in which a secret may turn up in a text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;

/// `secret` as it is, and in the encodings in which it is looked for.
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

/// The characters that stand for `secret` alone when it begins `offset` bytes after a boundary.
fn base64(secret: &str, offset: usize, engine: &impl Engine) -> Vec<u8> {
    let mut bytes = vec![0; offset];
    bytes.extend(secret.bytes());
    let encoded = engine.encode(&bytes).into_bytes();
    let first = (offset * 8).div_ceil(6);
    let whole = bytes.len() * 8 / 6;
    encoded[first..whole].to_vec()
}
