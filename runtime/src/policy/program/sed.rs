//! Whether sed runs another program: by its command `e`, by the flag `e` of `s`, or by a script in
//! a file. A script that cannot be parsed may.

use crate::policy::shell::Word;
use std::iter::Peekable;
use std::str::Chars;

/// True when sed with these arguments may run another program.
pub(super) fn runs(arguments: &[Word]) -> bool {
    scripts(arguments).is_none_or(|code| understood(&code).is_none())
}

/// Returns the script in these arguments of sed, if it is known.
fn scripts(arguments: &[Word]) -> Option<String> {
    let (mut named, mut first) = (Vec::new(), None);
    let mut arguments = arguments.iter();
    let mut ended = false;
    while let Some(word) = arguments.next() {
        let Some(text) = word.code().filter(|_| word.exact().is_some() || !word.may_be_option())
        else {
            // After the script, these are files; before it, one may be the script.
            if named.is_empty() && first.is_none() {
                return None;
            }
            continue;
        };
        if ended || !text.starts_with('-') || text == "-" {
            first.get_or_insert(text);
        } else if text == "--" {
            ended = true;
        } else if let Some(long) = text.strip_prefix("--") {
            match long.split_once('=').unwrap_or((long, "")) {
                ("expression", code) if long.contains('=') => named.push(code),
                ("expression", _) => named.push(arguments.next()?.code()?),
                (
                    "in-place" | "quiet" | "silent" | "regexp-extended" | "separate" | "unbuffered"
                    | "null-data" | "zero-terminated" | "posix" | "sandbox" | "debug"
                    | "follow-symlinks" | "binary" | "help" | "version",
                    _,
                ) => {}
                _ => return None,
            }
        } else {
            for (at, letter) in text[1..].char_indices() {
                match letter {
                    'n' | 'E' | 'r' | 's' | 'u' | 'z' | 'b' => {}
                    // The rest is the suffix of a backup copy.
                    'i' => break,
                    'e' => {
                        let code = &text[at + 2..];
                        named.push(if code.is_empty() { arguments.next()?.code()? } else { code });
                        break;
                    }
                    _ => return None,
                }
            }
        }
    }
    match named.is_empty() {
        true => Some(first.unwrap_or_default().to_owned()),
        false => Some(named.join("\n")),
    }
}

/// Returns `None` when `code` runs something, or cannot be parsed.
fn understood(code: &str) -> Option<()> {
    let mut code = code.chars().peekable();
    loop {
        skip(&mut code, |it| it.is_whitespace() || it == ';' || it == '{' || it == '}');
        if code.peek().is_none() {
            return Some(());
        }
        address(&mut code)?;
        skip(&mut code, |it| it == '!' || it == ' ' || it == '\t');
        match code.next()? {
            '{' | '}' => continue,
            '#' => skip(&mut code, |it| it != '\n'),
            'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | '=' | 'F' => {}
            'q' | 'Q' | 'l' | 'L' => {
                skip(&mut code, |it| it == ' ' || it.is_ascii_digit());
            }
            'b' | 't' | 'T' | ':' => skip(&mut code, |it| !"\n;}".contains(it)),
            'r' | 'R' | 'w' | 'W' => skip(&mut code, |it| it != '\n'),
            'a' | 'i' | 'c' => {
                while let Some(char) = code.next_if(|it| *it != '\n') {
                    if char == '\\' {
                        code.next();
                    }
                }
            }
            'y' => {
                let end = code.next()?;
                section(&mut code, end)?;
                section(&mut code, end)?;
            }
            's' => {
                let end = code.next()?;
                pattern(&mut code, end)?;
                section(&mut code, end)?;
                skip(&mut code, |it| it.is_ascii_digit() || "gpiImM".contains(it));
                if code.next_if_eq(&'w').is_some() {
                    skip(&mut code, |it| it != '\n');
                }
            }
            _ => return None,
        }
        skip(&mut code, |it| it == ' ' || it == '\t');
        if !matches!(code.peek(), None | Some(';' | '\n' | '}' | '#')) {
            return None;
        }
    }
}

