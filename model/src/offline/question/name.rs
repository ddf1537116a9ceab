//! Names of things in code: their spellings, and how they are told from words.

use super::tokens::Token;
use crate::offline::{language, words};

/// The name of something in code, perhaps with what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::offline) struct Name {
    /// What stands before it: `Store` in `Store::append`.
    pub within: Vec<String>,
    pub name: String,
    /// It looks like a name, rather than being one by its place in the sentence.
    pub sure: bool,
}

impl Name {
    pub fn plain(name: &str) -> Self {
        Name { within: Vec::new(), name: name.to_owned(), sure: true }
    }

    /// As people write it.
    pub fn shown(&self) -> String {
        let within = self.within.iter().map(|part| format!("{part}::"));
        within.chain([self.name.clone()]).collect()
    }

    /// A regular expression for the name as it stands.
    pub fn pattern(&self) -> String {
        bounded(&self.name, words::escape(&self.name))
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

    /// Whether it may be a plain word, which has a capital where it begins a heading.
    pub fn is_word(&self) -> bool {
        !self.sure && !self.name.contains(char::is_uppercase)
    }

    /// Whether `other` is this name, but for its spelling.
    pub fn is_like(&self, other: &str) -> bool {
        self.name == other || self.parts().concat() == Name::plain(other).parts().concat()
    }
}

/// `pattern` for the whole word `text`.
fn bounded(text: &str, pattern: String) -> String {
    let word = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let before = if word(text.chars().next()) { "\\b" } else { "" };
    let after = if word(text.chars().next_back()) { "\\b" } else { "" };
    format!("{before}{pattern}{after}")
}

/// Short forms that are words of their own and no names.
const ACRONYMS: &str = "API APIS HTTP HTTPS JSON CI CD URL URLS CLI TODO TODOS FIXME FIXMES SQL \
    OK ID IDS UI CPU XML YAML TOML HTML CSS TCP UDP TLS SSE SSL JWT REST DB OS PR PRS CRC RAM IO \
    I/O ADR ADRS FAQ SDK IDE LLM AI MCP RSS SMTP ORM CRUD GUI TUI UUID UTF ASCII IP DNS SSH \
    WHERE WHAT HOW XXX HACK";
/// Words with a hyphen that are no names.
const HYPHENATED: &str = "third-party built-in read-only set-up end-to-end up-to-date \
    command-line entry-point e-mail open-source high-level low-level top-level real-time \
    so-called back-end front-end re-run non-empty two-factor one-time long-running step-by-step \
    pre-commit easy-to-use rate-limited error-handling";

/// What capitals mean in a question.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// Every noun has one.
    pub german: bool,
    /// Latin letters alone make a name.
    pub han: bool,
}

pub(super) fn name(token: &Token, style: Style) -> Option<Name> {
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
        name: (*last).to_owned(),
        sure,
    };
    if token.marked || !within.is_empty() || last.contains('_') {
        return Some(named(true));
    }
    if ACRONYMS.split_whitespace().any(|known| known.eq_ignore_ascii_case(last))
        || words::is_stop(&last.to_lowercase())
    {
        return None;
    }
    let letters: Vec<char> = last.chars().collect();
    let hump = letters.windows(2).any(|pair| pair[0].is_lowercase() && pair[1].is_uppercase());
    let constant =
        letters.len() > 2 && letters.iter().all(|c| c.is_uppercase() || c.is_ascii_digit());
    let kebab = last.contains('-')
        && !HYPHENATED.split_whitespace().any(|known| known == last.to_lowercase());
    let flag = token.text.starts_with("--");
    let capital = letters[0].is_uppercase()
        && (!token.first || style.han)
        && !style.german
        && !is_language(last);
    let numbered =
        letters.len() > 2 && letters.iter().any(char::is_ascii_digit) && letters[0].is_lowercase();
    let sure = hump || constant || flag;
    (sure || kebab || capital || numbered).then(|| named(sure))
}

/// Names of languages have a capital and are rarely what is sought.
fn is_language(word: &str) -> bool {
    const OTHERS: [&str; 8] =
        ["Docker", "Git", "GitHub", "Linux", "Windows", "English", "Node", "SQLite"];
    !language::endings(word).is_empty() || OTHERS.contains(&word)
}

/// True for a plain word that its neighbours call a name: `the function resolve`, `resolve is
/// defined`, `the resolve method`.
pub(super) fn is_named_by_neighbours(lower: &[String], index: usize) -> bool {
    const DONE: &str = "defined declared implemented called used referenced invoked tested \
        definiert deklariert implementiert verwendet benutzt aufgerufen getestet défini \
        définie definido definida";
    let at =
        |index: Option<usize>| index.and_then(|index| lower.get(index)).map_or("", String::as_str);
    let word = at(Some(index));
    let empty = |word: &str| word.is_empty() || words::is_stop(word) || words::is_frame(word);
    if empty(word)
        || words::is_kind(word)
        || word.len() < 2
        || !word.chars().all(|c| c.is_alphanumeric() || c == '_')
    {
        return false;
    }
    let (before, after) = (at(index.checked_sub(1)), at(Some(index + 1)));
    let further = at(Some(index + 2));
    let participle = |word: &str| word.len() > 4 && word.ends_with("ed");
    // "Which function assigns" describes one; "the function assign" names it.
    let described = matches!(
        at(index.checked_sub(2)),
        "which"
            | "what"
            | "a"
            | "an"
            | "any"
            | "each"
            | "every"
            | "no"
            | "welche"
            | "quelle"
            | "qué"
    );
    let before_kind = words::is_kind(before) && !described && empty(after) && !participle(word);
    let after_kind = words::is_kind(after)
        && matches!(before, "the" | "die" | "der" | "das" | "la" | "le" | "el" | "a")
        && (empty(further) || participle(further));
    let done = |word: &str| DONE.split_whitespace().any(|done| done == word);
    let used = done(after)
        && (matches!(
            before,
            "is" | "are" | "ist" | "wird" | "est" | "está" | "does" | "gets" | ""
        ) || before == "where");
    before_kind || after_kind || used
}
