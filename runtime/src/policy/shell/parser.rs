//! The grammar: lists, pipelines, simple commands, redirections, words. Compound commands are split into their simple
//! commands; their keywords only separate.

use super::joined::Joined;
use super::names::{DECLARING, integers, is_calculated};
use super::scope::{Between, Scope};
use super::values::{Value, Values, variables};
use super::word::{Draft, Word, is_variable};
use super::{Script, ScriptContext, Setting};
use std::collections::{BTreeSet, HashSet};

/// Where a list ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    End,
    Parenthesis,
    /// `;;`, or `esac`, which is not consumed.
    Clause,
}

/// The kind of the last token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Command,
    /// Nothing need follow.
    Separator,
    /// A command must follow.
    Operator,
}

/// The rest of the text cannot be parsed.
pub(super) struct Lost;

pub(super) type Step<T> = Result<T, Lost>;

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    joined: &'t Joined<'t>,
    /// Removed line ends that the shell keeps. If there are any, the text must be read again with them.
    pub(super) kept: BTreeSet<usize>,
    /// How often texts may still be read again.
    pub(super) readings: usize,
    pub(super) at: usize,
    pub(super) depth: u32,
    pub(super) place: ScriptContext,
    pub(super) script: Script,
    /// Its simple commands, before variables are replaced by values.
    pub(super) drafts: Vec<Vec<Draft>>,
    pub(super) values: Values,
    pub(super) scope: Scope,
    /// Variables whose values the shell evaluates as arithmetic.
    pub(super) evaluated: Vec<String>,
    /// Assignments: the variable, its value, and whether programs see it.
    pub(super) settings: Vec<(String, Value, bool)>,
    pub(super) functions: HashSet<String>,
    /// How many commands ended without a pipe.
    pub(super) ended: usize,
    /// Inside `[[ ]]`, where parentheses separate words.
    pub(super) in_test: bool,
    /// Here-documents that begin after this line.
    pub(super) pending: Vec<HereDocument>,
}

/// A here-document, the input of a command.
pub(super) struct HereDocument {
    end: String,
    /// Tabs may precede its end.
    is_indented: bool,
    /// The shell expands variables in it.
    is_expanded: bool,
}

impl HereDocument {
    /// Returns the line as the shell compares it with the end.
    fn bare<'l>(&self, line: &'l str) -> &'l str {
        if self.is_indented { line.trim_start_matches('\t') } else { line }
    }
}

/// Words at the beginning of a command that are not commands.
const KEYWORDS: [&str; 13] = [
    "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "{", "}", "function",
    "coproc",
];

/// Programs with partly known output: a function must not replace them.
pub(crate) const TELLING: [&str; 12] = [
    "wc", "nproc", "date", "seq", "grep", "mktemp", "pwd", "git", "which", "command", "type", "cd",
];

impl<'t> Parser<'t> {
    pub(super) fn new(joined: &'t Joined<'t>, depth: u32, place: ScriptContext) -> Self {
        Parser {
            text: &joined.text,
            joined,
            kept: BTreeSet::new(),
            readings: 0,
            at: 0,
            depth,
            place,
            script: Script::default(),
            drafts: Vec::new(),
            values: Values::new(place),
            scope: Scope::new(),
            evaluated: Vec::new(),
            settings: Vec::new(),
            functions: HashSet::new(),
            ended: 0,
            in_test: false,
            pending: Vec::new(),
        }
    }

    /// Parses the whole text.
    pub(super) fn all(&mut self) {
        if self.list(Until::End).is_err() {
            self.script.note_unclear("it is not understood");
        }
    }

