//! Describes the errors of a settings file in plain words, with their places.

use super::ConfigError;
use crate::webhooks::blotted;
use posse_protocol::near;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The page that lists all keys.
const SETTINGS_PAGE: &str = "the page on settings (docs/reference/settings.md) lists all keys";

/// Line and column of a place in a text, both from 1.
pub(super) type At = (u32, u32);

/// The error for a settings file at `path` whose content `text` is invalid.
pub(super) fn unreadable(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let message = error.message().trim_end();
    let at = error.span().map(|span| {
        // For a key in a table that is read as a whole, serde gives only the place of the table.
        let key = quoted(message).into_iter().next().unwrap_or_default();
        let line = lines(text, span.start).find(|(_, line)| {
            let rest = line.trim_start().strip_prefix(key).filter(|_| !key.is_empty());
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        });
        place(text, line.map_or(span.start, |(at, line)| at + line.len() - line.trim_start().len()))
    });
    // The message may quote a value, which may be the secret of a webhook.
    let reason = blotted(&plain(text, at, message));
    ConfigError::Invalid { path: path.to_owned(), at, reason }
}

/// The error for an invalid value in the file at `path`. `reason` names the key.
pub(super) fn unusable(path: &Path, text: &str, reason: String) -> ConfigError {
    let section = reason.strip_prefix("in [").and_then(|rest| rest.split_once(']'));
    let key = quoted(&reason).into_iter().next().unwrap_or_default();
    let full = section.map(|(section, _)| format!("{section}.{key}"));
    let at = full.and_then(|key| place_of(text, &key)).or_else(|| place_of(text, key));
    ConfigError::Invalid { path: path.to_owned(), at, reason }
}

/// The place of `key` in `text`. Dots separate the parts of the key.
pub(super) fn place_of(text: &str, key: &str) -> Option<At> {
    let table = DeTable::parse(text).ok()?;
    let mut at = None;
    let mut table = Some(table.get_ref());
    for part in key.split('.') {
        // Some keys have a second spelling, in camel case.
        let is_meant =
            |name: &str| name.replace('_', "").eq_ignore_ascii_case(&part.replace('_', ""));
        let found = table.and_then(|table| table.iter().find(|(name, _)| is_meant(name.get_ref())));
        let Some((name, value)) = found else { break };
        at = Some(name.span().start);
        table = match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        };
    }
    at.map(|at| place(text, at))
}

/// The lines of `text` from the line that contains `at`, with their offsets.
fn lines(text: &str, at: usize) -> impl Iterator<Item = (usize, &str)> {
    let before = text.get(..at).unwrap_or_default();
    let first = before.rfind('\n').map_or(0, |end| end + 1);
    text[first..].split('\n').scan(first, |next, line| {
        let at = *next;
        *next += line.len() + 1;
        Some((at, line))
    })
}

fn place(text: &str, at: usize) -> At {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() as u32 + 1, line.chars().count() as u32 + 1)
}

/// The words between backticks in `text`.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Rewrites a message of the TOML parser in plain words.
fn plain(text: &str, at: Option<At>, message: &str) -> String {
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let names = quoted(rest);
        if let Some((name, known)) = names.split_first() {
            return unknown(name, known);
        }
    }
    let wrong = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    let Some((found, expected)) = wrong.and_then(|wrong| wrong.split_once(", expected ")) else {
        return message.to_owned();
    };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        "a sequence" => "a list",
        other if other.starts_with("struct ") || other == "a map" => "a table",
        other => other,
    };
    let line = at.and_then(|(line, _)| text.lines().nth(line as usize - 1)).unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| format!("`{}` ", key.trim()));
    format!("{}must be {expected}, not {found}", key.unwrap_or_default())
}

/// The error for an unknown key `name`. `known` are the valid keys.
fn unknown(name: &str, known: &[&str]) -> String {
    let plain = name.to_ascii_lowercase().replace(['_', '-'], "");
    let is_near = near::nearest(name, known.iter().copied()).is_some();
    let is_key =
        plain.ends_with("apikey") || plain.ends_with("token") || plain.ends_with("secretkey");
    if is_key && !is_near {
        let variable = name.to_ascii_uppercase().replace('-', "_");
        return format!(
            "`{name}` does not belong in a settings file: keys come from the environment. Set the \
             variable {variable} (docs/reference/keys.md lists others)"
        );
    }
    let suggestion = near::suggestion(name, known.iter().copied(), SETTINGS_PAGE);
    format!("unknown key `{name}`; {suggestion}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_at_its_place() {
        let text = "model = \"x\"\n\n[skills]\nallow = []\n  extra_dirs = []\n[vendors.a]\nb = 1\n";
        assert_eq!(place_of(text, "model"), Some((1, 1)));
        assert_eq!(place_of(text, "skills.extra_dirs"), Some((5, 3)));
        assert_eq!(place_of(text, "vendors"), Some((6, 2)));
        let humps = "a = 1\narchiveAfterMinutes = 3";
        assert_eq!(place_of(humps, "archive_after_minutes"), Some((2, 1)));
        assert_eq!(place_of(text, "nothing"), None);
    }
}