type Code<'c> = Peekable<Chars<'c>>;

fn skip(code: &mut Code<'_>, mut fits: impl FnMut(char) -> bool) {
    while code.next_if(|it| fits(*it)).is_some() {}
}

/// Parses the address of a command.
fn address(code: &mut Code<'_>) -> Option<()> {
    loop {
        match code.peek()? {
            '$' => drop(code.next()),
            '/' => {
                code.next();
                pattern(code, '/')?;
                skip(code, |it| it == 'I' || it == 'M');
            }
            '\\' => {
                code.next();
                let end = code.next()?;
                pattern(code, end)?;
                skip(code, |it| it == 'I' || it == 'M');
            }
            _ => skip(code, |it| it.is_ascii_digit() || it == '~' || it == '+'),
        }
        skip(code, |it| it == ' ' || it == '\t');
        if code.next_if_eq(&',').is_none() {
            return Some(());
        }
        skip(code, |it| it == ' ' || it == '\t');
    }
}

/// Reads up to `end`.
fn section(code: &mut Code<'_>, end: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match code.next()? {
            char if char == end => return Some(text),
            '\\' => {
                code.next()?;
            }
            char => text.push(char),
        }
    }
}

/// Reads a pattern, whose end must be clear: some versions take `[/]` for a class.
fn pattern(code: &mut Code<'_>, end: char) -> Option<()> {
    let text = section(code, end)?;
    let open = text.rsplit('[').next().filter(|rest| rest.len() < text.len());
    open.is_none_or(|rest| rest.contains(']')).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(arguments: &[&str]) -> Vec<Word> {
        arguments.iter().map(|text| Word::Exact((*text).to_owned())).collect()
    }

    #[test]
    fn sed_that_only_changes_files_runs_nothing() {
        for fine in [
            &["-i", "s/foo/bar/", "a.py"][..],
            &["-i.bak", "-E", "s/(a|b)+/[\\1]/g", "a"],
            &["-ie", "s/a/b/", "x"],
            &["-Ei", "s#/usr/lib#/opt/e#g;s,a,b,w out", "x"],
            &["-i", "-e", "3d", "-e", "/^#/,/end/{s/x/y/;p}", "x"],
            &["-i", "3i\\\nnew line e", "x"],
            &["-i", "$a the end; e x", "x"],
            &["-n", "/fn main/,/^}/p", "x"],
            &["--in-place=.old", "--expression=s/a/b/I", "x"],
            &["-i", "y/abc/xyz/;1!G;h;$!d", "x"],
            &["-n", "w out", "x"],
            &[":a;N;$!ba;s/\\n/ /g", "x"],
            &["s/[^a-z]//g", "x"],
            &["-i", "/[[:space:]]$/ s/e$//", "x"],
        ] {
            assert!(!runs(&words(fine)), "{fine:?}");
        }
    }

    #[test]
    fn sed_that_may_run_something_is_told() {
        for more in [
            &["-n", "1e touch x", "a"][..],
            &["e", "a"],
            &["s|x|touch y|e"],
            &["s/x/y/ge"],
            &["-i", "s/x/y/;e touch x", "a"],
            &["p\ne touch x"],
            &["-e", "a\\", "-e", "text", "-e", "e touch x"],
            &["-e", "p", "-ee touch x"],
            &["/[/]/e touch x", "a"],
            &["s/[/]/e;x/", "a"],
            &["\\,x,e touch y", "a"],
            &["1~2 { e touch y\n}", "a"],
            &["$!e touch y", "a"],
            &["r x\ne touch y", "a"],
            &["# x\ne touch y", "a"],
            &["b;e touch y", "a"],
            &["--expr=e touch y", "a"],
            &["-f", "evil.sed", "x"],
            &["-nf", "evil.sed", "x"],
            &["--file=evil.sed", "x"],
        ] {
            assert!(runs(&words(more)), "{more:?}");
        }
        assert!(runs(&[Word::Unknown]));
        assert!(!runs(&[Word::Exact("p".to_owned()), Word::Unknown]));
        assert!(runs(&[Word::Begins("s/".to_owned())]));
    }
}