    /// Replaces variables by their values.
    pub(super) fn finish(mut self) -> Script {
        for command in &self.drafts {
            let is_function = |draft: &Draft| self.functions.contains(&draft.text);
            let passes_on = |draft: &Draft| ["command", "builtin"].contains(&draft.text.as_str());
            let others = command.first().is_some_and(|head| is_function(head) || passes_on(head));
            self.values.look_at(command, others);
        }
        self.values.settle();
        if !self.evaluated.iter().all(|name| self.values.is_number(name)) {
            self.script.note_unclear("it evaluates a variable");
        }
        for command in std::mem::take(&mut self.drafts) {
            let ways = self.values.commands(&command);
            self.script.commands.extend(ways);
            if self.script.commands.len() > 4 * super::MOST {
                self.script.note_unclear("it has too many commands to be judged");
                break;
            }
        }
        self.script.commands.retain(|words| !words.is_empty());
        let mut integers = self.script.commands.iter().flat_map(|words| integers(words));
        if !integers.all(|name| self.values.is_number(name)) {
            self.script.note_unclear("it evaluates a variable");
        }
        for (name, value, is_exported) in self.settings {
            for value in self.values.given(&value) {
                let (name, is_exported) = (name.clone(), is_exported);
                self.script.settings.push(Setting { name, value, is_exported });
            }
        }
        self.script
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

    /// Keeps the line ends that were removed between two positions. Fails if there are any: then the rest of the text
    /// is not what the shell sees.
    pub(super) fn keep_lines(&mut self, from: usize, to: usize) -> Step<()> {
        self.keep(self.joined.removed(from, to))
    }

    fn keep(&mut self, removed: Vec<usize>) -> Step<()> {
        let is_complete = removed.is_empty();
        self.kept.extend(removed);
        if is_complete { Ok(()) } else { Err(Lost) }
    }

    /// Skips blanks and comments.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('#') => {
                    let begin = self.at + 1;
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                    // The comment ends with the first line; the shell may join the others.
                    let first = self.joined.removed(begin, self.at).into_iter().take(1).collect();
                    if self.keep(first).is_err() {
                        self.at = self.text.len();
                    }
                }
                _ => return,
            }
        }
    }

    /// Parses commands up to the end of their list, and consumes that end.
    pub(super) fn list(&mut self, until: Until) -> Step<()> {
        let mut last = Last::Separator;
        loop {
            self.skip_blanks();
            if self.eat("\n") {
                self.here_documents()?;
                // After an assignment that failed, the shell goes on with the next line. There, a variable may still
                // have the value that the script outside has set.
                if self.place == ScriptContext::Command {
                    self.scope.forget();
                }
                if last == Last::Command {
                    last = Last::Separator;
                    self.ended += 1;
                    self.scope.between(Between::End);
                }
                continue;
            }
            if until == Until::Clause && last != Last::Operator {
                if self.eat(";;&") || self.eat(";;") || self.eat(";&") {
                    return Ok(());
                }
                if last == Last::Separator && self.is_at_word("esac") {
                    return Ok(());
                }
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
                Some('(') if self.eat("((") => {
                    self.script.note_beyond("it calculates");
                    self.arithmetic()?;
                    last = Last::Command;
                }
                Some('(') => {
                    self.script.note_beyond("it has a subshell");
                    self.at += 1;
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

    /// Parses a list inside another command.
    pub(super) fn below(&mut self, until: Until) -> Step<()> {
        self.depth += 1;
        if self.depth > super::DEEPEST {
            return Err(Lost);
        }
        self.scope.open();
        let read = self.list(until);
        self.scope.close();
        self.depth -= 1;
        read
    }

    /// True when the next word is exactly `word`.
    pub(super) fn is_at_word(&self, word: &str) -> bool {
        let rest = self.rest().strip_prefix(word);
        rest.is_some_and(|it| {
            it.is_empty() || it.starts_with([' ', '\t', '\n', ';', '&', '|', ')', '<', '>'])
        })
    }

    fn separator(&mut self) -> Step<Last> {
        if self.rest().starts_with(";;") || self.rest().starts_with(";&") {
            return Err(Lost);
        }
        const OPERATORS: [(&str, Between); 4] = [
            ("&&", Between::And),
            ("||", Between::Or),
            ("|&", Between::Pipe),
            ("|", Between::Pipe),
        ];
        for (operator, between) in OPERATORS {
            if self.eat(operator) {
                self.ended += usize::from(between != Between::Pipe);
                self.scope.between(between);
                return Ok(Last::Operator);
            }
        }
        self.ended += 1;
        match self.eat(";") {
            true => self.scope.between(Between::End),
            false => {
                self.at += 1;
                self.script.note_beyond("it leaves something running in the background");
                self.scope.between(Between::Background);
            }
        }
        Ok(Last::Separator)
    }

    /// Parses one simple command, with its assignments and redirections.
    fn simple(&mut self) -> Step<()> {
        let mut words: Vec<Draft> = Vec::new();
        // The indexes of its assignments, with whether each sets the whole variable; whether the command consists only
        // of them.
        let (mut set, mut is_plain): (Vec<(usize, bool)>, bool) = (Vec::new(), true);
        loop {
            self.skip_blanks();
            if self.redirection()? {
                is_plain = false;
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')' | '&') => break,
                Some('(') if words.is_empty() => break,
                Some('(') if words.len() == 1 => {
                    // A function: its body is parsed like the rest.
                    self.at += 1;
                    self.skip_blanks();
                    if !self.eat(")") {
                        return Err(Lost);
                    }
                    let name = words.remove(0).text;
                    self.define(name)?;
                    break;
                }
                Some('(') => return Err(Lost),
                Some(_) => {}
            }
            let begin = self.at;
            let mut draft = self.word()?;
            // `2>` and `{name}>`.
            if let Some(bare) = draft.bare()
                && self.peek().is_some_and(|next| matches!(next, '<' | '>'))
                && (bare.bytes().all(|byte| byte.is_ascii_digit()) || bare.starts_with('{'))
            {
                if let Some(named) = bare.strip_prefix('{') {
                    self.script.note_beyond("it opens a file");
                    match named.strip_suffix('}').filter(|name| is_variable(name)) {
                        Some(name) => self.values.add(name, Value::Unknown),
                        // The index of an array.
                        None => self.script.note_unclear("it evaluates an expression"),
                    }
                }
                match self.redirection()? {
                    true => continue,
                    false => return Err(Lost),
                }
            }
            let declares =
                words.first().and_then(Draft::bare).is_some_and(|it| DECLARING.contains(&it));
            let is_assignment = draft.is_assignment();
            if is_assignment && words.is_empty() || declares && draft.assigned().is_some() {
                self.script.note_beyond("it sets a variable");
                // The command gets the words that the shell makes of it.
                if !is_assignment && draft.is_split() {
                    self.script.note_unclear("it is not clear which variables it sets");
                }
                self.assign(&draft, begin)?;
                // An element of an array leaves the others as they are.
                let is_whole = draft.assigned().is_some_and(|(_, index)| index.is_none());
                set.push((self.settings.len() - 1, is_whole));
                if declares {
                    words.push(draft.whole());
                }
                continue;
            }
            if declares {
                self.declare(&words[0].text, &draft);
                draft = if draft.text.contains('=') { draft.whole() } else { draft };
            }
            if words.is_empty() && self.before_command(&draft)? {
                continue;
            }
            words.push(draft);
        }
        let declares = words.first().is_some_and(|head| DECLARING.contains(&head.text.as_str()));
        // Such a command may fail. Then the variable keeps its value, which may come from outside.
        let prints =
            |word: &Draft| word.text.starts_with('-') && word.text.contains(['p', 'f', 'F']);
        let is_local = words.first().is_some_and(|head| head.text == "local");
        let sets = self.place == ScriptContext::Call
            && !words.iter().any(prints)
            && !(is_local && self.functions.is_empty());
        let is_exported = !words.is_empty();
        // An `IFS` that is set only for `read` splits nothing else.
        let reads = words.first().is_some_and(|it| ["read", "mapfile"].contains(&&*it.text));
        for (at, is_whole) in set {
            let (name, _, exported) = &mut self.settings[at];
            *exported = is_exported;
            if name == "IFS" && !reads {
                self.values.lose();
            }
            if is_plain && is_whole && (words.is_empty() || declares && sets) {
                self.scope.set(name);
            }
        }
        if !words.is_empty() {
            self.drafts.push(words);
            if self.drafts.len() > super::MOST {
                self.script.note_unclear("it has too many commands to be judged");
                return Err(Lost);
            }
        }
        Ok(())
    }

    /// Notes a function after its name and parentheses.
    fn define(&mut self, name: String) -> Step<()> {
        self.script.note_beyond("it defines a function");
        // The shell calls it for every unknown command.
        if name == "command_not_found_handle" {
            self.script.note_unclear("it decides what unknown commands run");
        }
        if TELLING.contains(&name.as_str()) {
            self.script.note_unclear("a function takes the place of a program");
        }
        self.functions.insert(name);
        match self.rest().trim_start().starts_with(['{', '(']) {
            true => Ok(()),
            false => Err(Lost),
        }
    }

    /// Notes an argument of `declare` or a similar command without a value.
    fn declare(&mut self, command: &str, draft: &Draft) {
        match draft.bare() {
            // A reference to another variable, or a value whose case changes when it is set.
            Some(option) if option.starts_with(['-', '+']) => {
                if option.contains(['n', 'l', 'u', 'c']) {
                    self.values.lose();
                }
                self.values.has_maps |= option.contains('A');
            }
            // The variable becomes empty.
            Some(name) if ["export", "readonly"].contains(&command) || !is_variable(name) => {}
            Some(name) => self.values.add(name, Value::Text(Draft::default())),
            None => {
                self.values.lose();
                // The unknown name may be any name in the text.
                if ["PS4", "BASH_ENV"].iter().any(|name| self.text.contains(name)) {
                    self.script.note_unclear("it sets a variable that decides what runs");
                }
            }
        }
    }

    /// Notes the value of the assignment `draft`, which begins at `begin`; parses an array first.
    fn assign(&mut self, draft: &Draft, begin: usize) -> Step<()> {
        let (name, index) = draft.assigned().ok_or(Lost)?;
        if index.is_some() {
            let raw = &self.text[begin..self.at];
            let raw = raw.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
            // In any other form, the beginning of the value is unknown.
            let is_plain = |after: &str| after.starts_with('=') || after.starts_with("+=");
            let index = raw.filter(|(index, after)| !index.contains('=') && is_plain(after));
            self.evaluate(index.map_or("[", |(index, _)| index));
        }
        let adds = draft.text.split('=').next().is_some_and(|name| name.ends_with('+'));
        // The braces become several words before `declare` runs.
        if draft.several {
            self.values.lose();
        }
        let value = match self.eat("(") {
            true => {
                let elements = self.array()?;
                // Anything else would go on with the word.
                if !self.peek().is_none_or(|next| " \t\n;&|)".contains(next)) {
                    return Err(Lost);
                }
                elements.map_or(Value::Unknown, Value::Array)
            }
            false => Value::Text(draft.value()),
        };
        if name != "IFS" {
            let value = match &value {
                Value::Text(draft) if adds => Value::Added(draft.clone()),
                value => value.clone(),
            };
            self.values.add(name, value);
        }
        self.settings.push((name.to_owned(), value, false));
        Ok(())
    }

    /// Parses the elements of an array, up to its end. Returns `None` if some have an index: then their order is unknown,
    /// and one may replace another.
    fn array(&mut self) -> Step<Option<Vec<Draft>>> {
        let (mut elements, mut is_plain) = (Vec::new(), true);
        loop {
            self.skip_blanks();
            // The shell may read a document after a line.
            if self.pending.is_empty() && self.eat("\n") {
                continue;
            }
            if self.eat(")") {
                return Ok(is_plain.then_some(elements));
            }
            let begin = self.at;
            let draft = self.word()?;
            if !draft.begun {
                return Err(Lost);
            }
            // `[index]=value`, `[index]+=value`
            if let Some(rest) = self.text[begin..self.at].strip_prefix('[') {
                is_plain = false;
                let index = rest.split_once("]=").or_else(|| rest.split_once("]+="));
                self.evaluate(index.map_or("", |(index, _)| index));
            }
            elements.push(draft);
        }
    }

    /// Notes that the shell evaluates `expression` as arithmetic. For an index in it, the shell would run the commands
    /// in its value.
    pub(super) fn evaluate(&mut self, expression: &str) {
        match variables(expression) {
            Some(names)
                if self.place == ScriptContext::Call
                    || names.iter().all(|name| self.scope.has(name) || is_calculated(name)) =>
            {
                self.evaluated.extend(names);
            }
            _ => self.script.note_unclear("it evaluates an expression"),
        }
    }

    /// True when `draft` comes before a command, and is not its name.
    fn before_command(&mut self, draft: &Draft) -> Step<bool> {
        let Some(bare) = draft.bare() else { return Ok(false) };
        match bare {
            "!" => {
                self.script.note_beyond("it turns a result around");
                return Ok(true);
            }
            "time" => {
                for option in ["-p", "--"] {
                    self.skip_blanks();
                    if self.is_at_word(option) {
                        self.at += option.len();
                    }
                }
                return Ok(true);
            }
            "select" | "esac" => return Err(Lost),
            "case" => {
                self.script.note_beyond("it has a case");
                self.case()?;
                return Ok(true);
            }
            "for" => {
                self.script.note_beyond("it has a loop");
                self.loop_head()?;
                return Ok(true);
            }
            "[[" => {
                self.script.note_beyond("it has a [[ ]] test");
                self.test()?;
                return Ok(true);
            }
            keyword if KEYWORDS.contains(&keyword) => {}
            _ => return Ok(false),
        }
        self.script.note_beyond("it is more than a list of commands");
        match bare {
            "if" | "while" | "until" | "{" => self.scope.open(),
            "then" => self.scope.begin_branch(),
            "elif" => self.scope.another_branch(),
            "else" => self.scope.last_branch(),
            "fi" | "done" | "}" => self.scope.close(),
            "coproc" => self.script.note_unclear("it starts a coprocess"),
            "function" => {
                self.skip_blanks();
                let name = self.word()?.text;
                self.skip_blanks();
                if self.eat("(") {
                    self.skip_blanks();
                    if !self.eat(")") {
                        return Err(Lost);
                    }
                }
                self.define(name)?;
            }
            _ => {}
        }
        Ok(true)
    }

    /// Parses a redirection, and returns true if there was one.
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
        let target = draft.word().unwrap_or(Word::Unknown);
        let is_descriptor = |text: &str| {
            let number = text.strip_suffix('-').unwrap_or(text);
            text == "-" || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        match (operator, target.exact()) {
            ("<<" | "<<-", Some(end)) => {
                self.script.note_beyond("it has a text of several lines as its input");
                let (end, is_indented) = (end.to_owned(), operator == "<<-");
                self.pending.push(HereDocument { end, is_indented, is_expanded: expands });
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

    /// Parses the here-documents of the line that has just ended.
    fn here_documents(&mut self) -> Step<()> {
        for document in std::mem::take(&mut self.pending) {
            if !document.is_expanded {
                let is_end = |line: &str| document.bare(line) == document.end;
                self.keep(self.joined.removed_from_lines(self.at, is_end))?;
            }
            let mut body = String::new();
            loop {
                if self.rest().is_empty() {
                    return Err(Lost);
                }
                let line = self.rest().split('\n').next().unwrap_or_default();
                self.at = (self.at + line.len() + 1).min(self.text.len());
                let bare = document.bare(line);
                if bare == document.end {
                    break;
                }
                // In a substitution, the shell may end the document here and go on with the rest of the line.
                if self.depth > 0 && bare.starts_with(&document.end) {
                    return Err(Lost);
                }
                body.push_str(line);
                body.push('\n');
            }
            if document.is_expanded {
                self.expanded(&body)?;
            }
        }
        Ok(())
    }
}
