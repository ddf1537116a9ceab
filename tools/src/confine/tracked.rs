//! Finds hidden files that git tracks.
//!
//! Git checks every file that it tracks, and considers a missing one deleted. A commit of all changes
//! would record that. So a hidden file that git tracks must look as if it exists.

use super::git::{POINTER, SETTINGS_BYTES, text_at};
use super::protected::{GIT, HEAD};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes before the name of an entry: times, numbers, the hash of the content, and flags.
const BEFORE_NAME: usize = 62;
/// The maximum number of bytes of an index to read, enough for several million files.
const INDEX: u64 = 512 << 20;
/// The maximum number of bytes of all names together. In version 4, a name reuses the beginning of the
/// previous one, so a small file can expand to names without end.
const NAMES: usize = 128 << 20;
/// The flag for two more bytes of flags.
const EXTENDED: u8 = 0x40;

/// Returns those of `hidden` that git tracks, each with the tracked files in it. The set is empty if
/// the files cannot be determined.
pub(super) fn tracked(hidden: &[PathBuf]) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let mut trees: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
    for path in hidden {
        // Check every repository above the path: a command can create another one in between.
        for top in path.ancestors().skip(1).filter(|folder| data_of(folder).is_some()) {
            if let Ok(name) = path.strip_prefix(top) {
                trees.entry(top).or_default().insert(name);
            }
        }
    }
    let mut found: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut unclear = BTreeSet::new();
    for (top, hidden) in trees {
        let Some(names) = data_of(top).and_then(|data| names_in(&data)) else {
            unclear.extend(hidden.iter().map(|name| top.join(name)));
            continue;
        };
        for name in &names {
            let name = Path::new(OsStr::from_bytes(name));
            for around in name.ancestors().filter(|around| hidden.contains(around)) {
                found.entry(top.join(around)).or_default().insert(top.join(name));
            }
        }
    }
    found.extend(unclear.into_iter().map(|path| (path, BTreeSet::new())));
    found
}

/// Where git keeps its data for the working tree at `top`.
fn data_of(top: &Path) -> Option<PathBuf> {
    let git = top.join(GIT);
    let text = text_at(&git, POINTER).and_then(|text| String::from_utf8(text).ok());
    let data = match text {
        Some(text) => top.join(text.strip_prefix("gitdir:")?.trim()),
        None => git,
    };
    data.join(HEAD).symlink_metadata().is_ok_and(|found| !found.is_dir()).then_some(data)
}

/// The names in the index. `None` if this code cannot read that kind of index.
fn names_in(data: &Path) -> Option<Vec<Vec<u8>>> {
    let settings = text_at(&data.join("config"), SETTINGS_BYTES).unwrap_or_default();
    if String::from_utf8_lossy(&settings).to_lowercase().contains("objectformat") {
        return None;
    }
    // A missing index may be back in a moment, so it counts as unreadable.
    names(&text_at(&data.join("index"), INDEX)?)
}

/// The names in an index of version 2, 3 or 4 with hashes of 20 bytes.
fn names(index: &[u8]) -> Option<Vec<Vec<u8>>> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut room = NAMES;
    for _ in 0..count {
        let entry = at;
        let extended = index.get(entry + BEFORE_NAME - 2)? & EXTENDED != 0;
        at += BEFORE_NAME + if extended { 2 } else { 0 };
        let mut name = Vec::new();
        if version == 4 {
            // The beginning that it has in common with the previous name.
            let cut = varint(index, &mut at)?;
            let last = names.last().map(Vec::as_slice).unwrap_or_default();
            name.extend(&last[..last.len().checked_sub(cut)?]);
        }
        let length = index.get(at..)?.iter().position(|byte| *byte == 0)?;
        room = room.checked_sub(name.len() + length)?;
        name.extend(&index[at..at + length]);
        at += length + 1;
        if version < 4 {
            at = entry + (at - entry).next_multiple_of(8);
        }
        names.push(name);
    }
    // The rest of a split index is in another file.
    (!index.get(at..)?.starts_with(b"link")).then_some(names)
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        *at += 1;
        bytes.get(*at - 1).copied()
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::disallowed_methods)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(folder: &Path, arguments: &[&str]) {
        let done = Command::new("git").arg("-C").arg(folder).args(arguments).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    }

    fn sorted(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
        paths.sort();
        paths
    }

    #[test]
    fn what_git_tracks_is_told_from_what_it_does_not_in_every_kind_of_index() {
        for (kind, told_apart) in [("2", true), ("4", true), ("split", false), ("sha256", false)] {
            let folder = tempfile::tempdir().unwrap();
            let top = folder.path().canonicalize().unwrap();
            let format = if kind == "sha256" { "--object-format=sha256" } else { "--quiet" };
            git(&top, &["init", "-q", format]);
            let long = "x".repeat(200);
            for name in ["a/known/deep/file", "a/known/other", "b", "a/new/file", "c", &long] {
                std::fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
                std::fs::write(top.join(name), name).unwrap();
            }
            git(&top, &["add", "a/known", "b", &long]);
            match kind {
                "split" => git(&top, &["update-index", "--split-index"]),
                "sha256" => {}
                version => git(&top, &["update-index", "--index-version", version]),
            }
            let paths =
                |names: &[&str]| names.iter().map(|name| top.join(name)).collect::<Vec<_>>();
            let all = paths(&["a/known", "a/known/other", "a/new", "b", "c", &long]);
            let known = paths(&["a/known", "a/known/other", "b", &long]);
            // If the index cannot be read, all files count as tracked.
            let expected = if told_apart { known } else { all.clone() };
            let found = tracked(&all);
            assert_eq!(found.keys().cloned().collect::<Vec<_>>(), sorted(expected), "{kind}");
            let inside = paths(&["a/known/deep/file", "a/known/other"]);
            let files: Vec<PathBuf> = found[&top.join("a/known")].iter().cloned().collect();
            assert_eq!(files, if told_apart { inside } else { Vec::new() }, "{kind}");
        }
        assert!(tracked(&["/etc/hostname".into()]).is_empty());
    }

    #[test]
    fn a_damaged_index_is_read_to_its_end_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        git(top, &["init", "-q"]);
        std::fs::write(top.join("a"), "a").unwrap();
        std::fs::write(top.join("ab"), "b").unwrap();
        git(top, &["add", "."]);
        for version in ["2", "4"] {
            git(top, &["update-index", "--index-version", version]);
            let index = std::fs::read(top.join(".git/index")).unwrap();
            assert_eq!(names(&index).unwrap(), [b"a".to_vec(), b"ab".to_vec()]);
            for length in 0..index.len() {
                let _ = names(&index[..length]);
                let mut changed = index.clone();
                changed[length] ^= 0xff;
                let _ = names(&changed);
            }
        }
    }
    #[test]
    fn a_small_index_whose_names_have_no_end_is_not_read() {
        let mut index = b"DIRC\0\0\0\x04".to_vec();
        let count: u32 = 20_000;
        index.extend(count.to_be_bytes());
        for _ in 0..count {
            // All of the previous name, and one more letter.
            index.extend([0; BEFORE_NAME]);
            index.extend(b"\0a\0");
        }
        assert!(index.len() < 2 << 20);
        assert_eq!(names(&index), None);
    }
}
