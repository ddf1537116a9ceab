//! Checks that Posse accepts every command in the book. The tests parse each line of a shell block
//! that starts with `posse`, and each command between backticks.

use super::{Arguments, Input, complete};
use clap::Parser;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The languages of blocks with command lines.
const SHELLS: [&str; 4] = ["sh", "bash", "console", "shell"];

/// The errors that count for a command between backticks, where names such as `N` stand for values.
const WRONG: [ErrorKind; 2] = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand];

/// The pages, except the decision records, which describe the past.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut pages: Vec<PathBuf> = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
        .into_iter()
        .map(|name| root.join(name))
        .collect();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("adr") {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The command lines in the shell blocks of a page, each with its line number.
fn lines(page: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut in_block, mut is_shell, mut goes_on) = (false, false, false);
    for (number, line) in page.lines().enumerate() {
        let line = line.trim();
        if let Some(language) = line.strip_prefix("```") {
            is_shell = !in_block && SHELLS.contains(&language);
            in_block = !in_block;
            continue;
        }
        if !is_shell || line.starts_with('#') {
            continue;
        }
        let typed = line.strip_prefix("$ ").unwrap_or(line);
        let (typed, more) = match typed.strip_suffix('\\') {
            Some(typed) => (typed, true),
            None => (typed, false),
        };
        match found.last_mut().filter(|_| goes_on) {
            Some((_, before)) => before.push_str(typed),
            None => found.push((number + 1, typed.to_owned())),
        }
        goes_on = more;
    }
    found
}

/// The commands in the text of a page: `posse …` between backticks.
fn within_texts(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (number, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let quoted = line.split('`').skip(1).step_by(2).filter(|it| it.starts_with("posse "));
            found.extend(quoted.map(|it| (number + 1, it.to_owned())));
        }
    }
    found
}

/// The commands of a line, each as its words, split like a shell does as far as the book needs it.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let (mut word, mut has_word) = (String::new(), false);
    let mut letters = line.chars().peekable();
    let end = |word: &mut String, has_word: &mut bool, all: &mut Vec<Vec<String>>| {
        if std::mem::take(has_word) {
            all.last_mut().unwrap().push(std::mem::take(word));
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => {
                has_word = true;
                while let Some(next) = letters.next().filter(|next| *next != letter) {
                    let escaped = next == '\\' && letter == '"';
                    word.extend(if escaped { letters.next() } else { Some(next) });
                }
            }
            '\\' => {
                has_word = true;
                word.extend(letters.next());
            }
            '#' if !has_word => break,
            ' ' | '\t' => end(&mut word, &mut has_word, &mut all),
            '|' | ';' | '&' | '(' | ')' => {
                end(&mut word, &mut has_word, &mut all);
                all.push(Vec::new());
            }
            // The next word is a file.
            '>' | '<' => {
                end(&mut word, &mut has_word, &mut all);
                all.push(vec![">".to_owned()]);
            }
            letter => {
                has_word = true;
                word.push(letter);
            }
        }
    }
    end(&mut word, &mut has_word, &mut all);
    // `NAME=value posse …`
    let is_set = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| {
            name.chars().all(|it| it.is_ascii_uppercase() || it == '_') && !name.is_empty()
        })
    };
    all.into_iter().map(|words| words.into_iter().skip_while(is_set).collect()).collect()
}

/// The error for a command that Posse does not accept.
fn refused(words: &[String]) -> Option<(Option<ErrorKind>, String)> {
    let typed: Vec<OsString> = words.iter().map(OsString::from).collect();
    let line = match complete(typed, Input::Person) {
        Ok(line) => line,
        Err(failure) => return Some((None, failure.message)),
    };
    let error = Arguments::try_parse_from(line).err()?;
    let asks = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!asks).then(|| (Some(error.kind()), error.to_string()))
}

fn is_posse(words: &[String]) -> bool {
    words.first().is_some_and(|first| first == "posse" || first.ends_with("/posse"))
}

#[test]
fn every_command_of_the_book_is_one() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let mut look = |number: usize, line: &str, is_typed: bool| {
            for words in commands(line).into_iter().filter(|words| is_posse(words)) {
                checked += 1;
                let Some((kind, why)) = refused(&words) else { continue };
                if is_typed || kind.is_none_or(|kind| WRONG.contains(&kind)) {
                    wrong.push(format!("{}:{number}: {line}\n{why}", page.display()));
                }
            }
        };
        lines(&text).iter().for_each(|(number, line)| look(*number, line, true));
        for (number, line) in within_texts(&text) {
            // `[PATHS]...` and `posse run …` show that more can follow.
            let plain = line.replace("\"…\"", "'some words'").replace(['[', ']', '…'], "");
            let plain = plain.replace("...", "");
            if !plain.starts_with("posse COMMAND") {
                look(number, &plain, false);
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 200, "the book has only {checked} commands");
}

#[test]
fn a_wrong_verb_and_a_wrong_flag_are_found() {
    for (line, is_wrong) in [
        ("git diff | posse run \"review; this\" > out.txt", false),
        ("POSSE_X=1 posse runs list --json # all", false),
        ("posse runs lst", true),
        ("posse run --no-such-flag x", true),
        ("posse rnus list", true),
    ] {
        let found = commands(line).into_iter().filter(|words| is_posse(words));
        assert_eq!(found.filter_map(|words| refused(&words)).count() > 0, is_wrong, "{line}");
    }
}
