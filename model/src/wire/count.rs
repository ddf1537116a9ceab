//! Counts of tokens in the forms that providers use.

use serde::de::Deserializer;
use serde::{Deserialize, de::IgnoredAny};

/// The largest count: no reply has so many tokens, and sums stay exact.
const MOST: u64 = u32::MAX as u64;

/// A number of tokens; zero for anything else. A wrong count does not fail a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) u64);

/// The forms of a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberForm {
    Whole(u64),
    // A cast of a float stops at the bounds.
    Other(f64),
    Text(String),
    Nothing(IgnoredAny),
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = match NumberForm::deserialize(deserializer)? {
            NumberForm::Whole(number) => number,
            NumberForm::Other(number) => number as u64,
            NumberForm::Text(text) => text.trim().parse().unwrap_or(0),
            NumberForm::Nothing(_) => 0,
        };
        Ok(Count(number.min(MOST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_told_is_a_count() {
        for (told, count) in [
            ("100", 100),
            ("100.0", 100),
            ("\"100\"", 100),
            ("-1", 0),
            ("1e30", MOST),
            ("18446744073709551615", MOST),
            ("null", 0),
            ("\"many\"", 0),
            ("{\"a\": [1]}", 0),
        ] {
            assert_eq!(serde_json::from_str::<Count>(told).unwrap(), Count(count), "{told}");
        }
    }
}
