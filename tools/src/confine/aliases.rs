//! Other paths of the same files: a file system, or a folder of it, can be mounted in several places.

use crate::linux::{Mounted, mounted};
use std::path::{Path, PathBuf};

/// Another place of something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alias {
    pub path: PathBuf,
    /// True if only a part of it is there.
    pub is_part: bool,
}

/// Returns the other places where what is at `paths`, or a part of it, is mounted. `paths` have no links.
pub(super) fn of<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<Alias> {
    // Without the table, no other place is known.
    among(&mounted().unwrap_or_default(), paths)
}

fn among<'p>(table: &[Mounted], paths: impl Iterator<Item = &'p Path>) -> Vec<Alias> {
    let mut found: Vec<Alias> = paths.flat_map(|path| others(table, path)).collect();
    found.sort_unstable();
    found.dedup_by(|later, earlier| later.path == earlier.path);
    found
}

fn others(table: &[Mounted], path: &Path) -> Vec<Alias> {
    let around = table.iter().enumerate().filter(|(_, it)| path.starts_with(&it.point));
    // A later mount covers an earlier one at the same point.
    let Some((own, mount)) = around.max_by_key(|(at, it)| (it.point.iter().count(), *at)) else {
        return Vec::new();
    };
    let Ok(below) = path.strip_prefix(&mount.point) else { return Vec::new() };
    let inside = mount.root.join(below);
    let elsewhere =
        table.iter().enumerate().filter(|(at, it)| *at != own && it.device == mount.device);
    let place = |other: &Mounted| match inside.strip_prefix(&other.root) {
        Ok(below) => Some(Alias { path: other.point.join(below), is_part: false }),
        Err(_) => {
            let is_part = other.root.starts_with(&inside);
            is_part.then(|| Alias { path: other.point.clone(), is_part })
        }
    };
    // What is mounted below `path` is hidden with it.
    elsewhere
        .filter_map(|(_, other)| place(other))
        .filter(|it| !it.path.starts_with(path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(lines: &[(&str, &str, &str)]) -> Vec<Mounted> {
        let mounted = |(device, root, point): &(&str, &str, &str)| Mounted {
            device: (*device).to_owned(),
            root: root.into(),
            point: point.into(),
        };
        lines.iter().map(mounted).collect()
    }

    fn places(lines: &[(&str, &str, &str)], path: &str) -> Vec<PathBuf> {
        let found = among(&table(lines), std::iter::once(Path::new(path)));
        found.into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn a_second_mount_is_found() {
        let home = "/home/alice";
        // A disk whose folder is the home folders, and the other way round.
        let disk = [("8:1", "/", "/"), ("8:2", "/", "/data"), ("8:2", "/home", "/home")];
        assert_eq!(places(&disk, home), [Path::new("/data/home/alice")]);
        assert_eq!(places(&disk, "/data/home/alice"), [Path::new(home)]);
        assert_eq!(places(&disk, "/etc"), [] as [&Path; 0]);
        // The whole system once more, and a part of the home folder.
        let more =
            [("8:1", "/", "/"), ("8:1", "/", "/mnt/all"), ("8:1", "/home/alice/p", "/srv/p")];
        assert_eq!(places(&more, home), [Path::new("/mnt/all/home/alice"), Path::new("/srv/p")]);
        // Subvolumes.
        let volumes = [("0:3", "/@", "/"), ("0:3", "/@home", "/home"), ("0:3", "/", "/.top")];
        assert_eq!(places(&volumes, home), [Path::new("/.top/@home/alice")]);
    }

    #[test]
    fn other_mounts_are_no_other_place() {
        let table = [
            ("8:1", "/", "/"),
            ("8:2", "/", "/home"),
            ("8:1", "/opt/cargo", "/home/alice/.cargo"),
            ("0:9", "/", "/home/alice/tmp"),
            ("8:2", "/alice", "/home/alice"),
            ("8:2", "/bob", "/srv/bob"),
        ];
        assert_eq!(places(&table, "/home/alice"), [] as [&Path; 0]);
        // What lies below is hidden with it.
        let inner = [("8:1", "/", "/"), ("8:1", "/home/alice", "/home/alice/again")];
        assert_eq!(places(&inner, "/home/alice"), [] as [&Path; 0]);
    }
}
