//! Parses a bash command: its simple commands, and what else it does. Nothing is run.
//!
//! A rule that *allows* needs a command that consists only of simple commands with known words ([`Script::beyond`] is
//! empty). A rule that *refuses* needs every command that may run; if that is unknown, [`Script::unclear`] says why.

mod compound;
mod joined;
mod names;
mod parser;
mod scope;
mod substitution;
mod values;
mod word;

pub(crate) use names::{is_calculated, is_number, settings};
pub(crate) use parser::TELLING;
pub(crate) use word::Word;

use super::odd::odd;
use joined::{Joined, READINGS};
use parser::Parser;
use std::collections::BTreeSet;

/// The longest command that is read. A longer one is unclear: a limit must not be a way around a rule.
const LONGEST: usize = 16 << 10;
/// The most simple commands.
pub(crate) const MOST: usize = 128;
/// How deep substitutions may nest.
const DEEPEST: u32 = 12;

/// A parsed command.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Its simple commands, including those in substitutions. The order does not matter.
    pub(crate) commands: Vec<Vec<Word>>,
    /// The variables it sets.
    pub(crate) settings: Vec<Setting>,
    /// The first part that is more than a list of simple commands with known words.
    pub(crate) beyond: Option<&'static str>,
    /// Why it is unclear what may run.
    pub(crate) unclear: Option<&'static str>,
}

/// Returns the programs that a command runs, each once, as far as it spells them out; `…` stands for any others.
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

/// A variable assignment.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: Word,
    /// Programs see the variable too.
    pub(crate) is_exported: bool,
}

/// Where a script runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptContext {
    /// In the shell that a call starts.
    Call,
    /// Within another command, which may have set variables for it.
    Command,
}

impl Script {
    /// Reads `text` as bash does.
    pub(crate) fn parse(text: &str) -> Script {
        Script::read(text, 0, ScriptContext::Call)
    }

    /// Parses a script that is an argument of a command.
    pub(crate) fn within(text: &str) -> Script {
        Script::read(text, 0, ScriptContext::Command)
    }

    fn read(text: &str, depth: u32, place: ScriptContext) -> Script {
        if text.len() > LONGEST {
            return Script::not_read("it is too long to be judged");
        }
        if odd(text).is_some() {
            return Script::not_read("it has characters that are not shown");
        }
        if depth > DEEPEST {
            return Script::not_read("it is nested too deep to be judged");
        }
        let mut kept = BTreeSet::new();
        let mut readings = READINGS;
        while readings > 0 {
            let joined = Joined::new(text, &kept);
            let mut parser = Parser::new(&joined, depth, place);
            parser.readings = readings - 1;
            parser.all();
            if parser.kept.is_empty() {
                return parser.finish();
            }
            kept.append(&mut parser.kept);
            readings = parser.readings;
        }
        Script::not_read("it is not understood")
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

    /// Adds the content of an inner script.
    fn absorb(&mut self, inner: Script) {
        self.commands.extend(inner.commands);
        self.settings.extend(inner.settings);
        if let Some(why) = inner.unclear {
            self.note_unclear(why);
        }
    }
}
