//! The values of variables in a script: all values that it assigns anywhere, in any order. They
//! replace the variables in words.

use super::ScriptContext;
use super::names::{is_calculated, named};
use super::word::{Draft, Piece, Quoted, Word, is_variable};
use std::collections::{HashMap, HashSet};

/// The most readings of a command that are distinguished.
const MOST: usize = 24;
/// How often a value may refer to another.
const DEEPEST: u32 = 5;

/// Variables that the shell itself sets.
const OWN: [&str; 14] = [
    "_",
    "REPLY",
    "MAPFILE",
    "OPTARG",
    "OPTIND",
    "COPROC",
    "PWD",
    "OLDPWD",
    "DIRSTACK",
    "FUNCNAME",
    "PIPESTATUS",
    "HISTCMD",
    "SHELL",
    "IFS",
];

/// Shell commands that set the variables they name.
const SETTERS: [&str; 12] = [
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "unset",
    "let",
    "wait",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
];

#[derive(Default)]
pub(super) struct Values {
    set: HashMap<String, Vec<Value>>,
    /// Any variable may have any value.
    lost: bool,
    /// A pattern without matches may expand to no word.
    patterns_vanish: bool,
    /// There are arrays with text as indexes.
    pub(super) has_maps: bool,
    /// The script runs inside another one, which may have set variables for it.
    nested: bool,
}

/// A value of a variable.
#[derive(Clone)]
pub(super) enum Value {
    Text(Draft),
    /// One of the words that this expands to.
    Each(Draft),
    Array(Vec<Draft>),
    /// The old value, with this appended.
    Added(Draft),
    Unknown,
}

impl Values {
    pub(super) fn new(place: ScriptContext) -> Self {
        Values { nested: place == ScriptContext::Command, ..Values::default() }
    }

    pub(super) fn add(&mut self, name: &str, value: Value) {
        self.set.entry(name.to_owned()).or_default().push(value);
    }

    pub(super) fn lose(&mut self) {
        self.lost = true;
    }

    pub(super) fn absorb(&mut self, inner: Values) {
        self.lost |= inner.lost;
        self.has_maps |= inner.has_maps;
        for (name, values) in inner.set {
            self.set.entry(name).or_default().extend(values);
        }
    }

    /// Notes the variables that a command itself sets. `others` means that any of its words may be
    /// a command too.
    pub(super) fn look_at(&mut self, command: &[Draft], others: bool) {
        let heads = if others { command.len() } else { 1 };
        for at in 0..heads.min(command.len()) {
            let head = command[at].text.as_str();
            let rest = &command[at + 1..];
            match head {
                "eval" | "alias" | "enable" | "coproc" => self.lose(),
                "trap" => match rest.first().map(Draft::word) {
                    Some(Some(Word::Exact(code))) if !sets(&code) => {}
                    None => {}
                    _ => self.lose(),
                },
                "printf" => match rest.first().map(Draft::word) {
                    Some(Some(Word::Exact(option))) if !option.starts_with("-v") => {}
                    Some(Some(Word::Exact(option))) if option == "-v" => {
                        self.look_at_names(&rest[1..])
                    }
                    _ => self.lose(),
                },
                // The parser has handled these at the beginning of a command.
                "declare" | "typeset" | "local" | "export" | "readonly"
                    if at == 0 && command[0].bare().is_some() => {}
                "shopt" => {
                    let hides = |draft: &Draft| match draft.word() {
                        Some(Word::Exact(text)) => text.contains("nullglob"),
                        _ => true,
                    };
                    self.patterns_vanish |= rest.iter().any(hides);
                }
                "read" | "mapfile" | "readarray" | "getopts" | "wait" => {
                    let words = command[at..].iter();
                    let words: Vec<Word> =
                        words.map(|it| it.word().unwrap_or(Word::Unknown)).collect();
                    match named(&words) {
                        Some(names) => {
                            names.iter().for_each(|name| self.add(name, Value::Unknown));
                        }
                        None => self.lose(),
                    }
                }
                _ if SETTERS.contains(&head) => self.look_at_names(rest),
                _ => {}
            }
        }
    }

    fn look_at_names(&mut self, names: &[Draft]) {
        for draft in names {
            match draft.word() {
                Some(Word::Exact(text)) => {
                    let end = text.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
                    self.add(&text[..end.unwrap_or(text.len())], Value::Unknown);
                }
                _ => self.lose(),
            }
        }
    }

