//! Words and what the shell replaces in them: quotes, variables, substitutions. Commands in a
//! substitution are parsed like any other.

use super::joined::Joined;
use super::parser::{Lost, Parser, Step, Until};
use super::values::Value;
use super::word::{Draft, Piece, Quoted, Word, is_variable};
use std::collections::BTreeSet;

impl Parser<'_> {
    /// Parses the word that begins here.
    pub(super) fn word(&mut self) -> Step<Draft> {
        let mut draft = Draft::default();
        // In the index of an array, blanks and operators are part of the word.
        let mut index = 0_usize;
        while let Some(char) = self.peek() {
            match char {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '(' | '<' | '>' if index > 0 => {
                    return Err(Lost);
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '(' => {
                    // `a=(…)` is an array, `@(…)` is a pattern.
                    let begins = |bare: &str| is_name(bare) || is_empty_assignment(bare);
                    match draft.begun && !self.in_test && !draft.bare().is_some_and(begins) {
                        true => return Err(Lost),
                        false => break,
                    }
                }
                '<' | '>' => {
                    let process = self.rest()[1..].starts_with('(');
                    if !process {
                        break;
                    }
                    self.at += 2;
                    self.script.note_beyond("it has a process substitution");
                    self.in_brackets(|it| it.below(Until::Parenthesis))?;
                    // The result is the path of a descriptor.
                    draft.expansion(Piece::Hidden(Quoted::Double));
                }
                '\'' => {
                    self.at += 1;
                    draft.quote();
                    self.single(&mut draft)?;
                }
                '"' => {
                    self.at += 1;
                    draft.quote();
                    self.double(&mut draft)?;
                }
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some(char) => draft.protected(char),
                        None => return Err(Lost),
                    }
                }
                '$' => self.dollar(&mut draft, Quoted::No)?,
                '`' => self.backquote(&mut draft, Quoted::No)?,
                char => {
                    match char {
                        '[' if index > 0 || draft.bare().is_some_and(is_name) => index += 1,
                        ']' => index = index.saturating_sub(1),
                        _ => {}
                    }
                    self.at += char.len_utf8();
                    draft.plain(char);
                }
            }
        }
        Ok(draft)
    }

    fn single(&mut self, draft: &mut Draft) -> Step<()> {
        let begin = self.at;
        loop {
            match self.next() {
                Some('\'') => return self.keep_lines(begin, self.at - 1),
                Some(char) => draft.protected(char),
                None => return Err(Lost),
            }
        }
    }

    fn double(&mut self, draft: &mut Draft) -> Step<()> {
        self.quoted(draft, Some('"'))
    }

    /// Parses text as in double quotes, up to `end`, or to the end of the text.
    fn quoted(&mut self, draft: &mut Draft, end: Option<char>) -> Step<()> {
        loop {
            match self.peek() {
                None if end.is_none() => return Ok(()),
                Some('"') if end.is_some() => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\\') => {
                    self.at += 1;
                    match self.next() {
                        Some(char @ ('$' | '`' | '"' | '\\')) => draft.protected(char),
                        Some(char) => {
                            draft.protected('\\');
                            draft.protected(char);
                        }
                        None => return Err(Lost),
                    }
                }
                Some('$') => self.dollar(draft, Quoted::Double)?,
                Some('`') => self.backquote(draft, Quoted::Double)?,
                Some(char) => {
                    self.at += char.len_utf8();
                    draft.protected(char);
                }
                None => return Err(Lost),
            }
        }
    }

    fn dollar(&mut self, draft: &mut Draft, quoted: Quoted) -> Step<()> {
        self.at += 1;
        match self.peek() {
            Some('(') if self.eat("((") => {
                self.script.note_beyond("it calculates");
                draft.expansion(Piece::Number);
                self.arithmetic()
            }
            Some('(') => {
                self.at += 1;
                self.script.note_beyond("it has a substitution");
                let (first, ended) = (self.drafts.len(), self.ended);
                self.in_brackets(|it| it.below(Until::Parenthesis))?;
                let last = self.drafts[first..].last().filter(|_| self.ended == ended);
                let piece = last.map_or(Piece::Hidden(quoted), |last| output(last, quoted));
                draft.expansion(piece);
                Ok(())
            }
            Some('{') => {
                self.at += 1;
                self.script.note_beyond("it has a variable");
                let piece = self.in_brackets(|it| it.braced(quoted))?;
                draft.expansion(piece);
                Ok(())
            }
            Some('[') => Err(Lost),
            Some('\'') if quoted == Quoted::No => {
                self.at += 1;
                self.script.note_beyond("it has a text in $'…'");
                draft.expansion(Piece::Hidden(Quoted::Double));
                loop {
                    match self.next() {
                        Some('\\') => {
                            self.next();
                        }
                        Some('\'') => return Ok(()),
                        Some(_) => {}
                        None => return Err(Lost),
                    }
                }
            }
            Some('"') if quoted == Quoted::No => {
                self.script.note_beyond("it has a text in $\"…\"");
                draft.expansion(Piece::Hidden(Quoted::Double));
                Ok(())
            }
            Some(char) if char.is_ascii_alphanumeric() || "_@*#?-$!".contains(char) => {
                self.script.note_beyond("it has a variable");
                let rest = self.rest();
                let name = |char: char| char.is_ascii_alphanumeric() || char == '_';
                let length = match char.is_ascii_alphabetic() || char == '_' {
                    true => rest.len() - rest.trim_start_matches(name).len(),
                    false => 1,
                };
                self.at += length;
                draft.expansion(self.variable(&rest[..length], quoted));
                Ok(())
            }
            _ => {
                draft.protected('$');
                Ok(())
            }
        }
    }

    /// Parses by the rules of commands, also inside a test. The documents of the line around the brackets begin after
    /// that line; those of a line in the brackets must end there.
    fn in_brackets<T>(&mut self, read: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        let in_test = std::mem::take(&mut self.in_test);
        let pending = std::mem::take(&mut self.pending);
        let read = read(self)?;
        if !self.pending.is_empty() {
            return Err(Lost);
        }
        self.in_test = in_test;
        self.pending = pending;
        Ok(read)
    }

    /// Returns the replacement of the variable `name`, or of a parameter such as `@`.
    fn variable(&self, name: &str, quoted: Quoted) -> Piece {
        match (name, quoted) {
            ("#" | "?" | "$", _) => Piece::Number,
            // Several words, or none.
            ("@", _) => Piece::Hidden(Quoted::No),
            ("HOME", _) | ("PWD", Quoted::Double) if !self.scope.has(name) => {
                Piece::Folder(name.to_owned(), quoted)
            }
            _ if self.scope.has(name) => Piece::Variable(name.to_owned(), quoted),
            _ => Piece::Hidden(quoted),
        }
    }

    fn backquote(&mut self, draft: &mut Draft, quoted: Quoted) -> Step<()> {
        self.at += 1;
        self.script.note_beyond("it has a substitution");
        let mut body = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(char @ ('$' | '`' | '\\')) => body.push(char),
                    Some('"') if quoted == Quoted::Double => body.push('"'),
                    Some(char) => body.extend(['\\', char]),
                    None => return Err(Lost),
                },
                Some(char) => body.push(char),
                None => return Err(Lost),
            }
        }
        let first = self.drafts.len();
        let ended = self.read_within(&body, |it| it.list(Until::End).map(|()| it.ended))?;
        let last = self.drafts[first..].last().filter(|_| ended == 0);
        draft.expansion(last.map_or(Piece::Hidden(quoted), |last| output(last, quoted)));
        Ok(())
    }

    /// Parses the rest of `${…}` and returns its replacement.
    fn braced(&mut self, quoted: Quoted) -> Step<Piece> {
        let begin = self.at;
        let mut ignored = Draft::default();
        loop {
            match self.peek() {
                None => return Err(Lost),
                Some('}') => break,
                // In double quotes, this character quotes only in some places.
                Some('\'') if quoted == Quoted::Double => return Err(Lost),
                Some('\'') => {
                    self.at += 1;
                    self.single(&mut ignored)?;
                }
                Some('"') => {
                    self.at += 1;
                    self.double(&mut ignored)?;
                }
                Some('\\') => {
                    self.at += 1;
                    self.next();
                }
                Some('$') => self.dollar(&mut ignored, quoted)?,
                Some('`') => self.backquote(&mut ignored, quoted)?,
                Some('<' | '>') if quoted == Quoted::No && self.rest()[1..].starts_with('(') => {
                    self.at += 2;
                    self.below(Until::Parenthesis)?;
                }
                Some(char) => self.at += char.len_utf8(),
            }
        }
        let body = &self.text[begin..self.at];
        self.at += 1;
        Ok(self.parameter(body, quoted))
    }

    /// Returns the replacement of `${body}`.
    fn parameter(&mut self, body: &str, quoted: Quoted) -> Piece {
        const UNCLEAR: &str = "it evaluates a variable";
        let is_elements = |index: &str| ["@", "*"].contains(&index);
        if let Some(counted) = body.strip_prefix('#') {
            let (name, index) = indexed(counted);
            if !index.is_some_and(is_elements) {
                self.evaluate(index.unwrap_or_default());
            }
            if !name.is_empty() && !is_variable(name) && !["@", "*"].contains(&name) {
                self.script.note_unclear(UNCLEAR);
            }
            return Piece::Number;
        }
        // This lists the indexes of an array or names of variables. Any other form reads another
        // variable.
        if let Some(named) = body.strip_prefix('!') {
            if named.strip_suffix("[@]").is_some_and(is_variable) {
                return Piece::Indices;
            }
            if !named.strip_suffix(['*', '@']).is_some_and(is_variable) {
                self.script.note_unclear(UNCLEAR);
            }
            return Piece::Hidden(Quoted::No);
        }
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let end = match body.starts_with(['@', '*', '?', '-', '$', '!']) {
            true => 1,
            false => body.find(|it| !is_name(it)).unwrap_or(body.len()),
        };
        let (name, mut rest) = body.split_at(end);
        let mut value = self.variable(name, quoted);
        if rest.starts_with('[') {
            let (_, Some(index)) = indexed(body) else {
                self.script.note_unclear(UNCLEAR);
                return Piece::Hidden(Quoted::No);
            };
            rest = &rest[index.len() + 2..];
            value = match (index, quoted) {
                ("@", Quoted::Double) if self.scope.has(name) => Piece::Array(name.to_owned()),
                ("@" | "*", _) => Piece::Hidden(Quoted::No),
                // There may be no such element.
                (_, Quoted::No) => Piece::Hidden(Quoted::No),
                _ => value,
            };
            if !is_elements(index) {
                self.evaluate(index);
            }
        }
        let several = value == Piece::Hidden(Quoted::No) || matches!(value, Piece::Array(_));
        match rest.as_bytes() {
            [] if !name.is_empty() => return value,
            [b':', b'=', given @ ..] | [b'=', given @ ..] => {
                let given = std::str::from_utf8(given).unwrap_or("$");
                let value = match given.contains(['$', '`', '\\', '\'', '"', '~']) {
                    true => Value::Unknown,
                    false => Value::Text(Draft::of(given)),
                };
                self.values.add(name, Value::Unknown);
                self.settings.push((name.to_owned(), value, false));
            }
            [b':', b'-' | b'+' | b'?', ..]
            | [b'-' | b'+' | b'?' | b'%' | b'#' | b'/' | b'^' | b',', ..] => {}
            [b':', ..] => self.evaluate(&rest[1..]),
            [b'@', kind] if *kind != b'P' => {}
            // The shell expands `@P` once more.
            _ => self.script.note_unclear(UNCLEAR),
        }
        let is_all = ["@", "*"].contains(&name) || several;
        Piece::Hidden(if is_all { Quoted::No } else { quoted })
    }

    /// Parses the rest of `$((…))` or `((…))`.
    pub(super) fn arithmetic(&mut self) -> Step<()> {
        let (mut expression, mut open) = (String::new(), 0_usize);
        loop {
            let begin = self.at;
            match self.peek().ok_or(Lost)? {
                ')' if open == 0 && self.eat("))") => break,
                ')' if open == 0 => return Err(Lost),
                '$' if self.rest().starts_with("$(") || self.rest().starts_with("${") => {
                    let mut draft = Draft::default();
                    self.dollar(&mut draft, Quoted::Double)?;
                    match &*draft.pieces {
                        [Piece::Number] => expression.push('0'),
                        _ => expression.push_str(&self.text[begin..self.at]),
                    }
                    continue;
                }
                '`' | '\'' | '"' | '\\' | '[' => return Err(Lost),
                // The shell may read a document here.
                '\n' if !self.pending.is_empty() => return Err(Lost),
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            expression.extend(self.next());
        }
        self.evaluate(&expression);
        Ok(())
    }

    /// Parses a text that the shell expands like text in double quotes.
    pub(super) fn expanded(&mut self, body: &str) -> Step<()> {
        self.read_within(body, |it| it.quoted(&mut Draft::default(), None))
    }

    /// Parses a text with parts that the shell runs, and adds them here.
    fn read_within<T>(&mut self, text: &str, read: impl Fn(&mut Parser<'_>) -> Step<T>) -> Step<T> {
        if self.depth >= super::DEEPEST {
            return Err(Lost);
        }
        let mut kept = BTreeSet::new();
        loop {
            let joined = Joined::new(text, &kept);
            let mut parser = Parser::new(&joined, self.depth + 1, self.place);
            parser.scope = self.scope.clone();
            parser.readings = self.readings;
            let read = read(&mut parser);
            self.readings = parser.readings;
            if parser.kept.is_empty() {
                self.take(parser);
                return read;
            }
            kept.append(&mut parser.kept);
            self.readings = self.readings.checked_sub(1).ok_or(Lost)?;
        }
    }

    /// Adds the content of an inner script.
    fn take(&mut self, mut parser: Parser<'_>) {
        self.evaluated.append(&mut parser.evaluated);
        self.drafts.append(&mut parser.drafts);
        self.settings.append(&mut parser.settings);
        self.functions.extend(parser.functions);
        self.values.absorb(parser.values);
        self.script.absorb(parser.script);
    }
}

/// Returns the replacement for a substitution with this last command: for some programs the form of
/// the output is known.
fn output(command: &[Draft], quoted: Quoted) -> Piece {
    let words: Vec<Word> = command.iter().map(|it| it.word().unwrap_or(Word::Unknown)).collect();
    let texts: Option<Vec<&str>> = words.iter().map(Word::exact).collect();
    // Other options of `wc` take names of files, which it prints.
    let is_count = |it: &&str| {
        let letters = it.strip_prefix('-').filter(|letters| !letters.is_empty());
        letters.is_some_and(|letters| letters.chars().all(|letter| "clmwL".contains(letter)))
            || ["--lines", "--words", "--bytes", "--chars"].contains(it)
    };
    let digits = |it: &&str| it.bytes().all(|byte| byte.is_ascii_digit());
    match texts.as_deref() {
        Some(["wc", rest @ ..]) if rest.iter().all(is_count) => Piece::Number,
        Some(["nproc"]) => Piece::Number,
        Some(["seq", rest @ ..]) if rest.iter().all(digits) => Piece::Number,
        Some(["date", "+%s" | "+%s%N" | "+%s%3N" | "+%N"]) => Piece::Number,
        Some(["mktemp"] | ["mktemp", "-d"]) => Piece::Made(quoted),
        Some(["pwd"] | ["git", "rev-parse", "--show-toplevel"]) if quoted == Quoted::Double => {
            Piece::Path
        }
        Some(["which", name] | ["command", "-v", name] | ["type", "-P", name])
            if !name.starts_with('-') && !name.contains(['/', ' ']) =>
        {
            Piece::Program((*name).to_owned())
        }
        Some(["grep", "-c" | "--count", rest @ ..]) if prints_count(rest) => Piece::Number,
        _ => Piece::Hidden(quoted),
    }
}

/// True when `grep` with these arguments after `-c` prints a number alone: it reads one file, or its input. With other
/// options or several files it may print names of files.
fn prints_count(arguments: &[&str]) -> bool {
    let is_plain = |text: &&&str| text[1..].chars().all(|letter| "cEFGPaivswx".contains(letter));
    let (options, names): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|text| text.starts_with('-'));
    names.len() <= 2 && options.iter().all(|text| text.len() > 1 && is_plain(&text))
}

/// Splits `name[index]`.
fn indexed(text: &str) -> (&str, Option<&str>) {
    let Some((name, rest)) = text.split_once('[') else { return (text, None) };
    let mut open = 1;
    for (at, char) in rest.char_indices() {
        match char {
            '[' => open += 1,
            ']' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return (name, Some(&rest[..at]));
        }
    }
    (name, None)
}

/// True for `name=` or `name+=`, which an array may follow.
fn is_empty_assignment(text: &str) -> bool {
    let name = text.strip_suffix('=').map(|name| name.strip_suffix('+').unwrap_or(name));
    name.is_some_and(is_variable)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|char| char.is_ascii_alphanumeric() || "_-.:".contains(char))
}
