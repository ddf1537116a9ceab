//! Tells why commands cannot change a file, if their output complains about it.

use super::command_sandbox::CommandSandbox;
use super::git::why_named;
use super::protected::{GIT, IN_GIT, obeyed_below_home};
use posse_protocol::Profile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What programs say if they meet a file or folder that can only be read, or that cannot be moved.
pub(super) const SAYS: [&str; 2] = ["Read-only file system", "Device or resource busy"];

/// How many files are explained.
const TOLD: usize = 5;

/// The files in the workspace that `text`, the output of a command, complains about, each with the reason why
/// it cannot be changed.
pub(crate) fn reasons(text: &str, sandbox: &CommandSandbox) -> Vec<(PathBuf, String)> {
    let lines: Vec<&str> =
        text.lines().filter(|line| SAYS.iter().any(|it| line.contains(it))).collect();
    if lines.is_empty() || sandbox.profile != Profile::WorkspaceWrite {
        return Vec::new();
    }
    let CommandSandbox { workspace, homes, .. } = sandbox;
    let outside = |why: String| format!("{why}, outside of the sandbox");
    let named = why_named(workspace, homes).into_iter();
    let mut closed: BTreeMap<PathBuf, String> =
        named.map(|(path, why)| (path, outside(why))).collect();
    for path in &sandbox.fixed {
        closed.entry(path.clone()).or_insert_with(|| "a rule denies changes to it".to_owned());
    }
    for path in obeyed_below_home(workspace, homes, &sandbox.hidden).places {
        let why = "programs of the user obey it, through a link or the home folder";
        closed.entry(path).or_insert_with(|| outside(why.to_owned()));
    }
    // A note of its own explains the settings.
    for name in IN_GIT.iter().filter(|name| **name != "config") {
        closed.insert(workspace.join(GIT).join(name), outside("git obeys it".to_owned()));
    }
    let below = |path: PathBuf| path.strip_prefix(workspace).map(Path::to_owned).ok();
    let closed: BTreeMap<PathBuf, String> =
        closed.into_iter().filter_map(|(path, why)| Some((below(path)?, why))).collect();
    let ends = |letter: char| letter.is_whitespace() || "'\"`‘’:,()".contains(letter);
    let words = lines.iter().flat_map(|line| line.split(ends));
    let words: Vec<&Path> = words.map(|word| in_workspace(word, workspace)).collect();
    // `sed -i` names only the new file that should take the place of the old one.
    let is_renamed = lines.iter().any(|line| line.contains("rename"));
    // The file itself, something in it, or a folder around it.
    let is_met = |path: &Path| {
        let is_about = |it: &&Path| {
            let is_beside = is_renamed && it.components().count() > 1;
            path.starts_with(it)
                || it.starts_with(path)
                || is_beside && it.parent() == path.parent()
        };
        words.iter().filter(|it| !it.as_os_str().is_empty()).any(is_about)
    };
    closed.into_iter().filter(|(path, _)| is_met(path)).take(TOLD).collect()
}

/// The path that a word means, without the workspace before it.
fn in_workspace<'t>(word: &'t str, workspace: &Path) -> &'t Path {
    let path = Path::new(word);
    let path = path.strip_prefix(workspace).unwrap_or(path);
    path.strip_prefix(".").unwrap_or(path)
}
