//! What of a workspace rules keep from being read or changed: a command must not do it either, so it
//! is found before the command starts, and hidden or fixed.

use crate::failure::Failure;
use crate::path_rules::{PathRules, Reached, TooMuch, Usage};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files and folders that are looked at, at most.
const LOOKED_AT: usize = 500_000;
/// Places that can be hidden, at most: each is a mount.
const HIDDEN: usize = 1_000;

/// What a command has of its own there, whatever it is outside: its processes and the few devices that
/// everybody has. On every machine links lead there that rules may name: `/etc/mtab` is one.
fn is_own(path: &Path) -> bool {
    let is_device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    path.starts_with("/proc") || is_device
}

/// What no program runs without.
const NEEDED: [&str; 8] = ["/proc", "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// Why no command can run, if it is because `hidden` has what programs need: which rules hide it.
pub(crate) fn why_none_runs(rules: &dyn PathRules, hidden: &[PathBuf]) -> Option<String> {
    let is_needed = |path: &&PathBuf| NEEDED.iter().any(|needed| path.starts_with(needed));
    let needed: Vec<&PathBuf> = hidden.iter().filter(is_needed).collect();
    let first = needed.first()?.display();
    let reason = |path: &&PathBuf| {
        let inside = path.join(SOMETHING);
        [path.as_path(), &inside]
            .into_iter()
            .find_map(|path| rules.refuse(None, Usage::Read, Reached::Found, path, path))
    };
    let why = needed.iter().find_map(reason).unwrap_or_else(|| "rules hide it".to_owned());
    Some(format!(
        "no command can run where {first} is hidden from it, and {why}. Use the other tools, and tell \
         the user to make the rule narrower"
    ))
}

/// A name that no file has.
const SOMETHING: &str = "\u{1}";

/// What is below a folder and may not be changed.
pub(crate) struct KeptBack {
    /// To be mounted over: folders where that is all there is in them, else files.
    pub places: Vec<PathBuf>,
    /// Every file and link.
    pub files: HashSet<PathBuf>,
    /// What links lead to and is denied because of their names.
    linked: Vec<PathBuf>,
}

/// What may not be read, as `rules` say: in the workspace at `root`, in the checkout that it is of, and
/// elsewhere so far as it is denied.
///
/// # Errors
/// When it is too much to find or to hide.
pub(crate) fn unseen(rules: &dyn PathRules, root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut places = Vec::new();
    let is_refused =
        |path: &Path| rules.refuse(None, Usage::Read, Reached::Found, path, path).is_some();
    let is_denied = |path: &Path| rules.denies_read(path);
    let linked = |link: &Path| rules.linked(Usage::Read, link);
    for root in [root.to_owned()].into_iter().chain(rules.checkouts()) {
        let matters = |folder: &Path| rules.hide_some_in(folder);
        let found = found(&root, &is_refused, &linked, &matters)?;
        places.extend(found.places);
        places.extend(targets(found.linked, &root));
    }
    for folder in rules.elsewhere() {
        let matters = |folder: &Path| folder != root && rules.denies_some_reads_in(folder);
        let found = found(&folder, &is_denied, &linked, &matters)?;
        places.extend(found.places);
        places.extend(targets(found.linked, root));
    }
    outermost(places)
}

/// The same of what may not be changed.
///
/// # Errors
/// When it is too much to find or to fix.
pub(crate) fn fixed(rules: &dyn PathRules, root: &Path) -> Result<KeptBack, Failure> {
    let is_denied = |path: &Path| rules.denies_change(path);
    let linked = |link: &Path| rules.linked(Usage::Change, link);
    let matters = |folder: &Path| rules.deny_some_changes_in(folder);
    let mut found = found(root, &is_denied, &linked, &matters)?;
    // Outside of the workspace nothing can be changed anyway.
    let targets = targets(std::mem::take(&mut found.linked), root);
    found.places.extend(targets.into_iter().filter(|path| path.starts_with(root)));
    found.places = outermost(found.places)?;
    Ok(found)
}

/// Every file and link below `root` that may not be changed, however many there are.
pub(crate) fn now_fixed(rules: &dyn PathRules, root: &Path) -> HashSet<PathBuf> {
    let matters = |folder: &Path| rules.deny_some_changes_in(folder);
    let refused = |path: &Path| rules.denies_change(path);
    // What a new link leads to was there before.
    let leads_to = |_: &Path| Ok(Vec::new());
    let mut search = Search {
        leads_to: &leads_to,
        linked: Vec::new(),
        refused: &refused,
        matters: &matters,
        looked_at: 0,
        at_most: usize::MAX,
        files: HashSet::new(),
    };
    // Without a limit it does not fail.
    let _ = search.below(root);
    search.files
}

fn found(
    root: &Path,
    refused: &dyn Fn(&Path) -> bool,
    leads_to: LeadsTo<'_>,
    matters: &dyn Fn(&Path) -> bool,
) -> Result<KeptBack, Failure> {
    let (looked_at, at_most, linked) = (0, LOOKED_AT, Vec::new());
    let files = HashSet::new();
    let mut search = Search { refused, leads_to, matters, looked_at, at_most, files, linked };
    let (mut places, free) = search.below(root)?;
    if !free {
        // Nothing in it is free, and it must be there all the same.
        places = children(root);
    }
    Ok(KeptBack { places, files: search.files, linked: search.linked })
}

/// What denied links lead to, as it is to be mounted over.
fn targets(linked: Vec<PathBuf>, root: &Path) -> Vec<PathBuf> {
    let others = linked.into_iter().filter(|target| !is_own(target));
    let places = others.flat_map(|target| match root.starts_with(&target) {
        // The workspace must be there, with nothing in it.
        true => children(root),
        false => vec![target],
    });
    places.collect()
}

/// `places` without those that are in another of them.
fn outermost(mut places: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    places.sort();
    places.dedup_by(|inner, outer| inner.starts_with(outer));
    if places.len() > HIDDEN {
        return Err(Failure(format!(
            "not run: rules keep back {} files and folders, more than can be kept from a command; \
             use the file tools",
            places.len()
        )));
    }
    Ok(places)
}

/// What a link leads to and is denied because of its name.
type LeadsTo<'r> = &'r dyn Fn(&Path) -> Result<Vec<PathBuf>, TooMuch>;

struct Search<'r> {
    refused: &'r dyn Fn(&Path) -> bool,
    leads_to: LeadsTo<'r>,
    /// Whether there may be something in a folder.
    matters: &'r dyn Fn(&Path) -> bool,
    looked_at: usize,
    at_most: usize,
    files: HashSet<PathBuf>,
    /// What denied links lead to.
    linked: Vec<PathBuf>,
}

