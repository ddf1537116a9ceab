//! Where links lead on the way to a path, step by step, whether anything is there or not.

use super::named::plain;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// How many links are followed, as many as the kernel does.
const LINKS: usize = 40;

/// The way to a path.
pub(super) struct PathTrace {
    /// Each link on it with what is left of the path, each folder that is missing and left again by `..`, and
    /// the end. Whoever makes one of these decides what is found at the path.
    pub places: Vec<PathBuf>,
    /// Each folder that is there and left again by `..`. A link in its place would lead elsewhere.
    pub left: Vec<PathBuf>,
    /// Where it ends, there or not.
    end: PathBuf,
    /// There is a link on it.
    has_link: bool,
    /// Something is at the end.
    is_there: bool,
}

impl PathTrace {
    /// The way to `path`. On the way to the folder `known` is no link.
    pub(super) fn to(path: &Path, known: &Path) -> PathTrace {
        let (mut at, path) = match path.strip_prefix(known) {
            Ok(below) => (known.to_owned(), below),
            Err(_) => (PathBuf::from("/"), path),
        };
        let mut ahead: Vec<OsString> = parts(path);
        let (mut places, mut left, mut links) = (Vec::new(), Vec::new(), 0);
        let (mut is_missing, mut is_broken) = (false, false);
        while let Some(part) = ahead.pop() {
            if part == "/" {
                at = PathBuf::from("/");
                continue;
            }
            if part == ".." {
                let list = if is_missing { &mut places } else { &mut left };
                list.push(at.clone());
                is_broken |= is_missing;
                at.pop();
                is_missing = is_missing && at.symlink_metadata().is_err();
                continue;
            }
            at.push(&part);
            if is_missing {
                continue;
            }
            let target = match at.symlink_metadata() {
                Ok(found) if found.is_symlink() && links < LINKS => at.read_link().ok(),
                Ok(_) => None,
                Err(_) => {
                    is_missing = true;
                    None
                }
            };
            if let Some(target) = target {
                links += 1;
                let rest = ahead.iter().rev().map(OsString::as_os_str);
                places.push(plain(&[at.as_os_str()].into_iter().chain(rest).collect::<PathBuf>()));
                at.pop();
                ahead.extend(parts(&target));
            }
        }
        places.push(at.clone());
        let is_there = !is_missing && !is_broken && at.metadata().is_ok();
        PathTrace { places, left, end: at, has_link: links > 0, is_there }
    }

    /// Where it leads, if anything is there, or a link that leads nowhere.
    pub(super) fn leads(self) -> Option<PathBuf> {
        (self.is_there || self.has_link).then_some(self.end)
    }

    /// True for one that links lead to where nothing is.
    pub(super) fn is_lost(&self) -> bool {
        self.has_link && !self.is_there
    }
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter(|part| *part != Component::CurDir);
    parts.map(|part| OsStr::to_owned(part.as_os_str())).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_what_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("d")).unwrap();
        std::fs::write(root.join("d/f"), "").unwrap();
        for (target, link) in [
            ("d", "to-d"),
            ("b", "a"),
            ("c", "b"),
            ("nodir/../d", "odd"),
            ("round", "round"),
            ("../gone/x", "d/out"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        symlink(root.join("b"), root.join("d/whole")).unwrap();
        for (path, places, is_there) in [
            ("d/f", vec!["d/f"], true),
            ("x/y", vec!["x/y"], false),
            ("to-d/f", vec!["to-d/f", "d/f"], true),
            ("to-d/../a", vec!["a", "a", "b", "c"], false),
            ("a/x", vec!["a/x", "b/x", "c/x"], false),
            ("odd/f", vec!["odd/f", "nodir", "d/f"], false),
            ("to-d/out", vec!["to-d/out", "d/out", "gone/x"], false),
            ("to-d/whole", vec!["to-d/whole", "d/whole", "b", "c"], false),
        ] {
            for known in [&root, Path::new("/nowhere")] {
                let way = PathTrace::to(&root.join(path), known);
                let found: Vec<_> =
                    way.places.iter().map(|it| it.strip_prefix(&root).unwrap()).collect();
                assert_eq!(found, places.iter().map(Path::new).collect::<Vec<_>>(), "{path}");
                assert_eq!(way.is_there, is_there, "{path}");
            }
        }
        assert_eq!(PathTrace::to(&root.join("to-d/../a"), &root).left, [root.join("d")]);
        assert_eq!(PathTrace::to(&root.join("odd/f"), &root).left, [""; 0].map(PathBuf::from));
        assert!(PathTrace::to(&root.join("round"), &root).is_lost());
        assert_eq!(PathTrace::to(&root.join("x"), &root).leads(), None);
        assert_eq!(PathTrace::to(&root.join("odd"), &root).leads(), Some(root.join("d")));
    }
}
