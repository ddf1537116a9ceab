//! Finds files of a workspace that rules forbid to read or change. A command must not read or change
//! them either, so they are found before the command starts, and hidden or made read-only.

use crate::failure::Failure;
use crate::path_rules::{PathRules, Reached, TooMuch, Usage};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of files and folders to check.
const LOOKED_AT: usize = 500_000;
/// The maximum number of paths to hide. Each of them is a mount.
const HIDDEN: usize = 1_000;

/// Returns true for a path of which a command has its own version: its processes, and the few devices that every
/// command has. On every machine, some links that rules may name lead there, such as `/etc/mtab`.
fn is_own(path: &Path) -> bool {
    let is_device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    path.starts_with("/proc") || is_device
}

/// Paths without which no program runs.
const NEEDED: [&str; 8] = ["/proc", "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// If `hidden` contains paths that programs need, returns that no command can run, and which rule hides them.
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

/// Files below a folder that may not be read or changed.
pub(crate) struct KeptBack {
    /// The paths to mount over: folders that contain nothing else, otherwise files.
    pub places: Vec<PathBuf>,
    /// All files and links.
    pub files: HashSet<PathBuf>,
    /// Files that are denied because of the names of links to them.
    linked: Vec<PathBuf>,
}

/// Returns the paths that `rules` forbid to read: in the workspace at `root`, in its checkout, and
/// elsewhere if a rule denies them.
///
/// # Errors
/// If there are too many files to check or to hide.
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

/// Returns the paths in the workspace that `rules` forbid to change.
///
/// # Errors
/// If there are too many files to check or to make read-only.
pub(crate) fn fixed(rules: &dyn PathRules, root: &Path) -> Result<KeptBack, Failure> {
    let is_denied = |path: &Path| rules.denies_change(path);
    let linked = |link: &Path| rules.linked(Usage::Change, link);
    let matters = |folder: &Path| rules.deny_some_changes_in(folder);
    let mut found = found(root, &is_denied, &linked, &matters)?;
    // A command cannot change anything outside the workspace anyway.
    let targets = targets(std::mem::take(&mut found.linked), root);
    found.places.extend(targets.into_iter().filter(|path| path.starts_with(root)));
    found.places = outermost(found.places)?;
    Ok(found)
}

/// All files and links below `root` that may not be changed, without a limit.
pub(crate) fn now_fixed(rules: &dyn PathRules, root: &Path) -> HashSet<PathBuf> {
    let matters = |folder: &Path| rules.deny_some_changes_in(folder);
    let refused = |path: &Path| rules.denies_change(path);
    // The target of a new link existed before.
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
    // Without a limit it cannot fail.
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
        // Everything in it is denied, but the folder itself must exist.
        places = children(root);
    }
    Ok(KeptBack { places, files: search.files, linked: search.linked })
}

/// The paths to mount over for the targets of denied links.
fn targets(linked: Vec<PathBuf>, root: &Path) -> Vec<PathBuf> {
    let others = linked.into_iter().filter(|target| !is_own(target));
    let places = others.flat_map(|target| match root.starts_with(&target) {
        // The workspace itself must exist, with nothing in it.
        true => children(root),
        false => vec![target],
    });
    places.collect()
}

/// Removes paths that are inside another one.
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

/// Returns the files behind a link that are denied because of its name.
type LeadsTo<'r> = &'r dyn Fn(&Path) -> Result<Vec<PathBuf>, TooMuch>;

struct Search<'r> {
    refused: &'r dyn Fn(&Path) -> bool,
    leads_to: LeadsTo<'r>,
    /// Whether a folder may contain denied files.
    matters: &'r dyn Fn(&Path) -> bool,
    looked_at: usize,
    at_most: usize,
    files: HashSet<PathBuf>,
    /// The targets of denied links.
    linked: Vec<PathBuf>,
}

impl Search<'_> {
    /// Returns the denied paths below `folder`, and whether it contains anything that is allowed.
    fn below(&mut self, folder: &Path) -> Result<(Vec<PathBuf>, bool), Failure> {
        let (mut kept_back, mut free) = (Vec::new(), false);
        if !(self.matters)(folder) {
            return Ok((kept_back, true));
        }
        // Its content is unknown, and a command could make it readable again.
        if access(folder, Access::READ_OK | Access::EXEC_OK) == Err(Errno::ACCESS) {
            return Ok((vec![folder.to_owned()], false));
        }
        // Only one open handle at a time, at any depth.
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
                // The link may replace a folder in which everything is denied.
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
