//! Words of a command: what is known of them before the shell expands them.

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// The program sees exactly this.
    Exact(String),
    /// The shell makes paths of it that begin like this: a pattern, or `~/`.
    Begins(String),
    /// Only the shell knows: a variable, a substitution.
    Unknown,
}

impl Word {
    /// What the program sees, if that is known.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self {
            Word::Exact(text) => Some(text),
            Word::Begins(_) | Word::Unknown => None,
        }
    }
}

/// A word while it is read.
#[derive(Default)]
pub(super) struct Draft {
    text: String,
    /// Where a pattern begins.
    pattern: Option<usize>,
    brace: Option<usize>,
    unknown: bool,
    pub(super) quoted: bool,
    /// A word is there, though it may be empty.
    pub(super) begun: bool,
}

impl Draft {
    /// A character as it stands.
    pub(super) fn plain(&mut self, char: char) {
        self.begun = true;
        match char {
            '*' | '?' | '[' => {
                self.pattern.get_or_insert(self.text.len());
            }
            '~' if self.text.is_empty() => {
                self.pattern.get_or_insert(0);
            }
            '{' => {
                self.brace.get_or_insert(self.text.len());
            }
            ',' if self.brace.is_some() => self.unknown = true,
            '.' if self.brace.is_some() && self.text.ends_with('.') => self.unknown = true,
            _ => {}
        }
        self.text.push(char);
    }

    /// A character that a quote protects.
    pub(super) fn protected(&mut self, char: char) {
        self.begun = true;
        self.quoted = true;
        self.text.push(char);
    }

    pub(super) fn quote(&mut self) {
        self.begun = true;
        self.quoted = true;
    }

    pub(super) fn expansion(&mut self) {
        self.begun = true;
        self.unknown = true;
    }

    /// The text so far, if it is as it stands there.
    pub(super) fn bare(&self) -> Option<&str> {
        (!self.quoted && !self.unknown).then_some(self.text.as_str())
    }

    /// The variable that this would set, and whether it is a plain one.
    pub(super) fn assigned(&self) -> Option<(&str, bool)> {
        let (name, _) = self.text.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let (plain, index) = match name.split_once('[') {
            Some((plain, rest)) => (plain, Some(rest)),
            None => (name, None),
        };
        let begins = plain.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
        let is_name = begins && plain.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
        is_name.then_some((plain, index.is_none()))
    }

    pub(super) fn finish(self) -> Word {
        if self.unknown {
            return Word::Unknown;
        }
        match self.pattern {
            None => Word::Exact(self.text),
            // A lone `[` is the program of that name, or an argument of it.
            Some(at) if self.text[at..].starts_with('[') && !self.text.contains(']') => {
                match self.text[at..].contains(['*', '?']) {
                    true => Word::Unknown,
                    false => Word::Exact(self.text),
                }
            }
            // `~/` becomes the home folder; `~name` and `~+` something else.
            Some(0) if self.text == "~" || self.text.starts_with("~/") => Word::Begins("/".into()),
            Some(0) => Word::Unknown,
            Some(at) => Word::Begins(self.text[..at].to_owned()),
        }
    }
}
