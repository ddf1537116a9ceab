//! What is known of programs: which of them run or write whatever their arguments say, and by which
//! options others do. A rule that names only a program must not become a rule for every program.
//!
//! The list is about mistakes and known ways around rules. It is no boundary: that is the
//! confinement of the process.

mod language;
mod table;

use super::shell::Word;
use table::{GIT, GIT_SHORT, LOOKING, find};

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
    let rest = &words[said.min(words.len())..];
    runs_by(words, rest).map(|what| format!("{what} is left open by it"))
}

/// What among the arguments of a command makes it run, or write, something else.
fn runs_by(words: &[Word], rest: &[Word]) -> Option<String> {
    let name = words.first()?.exact()?;
    let quoted = |text: &str| format!("`{}`", text.chars().take(60).collect::<String>());
    let known = find(name)?;
    match known.name {
        "git" => return git(words, rest),
        "sed" => return language::sed(rest).map(str::to_owned),
        "awk" => return language::awk(rest).map(str::to_owned),
        "make" => {
            let assigns = |word: &&Word| word.exact().is_none_or(|text| text.contains('='));
            if rest.iter().any(|word| assigns(&word)) {
                return Some("a variable for `make`".to_owned());
            }
        }
        _ => {}
    }
    for word in rest {
        let text = match word {
            Word::Exact(text) if text == "--" => break,
            Word::Exact(text) => text,
            Word::Begins(_) | Word::Unknown => continue,
        };
        if let Some(option) = known.options.iter().find(|option| is_meant(option, text)) {
            return Some(quoted(option.trim_start_matches('=')));
        }
    }
    None
}

/// True when the argument `text` is `option`, or may be.
fn is_meant(option: &str, text: &str) -> bool {
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

fn git(words: &[Word], rest: &[Word]) -> Option<String> {
    let command = words.get(1).and_then(Word::exact);
    let left_open = rest.len() == words.len() - 1;
    let Some(command) = command else {
        return left_open.then(|| "which command of git".to_owned()).filter(|_| words.len() > 1);
    };
    if left_open && !LOOKING.split(' ').any(|known| known == command) {
        return Some(format!("`git {command}`, which may do more than look,"));
    }
    let short = GIT_SHORT.iter().find(|(known, _)| *known == command).map_or("", |(_, it)| *it);
    for word in rest {
        let Some(text) = word.exact() else { continue };
        if text == "--" {
            break;
        }
        let long = GIT.split(' ').any(|option| is_meant(option, text));
        let cluster = text.starts_with('-') && !text.starts_with("--");
        let letter = cluster && text.chars().skip(1).any(|letter| short.contains(letter));
        // `ext::` and its like name a program to talk to.
        let transport = text.contains("::") || text.contains("://-");
        if long || letter || transport {
            return Some(format!("`{}`", text.chars().take(60).collect::<String>()));
        }
    }
    let says =
        |wanted: &[&str]| rest.iter().filter_map(Word::exact).any(|text| wanted.contains(&text));
    match command {
        "config"
            if !says(&["--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"]) =>
        {
            Some("a setting of git".to_owned())
        }
        "bisect" if says(&["run", "visualize", "view"]) => Some("`run`".to_owned()),
        "submodule" if says(&["foreach"]) => Some("`foreach`".to_owned()),
        "filter-branch" | "difftool" | "mergetool" | "hook" | "instaweb" | "daemon"
            if !rest.is_empty() =>
        {
            Some(format!("what `git {command}` runs"))
        }
        _ => None,
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
        (Open::Never, _) | (_, "find" | "fd" | "tar" | "rsync") => Runs::Arguments,
        (Open::Name, _) => {
            let inline = |word: &Word| match word {
                Word::Exact(text) => {
                    text.starts_with('-')
                        && !text.starts_with("--")
                        && text.contains(['c', 'e', 'E'])
                        || ["--eval", "--command", "--exec", "--print"].contains(&text.as_str())
                }
                Word::Begins(_) | Word::Unknown => true,
            };
            let shell =
                name.ends_with("sh") || matches!(name, "busybox" | "docker" | "podman" | "kubectl");
            match (shell, words[1..].iter().any(inline)) {
                (true, _) => Runs::Arguments,
                (false, true) => Runs::Anything,
                (false, false) => Runs::Itself,
            }
        }
        _ => match runs_by(words, &words[1..]) {
            Some(_) if known.name == "git" && !git_runs(words) => Runs::Itself,
            Some(_) => Runs::Anything,
            None => Runs::Itself,
        },
    }
}

/// True when git is told to run something, and not only to do what it does.
fn git_runs(words: &[Word]) -> bool {
    let Some(command) = words.get(1).and_then(Word::exact) else { return true };
    // With options before its command, it is another git.
    command.starts_with('-') && command != "--no-pager" && command != "-C"
        || git(words, &words[2..]).is_some()
}

/// The last part of a path.
pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
