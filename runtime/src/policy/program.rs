//! Knowledge about programs: which of them run or write whatever their arguments say, and which options make others do
//! so. A rule that names only a program must not become a rule for every program.
//!
//! The list covers mistakes and known ways around rules. It is no boundary: the sandbox of the process is.

mod aliases;
mod commands;
mod git;
mod inline;
mod language;
mod sed;
mod table;
mod variable;
mod wrapper;

pub(crate) use aliases::{command as command_name, may_mean, other_program, other_spellings};
pub(crate) use commands::offered;
pub(crate) use git::without_places;
pub(crate) use table::LOOKING;
pub(crate) use variable::{Sets, sets};

use super::shell::{TELLING, Word, settings};
use table::{Program, find, is_listed};

/// What a rule must spell out after the name of a program, before it can allow the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// Nothing.
    Freely,
    /// A word, if there are options: those of an unknown program may run or write anything.
    Plainly,
    /// A word: the arguments say what is written where.
    Word,
    /// A word that is not an option: the thing to run.
    Name,
    /// Everything: the rule must be the whole command.
    Never,
}

/// Returns why a rule that spells out the first `said` of `words` (including the program) cannot allow the rest; `None`
/// if it can.
pub(crate) fn leaves_too_much_open(words: &[Word], said: usize) -> Option<String> {
    let name = words.first()?.exact()?;
    let known = find(name);
    let open = known.map_or(Open::Plainly, |program| program.open);
    let spelled = &words[1.min(words.len())..said.min(words.len())];
    let is_option = |word: &Word| word.exact().is_none_or(|text| text.starts_with('-'));
    let enough = match open {
        Open::Freely => true,
        Open::Plainly => !spelled.is_empty() || !words.iter().skip(1).any(is_option),
        Open::Word => !spelled.is_empty(),
        Open::Name => spelled.iter().any(|word| !is_option(word)),
        Open::Never => false,
    };
    if !enough {
        return Some(match open {
            Open::Plainly => format!(
                "it leaves open which options `{name}` is given, and what they do is not known"
            ),
            Open::Word => format!("it leaves open what `{name}` writes and where"),
            _ => format!("it leaves open what `{name}` runs"),
        });
    }
    if said < 2 && wrapper::is_one(words) {
        return Some(format!("it leaves open what `{name}` runs"));
    }
    let what = commands::left_open(words, said).or_else(|| runs_by(words, said));
    what.map(|what| format!("{what} is left open by it"))
}

/// True when Posse offers a rule for all commands of the program `name`.
fn is_offered(name: &str) -> bool {
    const OTHERS: [&str; 5] = ["make", "curl", "npm", "cargo", "git"];
    let is_free = |known: &Program| known.open == Open::Freely && !OTHERS.contains(&known.name);
    is_listed(name) && find(name).is_some_and(is_free)
}

/// Returns the argument after the first `said` words that makes a command run or write something else. A `--` ends
/// nothing here: it may be the value of the option before it.
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
        "date" if sets_clock(rest) => return Some("the time that `date` sets".to_owned()),
        "hostname" if rest.iter().any(|word| !word.start().starts_with('-')) => {
            return Some("the name that `hostname` sets".to_owned());
        }
        "make" if assigns(rest) => return Some("a variable for `make`".to_owned()),
        _ => {}
    }
    let hidden = |word: &&Word| hides_program(known, word.start());
    if let Some(word) = rest.iter().find(hidden) {
        return Some(quoted(word.start()));
    }
    let texts = rest.iter().filter_map(Word::exact);
    let meant = |text| known.options.iter().find(|option| is_meant(option, text));
    texts.filter_map(meant).next().map(|option| quoted(option.trim_start_matches(['=', '>'])))
}

/// True when the value of an option names another program. Few programs have such options.
fn hides_program(known: &Program, text: &str) -> bool {
    match known.name {
        // `--config.script-shell=x` of pnpm.
        "npm" => text.trim_start_matches('-').starts_with("config."),
        // The linker, in the flags of go.
        "go" => text.contains("extld") || text.contains("extar"),
        _ => false,
    }
}