    /// Must be called after everything was parsed: a value may name a command that sets variables.
    pub(super) fn settle(&mut self) {
        let names_one = |draft: &Draft| sets(&draft.text);
        let lost = self.set.values().flatten().any(|value| match value {
            Value::Text(draft) | Value::Each(draft) | Value::Added(draft) => names_one(draft),
            Value::Array(drafts) => drafts.iter().any(names_one),
            Value::Unknown => false,
        });
        // The script changes how values are split.
        self.lost |= lost || self.set.contains_key("IFS");
    }

    /// True when evaluating the variable is harmless: all values that the script assigns are
    /// numbers, or expressions of such variables.
    pub(super) fn is_number(&self, name: &str) -> bool {
        let (mut seen, mut next) = (HashSet::new(), vec![name.to_owned()]);
        while let Some(name) = next.pop() {
            if is_calculated(&name) || seen.contains(&name) {
                continue;
            }
            let is_set = self.set.contains_key(&name);
            if self.lost || self.nested && !is_set || is_own(&name) {
                return false;
            }
            let values = self.set.get(&name).map(Vec::as_slice).unwrap_or_default();
            let grows = values.iter().any(|value| matches!(value, Value::Added(_)));
            for value in values {
                let (ways, is_added) = match value {
                    Value::Added(draft) => (self.expand(&draft.pieces, 0), true),
                    value => (self.texts(value, 0), false),
                };
                for way in ways {
                    let text: Option<String> = way.iter().map(calculated).collect();
                    let Some(text) = text else { return false };
                    // An appended digit can turn a name into another one.
                    let is_certain = match is_added {
                        true => text.bytes().all(|byte| byte.is_ascii_digit()),
                        false => !grows || !ends_with_name(&text),
                    };
                    match variables(&text) {
                        Some(names) if is_certain => next.extend(names),
                        _ => return false,
                    }
                }
            }
            seen.insert(name);
        }
        true
    }

    /// Returns every reading of a command, as far as it is known.
    pub(super) fn commands(&self, command: &[Draft]) -> Vec<Vec<Word>> {
        let ways: Vec<Vec<Vec<Word>>> = command.iter().map(|draft| self.words(draft, 0)).collect();
        let many = ways.iter().map(Vec::len).try_fold(1_usize, usize::checked_mul);
        let mut all: Vec<Vec<Word>> = vec![Vec::new()];
        for word in ways {
            let word = match many.is_none_or(|many| many > MOST) && word.len() > 1 {
                true => vec![vec![Word::Unknown]],
                false => word,
            };
            all = product(&all, &word);
        }
        if self.lost || self.patterns_vanish {
            let patterns = all.iter_mut().flatten().filter(|it| matches!(it, Word::Begins(_)));
            patterns.for_each(|word| *word = Word::Unknown);
        }
        all
    }

    /// Returns every value that an assignment gives.
    pub(super) fn given(&self, value: &Value) -> Vec<Word> {
        match value {
            Value::Text(draft) | Value::Added(draft) => self.value(draft),
            Value::Each(draft) => self.words(draft, 0).into_iter().flatten().collect(),
            Value::Array(drafts) => drafts.iter().flat_map(|draft| self.value(draft)).collect(),
            Value::Unknown => vec![Word::Unknown],
        }
    }

    /// Returns every value of `draft` as one word.
    fn value(&self, draft: &Draft) -> Vec<Word> {
        let one = |pieces: Vec<Piece>| {
            let mut words = parted(&put(pieces, Quoted::Double)).into_iter();
            words.next().unwrap_or_else(|| Word::Exact(String::new()))
        };
        self.expand(&draft.pieces, 0).into_iter().map(one).collect()
    }

    /// Returns every reading of a word; each may be several words, or none.
    fn words(&self, draft: &Draft, depth: u32) -> Vec<Vec<Word>> {
        // The home folder may be any text, such as an option.
        if draft.is_home() && (self.lost || self.nested || self.set.contains_key("HOME")) {
            return vec![vec![Word::Unknown]];
        }
        if let Some(word) = draft.word() {
            return vec![vec![word]];
        }
        if let [Piece::Array(name)] = &*draft.pieces
            && let Some([Value::Array(elements)]) = self.set.get(name).map(Vec::as_slice)
            && !self.lost
            && depth < DEEPEST
        {
            let ways = elements.iter().map(|element| self.words(element, depth + 1));
            return ways.fold(vec![Vec::new()], |all, word| match all.len() * word.len() > MOST {
                true => vec![vec![Word::Unknown]],
                false => product(&all, &word),
            });
        }
        let made = self.expand(&draft.pieces, depth).into_iter().map(|pieces| {
            let mut words = parted(&pieces);
            if words.is_empty() && draft.quoted {
                words.push(Word::Exact(String::new()));
            }
            words
        });
        made.collect()
    }

