//! File systems that ignore case in names.
//!
//! Those of virtual machines and network shares do so behind the kernel's back: `.git` and `.GIT` are
//! two names to it, and a mount over one does not cover the other. There, nothing in a folder that
//! a command may change can be kept from it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// Names that are tried, at most.
const TRIED: usize = 100;

/// True when a file in `folder` is found by its name in other letters, too.
pub(crate) fn folds_case(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names: HashSet<OsString> = entries.map(|entry| entry.file_name()).collect();
    // Some such file systems number files by their names: what tells them is that they find what they
    // do not list.
    let finds = |other: &str| folder.join(other).symlink_metadata().is_ok();
    let others = names.iter().filter_map(|name| in_other_letters(name.to_str()?));
    let mut others =
        others.filter(|other| !names.contains(OsStr::new(other))).take(TRIED).peekable();
    if others.peek().is_some() {
        return others.any(|other| finds(&other));
    }
    // Nothing there tells it: a file of our own does, if we can make one.
    let file = tempfile::Builder::new().prefix("posse-").tempfile_in(folder);
    file.is_ok_and(|file| {
        let name = file.path().file_name().and_then(OsStr::to_str);
        name.and_then(in_other_letters).is_some_and(|other| finds(&other))
    })
}

/// `name` with capital letters for small ones and small ones for capital ones, if it has any.
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
