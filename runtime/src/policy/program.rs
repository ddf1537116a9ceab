//! What is known of programs: which of them run or write whatever their arguments say, and by which
//! options others do. A rule that names only a program must not become a rule for every program.
//!
//! The list is about mistakes and known ways around rules. It is no boundary: that is the
//! confinement of the process.

mod git;
mod language;
mod sed;
mod table;

use super::shell::Word;
use table::{Program, find};

/// What a rule must say of a program besides its name, before what it leaves open can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// Nothing.
    Freely,
    /// A word: its arguments say what is written where.
    Word,
    /// A word that is no option: what it is to run.
    Name,
    /// Everything: the rule has to be the whole command.
    Never,
}

/// Why a rule that spells out the first `said` of `words` (the program included) and leaves the rest
/// open cannot allow them, if it cannot.
pub(crate) fn leaves_too_much_open(words: &[Word], said: usize) -> Option<String> {
    let name = words.first()?.exact()?;
    let known = find(name);
    let open = known.map_or(Open::Freely, |program| program.open);
    let spelled = &words[1.min(words.len())..said.min(words.len())];
    let is_option = |word: &Word| word.exact().is_none_or(|text| text.starts_with('-'));
    let enough = match open {
        Open::Freely => true,
        Open::Word => !spelled.is_empty(),
        Open::Name => spelled.iter().any(|word| !is_option(word)),
        Open::Never => false,
    };
    if !enough {
        return Some(match open {
            Open::Word => format!("it leaves open what `{name}` writes and where"),
            _ => format!("it leaves open what `{name}` runs"),
        });
    }
    runs_by(words, said).map(|what| format!("{what} is left open by it"))
}

/// What among the arguments of a command, after the first `said` of its words, makes it run or write
/// something else. A `--` ends nothing here: it may be the value of the option before it.
fn runs_by(words: &[Word], said: usize) -> Option<String> {
    let name = words.first()?.exact()?;
    let rest = &words[said.min(words.len())..];
    let quoted = |text: &str| format!("`{}`", text.chars().take(60).collect::<String>());
    let known = find(name)?;
    match known.name {
        "git" => return git::runs_by(words, said),
        "sed" => return language::sed(&words[1..], said.saturating_sub(1)).map(str::to_owned),
        "awk" => return language::awk(&words[1..], said.saturating_sub(1)).map(str::to_owned),
        "uniq" => return uniq(&words[1..]),
        "make" if assigns(rest) => return Some("a variable for `make`".to_owned()),
        _ => {}
    }
    let texts = rest.iter().filter_map(Word::exact);
    let meant = |text| known.options.iter().find(|option| is_meant(option, text));
    texts.filter_map(meant).next().map(|option| quoted(option.trim_start_matches(['=', '>'])))
}

/// True when one of these arguments sets a variable, or may.
fn assigns(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| word.exact().is_none_or(|text| text.contains('=')))
}

/// True when one of these arguments is an option by which the program `known` runs another.
fn runs_by_option(known: &Program, arguments: &[Word]) -> bool {
    let mut run = known.options.iter().filter(|option| !option.starts_with('>'));
    run.any(|option| arguments.iter().filter_map(Word::exact).any(|text| is_meant(option, text)))
}

/// The second file that uniq is given is the one it writes.
fn uniq(arguments: &[Word]) -> Option<String> {
    let takes_number = |text: &str| {
        let long = ["--skip-fields", "--skip-chars", "--check-chars"];
        text.len() == 2 && text.starts_with('-') && text.ends_with(['f', 's', 'w'])
            || long.contains(&text)
    };
    let (mut files, mut before, mut ended) = (0, "", false);
    for word in arguments {
        // A pattern may become several.
        let Some(text) = word.exact() else { return Some("the file that `uniq` writes".into()) };
        let is_number = takes_number(before) && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_option = text.starts_with('-') && text != "-";
        if ended || !is_option && !is_number {
            files += 1;
        }
        ended |= text == "--";
        before = text;
    }
    (files > 1).then(|| "the file that `uniq` writes".to_owned())
}

/// True when the argument `text` is `option`, or may be.
fn is_meant(option: &str, text: &str) -> bool {
    let option = option.trim_start_matches('>');
    if let Some(exactly) = option.strip_prefix('=') {
        return exactly == text;
    }
    match (option.strip_prefix("--"), text.strip_prefix("--")) {
        (Some(long), Some(given)) => {
            let given = given.split('=').next().unwrap_or_default();
            !given.is_empty() && long.starts_with(given)
        }
        (None, None) if option.len() == 2 => {
            let letter = option.as_bytes()[1];
            text.starts_with('-') && text.as_bytes()[1..].contains(&letter)
        }
        (None, None) => text.split('=').next() == Some(option),
        // Some programs take their long options with one dash too.
        (None, Some(given)) if option.len() > 2 => {
            given.split('=').next() == option.strip_prefix('-')
        }
        _ => false,
    }
}

/// What a command may run that is not shown as its program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Nothing else that is known of.
    Itself,
    /// One of its arguments is the program, with those after it; or a text that is a command.
    Arguments,
    /// Something that cannot be told.
    Anything,
}

