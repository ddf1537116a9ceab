//! What a bash command does, as far as its text says: its simple commands, and what else happens.
//!
//! Two readers ask. Whoever would *allow* a command needs it to be nothing but simple commands whose
//! words are known ([`Script::beyond`] is empty). Whoever would *refuse* it needs to see every
//! command that may run; where that cannot be told, [`Script::unclear`] says so. Nothing is run.

mod parser;
mod substitution;
mod word;

pub(crate) use word::Word;

use super::odd::odd;
use parser::Parser;

/// Beyond this a command is not read: a limit must never be a way around a rule.
const LONGEST: usize = 16 << 10;
/// Simple commands, at most.
pub(crate) const MOST: usize = 48;
/// How deep substitutions may nest.
const DEEPEST: u32 = 12;

/// A command, read.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Its simple commands, those within substitutions included, in no order that matters.
    pub(crate) commands: Vec<Vec<Word>>,
    /// The first thing that is more than a list of simple commands with known words.
    pub(crate) beyond: Option<&'static str>,
    /// Why it is not clear what may run.
    pub(crate) unclear: Option<&'static str>,
}

impl Script {
    /// Reads `text` as bash does.
    pub(crate) fn parse(text: &str) -> Script {
        Script::nested(text, 0)
    }

    fn nested(text: &str, depth: u32) -> Script {
        if text.len() > LONGEST {
            return Script::not_read("it is too long to be judged");
        }
        if odd(text).is_some() {
            return Script::not_read("it has characters that are not shown");
        }
        if depth > DEEPEST {
            return Script::not_read("it is nested too deep to be judged");
        }
        let mut parser = Parser::new(text, depth);
        parser.all();
        let mut script = parser.script;
        if script.commands.len() > MOST {
            script.note_unclear("it has too many commands to be judged");
        }
        script
    }

    fn not_read(why: &'static str) -> Script {
        Script { commands: Vec::new(), beyond: Some(why), unclear: Some(why) }
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
        if let Some(why) = inner.unclear {
            self.note_unclear(why);
        }
    }
}
