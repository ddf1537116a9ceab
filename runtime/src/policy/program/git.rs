//! What git runs or writes in addition to its subcommand.

use super::commands::could_be;
use super::is_meant;
use super::table::{GIT, GIT_SHORT, LOOKING};
use crate::policy::shell::Word;

/// Settings that do not change which programs git runs. A name that ends with a dot means all settings below it.
const HARMLESS: &str = "user.name user.email user.signingkey init.defaultbranch push.default \
     push.autosetupremote pull.rebase pull.ff fetch.prune color. advice. commit.gpgsign \
     tag.gpgsign core.autocrlf core.eol core.filemode core.ignorecase core.quotepath \
     core.longpaths core.safecrlf core.symlinks safe.directory rerere.enabled \
     merge.conflictstyle rebase.autosquash rebase.autostash diff.renames diff.algorithm log.date \
     http.postbuffer http.sslverify gc.auto maintenance.auto";

/// Further settings, with the values that keep git from running something.
const OFF: [(&str, &str); 3] =
    [("core.fsmonitor", "false"), ("protocol.allow", "never"), ("diff.external", "")];

fn is_harmless(key: &str, value: &str) -> bool {
    let key = key.to_ascii_lowercase();
    if OFF.contains(&(key.as_str(), value)) {
        return true;
    }
    HARMLESS.split(' ').any(|known| match known.ends_with('.') {
        true => key.starts_with(known),
        false => key == known,
    })
}

/// Returns the index of the subcommand in `words`: after options that do not change what git runs. Harmless settings
/// count as such if `settings` is true.
fn position(words: &[Word], settings: bool) -> Option<usize> {
    let mut at = 1;
    loop {
        match words.get(at)?.exact()? {
            "-C" => at += 2,
            "-c" if settings => {
                let setting = words.get(at + 1)?;
                let (key, value) = setting.start().split_once('=')?;
                if !is_harmless(key, setting.exact().map_or("?", |_| value)) {
                    return None;
                }
                at += 2;
            }
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" => at += 1,
            "--version" => return Some(at),
            option if option.starts_with('-') => return None,
            _ => return Some(at),
        }
    }
}

/// Returns what git runs or writes because of words after the first `said`.
pub(super) fn runs_by(words: &[Word], said: usize) -> Option<String> {
    if said >= words.len() {
        return None;
    }
    let Some(at) = position(words, false) else { return Some("which command of git".to_owned()) };
    let command = words[at].exact()?;
    let looks = LOOKING.split(' ').any(|known| known == command);
    // A subcommand that the rule leaves open must only read, and be the first word left open.
    if at >= said && (at > said || !looks) {
        return Some(format!("`git {command}`, which may do more than look,"));
    }
    let rest = &words[said.max(at + 1).min(words.len())..];
    if command == "config" && !only_reads(&words[at + 1..]) {
        return Some("a setting of git".to_owned());
    }
    options(command, rest, |_| true)
}

/// Returns the argument that makes a subcommand of git run something. `talks` says whether a text with `::` may be an
/// address.
fn options(command: &str, rest: &[Word], talks: impl Fn(&str) -> bool) -> Option<String> {
    let short = GIT_SHORT.iter().find(|(known, _)| *known == command).map_or("", |(_, it)| *it);
    for text in rest.iter().filter_map(Word::exact) {
        let long = GIT.split(' ').any(|option| is_meant(option, text));
        let cluster = text.starts_with('-') && !text.starts_with("--");
        let letter = cluster && text.chars().skip(1).any(|letter| short.contains(letter));
        // `ext::` and similar prefixes name a program to connect to.
        let transport = (text.contains("::") || text.contains("://-")) && talks(text);
        if long || letter || transport {
            return Some(format!("`{}`", text.chars().take(60).collect::<String>()));
        }
    }
    let says = |wanted: &[&str]| {
        rest.iter().any(|word| wanted.iter().any(|wanted| could_be(word, wanted)))
    };
    match command {
        "bisect" if says(&["run", "visualize", "view"]) => Some("`run`".to_owned()),
        "submodule" | "submodule--helper" if says(&["foreach"]) => Some("`foreach`".to_owned()),
        _ if command.starts_with("remote-") => Some(format!("what `git {command}` runs")),
        "for-each-repo" | "merge-index" | "filter-branch" | "difftool" | "mergetool" | "hook"
        | "instaweb" | "daemon"
            if !rest.is_empty() =>
        {
            Some(format!("what `git {command}` runs"))
        }
        _ => None,
    }
}

/// True when `git config` with these arguments reads: its action comes first, or after options that say where and how.
/// Elsewhere the same word is a name or a value.
fn only_reads(arguments: &[Word]) -> bool {
    let mut arguments = arguments.iter().map(Word::exact);
    if arguments.clone().next().flatten().is_some_and(|it| ["get", "list"].contains(&it)) {
        return true;
    }
    while let Some(Some(text)) = arguments.next() {
        match text {
            "--get" | "--get-all" | "--get-regexp" | "--get-urlmatch" | "--list" | "-l" => {
                return true;
            }
            "-f" | "--file" | "--blob" | "--type" => {
                arguments.next();
            }
            "--global" | "--local" | "--system" | "--worktree" | "-z" | "--null"
            | "--show-origin" | "--show-scope" | "--name-only" | "--includes" => {}
            text if text.starts_with("--file=") || text.starts_with("--type=") => {}
            _ => return false,
        }
    }
    false
}

/// True when `git config` with these arguments sets nothing that decides what runs.
fn only_sets(arguments: &[Word]) -> bool {
    const OPTIONS: [&str; 9] = [
        "--global",
        "--local",
        "--system",
        "--worktree",
        "--add",
        "--replace-all",
        "--unset",
        "--unset-all",
        "--bool",
    ];
    let mut arguments = arguments.iter().map(Word::exact);
    let mut next = || arguments.find(|it| !it.is_some_and(|it| OPTIONS.contains(&it))).flatten();
    let key = match next() {
        Some("set" | "unset") => next(),
        first => first,
    };
    let only = arguments.len() == 0;
    // A key without a value is read.
    key.is_some_and(|key| is_harmless(key, "?") || only && !key.starts_with('-'))
}

/// True when the words make git run another program.
pub(super) fn runs(words: &[Word]) -> bool {
    const TALKING: [&str; 9] = [
        "clone",
        "fetch",
        "pull",
        "push",
        "ls-remote",
        "remote",
        "submodule",
        "archive",
        "send-pack",
    ];
    if words.len() < 2 {
        return false;
    }
    // Other options before the subcommand may change what git runs.
    let Some(at) = position(words, true) else { return true };
    let Some(command) = words[at].exact() else { return true };
    let rest = &words[at + 1..];
    if command == "config" {
        return !only_reads(rest) && !only_sets(rest);
    }
    options(command, rest, |_| TALKING.contains(&command)).is_some()
}

/// Returns the command without the options that only say where git works.
pub(crate) fn without_places(words: &[Word]) -> Vec<Word> {
    let mut rest = words;
    loop {
        rest = match rest {
            [Word::Exact(option), place, others @ ..]
                if option == "-C" && !matches!(place, Word::Unknown | Word::Begins(_)) =>
            {
                others
            }
            _ => return rest.to_vec(),
        };
    }
}