impl Search<'_> {
    /// What is kept back below `folder`, and whether anything in it is free.
    fn below(&mut self, folder: &Path) -> Result<(Vec<PathBuf>, bool), Failure> {
        let (mut kept_back, mut free) = (Vec::new(), false);
        if !(self.matters)(folder) {
            return Ok((kept_back, true));
        }
        // Nobody knows what is in there, and a command can open it again.
        if access(folder, Access::READ_OK | Access::EXEC_OK) == Err(Errno::ACCESS) {
            return Ok((vec![folder.to_owned()], false));
        }
        // One handle at a time, however deep it goes.
        let entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
        for entry in entries {
            self.looked_at += 1;
            if self.looked_at > self.at_most {
                return Err(Failure(format!(
                    "not run: there are rules about files, and more than {LOOKED_AT} files to hold \
                     against them; use the file tools"
                )));
            }
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if kind.is_dir() {
                let (inside, any) = self.below(&path)?;
                match any || inside.is_empty() {
                    true => kept_back.extend(inside),
                    false => kept_back.push(path),
                }
                free |= any;
            } else if kind.is_symlink() {
                // It may stand where a folder would in which everything is kept back.
                let inside = path.join(SOMETHING);
                let targets = (self.leads_to)(&path).map_err(|TooMuch { at_most }| {
                    Failure(format!(
                        "not run: there are rules about files, and more than {at_most} files to \
                         hold against them below the link {}; use the file tools",
                        path.display()
                    ))
                })?;
                self.linked.extend(targets);
                if (self.refused)(&path) || (self.refused)(&inside) {
                    self.files.insert(path);
                }
            } else if (self.refused)(&path) {
                self.files.insert(path.clone());
                kept_back.push(path);
            } else {
                free = true;
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
        fn refuse(
            &self,
            _: Option<&str>,
            _: Usage,
            _: Reached,
            _: &Path,
            real: &Path,
        ) -> Option<String> {
            let name = real.to_string_lossy();
            (name.contains("secret")).then(|| "it is one".to_owned())
        }

        fn hide_some_in(&self, _: &Path) -> bool {
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
