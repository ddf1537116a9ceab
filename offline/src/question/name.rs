//! Names of things in code: their spellings, and how they differ from words.

use super::tokens::Token;
use crate::{language, words};

/// The name of something in code, perhaps with what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// What stands before it: `Store` in `Store::append`.
    pub within: Vec<String>,
    /// What stands between them.
    separator: &'static str,
    pub name: String,
    /// It looks like a name. Otherwise it is one by its place in the sentence.
    pub sure: bool,
}

impl Name {
    pub fn plain(name: &str) -> Self {
        Name { within: Vec::new(), separator: "::", name: name.to_owned(), sure: true }
    }

    /// As people write it.
    pub fn shown(&self) -> String {
        let within = self.within.iter().map(|part| format!("{part}{}", self.separator));
        within.chain([self.name.clone()]).collect()
    }

    /// A regular expression for the name as it stands. A long one reads better without marks.
    pub fn pattern(&self) -> String {
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let whole = word(self.name.chars().next()) && word(self.name.chars().next_back());
        match whole && self.name.len() < 8 && self.parts().len() < 2 {
            true => format!("\\b{}\\b", words::escape(&self.name)),
            false => words::escape(&self.name),
        }
    }

    /// A regular expression for the name in any spelling: `max-turns`, `max_turns`, `maxTurns`.
    pub fn loose_pattern(&self) -> String {
        let parts: Vec<String> = self.parts().iter().map(|part| words::escape(part)).collect();
        parts.join("[-_ ]?")
    }

    /// The words it consists of, in lower case.
    pub fn parts(&self) -> Vec<String> {
        let mut parts = vec![String::new()];
        let mut before = ' ';
        for character in self.name.chars() {
            let hump = character.is_uppercase() && before.is_lowercase();
            if (hump || !character.is_alphanumeric())
                && parts.last().is_some_and(|part| !part.is_empty())
            {
                parts.push(String::new());
            }
            if character.is_alphanumeric()
                && let Some(last) = parts.last_mut()
            {
                last.extend(character.to_lowercase());
            }
            before = character;
        }
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// Whether `text` has this name as a whole word.
    pub fn stands_in(&self, text: &str) -> bool {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        text.match_indices(&self.name).any(|(at, found)| {
            !text[..at].ends_with(part) && !text[at + found.len()..].starts_with(part)
        })
    }

    /// Whether `other` is this name, but for its spelling.
    pub fn is_like(&self, other: &str) -> bool {
        self.name == other || self.parts().concat() == Name::plain(other).parts().concat()
    }
}

/// Short forms that are words of their own and not names.
const ACRONYMS: &str = "API APIS HTTP HTTPS JSON CI CD URL URLS CLI TODO TODOS FIXME FIXMES SQL \
    OK ID IDS UI CPU XML YAML TOML HTML CSS TCP UDP TLS SSE SSL JWT REST DB OS PR PRS CRC RAM IO \
    I/O ADR ADRS FAQ SDK IDE LLM AI MCP RSS SMTP ORM CRUD GUI TUI UUID UTF ASCII IP DNS SSH \
    MSRV LOC README LICENSE XXX HACK NOT AND ALL ANY MUST";
/// Words with a hyphen that are not names.
const HYPHENATED: &str = "third-party built-in read-only set-up end-to-end up-to-date \
    command-line entry-point e-mail open-source high-level low-level top-level real-time \
    so-called back-end front-end re-run non-empty two-factor one-time long-running step-by-step \
    pre-commit easy-to-use rate-limited error-handling to-do to-dos";

/// The name that a word of a question is, if it looks like one.
pub(super) fn name(token: &Token) -> Option<Name> {
    if token.text.contains("://") {
        return None;
    }
    let text = token
        .text
        .trim_start_matches(['@', '&', '*', '#', '$', '-', '.'])
        .trim_end_matches(['!', '(', ')']);
    let text = text.strip_suffix("'s").or(text.strip_suffix("’s")).unwrap_or(text);
    let separated = text.replace("::", "\n").replace("->", "\n").replace(['.', '#', '\\'], "\n");
    let parts: Vec<&str> = separated.split('\n').filter(|part| !part.is_empty()).collect();
    let is_part = |part: &str| {
        part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '?' | '!'))
            && part.starts_with(|first: char| first.is_alphabetic() || first == '_')
    };
    let (last, within) = parts.split_last()?;
    if !parts.iter().all(|part| is_part(part)) {
        return None;
    }
    let named = |sure| Name {
        within: within.iter().map(|part| (*part).to_owned()).collect(),
        separator: if text.contains("::") { "::" } else { "." },
        name: (*last).to_owned(),
        sure,
    };
    if token.marked || !within.is_empty() || last.contains('_') {
        return Some(named(true));
    }
    if words::has(ACRONYMS, &last.to_uppercase()) || words::is_stop(&last.to_lowercase()) {
        return None;
    }
    let letters: Vec<char> = last.chars().collect();
    let hump = letters.windows(2).any(|pair| pair[0].is_lowercase() && pair[1].is_uppercase());
    let constant =
        letters.len() > 2 && letters.iter().all(|c| c.is_uppercase() || c.is_ascii_digit());
    let kebab = last.contains('-') && !words::has(HYPHENATED, &last.to_lowercase());
    let capital = letters[0].is_uppercase() && !token.first && !is_language(last);
    let sure = hump || constant;
    (sure || kebab || capital).then(|| named(sure))
}

/// Names of languages have a capital, and questions are rarely about them.
fn is_language(word: &str) -> bool {
    const OTHERS: &str = "Docker Git GitHub Linux Windows English Node SQLite";
    !language::endings(word).is_empty() || words::has(OTHERS, word)
}

/// True for a plain word that is a name by its neighbours: `the function resolve`, `resolve is
/// defined`, `the resolve method`.
pub(super) fn is_named_by_neighbours(lower: &[String], index: usize) -> bool {
    const DONE: &str = "defined declared implemented called used referenced invoked tested";
    let at =
        |index: Option<usize>| index.and_then(|index| lower.get(index)).map_or("", String::as_str);
    let word = at(Some(index));
    let empty = |word: &str| word.is_empty() || words::is_stop(word) || words::is_frame(word);
    let plain = word.chars().all(|c| c.is_alphanumeric() || c == '_');
    if empty(word) || words::is_kind(word) || word.len() < 2 || !plain {
        return false;
    }
    let (before, after) = (at(index.checked_sub(1)), at(Some(index + 1)));
    let further = at(Some(index + 2));
    let participle = |word: &str| word.len() > 4 && word.ends_with("ed");
    // "Which function assigns" describes one; "the function assign" names it.
    let described = words::has("which what a an any each every no", at(index.checked_sub(2)));
    let before_kind = words::is_kind(before) && !described && empty(after) && !participle(word);
    let after_kind = words::is_kind(after)
        && matches!(before, "the" | "a")
        && (empty(further) || participle(further));
    let used = words::has(DONE, after) && matches!(before, "is" | "are" | "does" | "gets" | "");
    before_kind || after_kind || used
}
