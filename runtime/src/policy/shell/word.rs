//! Words of a command, and what is known of them before the shell expands them.

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// The program sees exactly this.
    Exact(String),
    /// The shell expands it to paths that begin like this: a pattern, or `~/`.
    Begins(String),
    /// One word with an unknown middle.
    Partly { start: String, end: String },
    /// One word with some number in place of each `0`.
    Numbered(String),
    /// Unknown: a variable, a substitution. It may be several words.
    Unknown,
}

impl Word {
    /// Returns the text that the program sees, if it is known.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self {
            Word::Exact(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text, if at most its numbers are unknown.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Word::Exact(text) | Word::Numbered(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the path of a program if at least its name is known.
    pub(crate) fn program(&self) -> Option<&str> {
        match self {
            Word::Exact(text) => Some(text),
            Word::Partly { end, .. } if end.contains('/') => Some(end),
            _ => None,
        }
    }

    /// Returns its known beginning.
    pub(crate) fn start(&self) -> &str {
        match self {
            Word::Exact(text) | Word::Begins(text) => text,
            Word::Partly { start, .. } => start,
            Word::Numbered(text) => text.split('0').next().unwrap_or_default(),
            Word::Unknown => "",
        }
    }

    /// True when it may be an option, or no word at all. Names of files that a pattern finds count
    /// as names.
    pub(crate) fn may_be_option(&self) -> bool {
        match self {
            Word::Partly { start, .. } => start.is_empty() || start.starts_with('-'),
            // A number alone may also be empty.
            Word::Numbered(text) => text.starts_with('-') || text.chars().all(|it| it == '0'),
            Word::Unknown => true,
            known => known.start().starts_with('-'),
        }
    }
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// The beginning of a pattern.
    Pattern,
    /// In an assignment, the shell expands the `~` that follows.
    Tilde,
    /// The value of a variable that the script has set.
    Variable(String, Quoted),
    /// Every element of an array.
    Array(String),
    /// The indices of an array.
    Indices,
    /// A folder from the environment.
    Folder(String, Quoted),
    /// The path of a program: the output of `which`.
    Program(String),
    /// A new file or folder: the output of `mktemp`.
    Made(Quoted),
    /// An absolute path without blanks.
    Path,
    Number,
    /// Unknown.
    Hidden(Quoted),
    /// The value of a variable outside quotes: blanks in it separate words.
    Split(String),
}

/// Whether a part of a word is in double quotes, so that it stays one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoted {
    No,
    Double,
}

/// A word that is being parsed.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) pieces: Vec<Piece>,
    /// Where a pattern begins.
    pattern: Option<usize>,
    brace: Option<usize>,
    /// Braces expand it to several words.
    pub(super) several: bool,
    expanded: bool,
    pub(super) quoted: bool,
    /// How much of the text comes before the first quote or expansion; `None` without one.
    unquoted: Option<usize>,
    /// Where the first `=` is, if it is not quoted.
    equals: Option<usize>,
    /// There is a word, though it may be empty.
    pub(super) begun: bool,
}

impl Draft {
    /// Adds an unquoted character.
    pub(super) fn plain(&mut self, char: char) {
        self.begun = true;
        match char {
            '*' | '?' | '[' if self.pattern.is_none() => {
                self.pattern = Some(self.text.len());
                self.pieces.push(Piece::Pattern);
            }
            '~' if self.text.is_empty() && !self.expanded => {
                self.pattern = Some(0);
                self.pieces.push(Piece::Pattern);
            }
            '~' if self.text.contains('=') && self.text.ends_with(['=', ':']) => {
                self.pieces.push(Piece::Tilde);
            }
            '=' if !self.text.contains('=') => self.equals = Some(self.text.len()),
            '{' => {
                self.brace.get_or_insert(self.text.len());
            }
            ',' if self.brace.is_some() => self.several = true,
            '.' if self.brace.is_some() && self.text.ends_with('.') => self.several = true,
            _ => {}
        }
        self.push(char);
    }

    /// Adds a quoted character.
    pub(super) fn protected(&mut self, char: char) {
        self.quote();
        self.push(char);
    }