/// What the command `words` may run.
pub(crate) fn runs(words: &[Word]) -> Runs {
    let Some(name) = words.first().and_then(Word::exact) else { return Runs::Anything };
    let name = base(name);
    let Some(known) = find(name) else {
        return match name.starts_with("ld-linux") || name.starts_with("ld-musl") {
            true => Runs::Arguments,
            false => Runs::Itself,
        };
    };
    match (known.open, known.name) {
        // It is asked where a program is.
        (Open::Never, "env") if name == "command" && is_one_of(words.get(1), &["-v", "-V"]) => {
            Runs::Itself
        }
        (Open::Never, _) | (_, "busybox" | "find" | "fd" | "tar" | "rsync") => Runs::Arguments,
        (Open::Name, "sh") => match reads_input(&words[1..], is_valued_in_shell) {
            true => Runs::Anything,
            false => Runs::Arguments,
        },
        (Open::Name, "python") => {
            let letters = if name.starts_with("py") { "ceE" } else { "ceEprRB" };
            let inline = words[1..].iter().any(|word| is_inline(word, letters));
            match inline || reads_input(&words[1..], is_valued_in_language) {
                true => Runs::Anything,
                false => Runs::Itself,
            }
        }
        (Open::Name, _) => match words[1..].iter().any(|word| is_inline(word, "ceE")) {
            true => Runs::Anything,
            false => Runs::Itself,
        },
        // To write a file is not to run a program.
        _ => {
            let runs = match known.name {
                "git" => git::runs(words),
                "sed" => sed::runs(&words[1..]),
                "awk" => language::awk_runs(&words[1..]),
                "make" if assigns(&words[1..]) => true,
                _ => runs_by_option(known, &words[1..]),
            };
            if runs { Runs::Anything } else { Runs::Itself }
        }
    }
}

fn is_one_of(word: Option<&Word>, texts: &[&str]) -> bool {
    word.and_then(Word::exact).is_some_and(|text| texts.contains(&text))
}

/// True when an argument of a language says that code stands in the arguments, or may.
fn is_inline(word: &Word, letters: &str) -> bool {
    const LONG: [&str; 9] = [
        "--eval",
        "--command",
        "--exec",
        "--print",
        "--run",
        "--process-begin",
        "--process-code",
        "--process-end",
        "eval",
    ];
    let Some(text) = word.exact() else { return true };
    let cluster = text.starts_with('-') && !text.starts_with("--");
    cluster && text.contains(|letter| letters.contains(letter))
        || text.split('=').next().is_some_and(|option| LONG.contains(&option))
}

/// True when a shell or a language with these arguments does what its input says: they name no
/// script, or the input as one.
fn reads_input(arguments: &[Word], takes_value: impl Fn(&str) -> bool) -> bool {
    if let [only] = arguments
        && is_one_of(Some(only), &["--version", "-V", "-v", "-version", "--help", "-h"])
    {
        return false;
    }
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let Some(text) = word.exact() else { return false };
        match text {
            "-" | "--" => {}
            _ if takes_value(text) => {
                arguments.next();
            }
            // `-s` says so, also among others.
            _ if text.starts_with('-') && !text.starts_with("--") && text.contains('s') => {
                return true;
            }
            _ if text.starts_with(['-', '+']) => {}
            script => return is_input(script),
        }
    }
    true
}

/// True when the value of a shell's option is the next word: `-o pipefail`, also in `-eo pipefail`.
fn is_valued_in_shell(text: &str) -> bool {
    ["--rcfile", "--init-file"].contains(&text)
        || text.starts_with(['-', '+']) && !text.starts_with("--") && text.ends_with(['o', 'O'])
}

/// The same for languages.
fn is_valued_in_language(text: &str) -> bool {
    const VALUED: [&str; 11] = [
        "-W",
        "-X",
        "-Q",
        "-I",
        "-d",
        "-l",
        "-C",
        "--require",
        "--import",
        "--loader",
        "--check-hash-based-pycs",
    ];
    VALUED.contains(&text)
}

/// True when the command may do anything besides running its arguments: it has a language of its own,
/// or starts a shell that does what its input says.
pub(crate) fn does_what_it_is_told(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(Word::exact).map(base) else { return true };
    let shell = |word: &Word| {
        let option = word.exact().filter(|text| text.starts_with('-') && !text.starts_with("--"));
        option.is_some_and(|text| text.contains(['s', 'i']))
            || is_one_of(Some(word), &["--shell", "--login"])
    };
    match name {
        "su" | "runuser" | "script" | "unshare" | "nsenter" | "chroot" | "sg" => true,
        "sudo" | "doas" => words[1..].iter().any(shell),
        _ => find(name).is_some_and(|known| known.name == "gdb"),
    }
}

/// True when the program reads an argument as a shell does, also one that is a single word.
pub(crate) fn reads_as_shell(words: &[Word]) -> bool {
    const OTHERS: [&str; 7] = ["eval", "trap", "watch", "ssh", "su", "runuser", "script"];
    let Some(name) = words.first().and_then(Word::exact).map(base) else { return true };
    OTHERS.contains(&name) || find(name).is_some_and(|known| known.name == "sh")
}

/// True for a path by which a process opens what it was handed.
pub(crate) fn is_input(path: &str) -> bool {
    path == "/dev/stdin"
        || path.starts_with("/dev/fd/")
        || path.starts_with("/proc/") && path.contains("/fd/")
}

/// The last part of a path.
pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
