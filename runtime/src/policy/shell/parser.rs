//! The grammar: lists, pipelines, simple commands, redirections, words. Compound commands are taken
//! apart into the simple ones within; their keywords only separate.

use super::Script;
use super::word::{Draft, Word};

/// Where a list ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    End,
    Parenthesis,
}

/// What was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Command,
    /// After which nothing need come.
    Separator,
    /// After which a command has to come.
    Operator,
}

/// Nothing more can be told of the text.
pub(super) struct Lost;

pub(super) type Step<T> = Result<T, Lost>;

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) depth: u32,
    pub(super) script: Script,
    /// Texts that begin after this line: their ends, and whether the shell expands them.
    pending: Vec<(String, bool)>,
}

/// Words that stand where a command may begin and are none.
const KEYWORDS: [&str; 14] = [
    "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "{", "}", "function",
    "esac", "coproc",
];

/// Variables that decide which program runs, or what it runs.
const TELLING: [&str; 18] = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "CDPATH",
    "SHELL",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "LESSOPEN",
    "LESSCLOSE",
    "MANPAGER",
    "PYTHONPATH",
    "PERL5OPT",
    "NODE_OPTIONS",
];

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, depth: u32) -> Self {
        Parser { text, at: 0, depth, script: Script::default(), pending: Vec::new() }
    }

    /// Reads everything.
    pub(super) fn all(&mut self) {
        if self.list(Until::End).is_err() {
            self.script.note_unclear("it is not understood");
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    pub(super) fn eat(&mut self, what: &str) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    /// Blanks, continued lines and comments.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.rest().starts_with("\\\n") => self.at += 2,
                Some('#') => {
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.at += end;
                }
                _ => return,
            }
        }
    }

    /// Commands up to the end of what they stand in, which is read too.
    pub(super) fn list(&mut self, until: Until) -> Step<()> {
        let mut last = Last::Separator;
        loop {
            self.skip_blanks();
            if self.eat("\n") {
                self.here_documents()?;
                if last == Last::Command {
                    last = Last::Separator;
                }
                continue;
            }
            match self.peek() {
                None | Some(')') if last == Last::Operator => return Err(Lost),
                None if until == Until::End && self.pending.is_empty() => return Ok(()),
                None => return Err(Lost),
                Some(')') if until == Until::Parenthesis => {
                    self.at += 1;
                    return Ok(());
                }
                Some(')') => return Err(Lost),
                Some('(') => {
                    self.script.note_beyond("it has a subshell");
                    self.at += 1;
                    if self.peek() == Some('(') {
                        return Err(Lost);
                    }
                    self.below(Until::Parenthesis)?;
                    last = Last::Command;
                }
                Some(';' | '&' | '|') if !self.rest().starts_with("&>") => {
                    if last != Last::Command {
                        return Err(Lost);
                    }
                    last = self.separator()?;
                }
                Some(_) => {
                    self.simple()?;
                    last = Last::Command;
                }
            }
        }
    }

    fn below(&mut self, until: Until) -> Step<()> {
        self.depth += 1;
        if self.depth > super::DEEPEST {
            return Err(Lost);
        }
        let read = self.list(until);
        self.depth -= 1;
        read
    }

    fn separator(&mut self) -> Step<Last> {
        if self.rest().starts_with(";;") || self.rest().starts_with(";&") {
            return Err(Lost);
        }
        if self.eat("&&") || self.eat("||") || self.eat("|&") || self.eat("|") {
            return Ok(Last::Operator);
        }
        if !self.eat(";") {
            self.at += 1;
            self.script.note_beyond("it leaves something running in the background");
        }
        Ok(Last::Separator)
    }

    /// One simple command, with what stands around it.
    fn simple(&mut self) -> Step<()> {
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.skip_blanks();
            if self.redirection()? {
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')' | '&') => break,
                Some('(') if words.is_empty() => break,
                Some('(') if words.len() == 1 => {
                    // A function: what it does is read like the rest.
                    self.at += 1;
                    self.skip_blanks();
                    if !self.eat(")") {
                        return Err(Lost);
                    }
                    self.script.note_beyond("it defines a function");
                    words.clear();
                    break;
                }
                Some('(') => return Err(Lost),
                Some(_) => {}
            }
            let draft = self.word()?;
            // `2>` and `{name}>`.
            if let Some(bare) = draft.bare()
                && self.peek().is_some_and(|next| matches!(next, '<' | '>'))
                && (bare.bytes().all(|byte| byte.is_ascii_digit()) || bare.starts_with('{'))
            {
                let is_number = bare.bytes().all(|byte| byte.is_ascii_digit());
                if !is_number {
                    self.script.note_beyond("it opens a file");
                }
                match self.redirection()? {
                    true => continue,
                    false => return Err(Lost),
                }
            }
            if words.is_empty() && self.before_command(&draft)? {
                continue;
            }
            words.push(draft.finish());
        }
        if !words.is_empty() {
            self.script.commands.push(words);
            if self.script.commands.len() > super::MOST {
                self.script.note_unclear("it has too many commands to be judged");
                return Err(Lost);
            }
        }
        Ok(())
    }

    /// True when `draft` stands where a command begins, and is not its name.
    fn before_command(&mut self, draft: &Draft) -> Step<bool> {
        if self.is_assignment(draft) {
            self.script.note_beyond("it sets a variable");
            return Ok(true);
        }
        let Some(bare) = draft.bare() else { return Ok(false) };
        match bare {
            "!" => {
                self.script.note_beyond("it turns a result around");
                Ok(true)
            }
            "time" => {
                self.skip_blanks();
                if self.rest().starts_with("-p ") {
                    self.at += 2;
                }
                Ok(true)
            }
            "case" | "select" | "((" => Err(Lost),
            "for" => {
                self.script.note_beyond("it has a loop");
                self.loop_head()?;
                Ok(true)
            }
            "[[" => {
                self.script.note_beyond("it has a [[ ]] test");
                self.test()?;
                Ok(true)
            }
            keyword if KEYWORDS.contains(&keyword) => {
                self.script.note_beyond("it is more than a list of commands");
                if keyword == "coproc" {
                    self.script.note_unclear("it starts a coprocess");
                }
                if keyword == "function" {
                    self.skip_blanks();
                    self.word()?;
                    self.skip_blanks();
                    if self.eat("(") {
                        self.skip_blanks();
                        if !self.eat(")") {
                            return Err(Lost);
                        }
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// What follows `for`, up to the first separator.
    fn loop_head(&mut self) -> Step<()> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('\n' | ';') => return Ok(()),
                None | Some('(' | ')' | '&' | '|' | '<' | '>') => return Err(Lost),
                Some(_) => {
                    self.word()?;
                }
            }
        }
    }

    /// What follows `[[`, up to `]]`.
    fn test(&mut self) -> Step<()> {
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Err(Lost),
                Some('\n' | '(' | ')' | '&' | '|' | '<' | '>' | ';') => {
                    self.at += 1;
                    continue;
                }
                Some(_) => {}
            }
            let draft = self.word()?;
            if draft.bare() == Some("]]") {
                return Ok(());
            }
            // These evaluate, and an index is evaluated by running what stands in it.
            let counts = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"];
            if draft.bare().is_some_and(|bare| counts.contains(&bare)) {
                self.script.note_unclear("it evaluates an expression");
            }
        }
    }

    fn is_assignment(&mut self, draft: &Draft) -> bool {
        let Some((name, is_plain)) = draft.assigned() else { return false };
        let telling = TELLING.contains(&name)
            || ["LD_", "GIT_", "BASH_FUNC"].iter().any(|prefix| name.starts_with(prefix))
            || !is_plain;
        if telling {
            self.script.note_unclear("it sets a variable that decides what runs");
        }
        true
    }

    /// True when a redirection stands here, which is read.
    fn redirection(&mut self) -> Step<bool> {
        let rest = self.rest();
        if rest.starts_with("<(") || rest.starts_with(">(") {
            return Ok(false);
        }
        const OPERATORS: [&str; 12] =
            ["<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "&>>", "&>", "<", ">"];
        let Some(operator) = OPERATORS.into_iter().find(|it| rest.starts_with(it)) else {
            return Ok(false);
        };
        self.at += operator.len();
        self.skip_blanks();
        let draft = self.word()?;
        if !draft.begun {
            return Err(Lost);
        }
        let expands = !draft.quoted;
        let target = draft.finish();
        let is_descriptor = |text: &str| {
            let number = text.strip_suffix('-').unwrap_or(text);
            text == "-" || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        match (operator, target.exact()) {
            ("<<" | "<<-", Some(end)) => {
                self.script.note_beyond("it has a text of several lines as its input");
                self.pending.push((end.to_owned(), expands));
            }
            ("<<" | "<<-", None) => return Err(Lost),
            ("<<<", _) => self.script.note_beyond("it has a text as its input"),
            (">" | ">>" | ">|" | "&>" | "&>>" | "<" | ">&", Some("/dev/null")) => {}
            (">&" | "<&", Some(text)) if is_descriptor(text) => {}
            ("<", _) => self.script.note_beyond("it takes its input from a file"),
            _ => self.script.note_beyond("it redirects into a file"),
        }
        Ok(true)
    }

    /// The texts that were announced on the line that has just ended.
    fn here_documents(&mut self) -> Step<()> {
        for (end, expands) in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            loop {
                if self.rest().is_empty() {
                    return Err(Lost);
                }
                let line = self.rest().split('\n').next().unwrap_or_default();
                self.at = (self.at + line.len() + 1).min(self.text.len());
                if line.trim_start_matches('\t') == end {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            if expands {
                self.expanded(&body)?;
            }
        }
        Ok(())
    }
}
