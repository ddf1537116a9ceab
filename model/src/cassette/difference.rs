//! Finds and describes the first difference between a request and the recorded ones. Pure.

use super::line::Asked;
use crate::fault::shorten;
use serde_json::Value;
use std::fmt::{self, Write as _};

/// Characters that are shown of a text before the place where it differs, and in all.
const BEFORE: usize = 30;
const SHOWN: usize = 120;

/// Where a replay differs from its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the request that was not recorded, counted from 1.
    pub request: u64,
    /// What it was compared with.
    pub against: Against,
}

/// The other side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Against {
    /// The most similar recorded request.
    Recorded {
        /// Its number.
        number: u64,
        /// Where in the body the first difference is, such as `messages[2].content[0].text`.
        at: String,
        /// The recorded value; `None` if there is none at that place.
        recorded: Option<String>,
        /// The sent value; `None` if there is none at that place.
        sent: Option<String>,
    },
    /// Nothing: all recorded requests were made before.
    Nothing {
        /// How many were recorded.
        recorded: usize,
        /// Why there may be no more, if that is known.
        why: &'static str,
    },
}

impl Difference {
    /// The place alone, on one line.
    pub(super) fn brief(&self) -> String {
        match &self.against {
            Against::Recorded { at, .. } => {
                format!("request {} is not as recorded, first at {at}", self.request)
            }
            Against::Nothing { .. } => format!("request {} was never recorded", self.request),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = self.request;
        match &self.against {
            Against::Recorded { number, at, recorded, sent } => {
                let nothing = || "(nothing)".to_owned();
                let recorded = recorded.clone().unwrap_or_else(nothing);
                let sent = sent.clone().unwrap_or_else(nothing);
                writeln!(f, "request {request} differs from recorded request {number}")?;
                writeln!(f, "  at       {at}")?;
                writeln!(f, "  recorded {recorded}")?;
                write!(f, "  sent     {sent}")
            }
            Against::Nothing { recorded, why } => {
                write!(f, "request {request} was never recorded: ")?;
                match recorded {
                    0 => write!(f, "there is none{why}"),
                    1 => write!(f, "the only recorded request has been made{why}"),
                    all => write!(f, "all {all} recorded requests have been made{why}"),
                }
            }
        }
    }
}

/// The first difference between two values, and how much was alike before it.
struct Found<'a> {
    at: String,
    recorded: Option<&'a Value>,
    sent: Option<&'a Value>,
}

/// What `sent` has in common with `recorded`, counted in values, and the first difference.
pub(super) fn compare(recorded: &Asked, sent: &Asked) -> (usize, Option<Against>) {
    let against = |at: &str, recorded: Option<String>, sent: Option<String>| {
        Some(Against::Recorded { number: 0, at: at.to_owned(), recorded, sent })
    };
    let heads = [
        ("the method", &recorded.method, &sent.method),
        ("the wire", &recorded.wire, &sent.wire),
        ("the path", &recorded.path, &sent.path),
    ];
    for (at, recorded, sent) in heads {
        if recorded != sent {
            return (0, against(at, Some(recorded.clone()), Some(sent.clone())));
        }
    }
    let mut alike = 0;
    let mut at = String::new();
    let Some(found) = first(&recorded.body, &sent.body, &mut at, &mut alike) else {
        return (alike, None);
    };
    let at = if found.at.is_empty() { "the body" } else { &found.at };
    let (recorded, sent) = shown(found.recorded, found.sent);
    (alike, against(at, recorded, sent))
}

fn first<'a>(
    recorded: &'a Value,
    sent: &'a Value,
    at: &mut String,
    alike: &mut usize,
) -> Option<Found<'a>> {
    let length = at.len();
    match (recorded, sent) {
        (Value::Object(recorded), Value::Object(sent)) => {
            let missing = recorded.keys().filter(|name| !sent.contains_key(*name));
            for name in sent.keys().chain(missing) {
                let dot = if at.is_empty() { "" } else { "." };
                // Writing to a string cannot fail.
                let _ = write!(at, "{dot}{name}");
                let found = one(recorded.get(name), sent.get(name), at, alike);
                if found.is_some() {
                    return found;
                }
                at.truncate(length);
            }
            None
        }
        (Value::Array(recorded), Value::Array(sent)) => {
            for index in 0..recorded.len().max(sent.len()) {
                let _ = write!(at, "[{index}]");
                let found = one(recorded.get(index), sent.get(index), at, alike);
                if found.is_some() {
                    return found;
                }
                at.truncate(length);
            }
            None
        }
        _ if recorded == sent => {
            *alike += 1;
            None
        }
        _ => Some(Found { at: at.clone(), recorded: Some(recorded), sent: Some(sent) }),
    }
}

