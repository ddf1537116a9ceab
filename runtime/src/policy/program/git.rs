//! What git runs or writes besides what its command says.

use super::is_meant;
use super::table::{GIT, GIT_SHORT, LOOKING};
use crate::policy::shell::Word;

/// Where the command of git stands among `words`: after options that change nothing of what it runs.
fn position(words: &[Word]) -> Option<usize> {
    let mut at = 1;
    loop {
        match words.get(at)?.exact()? {
            "-C" => at += 2,
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" => at += 1,
            "--version" => return Some(at),
            option if option.starts_with('-') => return None,
            _ => return Some(at),
        }
    }
}

/// What git runs or writes by words that do not stand among the first `said`.
pub(super) fn runs_by(words: &[Word], said: usize) -> Option<String> {
    if said >= words.len() {
        return None;
    }
    let Some(at) = position(words) else { return Some("which command of git".to_owned()) };
    let command = words[at].exact()?;
    let looks = LOOKING.split(' ').any(|known| known == command);
    // One of which the rule says nothing may only look, and no option before it may be left open.
    if at >= said && (at > said || !looks) {
        return Some(format!("`git {command}`, which may do more than look,"));
    }
    let rest = &words[said.max(at + 1).min(words.len())..];
    let short = GIT_SHORT.iter().find(|(known, _)| *known == command).map_or("", |(_, it)| *it);
    for text in rest.iter().filter_map(Word::exact) {
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
        "config" if !only_reads(&words[at + 1..]) => Some("a setting of git".to_owned()),
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

/// True when `git config` with these arguments reads: what it is to do stands first, or after options
/// that say where and how. Elsewhere the same word is a name or a value.
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

/// True when git is told to run something, and not only to do what it does.
pub(super) fn runs(words: &[Word]) -> bool {
    if words.len() < 2 {
        return false;
    }
    // With other options before its command, it is another git.
    let Some(at) = position(words) else { return true };
    runs_by(words, at + 1).is_some()
}
