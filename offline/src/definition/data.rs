//! What a line of a document, a settings file, a build file, a script or a schema defines.

use super::parts::identifier;
use super::{Kind, Named};

pub(super) fn shell(text: &str) -> Named<'_> {
    if let Some(rest) = text.strip_prefix("function ") {
        return identifier(rest).map(|(name, _)| (Kind::Function, name));
    }
    let plain = ["export ", "readonly ", "local ", "declare ", "alias "]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .unwrap_or(text);
    let end = plain.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))?;
    let (name, rest) = plain.split_at(end);
    if name.is_empty() {
        return None;
    }
    if rest.starts_with("()") || rest.starts_with(" ()") {
        return Some((Kind::Function, name));
    }
    rest.starts_with('=').then_some((Kind::Variable, name))
}

/// `CREATE TABLE name`, in whatever file it stands.
pub(super) fn created(text: &str) -> Named<'_> {
    const OBJECTS: [&str; 8] =
        ["table", "view", "index", "function", "procedure", "trigger", "type", "sequence"];
    let text = text.trim_start_matches(['"', '\'', '`']);
    if !text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("create ")) {
        return None;
    }
    let mut words = text.split_whitespace().skip(1);
    words.by_ref().take(4).find(|word| OBJECTS.contains(&word.to_ascii_lowercase().as_str()))?;
    let skipped =
        |word: &&str| !matches!(word.to_ascii_lowercase().as_str(), "if" | "not" | "exists");
    let word = words.find(skipped)?;
    let word = word.split('(').next()?.trim_matches(['"', '`', '[', ']', ';']);
    let name = word.rsplit('.').next()?.trim_matches(['"', '`']);
    (!name.is_empty()).then_some((Kind::Table, name))
}

pub(super) fn heading(text: &str) -> Named<'_> {
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    ((1..=6).contains(&level) && rest.starts_with(' '))
        .then(|| (Kind::Heading, rest.trim().trim_end_matches('#').trim_end()))
}

pub(super) fn toml(text: &str) -> Named<'_> {
    if let Some(rest) = text.strip_prefix('[') {
        let inner = rest.trim_start_matches('[').split(']').next()?;
        return Some((Kind::Key, inner.rsplit('.').next().unwrap_or(inner).trim_matches('"')));
    }
    let (key, _) = text.split_once('=')?;
    plain_key(key)
}

pub(super) fn yaml(text: &str) -> Named<'_> {
    let text = text.strip_prefix("- ").unwrap_or(text);
    let (key, rest) = text.split_once(':')?;
    if !(rest.is_empty() || rest.starts_with(' ')) {
        return None;
    }
    plain_key(key)
}

pub(super) fn plain_key(key: &str) -> Named<'_> {
    let key = key.trim().trim_matches(['"', '\'']);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@');
    (!key.is_empty() && key.chars().all(plain)).then_some((Kind::Key, key))
}

pub(super) fn json_key(text: &str) -> Named<'_> {
    let (key, rest) = text.strip_prefix('"')?.split_once('"')?;
    (rest.trim_start().starts_with(':') && !key.is_empty()).then_some((Kind::Key, key))
}

pub(super) fn make(text: &str) -> Named<'_> {
    let end =
        text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '%')))?;
    let (name, rest) = text.split_at(end);
    let rest = rest.trim_start();
    if name.is_empty() || name == ".PHONY" {
        return None;
    }
    let assigns = [":=", "?=", "+=", "="].iter().any(|sign| rest.starts_with(sign));
    if assigns {
        return Some((Kind::Variable, name));
    }
    (rest.starts_with(':') || text.ends_with(':')).then_some((Kind::Target, name))
}
