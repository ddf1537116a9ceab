//! What is known of programs: which of them run or write whatever their arguments say, and by which
//! options others do. A rule that names only a program must not become a rule for every program.
//!
//! The list is about mistakes and known ways around rules. It is no boundary: that is the
//! confinement of the process.

mod aliases;
mod git;
mod inline;
mod language;
mod sed;
mod table;
mod variable;
mod wrapper;

pub(crate) use aliases::{command as command_name, takes_beginnings};
pub(crate) use git::without_places;
pub(crate) use table::LOOKING;
pub(crate) use variable::{Sets, sets};

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
    /// These commands, with the variables that it sets for them.
    Commands(Vec<Vec<Word>>, Vec<Word>),
    /// What this says in the language of the shell.
    Code(String),
    /// One of its arguments is the program, with those after it; or a text that is a command.
    Arguments,
    /// Something that cannot be told.
    Anything,
}

/// What the command `words` may run.
pub(crate) fn runs(words: &[Word]) -> Runs {
    let Some(name) = words.first().and_then(Word::program) else { return Runs::Anything };
    let name = base(name);
    // Asked for its version it runs nothing, and asked where a program is.
    let asked = words.len() == 2 && is_one_of(words.get(1), &["--version", "--help"]);
    if asked || name == "command" && is_one_of(words.get(1), &["-v", "-V"]) {
        return Runs::Itself;
    }
    if let Some(runs) = wrapper::runs(words) {
        return runs;
    }
    let Some(known) = find(name) else {
        return match name.starts_with("ld-linux") || name.starts_with("ld-musl") {
            true => Runs::Arguments,
            false => Runs::Itself,
        };
    };
    let when = |anything: bool| if anything { Runs::Anything } else { Runs::Itself };
    match (known.name, name) {
        ("find", _) => wrapper::find(words),
        ("sh", _) => wrapper::shell(words),
        ("python", "deno" | "bun") if is_one_of(words.get(1), &["x"]) => Runs::Arguments,
        ("python", _) => inline::language(words),
        ("make", _) => inline::make(words),
        (_, "sqlite3" | "psql" | "mysql" | "mariadb") => inline::database(words),
        ("git", _) => when(git::runs(words)),
        ("sed", _) => when(sed::runs(&words[1..])),
        ("awk", _) => when(language::awk_runs(&words[1..])),
        // The parser has read what these set.
        (_, "export" | "declare" | "typeset" | "local" | "readonly" | "set" | "shopt" | "wait")
        | (_, "jobs" | "history" | "unalias") => Runs::Itself,
        (_, "read" | "mapfile" | "readarray" | "getopts" | "unset") => when(evaluates(&words[1..])),
        (_, "let") => Runs::Anything,
        ("printf", _) => {
            when(is_one_of(words.get(1), &["-v"]) && evaluates(&words[1..3.min(words.len())]))
        }
        // A file; but not one that the same command fills.
        (_, "source" | ".") => match words.get(1) {
            Some(file) => {
                when(file.exact().map_or(file.may_be_option(), is_input) || is_device(file))
            }
            None => Runs::Itself,
        },
        (_, "docker" | "podman" | "nerdctl" | "kubectl") => match starts_container(words) {
            true => Runs::Arguments,
            false => Runs::Itself,
        },
        // Of these only some options run something.
        ("tar" | "rsync" | "fd" | "gcc", _) => {
            let is_old = known.name == "tar"
                && words.get(1).is_some_and(|it| it.start().contains(['I', 'F']));
            let unsure = known.name != "gcc"
                && words.iter().any(|it| it.exact().is_none() && it.may_be_option());
            match runs_by_option(known, &words[1..]) || is_old || unsure {
                true if known.name == "gcc" => Runs::Anything,
                true => Runs::Arguments,
                false => Runs::Itself,
            }
        }
        ("busybox", _) => Runs::Arguments,
        _ if known.open == Open::Never => Runs::Arguments,
        // To write a file is not to run a program.
        _ => when(runs_by_option(known, &words[1..])),
    }
}

/// True when an argument that is the name of a variable may be more: an index, which is evaluated.
fn evaluates(names: &[Word]) -> bool {
    let plain = |text: &str| !text.contains(['[', '$', '`']);
    // A command that is run for every line.
    let calls = |text: &str| text.starts_with("-C") || text.starts_with("-tC");
    names.iter().any(|word| !word.exact().is_some_and(plain) || calls(word.start()))
}

/// True for a path that may lead to what a process was handed.
fn is_device(file: &Word) -> bool {
    file.exact().is_none() && ["/d", "/p"].iter().any(|start| file.start().starts_with(start))
}

/// True when a container is to run something, or may be: not when the first word is another command.
fn starts_container(words: &[Word]) -> bool {
    const OTHERS: &str = "ps images image logs build pull push stop start restart rm rmi kill top \
         stats version info inspect network volume tag login logout cp port diff history get \
         describe apply delete create scale rollout config cluster-info explain edit label wait";
    const COMPOSE: &str = "up down ps logs build pull stop start restart config ls images top";
    let is_in = |list: &str, at: usize| {
        words
            .get(at)
            .and_then(Word::exact)
            .is_some_and(|it| list.split(' ').any(|known| known == it))
    };
    match words.get(1).and_then(Word::exact) {
        Some("compose") => !is_in(COMPOSE, 2),
        _ => !is_in(OTHERS, 1),
    }
}

fn is_one_of(word: Option<&Word>, texts: &[&str]) -> bool {
    word.and_then(Word::exact).is_some_and(|text| texts.contains(&text))
}

/// True when the command may do anything besides running its arguments: it has a language of its own,
/// or starts a shell that does what its input says.
pub(crate) fn does_what_it_is_told(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(Word::program).map(base) else { return true };
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
    OTHERS.contains(&name)
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
