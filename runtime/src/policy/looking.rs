//! Commands that only read. If they are confined, Posse does not ask about them in any mode.

use super::program::LOOKING as GIT;
use super::set::Rules;
use std::sync::LazyLock;

/// Programs that only read, with any arguments. Rules never allow the options with which some of them write or run
/// something; `program` knows those. `cd` is not in the list: another folder may hold a repository that came with the
/// project, and git would obey its settings.
const PROGRAMS: &str = "ls cat head tail wc nl pwd echo grep egrep fgrep rg find tree stat file du \
     df which whoami id uname date true false sort uniq cut tr diff cmp comm column basename dirname \
     realpath readlink md5sum sha1sum sha256sum jq seq";

/// Whole commands that only read.
const COMMANDS: [&str; 10] = [
    "git branch",
    "git branch -a",
    "git branch -v",
    "git branch -vv",
    "git branch --show-current",
    "git remote",
    "git remote -v",
    "git stash list",
    "git tag",
    "git worktree list",
];

/// Rules that allow them.
pub(super) static LOOKING: LazyLock<Rules> = LazyLock::new(|| {
    let programs = PROGRAMS.split_whitespace().map(|name| format!("{name}:*"));
    let git = GIT.split_whitespace().map(|name| format!("git {name}:*"));
    let whole = COMMANDS.iter().map(|command| (*command).to_owned());
    Rules::of_commands(programs.chain(git).chain(whole))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_read() {
        let programs = PROGRAMS.split_whitespace().count();
        let expected = programs + GIT.split_whitespace().count() + COMMANDS.len();
        assert_eq!(LOOKING.texts().len(), expected);
    }
}
