//! Words and what the shell puts in their place: quotes, variables, substitutions. What would run
//! within a substitution is read like any other command.

use super::Script;
use super::parser::{Lost, Parser, Step, Until};
use super::word::Draft;

impl Parser<'_> {
    /// The word that begins here.
    pub(super) fn word(&mut self) -> Step<Draft> {
        let mut draft = Draft::default();
        while let Some(char) = self.peek() {
            match char {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '(' => {
                    // `a=(…)`, `@(…)`: arrays and patterns of another kind.
                    match draft.begun && draft.bare().is_none_or(|bare| !is_name(bare)) {
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
                    self.inner()?;
                    draft.expansion();
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
                        Some('\n') => {}
                        Some(char) => draft.protected(char),
                        None => return Err(Lost),
                    }
                }
                '$' => self.dollar(&mut draft, Quoted::No)?,
                '`' => self.backquote(&mut draft)?,
                char => {
                    self.at += char.len_utf8();
                    draft.plain(char);
                }
            }
        }
        Ok(draft)
    }

    fn single(&mut self, draft: &mut Draft) -> Step<()> {
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(char) => draft.protected(char),
                None => return Err(Lost),
            }
        }
    }

    fn double(&mut self, draft: &mut Draft) -> Step<()> {
        loop {
            match self.peek() {
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\\') => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(char @ ('$' | '`' | '"' | '\\')) => draft.protected(char),
                        Some(char) => {
                            draft.protected('\\');
                            draft.protected(char);
                        }
                        None => return Err(Lost),
                    }
                }
                Some('$') => self.dollar(draft, Quoted::Double)?,
                Some('`') => self.backquote(draft)?,
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
            Some('(') if self.rest().starts_with("((") => {
                self.script.note_beyond("it calculates");
                draft.expansion();
                self.arithmetic()
            }
            Some('(') => {
                self.at += 1;
                self.script.note_beyond("it has a substitution");
                draft.expansion();
                self.inner()
            }
            Some('{') => {
                self.at += 1;
                self.script.note_beyond("it has a variable");
                draft.expansion();
                self.braced()
            }
            Some('[') => Err(Lost),
            Some('\'') if quoted == Quoted::No => {
                self.at += 1;
                self.script.note_beyond("it has a text in $'…'");
                draft.expansion();
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
                draft.expansion();
                Ok(())
            }
            Some(char) if char.is_ascii_alphanumeric() || "_@*#?-$!".contains(char) => {
                self.script.note_beyond("it has a variable");
                draft.expansion();
                self.at += 1;
                if char.is_ascii_alphabetic() || char == '_' {
                    let rest = self.rest();
                    let name = |char: char| char.is_ascii_alphanumeric() || char == '_';
                    self.at += rest.len() - rest.trim_start_matches(name).len();
                }
                Ok(())
            }
            _ => {
                draft.protected('$');
                Ok(())
            }
        }
    }

    /// Commands within `$(…)`, whose beginning was read.
    fn inner(&mut self) -> Step<()> {
        self.depth += 1;
        if self.depth > super::DEEPEST {
            return Err(Lost);
        }
        let read = self.list(Until::Parenthesis);
        self.depth -= 1;
        read
    }

    fn backquote(&mut self, draft: &mut Draft) -> Step<()> {
        self.at += 1;
        self.script.note_beyond("it has a substitution");
        draft.expansion();
        let mut body = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(char @ ('$' | '`' | '\\')) => body.push(char),
                    Some(char) => body.extend(['\\', char]),
                    None => return Err(Lost),
                },
                Some(char) => body.push(char),
                None => return Err(Lost),
            }
        }
        let inner = Script::nested(&body, self.depth + 1);
        self.script.absorb(inner);
        Ok(())
    }

    /// The rest of `${…}`.
    fn braced(&mut self) -> Step<()> {
        let begin = self.at;
        let mut ignored = Draft::default();
        loop {
            match self.peek() {
                None => return Err(Lost),
                Some('}') => break,
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
                Some('$') => self.dollar(&mut ignored, Quoted::No)?,
                Some('`') => self.backquote(&mut ignored)?,
                Some(char) => self.at += char.len_utf8(),
            }
        }
        // An index is evaluated, `@P` is expanded once more, `!` reads another variable.
        let body = &self.text[begin..self.at];
        if body.contains(['[', '@', '!']) || body.contains(':') && !has_default(body) {
            self.script.note_unclear("it evaluates a variable");
        }
        self.at += 1;
        Ok(())
    }

    /// The rest of `$((…))`: of more than numbers nobody can tell what it runs.
    fn arithmetic(&mut self) -> Step<()> {
        self.at += 2;
        let end = self.rest().find("))").ok_or(Lost)?;
        let body = &self.rest()[..end];
        if !body.chars().all(|char| char.is_ascii_digit() || " +-*/%<>=".contains(char)) {
            return Err(Lost);
        }
        self.at += end + 2;
        Ok(())
    }

    /// A text that the shell expands as it does within double quotes.
    pub(super) fn expanded(&mut self, body: &str) -> Step<()> {
        let escaped = format!("{}\"", body.replace('"', "\\\""));
        let mut parser = Parser::new(&escaped, self.depth + 1);
        let read = parser.double(&mut Draft::default());
        self.script.absorb(parser.script);
        read
    }
}

/// Within what kind of quotes a `$` stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    No,
    Double,
}

/// `${x:-y}` and its like, in contrast to `${x:1:2}`, which calculates.
fn has_default(body: &str) -> bool {
    let Some((_, rest)) = body.split_once(':') else { return false };
    rest.starts_with(['-', '=', '+', '?'])
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|char| char.is_ascii_alphanumeric() || "_-.:".contains(char))
}
