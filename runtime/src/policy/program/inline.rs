//! Code in the arguments or the input of a program: languages, make, databases.

use super::{Runs, base, is_input, is_meant, is_one_of, may_be_input};
use crate::policy::shell::Word;

/// Languages: the letters of options that take code or read the input, and those of options with
/// another value.
const LANGUAGES: [(&str, &str, &str); 9] = [
    ("python", "ci", "WXQ"),
    ("pypy", "ci", "WXQ"),
    ("node", "epi", "rC"),
    ("nodejs", "epi", "rC"),
    ("perl", "eE", "I"),
    ("ruby", "e", "IrCE"),
    ("php", "rBREa", "dcStfz"),
    ("lua", "ei", "l"),
    ("julia", "eEi", "pJL"),
];

/// Options that take code.
const CODE: [&str; 9] = [
    "--interactive",
    "--eval",
    "--command",
    "--exec",
    "--print",
    "--run",
    "--process-begin",
    "--process-code",
    "--process-end",
];

/// Options with a value, of several languages.
const VALUED: [&str; 8] = [
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "--test-reporter",
    "--test-name-pattern",
    "--env-file",
    "--check-hash-based-pycs",
];

/// Python modules that run code from their arguments or their input.
const MODULES: [&str; 10] = [
    "timeit", "code", "pdb", "asyncio", "pty", "idlelib", "IPython", "ptpython", "bpython",
    "_pyrepl",
];

/// Python modules that run a file.
const RUNNERS: [&str; 6] = ["cProfile", "profile", "trace", "runpy", "coverage", "doctest"];

/// Returns what a language runs: a file, which counts as the program itself, or code, which Posse
/// does not read.
pub(super) fn language(words: &[Word]) -> Runs {
    let name = words[0].exact().map_or("", base);
    let plain = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let known = LANGUAGES.iter().find(|(known, ..)| *known == plain);
    let (kind, code, valued) = known.map_or(("", "ceEprRB", ""), |it| *it);
    let is_code = |value: Option<&Word>| {
        value.is_none_or(|value| {
            value.exact().is_none_or(|it| it.starts_with("data:") || is_input(it))
        })
    };
    let mut is_test = false;
    let mut arguments = words[1..].iter();
    while let Some(word) = arguments.next() {
        let Some(text) = word.exact() else {
            let unsure = word.may_be_option() || may_be_input(word);
            return if unsure { Runs::Anything } else { Runs::Itself };
        };
        if text == "--" {
            continue;
        }
        if !text.starts_with('-') {
            let inline = may_be_input(word) || ["eval", "repl"].contains(&text);
            let reads = ["run"].contains(&text) && is_one_of(arguments.next(), &["-"]);
            return if inline || reads { Runs::Anything } else { Runs::Itself };
        }
        if let Some(long) = text.strip_prefix("--") {
            let (option, value) = match text.split_once('=') {
                Some((option, value)) => (option, Some(Word::Exact(value.to_owned()))),
                None => (text, None),
            };
            if CODE.contains(&option) {
                return Runs::Anything;
            }
            if VALUED.contains(&option) {
                let value = value.or_else(|| arguments.next().cloned());
                if is_code(value.as_ref()) {
                    return Runs::Anything;
                }
            }
            is_test |= kind.starts_with("node") && long.split('=').next() == Some("test");
            continue;
        }
        for (at, letter) in text.char_indices().skip(1) {
            let rest = &text[at + letter.len_utf8()..];
            if code.contains(letter) {
                return Runs::Anything;
            }
            if kind.starts_with("py") && letter == 'm' {
                let module = if rest.is_empty() {
                    arguments.next().and_then(Word::exact)
                } else {
                    Some(rest)
                };
                let is_code = match module {
                    Some(module) if is_in(&RUNNERS, module) => runs_code(arguments.as_slice()),
                    Some(module) => is_in(&MODULES, module),
                    None => true,
                };
                return if is_code { Runs::Anything } else { Runs::Itself };
            }
            // The debugger reads its input, unless the option names another debugger: `-d:NYTProf`.
            if kind == "perl" && letter == 'd' && !rest.starts_with(':') {
                return Runs::Anything;
            }
            // `-MList::Util=sum` names a module; with other characters it is code.
            if kind == "perl" && "Mmd".contains(letter) {
                let plain = |it: char| it.is_ascii_alphanumeric() || "_:=,-".contains(it);
                if !rest.chars().all(plain) {
                    return Runs::Anything;
                }
                break;
            }
            if valued.contains(letter) {
                let own = Word::Exact(rest.to_owned());
                let value = if rest.is_empty() { arguments.next() } else { Some(&own) };
                if letter == 'r' && is_code(value) {
                    return Runs::Anything;
                }
                // `php -S` serves files.
                is_test |= letter == 'S';
                break;
            }
        }
    }
    if is_test { Runs::Itself } else { Runs::Anything }
}

/// True when the list has the Python module, or the package that the module is in.
fn is_in(list: &[&str], module: &str) -> bool {
    module.split('.').next().is_some_and(|package| list.contains(&package))
}

/// True when a Python module that runs a file, or another module, may run code with these arguments.
fn runs_code(arguments: &[Word]) -> bool {
    let names_module = |text: &str| text.starts_with("-m") || text.starts_with("--m");
    let has_module = arguments.iter().any(|word| names_module(word.start()));
    let is_code = |word: &Word| match word.exact() {
        Some(text) => {
            let module = text.strip_prefix("-m").unwrap_or(text);
            let module = module.strip_prefix("--module=").unwrap_or(module);
            text == "-" || is_in(&MODULES, module)
        }
        // The name of the module may be unknown.
        None => has_module && word.may_be_option(),
    };
    arguments.iter().any(|word| is_code(word) || may_be_input(word))
}

