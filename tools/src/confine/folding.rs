//! File systems that ignore case in names.
//!
//! Those of virtual machines and network shares do so without the kernel's knowledge. For the kernel,
//! `.git` and `.GIT` are two names, and a mount over one does not cover the other. On such a file
//! system, nothing in a folder that a command may change can be protected from that command.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// The maximum number of names to try.
const TRIED: usize = 100;

/// Returns true if a file in `folder` can also be found by its name with the other case.
pub(crate) fn folds_case(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names: HashSet<OsString> = entries.map(|entry| entry.file_name()).collect();
    // Inode numbers do not help: some of these file systems derive them from names. What shows the
    // folding is that a name is found which is not listed.
    let finds = |other: &str| folder.join(other).symlink_metadata().is_ok();
    let others = names.iter().filter_map(|name| in_other_letters(name.to_str()?));
    let mut others =
        others.filter(|other| !names.contains(OsStr::new(other))).take(TRIED).peekable();
    if others.peek().is_some() {
        return others.any(|other| finds(&other));
    }
    // No listed name helps. Try a file of our own, if we can make one.
    let file = tempfile::Builder::new().prefix("posse-").tempfile_in(folder);
    file.is_ok_and(|file| {
        let name = file.path().file_name().and_then(OsStr::to_str);
        name.and_then(in_other_letters).is_some_and(|other| finds(&other))
    })
}

/// `name` with upper and lower case swapped, if it contains letters.
fn in_other_letters(name: &str) -> Option<String> {
    let other = |letter: char| match letter.is_ascii_lowercase() {
        true => letter.to_ascii_uppercase(),
        false => letter.to_ascii_lowercase(),
    };
    let other: String = name.chars().map(other).collect();
    (other != name).then_some(other)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn where_letters_count_two_names_are_two_files() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!folds_case(folder.path()), "empty");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left there");
        for name in ["1", "readme", "README", "Makefile"] {
            fs::write(folder.path().join(name), "").unwrap();
            assert!(!folds_case(folder.path()), "{name}");
        }
    }
}
