//! A question as words, and what it has in quotes.

use super::add;

/// A word of the question and its surroundings.
pub(super) struct Token {
    pub text: String,
    /// In quotes, or with brackets after it: a name for sure.
    pub marked: bool,
    /// It begins a sentence.
    pub first: bool,
}

/// The words of `text`. Quoted texts of several words are added to `quoted`.
pub(super) fn tokens(text: &str, quoted: &mut Vec<String>) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = text;
    let mut first = true;
    let mut before = ' ';
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        if let Some(inner) = quotation(character, after).filter(|_| !before.is_alphanumeric()) {
            rest = &after[inner.len()..];
            rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
            before = ' ';
            let inner = inner.trim();
            if inner.contains(char::is_whitespace) {
                add(quoted, inner.to_owned());
            } else if !inner.is_empty() {
                tokens.push(Token { text: inner.to_owned(), marked: true, first: false });
            }
            first = false;
            continue;
        }
        before = character;
        if is_break(character) {
            first = first || matches!(character, '.' | '!' | '?' | '\n' | ':');
            rest = after;
            continue;
        }
        let end = rest.find(is_break).unwrap_or(rest.len());
        let raw = &rest[..end];
        let called = raw.trim_end_matches([',', ';', ':', '?', '.']).ends_with("()");
        let word = raw.trim_end_matches([',', ';', ':', '?', '!', '.', '"', '\'', ')', ']', '}']);
        let word = word.trim_start_matches(['"', '\'', '(', '[', '{', '<']);
        let word = if called { word.trim_end_matches(['(', ')']) } else { word };
        if !word.is_empty() {
            tokens.push(Token { text: word.to_owned(), marked: called, first });
            first = raw.ends_with(['.', '!', '?']);
        }
        before = raw.chars().next_back().unwrap_or(' ');
        rest = &rest[end..];
    }
    tokens
}

fn is_break(character: char) -> bool {
    character.is_whitespace() || "`“”„«»".contains(character)
}

/// The text between the quote `open`, which was just read, and its closing quote.
fn quotation(open: char, after: &str) -> Option<&str> {
    let close = match open {
        '`' => "`",
        '"' => "\"",
        '\'' => "'",
        '“' | '„' => "”",
        '«' => "»",
        _ => return None,
    };
    let end = after.find(close)?;
    let inner = &after[..end];
    // An apostrophe is not a quote: 'tis, the users' files.
    let ends = !after[end + close.len()..].starts_with(char::is_alphanumeric);
    (!inner.trim().is_empty() && inner.len() <= 200 && ends).then_some(inner)
}
