//! Functions that run their arguments, and the calls of functions.

use super::ScriptContext;
use super::joined::Joined;
use super::parser::Parser;
use super::word::{Draft, Piece, Word};
use std::collections::BTreeSet;

/// Why a call of a function is unclear.
const UNCLEAR: &str = "a function that runs its arguments may be called in another way";

/// Commands of the shell that change the arguments, or run functions.
const RUNNING: [&str; 9] =
    ["set", "eval", "trap", "alias", "export", "declare", "typeset", "command", "builtin"];

impl Parser<'_> {
    /// Resolves functions that run their arguments, by the arguments of their calls. Returns whether there are any.
    pub(super) fn answer_arguments(&mut self) -> bool {
        let is_answered = |command: &Vec<Draft>| {
            let pieces = command.first().map(|head| head.pieces.as_slice());
            matches!(pieces, Some([Piece::Arguments | Piece::Argument]))
        };
        if self.place == ScriptContext::Command || !self.drafts.iter().any(is_answered) {
            return false;
        }
        let (asking, commands): (Vec<_>, Vec<_>) = self.drafts.drain(..).partition(is_answered);
        self.drafts = commands;
        // Without arguments, the word after them is the command.
        for asked in &asking {
            let is_nothing = |draft: &&Draft| matches!(*draft.pieces, [Piece::Arguments]);
            let mut rest = asked[asked.iter().take_while(is_nothing).count()..].to_vec();
            if rest.len() < asked.len() && !rest.is_empty() {
                rest[0].quote();
                self.drafts.push(rest);
            }
        }
        let mut answers = self.answers(&self.drafts, &asking);
        // An argument may be code with calls.
        let codes: Vec<_> = self.drafts.iter().chain(&answers).cloned().collect();
        for command in &codes {
            match self.calls_in_code(command) {
                Some(calls) => answers.extend(self.answers(&calls, &asking)),
                None => self.script.note_unclear(UNCLEAR),
            }
        }
        // A function that adds arguments may be called with more than the words of a call.
        let adds = asking.iter().any(|asked| asked.len() > 1);
        let calls = |answer: &Vec<Draft>| self.functions.contains(&answer[0].text);
        if answers.len() > super::MOST || adds && answers.iter().any(calls) {
            self.script.note_unclear(UNCLEAR);
        }
        answers.truncate(super::MOST);
        self.drafts.extend(answers);
        true
    }

    /// Returns what `asking`, the commands that are arguments, run for these calls.
    fn answers(&self, calls: &[Vec<Draft>], asking: &[Vec<Draft>]) -> Vec<Vec<Draft>> {
        let mut answers = Vec::new();
        for command in calls {
            let Some((head, arguments)) = command.split_first() else { continue };
            // An unknown command may be `set`.
            let may_set = ["set", "command", "builtin"].contains(&head.text.as_str())
                || head.word().is_none();
            if !self.functions.contains(&head.text) && !may_set {
                continue;
            }
            for (at, asked) in
                (0..arguments.len()).flat_map(|at| asking.iter().map(move |it| (at, it)))
            {
                let end = match asked[0].pieces[0] {
                    Piece::Argument => at + 1,
                    _ => arguments.len(),
                };
                let mut answer = [&arguments[at..end], &asked[1..]].concat();
                // The parser has not parsed it as a command.
                answer[0].quote();
                answers.push(answer);
            }
        }
        answers
    }

    /// Returns the commands in the code that `command` is given; `None` if it may call functions in another way.
    fn calls_in_code(&self, command: &[Draft]) -> Option<Vec<Vec<Draft>>> {
        let skipped = ["command", "builtin", "-p", "--"];
        let is_skipped = |draft: &&Draft| skipped.contains(&draft.text.as_str());
        let command = &command[command.iter().take_while(is_skipped).count()..];
        let Some((head, arguments)) = command.split_first() else { return Some(Vec::new()) };
        let has = |letters: &[char]| {
            let is_given = |draft: &Draft| match draft.word() {
                Some(Word::Exact(text)) => {
                    text.starts_with(['-', '+']) && text.contains(letters) || text == "allexport"
                }
                // An unknown word may be an option, unless it begins with something else.
                _ => match draft.pieces.first() {
                    Some(Piece::Text(text)) => draft.several || text.starts_with(['-', '+']),
                    _ => true,
                },
            };
            arguments.iter().any(is_given)
        };
        let texts = || -> Option<Vec<String>> {
            let text = |draft: &Draft| draft.word().and_then(|it| it.exact().map(str::to_owned));
            arguments.iter().map(text).collect()
        };
        match head.text.as_str() {
            "eval" => {
                let texts = texts()?;
                let is_end = texts.first().is_some_and(|text| text == "--");
                self.commands_of(&texts[usize::from(is_end)..].join(" "))
            }
            "trap" => {
                let calls: Option<Vec<_>> =
                    texts()?.iter().map(|it| self.commands_of(it)).collect();
                Some(calls?.concat())
            }
            "alias" if !arguments.is_empty() => None,
            // Other shells get the functions.
            "export" | "declare" | "typeset" if has(&['f']) => None,
            "set" if has(&['a']) => None,
            _ => Some(Vec::new()),
        }
    }

    /// Returns the commands of a text; `None` if it may run others, or is not understood.
    fn commands_of(&self, code: &str) -> Option<Vec<Vec<Draft>>> {
        let joined = Joined::new(code, &BTreeSet::new());
        let mut parser = Parser::new(&joined, self.depth + 1, self.place);
        parser.all();
        let is_known = |command: &Vec<Draft>| {
            let head = command.first().and_then(Draft::word);
            let text = head.as_ref().and_then(Word::exact);
            text.is_some_and(|text| !RUNNING[1..].contains(&text))
        };
        let is_plain = parser.kept.is_empty() && parser.script.unclear.is_none();
        (is_plain && parser.drafts.iter().all(is_known)).then_some(parser.drafts)
    }

    /// Notes that a variable or a substitution may name a function that runs its arguments.
    pub(super) fn note_hidden_call(&mut self, command: &[Draft], ways: &[Vec<Word>]) {
        if command.first().is_none_or(|head| head.word().is_some()) {
            return;
        }
        let is_call = |words: &Vec<Word>| {
            let head = words.first().and_then(Word::exact);
            head.is_some_and(|head| self.functions.contains(head) || RUNNING.contains(&head))
        };
        if ways.iter().any(is_call) {
            self.script.note_unclear(UNCLEAR);
        }
    }
}