    fn push(&mut self, char: char) {
        self.text.push(char);
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(char),
            _ => self.pieces.push(Piece::Text(char.to_string())),
        }
    }

    pub(super) fn quote(&mut self) {
        self.begun = true;
        self.quoted = true;
        self.unquoted.get_or_insert(self.text.len());
    }

    pub(super) fn expansion(&mut self, piece: Piece) {
        self.begun = true;
        self.expanded = true;
        self.unquoted.get_or_insert(self.text.len());
        self.pieces.push(piece);
    }

    /// Returns the text so far, if it is literal and unquoted.
    pub(super) fn bare(&self) -> Option<&str> {
        (!self.quoted && !self.expanded && !self.several).then_some(self.text.as_str())
    }

    /// Returns the variable that this would set, and its index if it has one.
    pub(super) fn assigned(&self) -> Option<(&str, Option<&str>)> {
        let (name, _) = self.text.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let (plain, index) = match name.split_once('[') {
            Some((plain, rest)) => (plain, Some(rest.strip_suffix(']').unwrap_or(rest))),
            None => (name, None),
        };
        is_variable(plain).then_some((plain, index))
    }

    /// True when the shell itself reads this as an assignment: neither the name of the variable nor the `=` is quoted.
    /// A command such as `export` also accepts others, as arguments.
    pub(super) fn is_assignment(&self) -> bool {
        let Some((name, _)) = self.assigned() else { return false };
        let name = name.len();
        self.equals.is_some() && self.unquoted.is_none_or(|length| length > name)
    }

    /// True when the shell may split this into several words.
    pub(super) fn is_split(&self) -> bool {
        self.pieces.iter().any(|piece| match piece {
            Piece::Variable(_, quoted)
            | Piece::Folder(_, quoted)
            | Piece::Made(quoted)
            | Piece::Hidden(quoted) => *quoted == Quoted::No,
            Piece::Array(_) | Piece::Indices => true,
            _ => false,
        })
    }

    /// Returns the text after the first `=`: the value of an assignment.
    pub(super) fn value(&self) -> Draft {
        let mut pieces = self.pieces.iter();
        let mut rest = Vec::new();
        for piece in pieces.by_ref() {
            if let Piece::Text(text) = piece
                && let Some((_, value)) = text.split_once('=')
            {
                rest.extend((!value.is_empty()).then(|| Piece::Text(value.to_owned())));
                break;
            }
        }
        // The shell does not expand a value to paths.
        rest.extend(pieces.filter(|piece| **piece != Piece::Pattern).cloned());
        let rest = with_tildes(rest);
        let text = self.text.split_once('=').map_or("", |(_, value)| value);
        Draft {
            text: text.to_owned(),
            expanded: rest.iter().any(|piece| !matches!(piece, Piece::Text(_))),
            pieces: rest,
            begun: true,
            ..Draft::default()
        }
    }

    /// Returns this text as a literal word.
    pub(super) fn of(text: &str) -> Draft {
        let mut draft = Draft::default();
        text.chars().for_each(|char| draft.protected(char));
        draft
    }

    /// Returns the word as it is where the shell neither splits it nor expands it to paths.
    pub(super) fn whole(mut self) -> Draft {
        self.pieces.retain(|piece| *piece != Piece::Pattern);
        self.pattern = None;
        self.expanded |= self.pieces.contains(&Piece::Tilde);
        self.pieces = with_tildes(self.pieces);
        for piece in &mut self.pieces {
            match piece {
                Piece::Variable(_, quoted)
                | Piece::Folder(_, quoted)
                | Piece::Made(quoted)
                | Piece::Hidden(quoted) => *quoted = Quoted::Double,
                Piece::Array(_) => *piece = Piece::Hidden(Quoted::Double),
                _ => {}
            }
        }
        self
    }

    /// True when it begins with a `~` that the shell expands.
    pub(super) fn is_home(&self) -> bool {
        self.pattern == Some(0) && self.text.starts_with('~')
    }

    /// Returns what is known of the word alone; `None` if it depends on an expansion.
    pub(super) fn word(&self) -> Option<Word> {
        if self.several {
            return Some(Word::Unknown);
        }
        if self.expanded {
            return None;
        }
        let text = || self.text.clone();
        Some(match self.pattern {
            None => Word::Exact(text()),
            // A single `[` is the program of that name, or an argument of it.
            Some(at) if self.text[at..].starts_with('[') && !self.text.contains(']') => {
                match self.text[at..].contains(['*', '?']) {
                    true => Word::Unknown,
                    false => Word::Exact(text()),
                }
            }
            // `~/` becomes the home folder; `~name` and `~+` something else.
            Some(0) if self.text == "~" => Word::Begins("/".into()),
            Some(0) if self.text.starts_with("~/") => match self.text.contains(['*', '?', '[']) {
                true => Word::Begins("/".into()),
                false => Word::Partly { start: "/".into(), end: self.text[1..].to_owned() },
            },
            Some(0) if self.text.starts_with('~') => Word::Unknown,
            Some(at) => Word::Begins(self.text[..at].to_owned()),
        })
    }
}

/// Replaces each `~` that the shell expands: by the home folder, or by something unknown.
fn with_tildes(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut all = Vec::new();
    let mut pieces = pieces.into_iter().peekable();
    while let Some(piece) = pieces.next() {
        if piece != Piece::Tilde {
            all.push(piece);
            continue;
        }
        let Some(Piece::Text(text)) = pieces.next() else { continue };
        let rest = text.strip_prefix('~').unwrap_or(&text);
        let is_home = match rest.is_empty() {
            true => pieces.peek().is_none(),
            false => rest.starts_with(['/', ':']),
        };
        all.push(match is_home {
            true => Piece::Folder("HOME".to_owned(), Quoted::Double),
            false => Piece::Hidden(Quoted::Double),
        });
        all.extend((!rest.is_empty()).then(|| Piece::Text(rest.to_owned())));
    }
    all
}

/// True for a name that a variable can have.
pub(super) fn is_variable(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