    /// Returns every replacement of variables by values.
    fn expand(&self, pieces: &[Piece], depth: u32) -> Vec<Vec<Piece>> {
        let mut all: Vec<Vec<Piece>> = vec![Vec::new()];
        for piece in pieces {
            let ways = match piece {
                Piece::Variable(name, quoted) => {
                    let values = self.scalars(name, depth).into_iter();
                    values.map(|value| put(value, *quoted)).collect()
                }
                Piece::Folder(name, quoted) => self.folder(name, *quoted),
                Piece::Made(quoted) => self.folder("TMPDIR", *quoted),
                Piece::Indices => {
                    let is_text = self.lost || self.has_maps || self.nested;
                    vec![vec![if is_text { Piece::Hidden(Quoted::No) } else { Piece::Number }]]
                }
                Piece::Program(name) => {
                    vec![vec![Piece::Path, Piece::Text(format!("/{name}"))], Vec::new()]
                }
                other => vec![vec![other.clone()]],
            };
            if all.len() * ways.len() > MOST {
                return vec![vec![Piece::Hidden(Quoted::No)]];
            }
            all = product(&all, &ways);
        }
        all
    }

    /// Returns a path from the environment, unless the script sets the variable. It may be empty.
    fn folder(&self, name: &str, quoted: Quoted) -> Vec<Vec<Piece>> {
        match self.lost || self.nested || self.set.contains_key(name) {
            true => vec![vec![Piece::Hidden(quoted)]],
            false => vec![vec![Piece::Path], Vec::new()],
        }
    }

    /// Returns the values of a variable.
    fn scalars(&self, name: &str, depth: u32) -> Vec<Vec<Piece>> {
        let values = match self.set.get(name) {
            Some(values) if !self.lost && !is_own(name) && depth < DEEPEST => values,
            _ => return hidden(),
        };
        let mut all: Vec<_> = values.iter().flat_map(|value| self.texts(value, depth)).collect();
        all.dedup();
        all
    }

    /// Returns what a variable with this value may contain.
    fn texts(&self, value: &Value, depth: u32) -> Vec<Vec<Piece>> {
        let texts = |draft: &Draft| match draft.word() {
            Some(Word::Exact(text)) => vec![vec![Piece::Text(text)]],
            _ if draft.several => hidden(),
            _ => self.expand(&draft.pieces, depth + 1),
        };
        match value {
            Value::Text(draft) => texts(draft),
            Value::Array(drafts) => drafts.iter().flat_map(texts).collect(),
            Value::Each(draft) if is_range(&draft.text) => vec![vec![Piece::Number]],
            Value::Each(draft) => {
                let words = self.words(draft, depth + 1).into_iter().flatten();
                words.map(pieces).collect()
            }
            Value::Added(_) | Value::Unknown => hidden(),
        }
    }
}

/// True for a variable that the shell itself sets.
fn is_own(name: &str) -> bool {
    OWN.contains(&name) || name.starts_with("BASH")
}

/// Returns one unknown word.
fn hidden() -> Vec<Vec<Piece>> {
    vec![vec![Piece::Hidden(Quoted::Double)]]
}

/// True when a text may be a command that sets variables, or may run one.
fn sets(text: &str) -> bool {
    let others = ["eval", "trap", "alias", "enable", "printf", "builtin", "command", "shopt"];
    let mut words = text.split(|it: char| it.is_whitespace() || ";&|(){}\"'".contains(it));
    words.any(|it| SETTERS.contains(&it) || others.contains(&it) || it.contains(['=', '`', '\\']))
        || text.contains("((")
}

/// True for a range such as `{1..5}`.
fn is_range(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    inner.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

fn product<T: Clone>(all: &[Vec<T>], ways: &[Vec<T>]) -> Vec<Vec<T>> {
    let with = |one: &Vec<T>| ways.iter().map(|way| [one.as_slice(), way].concat()).collect();
    all.iter().flat_map(|one| -> Vec<Vec<T>> { with(one) }).collect()
}

/// True when an expression ends with the name of a variable.
fn ends_with_name(text: &str) -> bool {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let before = text.trim_end_matches(is_name);
    is_variable(&text[before.len()..])
}

/// Returns the arithmetic text of a piece.
fn calculated(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Text(text) | Piece::Split(text) => Some(text),
        Piece::Number => Some("0"),
        _ => None,
    }
}

