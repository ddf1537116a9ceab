//! Finds complaints in the output of a command whose cause is the confinement. It inspects only the text.

/// Messages of programs that cannot find another machine.
const OUT_OF_REACH: [&str; 12] = [
    "could not resolve host",
    "couldn't resolve host",
    "unable to resolve host",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "no address associated with hostname",
    "network is unreachable",
    "eai_again",
    "enetunreach",
    "getaddrinfo enotfound",
    "unknownhostexception",
];

/// Returns true if a line of `text` says that another machine was not found.
pub(super) fn misses_network(text: &str) -> bool {
    let goes = |line: &str| {
        let line = line.to_ascii_lowercase();
        let looked_up = line.contains("dial tcp: lookup ");
        looked_up || OUT_OF_REACH.iter().any(|it| line.contains(it))
    };
    text.lines().any(goes)
}

/// A setting of the repository that git could not store.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unstored {
    /// The upstream of a branch, although git claims that it is set.
    Upstream { branch: String, upstream: String },
    /// Any other setting.
    Setting,
}

/// Returns the setting of the repository that git could not store, according to `text`.
pub(super) fn unstored(text: &str) -> Option<Unstored> {
    let is_refused = |line: &str| {
        let of_git = line.contains("could not write config file")
            || line.contains("could not lock config file");
        of_git && line.contains(".git/config: ") && !line.ends_with("File exists")
    };
    if !text.lines().any(is_refused) {
        return None;
    }
    let followed = text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("branch '")?;
        let (branch, rest) = rest.split_once("' set up to track '")?;
        let (upstream, _) = rest.split_once('\'')?;
        Some(Unstored::Upstream { branch: branch.to_owned(), upstream: upstream.to_owned() })
    });
    Some(followed.unwrap_or(Unstored::Setting))
}

impl Unstored {
    /// The note for the agent.
    pub(super) fn note(&self) -> String {
        let why = "[no command can change .git/config: git obeys it outside of the sandbox. It is not \
                   busy, and to try again does not help.";
        match self {
            Unstored::Upstream { branch, upstream } => {
                let remote =
                    upstream.split_once('/').map(|(remote, name)| format!("{remote} {name}"));
                let named = remote.unwrap_or_else(|| upstream.clone());
                format!(
                    "{why} The branch {branch} is there and has no upstream, whatever git says: name \
                     it, as in `git pull {named}`. Tell the user to run `git branch -u {upstream} \
                     {branch}`.]"
                )
            }
            Unstored::Setting => format!(
                "{why} The setting was not stored; all else that git did is done. If the task needs \
                 it, tell the user which command to run.]"
            ),
        }
    }
}

/// Messages of programs that meet a hidden file.
const TROUBLE: [&str; 2] = ["Permission denied", "Device or resource busy"];

/// Returns the names of `hidden`, paths in the workspace, that `text` complains about. Also those that
/// git considers changed because it cannot read them.
pub(super) fn in_the_way(text: &str, hidden: &[String]) -> Vec<String> {
    let is_in_way = |name: &&String| text.lines().any(|line| meets(line, name));
    hidden.iter().filter(is_in_way).take(5).cloned().collect()
}

fn meets(line: &str, name: &str) -> bool {
    let troubled = TROUBLE.iter().any(|word| line.contains(word)) && line.contains(name);
    troubled || changed_file(line).is_some_and(|file| is_in(file, name))
}

/// The file that a line of `git status` reports as changed.
fn changed_file(line: &str) -> Option<&str> {
    if let Some(rest) = line.trim_start().strip_prefix("modified:") {
        return Some(rest.trim());
    }
    let marks = [" M ", "MM ", "AM ", "RM ", "CM "];
    marks.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

fn is_in(file: &str, name: &str) -> bool {
    let file = file.trim_start_matches("../").trim_start_matches("./");
    let rest = file.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if git reports changes without naming a file.
pub(super) fn is_called_unclean(text: &str) -> bool {
    let is_called =
        |line: &str| line.ends_with("-dirty") || line.contains("You have unstaged changes");
    text.lines().any(is_called)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_git_could_not_store_is_told_from_what_it_did() {
        let refused =
            "error: could not write config file /r/.git/config: Device or resource busy\n";
        let tracks = "branch 'f/x' set up to track 'origin/f/x'.\n";
        let note = unstored(&format!("{refused}{refused}{tracks}")).unwrap().note();
        assert!(note.contains("`git branch -u origin/f/x f/x`"), "{note}");
        assert!(note.contains("`git pull origin f/x`"), "{note}");
        assert_eq!(unstored(refused), Some(Unstored::Setting));
        assert_eq!(unstored(tracks), None);
    }

    #[test]
    fn a_hidden_file_that_git_calls_changed_is_in_the_way() {
        let hidden = ["secrets".to_owned(), ".env".to_owned()];
        let met = |text: &str| in_the_way(text, &hidden);
        assert_eq!(met("\tmodified:   secrets/a\n"), ["secrets"]);
        assert_eq!(met(" M .env\n M src/secrets\n"), [".env"]);
        assert_eq!(met("\tmodified:   secrets-of-mine/a\n M .env.example\n"), [""; 0]);
        assert_eq!(met("error: open(\"secrets/a\"): Permission denied\n"), ["secrets"]);
        assert!(is_called_unclean("v1-2-gabc-dirty\n") && !is_called_unclean("dirty\n"));
    }
}
