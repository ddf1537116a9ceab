//! Identifiers, each a newtype so that they cannot be mixed up.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// The alphabet of Crockford's base 32, lower case: no `i`, `l`, `o`, `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The value in [`DIGITS`] of a byte that is not in the alphabet.
const NO_DIGIT: u128 = 255;
/// The value of each byte as a digit, in lower or upper case.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT as u8; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        digits[ALPHABET[digit] as usize] = digit as u8;
        digits[ALPHABET[digit].to_ascii_uppercase() as usize] = digit as u8;
        digit += 1;
    }
    digits
};
/// The number of base-32 digits of a 128-bit number.
const RUN_ID_LEN: usize = 26;

/// Identifies a run. Ids sort by the time at which they were made. They are not secret.
///
/// Written as 26 characters (`01jd3k…`). The last eight are enough for people to tell runs apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Uuid);

impl RunId {
    /// A new id, later than every id made before it in this process.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        RunId(Uuid::now_v7())
    }

    /// The id with these 128 bits, for tests and stores.
    pub const fn from_u128(bits: u128) -> Self {
        RunId(Uuid::from_u128(bits))
    }

    /// The smallest id of this millisecond since 1970: ids made then or later are not smaller.
    pub const fn first_at(milliseconds: u64) -> Self {
        let last = (1 << 48) - 1;
        let within = if milliseconds < last { milliseconds } else { last };
        RunId::from_u128((within as u128) << 80)
    }

    /// Its 128 bits.
    pub const fn as_u128(&self) -> u128 {
        self.0.as_u128()
    }

    /// The last eight characters, enough for a person to tell runs apart.
    pub fn short(&self) -> String {
        self.to_string()[RUN_ID_LEN - 8..].to_owned()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bits = self.0.as_u128();
        let mut text = [b'0'; RUN_ID_LEN];
        for digit in text.iter_mut().rev() {
            *digit = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not a run id.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a run id: 26 characters of 0-9 and a-z without i, l, o, u")]
pub struct InvalidRunId(String);

impl FromStr for RunId {
    type Err = InvalidRunId;

    fn from_str(text: &str) -> Result<Self, InvalidRunId> {
        let invalid = || InvalidRunId(text.chars().take(64).collect());
        if text.len() != RUN_ID_LEN {
            return Err(invalid());
        }
        let mut bits: u128 = 0;
        for (index, byte) in text.bytes().enumerate() {
            let digit = u128::from(DIGITS[usize::from(byte)]);
            if digit == NO_DIGIT {
                return Err(invalid());
            }
            if index == 0 && digit > 7 {
                return Err(invalid());
            }
            bits = (bits << 5) | digit;
        }
        Ok(RunId(Uuid::from_u128(bits)))
    }
}

impl Serialize for RunId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Identifies a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(RunId);

impl WorkerId {
    /// A new id. Every process makes its own.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        WorkerId(RunId::new())
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for WorkerId {
    type Err = InvalidRunId;

    fn from_str(text: &str) -> Result<Self, InvalidRunId> {
        text.parse().map(WorkerId)
    }
}

/// The position of an event in the log of its run. The first event has 1; 0 is before the first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first event.
    pub const ZERO: Seq = Seq(0);

    /// The position after this one.
    pub fn next(self) -> Seq {
        Seq(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies a tool call within its run. The model's vendor chooses it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&str> for CallId {
    fn from(text: &str) -> Self {
        CallId(text.to_owned())
    }
}

/// The name of an agent: `^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`, with an optional `plugin:` prefix of
/// the same form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentName(String);

impl AgentName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The error for a text that is not an agent name.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not an agent name: letters, digits, `_` and `-`, at most 64, the first a letter or digit"
)]
pub struct InvalidName(String);

impl FromStr for AgentName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let (prefix, name) = match text.split_once(':') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, text),
        };
        if prefix.is_none_or(is_name) && is_name(name) {
            Ok(AgentName(text.to_owned()))
        } else {
            Err(InvalidName(text.chars().take(80).collect()))
        }
    }
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    (1..=64).contains(&text.len())
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|byte| plain(byte) || byte == b'_' || byte == b'-')
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for AgentName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_survive_text_and_sort_by_time() {
        let ids: Vec<RunId> = (0..1000).map(|_| RunId::new()).collect();
        for pair in ids.windows(2) {
            assert!(pair[0] < pair[1]);
            assert!(pair[0].to_string() < pair[1].to_string());
        }
        for id in ids {
            assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
        }
        let largest = RunId::from_u128(u128::MAX);
        assert_eq!(largest.to_string().parse::<RunId>().unwrap(), largest);
    }

    #[test]
    fn texts_that_are_no_run_ids_are_refused() {
        for text in ["", "01", "8zzzzzzzzzzzzzzzzzzzzzzzzz", "0000000000000000000000000u"] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }

    #[test]
    fn agent_names_are_narrow() {
        let long = "a".repeat(64);
        for good in ["explore", "code-reviewer", "A_1", "my-plugin:code-reviewer", &long] {
            assert!(good.parse::<AgentName>().is_ok(), "{good}");
        }
        let longer = "a".repeat(65);
        for bad in ["", "-a", "_a", "a/b", "../x", "a b", "a:b:c", ":a", "a:", "é", &longer] {
            assert!(bad.parse::<AgentName>().is_err(), "{bad}");
        }
    }
}
