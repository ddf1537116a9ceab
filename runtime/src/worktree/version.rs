//! The version of git, of which runs in a repository need a recent one.

use super::git::Git;
use posse_tools::launch::Launcher;
use std::path::Path;

/// The oldest version that does what is asked of it: `git merge-tree --write-tree`.
const NEEDED: (u32, u32) = (2, 38);

/// Returns why the git of this machine is too old, if it is.
pub(super) async fn too_old(launcher: &Launcher, folder: &Path) -> Option<String> {
    // If git cannot be started, the first command that is needed says why.
    let said = Git::reading(launcher, folder).whole(&["--version"]).await.ok()?;
    why_too_old(&said)
}

fn why_too_old(said: &str) -> Option<String> {
    let found = said.trim().strip_prefix("git version ")?.split_whitespace().next()?;
    let mut numbers = found.split('.').map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
    ((major, minor) < NEEDED).then(|| {
        let (major, minor) = NEEDED;
        format!(
            "git {found} of this machine is too old for runs in a repository; install git \
             {major}.{minor} or newer"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_git_known_to_be_old_is_refused() {
        for said in ["git version 2.38.0", "git version 2.51.2\n", "git version 3.0", "git", ""] {
            assert_eq!(why_too_old(said), None, "{said}");
        }
        let why = why_too_old("git version 2.30.2 (Apple Git-1)\n").unwrap_or_default();
        assert!(why.contains("git 2.30.2") && why.contains("git 2.38 or newer"), "{why}");
        assert!(why_too_old("git version 1.8.3.1").is_some());
    }
}
