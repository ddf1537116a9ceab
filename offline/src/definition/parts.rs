//! What lines of code are made of: names, keywords, modifiers, signatures.

use super::{Kind, Named};
use crate::words;

/// The name at the beginning of `text`, and what follows.
pub(super) fn identifier(text: &str) -> Option<(&str, &str)> {
    let part =
        |character: char| character.is_alphanumeric() || character == '_' || character == '$';
    let end = text.find(|character| !part(character)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit()))
        .then_some((name, rest))
}

/// The name at the end of `text`, and what stands before it.
pub(super) fn last_identifier(text: &str) -> Option<(&str, &str)> {
    let part =
        |character: char| character.is_alphanumeric() || character == '_' || character == '$';
    let start = text
        .rfind(|character| !part(character))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    let (before, name) = text.split_at(start);
    (!name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit()))
        .then_some((before, name))
}

pub(super) type Keywords = [(&'static str, Kind)];

/// Words that may stand before a keyword.
const MODIFIERS: &str = "pub async unsafe extern export default declare abstract static public \
    private protected internal final override virtual inline open sealed data partial suspend \
    readonly local const mut constexpr explicit synchronized native companion case implicit \
    fileprivate";
/// Words that begin a statement and never a definition.
const STATEMENTS: &str = "if else for while switch match return catch try do new throw await yield \
    case when in not and or assert raise print go defer typeof use import from";

/// True for a word that begins a statement and never a definition.
pub(super) fn is_statement(word: &str) -> bool {
    words::has(STATEMENTS, word)
}

/// A definition that a keyword announces: its kind, its name, and what follows.
pub(super) fn by_keyword<'l>(
    text: &'l str,
    keywords: &Keywords,
) -> Option<(Kind, &'l str, &'l str)> {
    let mut rest = text;
    for _ in 0..8 {
        let (word, after) = identifier(rest)?;
        let spaced = after.starts_with([' ', '\t', '!', '*', '(']);
        if let Some((_, kind)) = keywords.iter().find(|(keyword, _)| *keyword == word && spaced) {
            let mut after = after.trim_start_matches(['!', '*', ' ', '\t']);
            if word == "func" && after.starts_with('(') {
                // A method of Go: the receiver stands before the name.
                after = after.split_once(')').map_or("", |(_, after)| after).trim_start();
            }
            after = after.strip_prefix("mut ").unwrap_or(after);
            let (name, tail) = identifier(after)?;
            let goes_on = word == "const" && words::has("unsafe async extern", name);
            if !keywords.iter().any(|(keyword, _)| *keyword == name) && !goes_on {
                return Some((*kind, name, tail));
            }
            rest = after;
            continue;
        }
        if !words::has(MODIFIERS, word) {
            return None;
        }
        rest = after.trim_start();
        if let Some(scope) = rest.strip_prefix('(') {
            rest = scope.split_once(')')?.1.trim_start();
        } else if let Some(quoted) = rest.strip_prefix('"') {
            rest = quoted.split_once('"')?.1.trim_start();
        }
    }
    None
}

/// `text` without words that say who may see what follows.
pub(super) fn without_modifiers(text: &str) -> &str {
    let mut rest = text;
    while let Some((word, after)) = identifier(rest) {
        if !(words::has(MODIFIERS, word) || matches!(word, "get" | "set"))
            || !after.starts_with([' ', '('])
        {
            break;
        }
        let after = after.trim_start();
        match after.strip_prefix('(').filter(|_| word == "pub") {
            Some(scope) => rest = scope.split_once(')').map_or("", |(_, after)| after).trim_start(),
            None if after.starts_with('(') => break,
            None => rest = after,
        }
    }
    rest
}

/// `name: something`.
pub(super) fn annotated(text: &str) -> Option<&str> {
    let (name, rest) = identifier(text)?;
    let rest = rest.strip_prefix('?').unwrap_or(rest).trim_start();
    let follows = rest.strip_prefix(':')?;
    let fits = !follows.starts_with([':', '=']) && !follows.trim().is_empty();
    (fits && !is_statement(name)).then_some(name)
}

/// `name = something`.
pub(super) fn assigned(text: &str) -> Option<&str> {
    let (name, rest) = identifier(text)?;
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let fits = rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>");
    (fits && !is_statement(name)).then_some(name)
}

/// `type name(arguments)`: a function where functions have no keyword.
pub(super) fn signature<'l>(text: &'l str, needs_type: bool) -> Named<'l> {
    let (before, rest) = text.split_once('(')?;
    let (prefix, name) = last_identifier(before.trim_end())?;
    let first = identifier(text).map_or("", |(word, _)| word);
    let odd =
        prefix.contains(['=', '"', '(', '.', '+', '!', '|', '?', '{']) || prefix.contains("->");
    if odd || is_statement(first) || is_statement(name) {
        return None;
    }
    let method = prefix.ends_with("::") || prefix.ends_with('~');
    if needs_type && prefix.trim().is_empty() && !method {
        return None;
    }
    if text.ends_with(';') {
        return (!prefix.trim().is_empty()).then_some((Kind::Declaration, name));
    }
    let ends = text.ends_with(['{', ')', ',', '(']) || rest.contains('{');
    ends.then_some((Kind::Function, name))
}
