//! Compound commands with their own grammar: `case`, the head of `for`, `[[ ]]`.

use super::parser::{Lost, Parser, Step, Until};
use super::values::Value;
use super::word::{Piece, is_variable};

impl Parser<'_> {
    /// Parses the text after `case`, up to `esac`.
    pub(super) fn case(&mut self) -> Step<()> {
        self.skip_blanks();
        self.word()?;
        self.skip_lines();
        if self.word()?.bare() != Some("in") {
            return Err(Lost);
        }
        loop {
            self.skip_lines();
            if self.is_at_word("esac") {
                self.at += "esac".len();
                return Ok(());
            }
            self.eat("(");
            loop {
                self.skip_blanks();
                if !self.word()?.begun {
                    return Err(Lost);
                }
                self.skip_blanks();
                if self.eat(")") {
                    break;
                }
                if !self.eat("|") {
                    return Err(Lost);
                }
            }
            self.below(Until::Clause)?;
        }
    }

    fn skip_lines(&mut self) {
        self.skip_blanks();
        while self.pending.is_empty() && self.eat("\n") {
            self.skip_blanks();
        }
    }

    /// Parses the text after `for`, up to the first separator.
    pub(super) fn loop_head(&mut self) -> Step<()> {
        self.skip_blanks();
        if self.eat("((") {
            self.arithmetic()?;
            self.scope.open();
            return Ok(());
        }
        let name = self.word()?;
        let name = name.bare().filter(|name| is_variable(name)).ok_or(Lost)?;
        self.skip_lines();
        let mut values = Vec::new();
        if self.is_at_word("in") {
            self.at += "in".len();
            loop {
                self.skip_blanks();
                match self.peek() {
                    Some('\n' | ';') => break,
                    None | Some('(' | ')' | '&' | '|' | '<' | '>') => return Err(Lost),
                    Some(_) => values.push(Value::Each(self.word()?)),
                }
            }
        } else {
            // The variable is one of the arguments of the function, or of the script.
            if !self.is_at_word("do") && self.peek() != Some(';') {
                return Err(Lost);
            }
            values.push(Value::Unknown);
        }
        for value in values {
            self.values.add(name, value.clone());
            self.settings.push((name.to_owned(), value, false));
        }
        self.scope.open();
        self.scope.hold(name);
        Ok(())
    }

    /// Parses the text after `[[`, up to `]]`.
    pub(super) fn test(&mut self) -> Step<()> {
        self.in_test = true;
        let (mut before, mut next_counts) = (String::new(), false);
        let mut open = 0_usize;
        loop {
            match self.peek() {
                // In a pattern this sign begins no comment.
                None | Some('#') => return Err(Lost),
                // The shell may read a document here.
                Some('\n') if !self.pending.is_empty() => return Err(Lost),
                Some('<' | '>') if self.rest()[1..].starts_with('(') => {}
                Some(char @ (' ' | '\t' | '\n' | '(' | ')' | '&' | '|' | '<' | '>' | ';')) => {
                    match char {
                        '(' => open += 1,
                        ')' => open = open.checked_sub(1).ok_or(Lost)?,
                        _ => {}
                    }
                    self.at += 1;
                    continue;
                }
                Some(_) => {}
            }
            let begin = self.at;
            let draft = self.word()?;
            if self.at == begin {
                return Err(Lost);
            }
            if draft.bare() == Some("]]") {
                // In parentheses it is part of a pattern.
                if open > 0 {
                    return Err(Lost);
                }
                self.in_test = false;
                return Ok(());
            }
            let operand = match &*draft.pieces {
                [Piece::Number] => "0",
                _ => &self.text[begin..self.at],
            };
            if std::mem::take(&mut next_counts) {
                self.evaluate(operand);
            }
            match draft.bare() {
                // These operators calculate.
                Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") => {
                    self.evaluate(&before);
                    next_counts = true;
                }
                Some("-v" | "-R") => self.script.note_unclear("it evaluates an expression"),
                _ => {}
            }
            before = operand.to_owned();
        }
    }
}