/// Returns a value as it appears in place of its variable.
fn put(value: Vec<Piece>, quoted: Quoted) -> Vec<Piece> {
    let here = |piece| match (piece, quoted) {
        (Piece::Text(text), Quoted::No) => Piece::Split(text),
        (Piece::Split(text), Quoted::Double) => Piece::Text(text),
        (Piece::Hidden(_), quoted) => Piece::Hidden(quoted),
        (Piece::Array(_), _) => Piece::Hidden(Quoted::No),
        (other, _) => other,
    };
    value.into_iter().map(here).collect()
}

/// Returns a word as the value of a variable.
fn pieces(word: Word) -> Vec<Piece> {
    let hidden = Piece::Hidden(Quoted::Double);
    match word {
        Word::Exact(text) => vec![Piece::Text(text)],
        Word::Begins(start) => vec![Piece::Text(start), Piece::Pattern],
        Word::Partly { start, end } => vec![Piece::Text(start), hidden, Piece::Text(end)],
        Word::Numbered(text) if text == "0" => vec![Piece::Number],
        Word::Numbered(_) | Word::Unknown => vec![hidden],
    }
}

/// A word that is being assembled.
#[derive(Default)]
struct Joined {
    start: String,
    end: String,
    is_partly: bool,
    /// The position of its first number.
    number: Option<usize>,
    is_pattern: bool,
    begun: bool,
}

impl Joined {
    fn add(&mut self, text: &str) {
        self.begun = true;
        match self.is_partly {
            true => self.end.push_str(text),
            false if !self.is_pattern => self.start.push_str(text),
            false => {}
        }
    }

    fn hole(&mut self) {
        self.begun = true;
        self.is_partly = true;
        self.start.truncate(self.number.unwrap_or(self.start.len()));
        self.end.clear();
    }

    fn word(self) -> Word {
        match self {
            Joined { is_pattern: true, is_partly: true, start, .. } if start.is_empty() => {
                Word::Unknown
            }
            Joined { is_pattern: true, mut start, number, .. } => {
                start.truncate(number.unwrap_or(start.len()));
                Word::Begins(start)
            }
            Joined { is_partly: true, start, end, .. } => Word::Partly { start, end },
            Joined { number: Some(_), start, .. } => Word::Numbered(start),
            Joined { start, .. } => Word::Exact(start),
        }
    }
}

/// Returns the words that the shell makes of pieces.
fn parted(pieces: &[Piece]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = Joined::default();
    for piece in pieces {
        match piece {
            Piece::Text(text) => word.add(text),
            Piece::Split(text) if text.contains(['*', '?', '[', '\\']) => {
                return vec![Word::Unknown];
            }
            Piece::Split(text) => {
                for (at, part) in text.split([' ', '\t', '\n']).enumerate() {
                    if at > 0 && word.begun {
                        words.push(std::mem::take(&mut word).word());
                    }
                    if !part.is_empty() {
                        word.add(part);
                    }
                }
            }
            Piece::Pattern => word.is_pattern = true,
            Piece::Tilde => {}
            Piece::Path => {
                if !word.begun {
                    word.add("/");
                }
                word.hole();
            }
            Piece::Number if word.is_partly => word.hole(),
            Piece::Number => {
                word.number.get_or_insert(word.start.len());
                word.add("0");
            }
            Piece::Hidden(Quoted::Double) => word.hole(),
            _ => return vec![Word::Unknown],
        }
    }
    if word.begun {
        words.push(word.word());
    }
    words
}

/// Returns the variables in an arithmetic expression; `None` if evaluating it may do more than read
/// them.
pub(super) fn variables(expression: &str) -> Option<Vec<String>> {
    let text = expression.replace("[@]", "").replace("[*]", "");
    let mut names = Vec::new();
    let mut rest = text.as_str();
    while let Some(char) = rest.chars().next() {
        let name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        if char == '$' {
            rest = rest[1..].strip_prefix('{').unwrap_or(&rest[1..]);
            match rest.chars().next()? {
                '#' | '?' => rest = &rest[1..],
                it if it.is_ascii_alphabetic() || it == '_' => {}
                _ => return None,
            }
        } else if name(char) {
            let end = rest.find(|it| !name(it)).unwrap_or(rest.len());
            let (word, others) = rest.split_at(end);
            names.extend(is_variable(word).then(|| word.to_owned()));
            rest = others;
        } else if " \t\n+-*/%<>=!&|?:()~^,;#{}\"".contains(char) {
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(names)
}
