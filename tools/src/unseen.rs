//! What of a workspace rules keep from being read or changed: a command must not do it either, so it
//! is found before the command starts, and hidden or fixed.

use crate::failure::Failure;
use crate::path_rules::{PathRules, Reached, Usage};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files and folders that are looked at, at most.
const LOOKED_AT: usize = 200_000;
/// Places that can be hidden, at most: each is a mount.
const HIDDEN: usize = 1_000;

/// What is below a folder and kept back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptBack {
    /// To be mounted over: folders where that is all there is in them, else files.
    pub places: Vec<PathBuf>,
    /// Every file and link.
    pub files: HashSet<PathBuf>,
}

/// What is below `root` and may not be read, as `rules` say.
///
/// # Errors
/// When it is too much to find or to hide.
pub(crate) fn unseen(rules: &dyn PathRules, root: &Path) -> Result<KeptBack, Failure> {
    let is_refused = |path: &Path| rules.refuse(Usage::Read, Reached::Found, path, path).is_some();
    match rules.hide_some() {
        true => found(root, &is_refused, &|folder| rules.hide_some_in(folder)),
        false => Ok(KeptBack::default()),
    }
}

/// The same of what may not be changed.
///
/// # Errors
/// When it is too much to find or to fix.
pub(crate) fn fixed(rules: &dyn PathRules, root: &Path) -> Result<KeptBack, Failure> {
    match rules.deny_some_changes() {
        true => found(root, &|path| rules.denies_change(path), &|folder| {
            rules.deny_some_changes_in(folder)
        }),
        false => Ok(KeptBack::default()),
    }
}

fn found(
    root: &Path,
    refused: &dyn Fn(&Path) -> bool,
    matters: &dyn Fn(&Path) -> bool,
) -> Result<KeptBack, Failure> {
    let mut search = Search { refused, matters, looked_at: 0, files: HashSet::new() };
    let (mut places, free) = search.below(root)?;
    if !free {
        // Nothing in it is free, and it must be there all the same.
        places = children(root);
    }
    if places.len() > HIDDEN {
        return Err(Failure(format!(
            "not run: rules keep back {} files and folders, more than can be kept from a command; \
             use the file tools",
            places.len()
        )));
    }
    Ok(KeptBack { places, files: search.files })
}

struct Search<'r> {
    refused: &'r dyn Fn(&Path) -> bool,
    /// Whether there may be something in a folder.
    matters: &'r dyn Fn(&Path) -> bool,
    looked_at: usize,
    files: HashSet<PathBuf>,
}

impl Search<'_> {
    /// What is kept back below `folder`, and whether anything in it is free.
    fn below(&mut self, folder: &Path) -> Result<(Vec<PathBuf>, bool), Failure> {
        let (mut kept_back, mut free) = (Vec::new(), false);
        if !(self.matters)(folder) {
            return Ok((kept_back, true));
        }
        for path in children(folder) {
            self.looked_at += 1;
            if self.looked_at > LOOKED_AT {
                return Err(Failure(format!(
                    "not run: there are rules about files, and more than {LOOKED_AT} files to hold \
                     against them; use the file tools"
                )));
            }
            let Ok(metadata) = path.symlink_metadata() else { continue };
            if metadata.is_dir() {
                let (inside, any) = self.below(&path)?;
                match any || inside.is_empty() {
                    true => kept_back.extend(inside),
                    false => kept_back.push(path),
                }
                free |= any;
            } else if (self.refused)(&path) {
                self.files.insert(path.clone());
                // A link leads to what is kept back itself, or outside, where others decide.
                if !metadata.is_symlink() {
                    kept_back.push(path);
                }
            } else {
                free |= !metadata.is_symlink();
            }
        }
        Ok((kept_back, free))
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
        let mut found = unseen(&NoSecrets, root).unwrap().places;
        found.sort();
        let expected = ["a/secret.key", "b", "secrets"].map(|name| root.join(name));
        assert_eq!(found, expected);
    }
}