fn one<'a>(
    recorded: Option<&'a Value>,
    sent: Option<&'a Value>,
    at: &mut String,
    alike: &mut usize,
) -> Option<Found<'a>> {
    match (recorded, sent) {
        (Some(recorded), Some(sent)) => first(recorded, sent, at, alike),
        _ => Some(Found { at: at.clone(), recorded, sent }),
    }
}

/// Both sides in few words; of two texts, the part around the first difference.
fn shown(recorded: Option<&Value>, sent: Option<&Value>) -> (Option<String>, Option<String>) {
    let (Some(Value::String(one)), Some(Value::String(other))) = (recorded, sent) else {
        let brief = |value: &Value| shorten(&value.to_string(), SHOWN);
        return (recorded.map(brief), sent.map(brief));
    };
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let skip = same.saturating_sub(BEFORE);
    (Some(around(one, skip)), Some(around(other, skip)))
}

/// What follows the first `skip` characters of `text`, quoted and short.
fn around(text: &str, skip: usize) -> String {
    let mut rest = text.chars().skip(skip);
    let part: String = rest.by_ref().take(SHOWN).collect();
    let before = if skip > 0 { "…" } else { "" };
    let after = if rest.next().is_some() { "…" } else { "" };
    format!("{before}{}{after}", Value::from(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(body: Value) -> Asked {
        let (method, path) = ("POST".to_owned(), "/v1/messages".to_owned());
        Asked { method, path, wire: "anthropic".to_owned(), body }
    }

    #[track_caller]
    fn check(one: Value, other: Value, place: &str, was: Option<&str>, is: Option<&str>) {
        let (_, against) = compare(&asked(one), &asked(other));
        let Some(Against::Recorded { at, recorded, sent, .. }) = against else {
            panic!("{against:?}");
        };
        assert_eq!((at.as_str(), recorded.as_deref(), sent.as_deref()), (place, was, is));
    }

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        check(
            json!({"a": [1, {"b": 2}]}),
            json!({"a": [1, {"b": 3}]}),
            "a[1].b",
            Some("2"),
            Some("3"),
        );
        check(json!({"a": [1]}), json!({"a": [1, 2]}), "a[1]", None, Some("2"));
        check(json!({"a": 1, "z": {"y": 1}}), json!({"a": 1}), "z", Some("{\"y\":1}"), None);
        check(json!([]), json!({}), "the body", Some("[]"), Some("{}"));
        let (alike, none) = compare(&asked(json!({"a": [1, 2]})), &asked(json!({"a": [1, 2]})));
        assert_eq!((alike, none), (2, None));
    }

    #[test]
    fn of_long_texts_only_what_is_around_the_difference_is_shown() {
        let text =
            |word: &str| json!({"t": format!("{}{word}{}", "é".repeat(100), "z".repeat(500))});
        let (before, after) = ("é".repeat(30), "z".repeat(87));
        let was = format!("…\"{before}old{after}\"…");
        let is = format!("…\"{before}new{after}\"…");
        check(text("old"), text("new"), "t", Some(&was), Some(&is));
        check(json!("a\nb"), json!("a"), "the body", Some("\"a\\nb\""), Some("\"a\""));
    }

    #[test]
    fn a_difference_reads_well() {
        let against = Against::Recorded {
            number: 2,
            at: "messages[2]".to_owned(),
            recorded: None,
            sent: Some("1".to_owned()),
        };
        let lines = "request 3 differs from recorded request 2\n  at       messages[2]\n  \
                     recorded (nothing)\n  sent     1";
        assert_eq!(Difference { request: 3, against }.to_string(), lines);
        let against = Against::Nothing { recorded: 2, why: "" };
        let words = "request 3 was never recorded: all 2 recorded requests have been made";
        assert_eq!(Difference { request: 3, against }.to_string(), words);
    }
}
