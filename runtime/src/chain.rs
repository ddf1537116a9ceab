//! A hash chain of JSON lines: it shows if a line was changed, removed or moved.

use posse_protocol::hex;
use sha2::{Digest, Sha256};

/// The text around a body in its line: `{"entry":BODY,"hash":"HEX"}`.
const BEFORE: &str = "{\"entry\":";
const BETWEEN: &str = ",\"hash\":\"";
const AFTER: &str = "\"}";
/// How many characters a hash has.
const HEX: usize = 64;

/// The hash before the first line of a chain with this name.
pub(crate) fn seed(name: &str) -> String {
    hex(&Sha256::digest(name.as_bytes()))
}

/// Makes a line of `body`, which is JSON, after the hash `before`. Returns the line and its hash.
pub(crate) fn seal(before: &str, body: &str) -> (String, String) {
    let hash = link(before, body);
    (format!("{BEFORE}{body}{BETWEEN}{hash}{AFTER}"), hash)
}

/// The body of `line` and its hash, if the hash is right for a line after the hash `before`.
pub(crate) fn open<'l>(before: &str, line: &'l str) -> Option<(&'l str, &'l str)> {
    let (body, hash) = apart(line)?;
    (link(before, body) == hash).then_some((body, hash))
}

/// The body of `line` and the hash it claims.
pub(crate) fn apart(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix(BEFORE)?.strip_suffix(AFTER)?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HEX)?)?;
    Some((rest.strip_suffix(BETWEEN)?, hash))
}

/// Why `line` is not line number `expected` of its chain, judged by the number that it claims.
pub(crate) fn fault(line: &str, expected: u64) -> &'static str {
    #[derive(serde::Deserialize)]
    struct Numbered {
        seq: u64,
    }
    let claimed = apart(line).and_then(|(body, _)| serde_json::from_str::<Numbered>(body).ok());
    match claimed {
        Some(Numbered { seq }) if seq > expected => "is missing",
        Some(Numbered { seq }) if seq < expected => "is in another's place",
        _ => "was changed",
    }
}

fn link(before: &str, body: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(before.as_bytes());
    digest.update(b"\n");
    digest.update(body.as_bytes());
    hex(&digest.finalize())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_opens_only_as_it_was_sealed_and_in_its_place() {
        let (one, first) = seal(&seed("x"), r#"{"seq":1,"say":"a"}"#);
        let (two, second) = seal(&first, r#"{"seq":2,"say":"b"}"#);
        assert_eq!(open(&seed("x"), &one), Some((r#"{"seq":1,"say":"a"}"#, first.as_str())));
        assert_eq!(open(&first, &two).unwrap().1, second);
        assert_eq!(open(&seed("y"), &one), None);
        assert_eq!(open(&seed("x"), &two), None, "nothing stands before it");
        assert_eq!(open(&seed("x"), &one.replace("\"a\"", "\"b\"")), None);
        assert_eq!(fault(&two, 1), "is missing");
        assert_eq!(fault(&one, 2), "is in another's place");
        assert_eq!(fault(&one.replace("\"a\"", "\"b\""), 1), "was changed");
        for broken in ["", "{}", BEFORE, &one[1..], &one[..one.len() - 3], "ü"] {
            assert_eq!(open(&seed("x"), broken), None, "{broken}");
        }
        serde_json::from_str::<serde_json::Value>(&one).unwrap();
    }
}