/// True when one of these arguments sets a variable, or may.
fn assigns(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| word.exact().is_none_or(|text| text.contains('=')))
}

/// True when one of these arguments is an option that makes the program `known` run another.
fn runs_by_option(known: &Program, arguments: &[Word]) -> bool {
    let mut run = known.options.iter().filter(|option| !option.starts_with('>'));
    run.any(|option| arguments.iter().filter_map(Word::exact).any(|text| is_meant(option, text)))
}

/// True when one of these arguments of date may be a time, which it would set. A format begins with `+`.
fn sets_clock(arguments: &[Word]) -> bool {
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let Some(text) = word.exact() else { return true };
        let has_value = match text.strip_prefix("--") {
            Some(long) => ["date", "file", "reference"].contains(&long),
            None => text.starts_with('-') && text.ends_with(['d', 'f', 'r']),
        };
        if has_value {
            arguments.next();
        } else if !text.starts_with(['-', '+']) {
            return true;
        }
    }
    false
}

/// The second file argument of uniq is the file that it writes.
fn uniq(arguments: &[Word]) -> Option<String> {
    let takes_number = |text: &str| {
        let long = ["--skip-fields", "--skip-chars", "--check-chars"];
        text.len() == 2 && text.starts_with('-') && text.ends_with(['f', 's', 'w'])
            || long.contains(&text)
    };
    let (mut files, mut before, mut ended) = (0, "", false);
    for word in arguments {
        // A pattern may expand to several words.
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
    let given = |text: &str| {
        let name = text.trim_start_matches('-').split('=').next().unwrap_or_default();
        name.to_owned()
    };
    match (option.strip_prefix("--"), text.strip_prefix("--")) {
        // Some programs accept any number of dashes.
        (Some(long), Some(text)) => {
            let given = given(text);
            !given.is_empty() && long.starts_with(&given)
        }
        (Some(long), None) if text.starts_with('-') => {
            let given = given(text);
            given.len() > 2 && long.starts_with(&given)
        }
        (None, None) if option.len() == 2 => {
            let letter = option.as_bytes()[1];
            text.starts_with('-') && text.as_bytes()[1..].contains(&letter)
        }
        (None, None) => text.split('=').next() == Some(option),
        // Some programs accept their long options with one dash too.
        (None, Some(text)) if option.len() > 2 => Some(&*given(text)) == option.strip_prefix('-'),
        _ => false,
    }
}

/// What a command may run besides the program it names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Nothing else, as far as known.
    Itself,
    /// These commands, with the variables that it sets for them.
    Commands(Vec<Vec<Word>>, Vec<Word>),
    /// This shell script.
    Code(String),
    /// One of its arguments is the program, followed by its arguments; or a text with a command.
    Arguments,
    /// Unknown.
    Anything,
}