/// Returns what make runs in addition to its file. Values of variables may be programs.
pub(super) fn make(words: &[Word]) -> Runs {
    const PLACES: [&str; 9] =
        ["PREFIX", "prefix", "DESTDIR", "BUILDDIR", "BUILD_DIR", "O", "V", "VERSION", "JOBS"];
    const DECIDING: [&str; 5] = ["SHELL", ".SHELLFLAGS", "MAKE", "MAKEFLAGS", "MAKEFILES"];
    let mut commands = Vec::new();
    let mut arguments = words[1..].iter();
    while let Some(word) = arguments.next() {
        let Some(text) = word.code() else {
            let name = word.start().split_once('=').map(|(name, _)| name);
            match name.is_some_and(|name| PLACES.contains(&name))
                || matches!(word, Word::Begins(it) if !it.contains(['=', '-']))
            {
                true => continue,
                false => return Runs::Anything,
            }
        };
        if let Some(long) = text.strip_prefix("--") {
            let (option, value) = long.split_once('=').unwrap_or((long, ""));
            let is_file = |it: &str| it.len() > 1 && it.starts_with(option);
            if is_meant("--eval", text) || value == "-" || is_input(value) {
                return Runs::Anything;
            }
            if value.is_empty()
                && ["file", "makefile"].iter().any(|it| is_file(it))
                && is_own(arguments.next())
            {
                return Runs::Anything;
            }
        } else if text.starts_with('-') {
            for (at, letter) in text.char_indices().skip(1) {
                let rest = &text[at + letter.len_utf8()..];
                if letter == 'E' {
                    return Runs::Anything;
                }
                if "fCIoW".contains(letter) {
                    let own = Word::Exact(rest.to_owned());
                    let value = if rest.is_empty() { arguments.next() } else { Some(&own) };
                    if letter == 'f' && is_own(value) {
                        return Runs::Anything;
                    }
                    break;
                }
            }
        } else if let Some((name, value)) = text.split_once('=') {
            let name = name.trim_end_matches([':', '+', '?', ' ']);
            let deciding = DECIDING.contains(&name) || name.ends_with('!');
            if deciding || value.contains(['$', '`']) || value.contains('\n') {
                return Runs::Anything;
            }
            let words = value.split_whitespace().map(|it| Word::Exact(it.to_owned()));
            commands.push(words.collect());
        }
    }
    Runs::Commands(commands, Vec::new())
}

/// True when a file with this name is the input of the program itself, or may be.
fn is_own(file: Option<&Word>) -> bool {
    let Some(file) = file else { return true };
    match file.exact() {
        Some(path) => path == "-" || may_be_input(file),
        None => ["", "/"].contains(&file.start()) || may_be_input(file),
    }
}

/// Returns what the command line of a database runs: plain statements, or anything.
pub(super) fn database(words: &[Word]) -> Runs {
    let name = words[0].exact().map_or("", base);
    let is_sqlite = name == "sqlite3";
    let letter = if name == "psql" { 'c' } else { 'e' };
    let (mut statements, mut positions) = (0, 0);
    let mut arguments = words[1..].iter();
    while let Some(word) = arguments.next() {
        let text = word.exact();
        let is_option = word.may_be_option();
        let statement = match text {
            Some("-cmd") if is_sqlite => arguments.next().and_then(Word::exact),
            Some("-separator" | "-nullvalue" | "-newline" | "-init") if is_sqlite => {
                arguments.next();
                continue;
            }
            Some(_) if is_sqlite && is_option => continue,
            Some("--version" | "--help" | "-l" | "--list") if !is_sqlite => {
                statements += 1;
                continue;
            }
            Some(text) if text.starts_with("--command=") || text.starts_with("--execute=") => {
                text.split_once('=').map(|(_, value)| value)
            }
            Some("--command" | "--execute") => arguments.next().and_then(Word::exact),
            Some(text) if is_option && !text.starts_with("--") => match text.find(letter) {
                Some(at) if at + 1 < text.len() => Some(&text[at + 1..]),
                Some(_) => arguments.next().and_then(Word::exact),
                None => continue,
            },
            Some(_) if !is_sqlite => continue,
            None if is_option => return Runs::Anything,
            _ if is_sqlite => {
                positions += 1;
                if positions == 1 {
                    continue;
                }
                text
            }
            _ => continue,
        };
        statements += 1;
        if !statement.is_some_and(|it| is_plain(it, is_sqlite)) {
            return Runs::Anything;
        }
    }
    if statements == 0 { Runs::Anything } else { Runs::Itself }
}

/// True for statements that only the database itself executes.
fn is_plain(statement: &str, is_sqlite: bool) -> bool {
    const DOTS: [&str; 12] = [
        ".tables",
        ".schema",
        ".headers",
        ".mode",
        ".dump",
        ".indexes",
        ".databases",
        ".quit",
        ".exit",
        ".width",
        ".timeout",
        ".fullschema",
    ];
    let harmless = |line: &str| match line.trim_start() {
        line if line.starts_with('.') => {
            line.split_whitespace().next().is_some_and(|it| DOTS.contains(&it))
                && !line.contains('|')
        }
        _ => true,
    };
    let lower = statement.to_ascii_lowercase();
    let risky: &[&str] = match is_sqlite {
        true => &["edit", "load_extension"],
        false => &["\\", "program", "system", "execute", "shell"],
    };
    statement.lines().all(harmless) && !risky.iter().any(|word| lower.contains(word))
}
