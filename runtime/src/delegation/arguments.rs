//! Arguments of several delegating tools, read tolerantly and checked before anything happens.

use crate::error::Error;
use crate::limits::WITHOUT_LIMIT;
use posse_protocol::{Announce, Context, Effort};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The arguments of a call.
pub(crate) fn read<T: DeserializeOwned>(input: Value) -> Result<T, Error> {
    serde_json::from_value(input)
        .map_err(|error| invalid(format!("the arguments cannot be used: {error}")))
}

pub(crate) fn invalid(why: impl Into<String>) -> Error {
    Error::InvalidInput(why.into())
}

/// The reasoning effort; `None` for the agent's own.
pub(crate) fn thinking(word: Option<&str>) -> Result<Option<Effort>, Error> {
    match word.map(|word| word.trim().to_ascii_lowercase()).as_deref() {
        None | Some("" | "default") => Ok(None),
        Some("low" | "minimal") => Ok(Some(Effort::Low)),
        Some("medium") => Ok(Some(Effort::Medium)),
        Some("high" | "xhigh") => Ok(Some(Effort::High)),
        Some("max") => Ok(Some(Effort::Max)),
        Some(other) => Err(invalid(format!(
            "`thinking` is `{}`; it can be default, low, medium, high or max",
            other.chars().take(40).collect::<String>()
        ))),
    }
}

/// How the result is announced.
pub(crate) fn announce(word: Option<&str>) -> Result<Option<Announce>, Error> {
    let Some(word) = word.map(str::trim).filter(|word| !word.is_empty()) else { return Ok(None) };
    let found = Announce::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(word));
    found.map(Some).ok_or_else(|| {
        invalid(format!(
            "`announce` is `{}`; it can be steer, followup, collect or silent",
            word.chars().take(40).collect::<String>()
        ))
    })
}

/// How much of the caller's conversation a child starts with.
pub(crate) fn context(value: Option<&Value>) -> Result<Option<Context>, Error> {
    let turns = |count: u64| u32::try_from(count).ok().filter(|count| *count > 0);
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) => match word.trim().to_ascii_lowercase().as_str() {
            "" => Ok(None),
            "isolated" | "fresh" | "none" => Ok(Some(Context::Fresh)),
            "fork" | "all" => Ok(Some(Context::Fork)),
            _ => Err(invalid("`context` can be isolated, fork, or a number of turns")),
        },
        Some(Value::Number(number)) if number.as_u64().and_then(turns).is_some() => {
            Ok(number.as_u64().and_then(turns).map(Context::ForkTurns))
        }
        Some(_) => Err(invalid("`context` can be isolated, fork, or a number of turns")),
    }
}

/// Converts seconds to milliseconds, without fractions of a second. Less than 1 means no limit.
pub(crate) fn milliseconds(seconds: f64) -> u64 {
    match seconds.trunc() {
        whole if whole >= 1.0 => (whole as u64).saturating_mul(1_000),
        _ => WITHOUT_LIMIT,
    }
}

/// A number, which a model may have put between quotes.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    match Option::<Value>::deserialize(from)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_f64()),
        Some(Value::String(text)) => {
            text.trim().parse().map(Some).map_err(|_| {
                serde::de::Error::custom(format!("`{text:.40}` is no number of seconds"))
            })
        }
        Some(_) => Err(serde::de::Error::custom("a number of seconds is expected")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn f10_a_level_that_does_not_exist_is_refused_with_those_that_do() {
        let why = thinking(Some("banana")).unwrap_err().to_string();
        assert!(why.contains("banana") && why.contains("low, medium, high or max"), "{why}");
        assert_eq!(thinking(Some(" High ")).unwrap(), Some(Effort::High));
        assert_eq!(thinking(Some("default")).unwrap(), None);
    }

    #[test]
    fn f12_a_part_of_a_second_is_left_out_and_less_than_one_is_no_limit() {
        let none = WITHOUT_LIMIT;
        for (seconds, expected) in
            [(1.9, 1_000), (-5.0, none), (0.0, none), (0.5, none), (90.0, 90_000)]
        {
            assert_eq!(milliseconds(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_context_is_fresh_forked_or_some_turns() {
        let check = |value: Value, expected| assert_eq!(context(Some(&value)).unwrap(), expected);
        check(json!("isolated"), Some(Context::Fresh));
        check(json!("fork"), Some(Context::Fork));
        check(json!(3), Some(Context::ForkTurns(3)));
        check(json!(null), None);
        assert!(context(Some(&json!("half"))).is_err() && context(Some(&json!(0))).is_err());
        assert!(announce(Some("loudly")).unwrap_err().to_string().contains("collect or silent"));
    }
}