/// Returns what the command `words` may run.
pub(crate) fn runs(words: &[Word]) -> Runs {
    let Some((head, rest)) = words.split_first() else { return Runs::Anything };
    let Some(path) = head.program() else { return Runs::Anything };
    let name = base(path);
    // The shell itself, or a file that a process has open, under another name.
    if is_unnamed(path) || head.exact().is_none() && (name == "exe" || is_descriptor(name)) {
        return Runs::Anything;
    }
    // Only the name of the program matters: `$(which python3)`, `~/bin/python3`.
    if head.exact().is_none() {
        let named = std::iter::once(Word::Exact(path.to_owned()));
        return runs(&named.chain(rest.iter().cloned()).collect::<Vec<_>>());
    }
    // Commands that only print a version, a help text, or the path of a program run nothing.
    let asked = words.len() == 2 && is_one_of(words.get(1), &["--version", "--help"]);
    if asked || name == "command" && is_one_of(words.get(1), &["-v", "-V"]) {
        return Runs::Itself;
    }
    if let Some(runs) = wrapper::runs(words).or_else(|| commands::runs(words)) {
        return runs;
    }
    // In these folders, patterns match the open files of a process.
    if ["cd", "pushd"].contains(&name) {
        let is_there = |word: &Word| match &*names(word.exact().unwrap_or_default()) {
            ["dev"] | ["dev", "fd"] => word.start() != "dev",
            ["proc", ..] => word.start().starts_with('/'),
            _ => false,
        };
        return if rest.iter().any(is_there) { Runs::Anything } else { Runs::Itself };
    }
    // `git-push` is `git push`.
    if let Some(command) = name.strip_prefix("git-").filter(|it| !it.contains('.')) {
        let words = ["git", command].map(|it| Word::Exact(it.to_owned())).into_iter();
        return Runs::Commands(vec![words.chain(rest.iter().cloned()).collect()], Vec::new());
    }
    if name == "docker-compose" {
        let words = ["docker", "compose"].map(|it| Word::Exact(it.to_owned())).into_iter();
        return Runs::Commands(vec![words.chain(rest.iter().cloned()).collect()], Vec::new());
    }
    let Some(known) = find(name) else {
        let is_loader = name.starts_with("ld-linux") || name.starts_with("ld-musl");
        return match is_loader || wrapper::is_one(words) {
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
        (_, "jobs") if is_one_of(words.get(1), &["-x"]) => Runs::Arguments,
        (_, "jobs" | "history" | "unalias") => Runs::Itself,
        (_, "alias") => alias(&words[1..]),
        // Its declarations apply to the whole script.
        (_, "eval" | "trap") if rest.iter().any(|word| declares(word.start())) => Runs::Anything,
        (_, "set" | "shopt") => {
            let options = words[1..].iter().take_while(|word| !is_one_of(Some(word), &["--"]));
            when(options.filter(|word| word.exact().is_some()).any(wrapper::changes_reading))
        }
        // It runs a command for every line.
        (_, "mapfile" | "readarray") if words.iter().any(|word| calls(word.start())) => {
            Runs::Anything
        }
        (_, "export" | "declare" | "typeset" | "local" | "readonly" | "read" | "mapfile")
        | (_, "readarray" | "getopts" | "unset" | "wait" | "printf") => {
            when(settings(words).is_none())
        }
        (_, "let") => Runs::Anything,
        // These options take words that the shell expands, a command, or a function.
        (_, "compgen" | "complete") => {
            let is_plain =
                |word: &Word| word.exact().is_some_and(|text| !text.contains(['W', 'C', 'F']));
            when(!rest.iter().filter(|word| word.may_be_option()).all(is_plain))
        }
        ("test", _) => when(runs_by_option(known, &words[1..]) || tests_unknown(&words[1..])),
        // It runs a file; but the same command must not write that file.
        (_, "source" | ".") => {
            match words[1..].iter().find(|word| !is_one_of(Some(word), &["--"])) {
                Some(file) => when(file.may_be_option() || may_be_input(file)),
                None => Runs::Itself,
            }
        }
        // The file is the input under another name.
        (_, "ln" | "cp") if words[1..].iter().any(is_link_to_input) => Runs::Anything,
        (_, "docker" | "podman" | "nerdctl" | "kubectl") => match starts_container(words) {
            true => Runs::Arguments,
            false => Runs::Itself,
        },
        // Only some options of these run something.
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
        // Writing a file is not running a program.
        _ => when(runs_by_option(known, &words[1..])),
    }
}

/// Returns what aliases stand for, whatever follows them. A value with shell syntax may be half a command.
fn alias(arguments: &[Word]) -> Runs {
    let plain = |it: char| it.is_ascii_alphanumeric() || "_-./=, ".contains(it);
    let mut commands = Vec::new();
    for word in arguments {
        let Some(text) = word.exact() else { return Runs::Anything };
        let Some((name, value)) = text.split_once('=') else { continue };
        // Posse relies on the output of these programs.
        if TELLING.contains(&name) {
            return Runs::Anything;
        }
        let mut command: Vec<_> =
            value.split_whitespace().map(|it| Word::Exact(it.to_owned())).collect();
        let is_program = command.first().is_some_and(|word| !word.start().contains('='));
        if !is_program || !value.chars().all(plain) {
            return Runs::Anything;
        }
        command.push(Word::Unknown);
        commands.push(command);
    }
    Runs::Commands(commands, Vec::new())
}

/// True for code that may change the type of a variable.
fn declares(code: &str) -> bool {
    ["declare", "typeset", "local -"].iter().any(|command| code.contains(command))
}

/// True for the options with which `mapfile` runs a command.
fn calls(text: &str) -> bool {
    text.starts_with('-') && text.contains('C')
}

/// True when an unknown word may make `test` evaluate the word after it.
fn tests_unknown(arguments: &[Word]) -> bool {
    let may_evaluate = |word: &Word| word.exact().is_none_or(|text| text.contains('['));
    let may_be_option = |word: &Word| word.exact().is_none() && word.may_be_option();
    arguments.windows(2).any(|pair| may_be_option(&pair[0]) && may_evaluate(&pair[1]))
}

/// True when a container runs something, or may: not if the first word is another command.
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

/// True when the command may do anything besides running its arguments: it has its own language, or starts a shell that
/// obeys its input.
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

/// True when the program reads an argument as a shell does, even if it is a single word.
pub(crate) fn reads_as_shell(words: &[Word]) -> bool {
    const OTHERS: [&str; 16] = [
        "eval",
        "trap",
        "watch",
        "ssh",
        "su",
        "runuser",
        "script",
        "flock",
        "tmux",
        "screen",
        "entr",
        "hyperfine",
        "mosh",
        "nc",
        "ncat",
        "netcat",
    ];
    let Some(name) = words.first().and_then(Word::program).map(base) else { return true };
    OTHERS.contains(&name)
}

/// Paths in `/dev` that open the standard streams of a process.
const INPUTS: [&str; 3] = ["stdin", "stdout", "stderr"];

/// True for a path that opens an inherited descriptor of a process.
pub(crate) fn is_input(path: &str) -> bool {
    match &*names(path) {
        [.., "dev", name] if INPUTS.contains(name) => true,
        [.., "dev", "fd", _] => true,
        [before @ .., "fd", _] => before.contains(&"proc"),
        _ => false,
    }
}

/// True for the path of a program whose name says nothing: behind a descriptor, or below `/proc`.
fn is_unnamed(path: &str) -> bool {
    match &*names(path) {
        ["proc", ..] => true,
        names @ [.., "exe"] if names.contains(&"proc") => true,
        [.., "fd", name] if is_descriptor(name) => true,
        _ => is_input(path),
    }
}

/// True when a file to run may be an inherited descriptor. The current folder is unknown: a script may first change to
/// `/dev`.
fn may_be_input(file: &Word) -> bool {
    let Some(path) = file.code() else {
        let start = names(file.start());
        let is_open =
            |end: &str| end.is_empty() || names(end).last().is_some_and(|it| is_descriptor(it));
        let hides = matches!(file, Word::Partly { end, .. } if is_open(end));
        let ends = matches!(file, Word::Partly { end, .. } if end.contains('/') && is_open(end));
        return match &*start {
            _ if ends => true,
            [] => hides && file.start().starts_with('.'),
            [first, ..] if file.start().starts_with('/') || file.start().starts_with("..") => {
                ["d", "de", "dev", "p", "pr", "pro", "proc"].contains(first)
            }
            _ => false,
        };
    };
    match &*names(path) {
        [.., "fd", _] => true,
        [only] => is_descriptor(only),
        [.., name] => INPUTS.contains(name),
        [] => false,
    }
}

/// True for the name of a descriptor in `/dev` or `/dev/fd`.
fn is_descriptor(name: &str) -> bool {
    INPUTS.contains(&name) || name.bytes().all(|byte| byte.is_ascii_digit())
}

/// True for a path that is the input of a program, and for a folder of such paths.
fn is_link_to_input(path: &Word) -> bool {
    path.exact().is_some_and(|path| is_input(path) || names(path).last() == Some(&"fd"))
        || path.code().is_some_and(|path| INPUTS.contains(&path))
}

/// Returns the names in a path. It resolves `.` and `..`.
fn names(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names
}

/// The last part of a path.
pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
