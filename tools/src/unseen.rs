//! What of a workspace rules keep from being read: a command must not see it either, so it is found
//! and hidden before the command starts.

use crate::failure::Failure;
use crate::path_rules::{PathRules, Reached, Usage};
use std::fs;
use std::path::{Path, PathBuf};

/// Files and folders that are looked at, at most.
const LOOKED_AT: usize = 200_000;
/// Places that can be hidden, at most: each is a mount.
const HIDDEN: usize = 1_000;

/// What is below `root` and may not be read, as `rules` say: folders where that is all there is in
/// them, else files.
///
/// # Errors
/// When it is too much to find or to hide.
pub(crate) fn unseen(rules: &dyn PathRules, root: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !rules.hide_some() {
        return Ok(Vec::new());
    }
    let mut search = Search { rules, looked_at: 0 };
    let (mut hidden, seen) = search.below(root)?;
    if !seen {
        // Nothing in it may be read, and it must be there all the same.
        hidden = children(root);
    }
    if hidden.len() > HIDDEN {
        return Err(Failure(format!(
            "not run: rules keep {} files and folders from being read, more than can be hidden from a \
             command; use the file tools",
            hidden.len()
        )));
    }
    Ok(hidden)
}

struct Search<'r> {
    rules: &'r dyn PathRules,
    looked_at: usize,
}

impl Search<'_> {
    /// What is hidden below `folder`, and whether anything in it is seen.
    fn below(&mut self, folder: &Path) -> Result<(Vec<PathBuf>, bool), Failure> {
        let (mut hidden, mut seen) = (Vec::new(), false);
        for path in children(folder) {
            self.looked_at += 1;
            if self.looked_at > LOOKED_AT {
                return Err(Failure(format!(
                    "not run: there are rules about reading, and more than {LOOKED_AT} files to hold \
                     against them; use the file tools"
                )));
            }
            let Ok(found) = path.symlink_metadata() else { continue };
            // A link leads to what is hidden itself, or outside, where others decide.
            if found.is_symlink() {
                continue;
            }
            if found.is_dir() {
                let (inside, any) = self.below(&path)?;
                match any || inside.is_empty() {
                    true => hidden.extend(inside),
                    false => hidden.push(path),
                }
                seen |= any;
            } else if self.rules.refuse(Usage::Read, Reached::Found, &path, &path).is_some() {
                hidden.push(path);
            } else {
                seen = true;
            }
        }
        Ok((hidden, seen))
    }
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    struct NoSecrets;

    impl PathRules for NoSecrets {
        fn refuse(&self, _: Usage, _: Reached, _: &Path, real: &Path) -> Option<String> {
            let name = real.to_string_lossy();
            (name.contains("secret")).then(|| "it is one".to_owned())
        }

        fn hide_some(&self) -> bool {
            true
        }
    }

    #[test]
    fn what_may_not_be_read_is_found_and_whole_folders_of_it_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["a/x", "a/secret.key", "secrets/one", "secrets/deep/two", "b/.env-secret"] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let mut found = unseen(&NoSecrets, root).unwrap();
        found.sort();
        let expected = ["a/secret.key", "b", "secrets"].map(|name| root.join(name));
        assert_eq!(found, expected);
    }
}
