//! Shell commands that set the variables they name, and variables whose values the shell evaluates
//! as arithmetic.

use super::values::variables;
use super::word::{Word, is_variable};

/// Shell commands that take assignments as arguments.
pub(super) const DECLARING: [&str; 5] = ["export", "declare", "typeset", "local", "readonly"];

/// Each row: a command; the letters of its options that take the name of a variable; the letters of
/// options that take another value; which of its other words are names.
const NAMING: [(&str, &str, &str, Names); 7] = [
    ("read", "a", "dinNptu", Names::All),
    ("mapfile", "", "dnOsucC", Names::All),
    ("readarray", "", "dnOsucC", Names::All),
    ("unset", "", "", Names::All),
    ("getopts", "", "", Names::Second),
    ("printf", "v", "", Names::None),
    ("wait", "p", "", Names::None),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    All,
    Second,
    None,
}

/// Integer variables of the shell: it evaluates every value that a script assigns to them.
const CALCULATED: [&str; 11] = [
    "OPTIND",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "HISTCMD",
    "LINENO",
    "BASHPID",
    "PPID",
    "UID",
    "EUID",
    "EPOCHSECONDS",
];

pub(crate) fn is_calculated(name: &str) -> bool {
    CALCULATED.contains(&name)
}

/// True when evaluating this is harmless, whatever the values of variables.
pub(crate) fn is_number(value: &Word) -> bool {
    value.code().and_then(variables).is_some_and(|names| names.is_empty())
}

/// Returns the command without a prefix such as `command` or `builtin`.
pub(super) fn own(words: &[Word]) -> &[Word] {
    let skipped = ["command", "builtin", "-p", "--"];
    let is_skipped = |word: &Word| word.exact().is_some_and(|text| skipped.contains(&text));
    match words.first().and_then(Word::exact) {
        Some("command" | "builtin") => {
            &words[words.iter().take_while(|word| is_skipped(word)).count()..]
        }
        _ => words,
    }
}

/// Returns the variables that the command `words` makes integers: the shell evaluates their values.
pub(super) fn integers(words: &[Word]) -> Vec<&str> {
    let Some((head, arguments)) = own(words).split_first() else { return Vec::new() };
    let is_option = |text: &&str| text.starts_with('-');
    let texts = || arguments.iter().map(Word::start);
    let declares = head.exact().is_some_and(|head| DECLARING.contains(&head));
    if !declares || !texts().any(|text| is_option(&text) && text.contains('i')) {
        return Vec::new();
    }
    let name = |text: &'_ str| text.find(['=', '+', '[']).unwrap_or(text.len());
    texts().filter(|text| !is_option(text)).map(|text| &text[..name(text)]).collect()
}

/// Returns the variables that the shell command `words` sets, with their values; `None` if it may
/// set others, or run something in the process.
pub(crate) fn settings(words: &[Word]) -> Option<Vec<(String, Word)>> {
    let (head, arguments) = words.split_first()?;
    let head = head.exact()?;
    if DECLARING.contains(&head) {
        return declared(head, arguments);
    }
    let set = named(words)?.into_iter();
    match head {
        "unset" => Some(Vec::new()),
        _ => Some(set.map(|name| (name, Word::Unknown)).collect()),
    }
}

/// Returns the variables that `words` name in order to set them.
pub(super) fn named(words: &[Word]) -> Option<Vec<String>> {
    let Some((head, arguments)) = words.split_first() else { return Some(Vec::new()) };
    let known = NAMING.iter().find(|(known, ..)| Some(*known) == head.exact());
    let Some((_, naming, valued, which)) = known else { return Some(Vec::new()) };
    let mut names: Vec<Word> = Vec::new();
    let (mut ended, mut position) = (*which == Names::Second, 0);
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let text = word.exact().unwrap_or_default();
        if !ended && text == "--" {
            ended = true;
        } else if !ended && text.len() > 1 && text.starts_with('-') {
            let mut letters = text[1..].char_indices();
            let value = letters.find(|(_, it)| naming.contains(*it) || valued.contains(*it));
            let Some((at, letter)) = value else { continue };
            let own = Word::Exact(text[at + 1 + letter.len_utf8()..].to_owned());
            let value = if own.start().is_empty() { arguments.next() } else { Some(&own) };
            names.extend(value.filter(|_| naming.contains(letter)).cloned());
        } else if *which == Names::None {
            // An unknown word may be the option; then a name follows.
            let next = arguments.clone().next().filter(|_| word.may_be_option());
            let is_name = |text: &str| is_variable(text) || text.contains('[');
            names.extend(next.filter(|next| next.exact().is_some_and(is_name)).cloned());
            // After a format there are no options.
            if *naming == "v" {
                break;
            }
        } else {
            ended = true;
            // It may expand to several words, or none.
            if *word == Word::Unknown && *which == Names::Second && position < 2 {
                return None;
            }
            if *which == Names::All || position == 1 {
                names.push(word.clone());
            }
            position += 1;
        }
    }
    names.iter().map(|name| plain(name.exact()?).map(str::to_owned)).collect()
}

/// Returns the name of a variable, without an index.
fn plain(text: &str) -> Option<&str> {
    let (name, index) = match text.split_once('[') {
        Some((name, rest)) => (name, rest.strip_suffix(']')?),
        None => (text, ""),
    };
    let is_plain = !name.contains(['$', '`', '(']);
    (is_plain && index.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

/// Returns what `declare` and similar commands set.
fn declared(head: &str, arguments: &[Word]) -> Option<Vec<(String, Word)>> {
    let is_export = head == "export";
    let options = || arguments.iter().filter(|word| word.may_be_option());
    let has = |letters: &[char]| options().any(|word| word.start().contains(letters));
    let is_code =
        |word: &Word| matches!(word, Word::Partly { end, .. } if end.contains(['$', '`']));
    if options().any(is_code) {
        return None;
    }
    // `export $(cat .env)` sets variables from a file.
    if !is_export && (options().any(|word| word.code().is_none()) || has(&['n'])) {
        return None;
    }
    let (is_integer, is_array) = (has(&['i']), has(&['a', 'A']));
    let mut settings = Vec::new();
    for word in arguments.iter().filter(|word| !word.may_be_option()) {
        let (name, value) = match (word.start().split_once('='), word) {
            (None, Word::Exact(name)) => (name.as_str(), None),
            (None, _) if is_export => continue,
            (None, _) => return None,
            (Some((name, value)), word) => (name, Some(with_start(word, value))),
        };
        let name = plain(name.strip_suffix('+').unwrap_or(name))?;
        let Some(value) = value else { continue };
        // A text in parentheses becomes an array, and the shell expands it.
        let expands = value.start().starts_with('(') || is_array && value.exact().is_none();
        if expands || is_integer && !is_number(&value) {
            return None;
        }
        settings.push((name.to_owned(), value));
    }
    Some(settings)
}

/// Returns the word with another start.
fn with_start(word: &Word, start: &str) -> Word {
    let start = start.to_owned();
    match word {
        Word::Exact(_) => Word::Exact(start),
        Word::Numbered(text) => {
            Word::Numbered(text.split_once('=').map_or("", |(_, value)| value).to_owned())
        }
        Word::Partly { end, .. } => Word::Partly { start, end: end.clone() },
        Word::Begins(_) => Word::Begins(start),
        Word::Unknown => Word::Unknown,
    }
}
