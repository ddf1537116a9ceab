//! What a bash command does, as far as its text says: its simple commands, and what else happens.
//!
//! Two readers ask. Whoever would *allow* a command needs it to be nothing but simple commands whose
//! words are known ([`Script::beyond`] is empty). Whoever would *refuse* it needs to see every
//! command that may run; where that cannot be told, [`Script::unclear`] says so. Nothing is run.

mod compound;
mod names;
mod parser;
mod scope;
mod substitution;
mod values;
mod word;

pub(crate) use names::{is_calculated, is_number, settings};
pub(crate) use word::Word;

use super::odd::odd;
use parser::Parser;

/// Beyond this a command is not read: a limit must never be a way around a rule.
const LONGEST: usize = 16 << 10;
/// Simple commands, at most.
pub(crate) const MOST: usize = 128;
/// How deep substitutions may nest.
const DEEPEST: u32 = 12;

/// A command, read.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Its simple commands, those within substitutions included, in no order that matters.
    pub(crate) commands: Vec<Vec<Word>>,
    /// The variables it sets.
    pub(crate) settings: Vec<Setting>,
    /// The first thing that is more than a list of simple commands with known words.
    pub(crate) beyond: Option<&'static str>,
    /// Why it is not clear what may run.
    pub(crate) unclear: Option<&'static str>,
}

/// The programs that a command runs, each once, as far as it spells them out; `…` stands for what else
/// it may run.
pub fn programs_in(command: &str) -> Vec<String> {
    let script = Script::parse(command);
    let mut names: Vec<String> = Vec::new();
    let mut is_more = script.unclear.is_some();
    for words in &script.commands {
        match words.first().and_then(Word::exact) {
            Some(name) if names.iter().any(|it| it == name) => {}
            Some(name) => names.push(name.to_owned()),
            None => is_more = true,
        }
    }
    names.extend(is_more.then(|| "…".to_owned()));
    names
}

/// A variable that is set.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: Word,
    /// Programs see it too.
    pub(crate) is_exported: bool,
}

/// Where a script runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the shell that a call starts.
    Call,
    /// Within another command, which may have set variables for it.
    Command,
}

impl Script {
    /// Reads `text` as bash does.
    pub(crate) fn parse(text: &str) -> Script {
        Script::read(text, 0, Place::Call)
    }

    /// The same of a script within a command.
    pub(crate) fn within(text: &str) -> Script {
        Script::read(text, 0, Place::Command)
    }

    fn read(text: &str, depth: u32, place: Place) -> Script {
        if text.len() > LONGEST {
            return Script::not_read("it is too long to be judged");
        }
        if odd(text).is_some() {
            return Script::not_read("it has characters that are not shown");
        }
        if depth > DEEPEST {
            return Script::not_read("it is nested too deep to be judged");
        }
        let mut parser = Parser::new(text, depth, place);
        parser.all();
        parser.finish()
    }

    fn not_read(why: &'static str) -> Script {
        Script { beyond: Some(why), unclear: Some(why), ..Script::default() }
    }

    fn note_beyond(&mut self, what: &'static str) {
        self.beyond.get_or_insert(what);
    }

    fn note_unclear(&mut self, why: &'static str) {
        self.note_beyond(why);
        self.unclear.get_or_insert(why);
    }

    /// Takes over what is within.
    fn absorb(&mut self, inner: Script) {
        self.commands.extend(inner.commands);
        self.settings.extend(inner.settings);
        if let Some(why) = inner.unclear {
            self.note_unclear(why);
        }
    }
}
