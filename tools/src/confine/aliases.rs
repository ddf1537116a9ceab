//! Other paths of the same files: a file system, or a folder of it, can be mounted in several places.

use crate::linux::{Mounted, mount_of, mounted};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Folders of the system. What of them is mounted in a home folder is no secret.
const OF_THE_SYSTEM: [&str; 23] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/var/lib",
    "/var/cache",
    "/var/log",
    "/var/run",
    "/var/tmp",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/boot",
    "/tmp",
];

/// Another place of something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alias {
    pub path: PathBuf,
    /// True if only a part of it is there.
    pub is_part: bool,
}

/// What is mounted where.
pub(super) struct Mounts(Vec<Mounted>);

impl Mounts {
    pub(super) fn now() -> Self {
        // Without the table, no other place is known.
        let mut table = mounted().unwrap_or_default();
        let mut devices: Vec<String> = table.iter().map(|mount| mount.device.clone()).collect();
        devices.sort_unstable();
        if devices.windows(2).all(|two| two[0] != two[1]) {
            table.clear();
        }
        Mounts(table)
    }

    /// Returns true if nothing is mounted twice.
    pub(super) fn are_single(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the other places of what is at `path`, which has no links, or of a part of it.
    pub(super) fn others(&self, path: &Path) -> Vec<Alias> {
        match self.are_single() {
            true => Vec::new(),
            false => others(&self.0, path, mount_of(path)),
        }
    }
}

/// Returns the other places where what is at `paths`, or a part of it, is mounted. `paths` have no links.
pub(super) fn of<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<Alias> {
    among(&mounted().unwrap_or_default(), paths, mount_of)
}

fn among<'p>(
    table: &[Mounted],
    paths: impl Iterator<Item = &'p Path>,
    mount_of: fn(&Path) -> Option<u64>,
) -> Vec<Alias> {
    let mut found: Vec<Alias> =
        paths.flat_map(|path| others(table, path, mount_of(path))).collect();
    found.sort_unstable();
    found.dedup_by(|later, earlier| later.path == earlier.path);
    found
}

fn others(table: &[Mounted], path: &Path, id: Option<u64>) -> Vec<Alias> {
    let around = table.iter().enumerate().filter(|(_, it)| path.starts_with(&it.point));
    // If the kernel does not tell the mount: a later mount mostly covers an earlier one at the same point.
    let rank = |(at, it): &(usize, &Mounted)| (Some(it.id) == id, it.point.iter().count(), *at);
    let Some((own, mount)) = around.max_by_key(rank) else { return Vec::new() };
    let Ok(below) = path.strip_prefix(&mount.point) else { return Vec::new() };
    let mut found = places(table, own, &mount.root.join(below));
    // What is mounted below it belongs to it.
    let inner =
        table.iter().enumerate().filter(|(at, it)| *at != own && it.point.starts_with(path));
    let of_system = |path: &Path| OF_THE_SYSTEM.iter().any(|it| path.starts_with(it));
    for (at, mount) in inner {
        let places = places(table, at, &mount.root).into_iter().map(|it| it.path);
        let places = places.filter(|path| path.parent().is_some() && !of_system(path));
        found.extend(places.map(|path| Alias { path, is_part: true }));
    }
    found.retain(|it| !it.path.starts_with(path));
    found
}

/// Where `inside`, a path in the file system of the mount at `own`, or a part of it, is mounted elsewhere.
fn places(table: &[Mounted], own: usize, inside: &Path) -> Vec<Alias> {
    let device = table.get(own).map(|it| &it.device);
    let others =
        table.iter().enumerate().filter(|(at, it)| *at != own && Some(&it.device) == device);
    let place = |other: &Mounted| match inside.strip_prefix(&other.root) {
        Ok(below) => {
            // To join nothing would add a slash.
            let is_whole = below.as_os_str().is_empty();
            let path = if is_whole { other.point.clone() } else { other.point.join(below) };
            Some(Alias { path, is_part: false })
        }
        Err(_) => {
            let is_part = other.root.starts_with(inside);
            is_part.then(|| Alias { path: other.point.clone(), is_part })
        }
    };
    others.filter_map(|(_, other)| place(other)).collect()
}

/// The path of `folder` by which the `home` folder is known, if it is that folder, or one around it, at another mount.
/// What programs obey is known by these paths.
pub fn known_place(folder: &Path, home: &Path) -> Option<PathBuf> {
    if folder.starts_with(home) || home.starts_with(folder) {
        return None;
    }
    let identity = |path: &Path| path.metadata().ok().map(|it| (it.dev(), it.ino()));
    let is_same = |path: &Path| identity(path).is_some() && identity(path) == identity(folder);
    let others = of(std::iter::once(folder)).into_iter();
    let mut others = others.filter(|it| !it.is_part).map(|it| it.path);
    others.find(|path| home.starts_with(path) && is_same(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(lines: &[(&str, &str, &str)]) -> Vec<Mounted> {
        let mounted = |(device, root, point): &(&str, &str, &str)| Mounted {
            id: 0,
            device: (*device).to_owned(),
            root: root.into(),
            point: point.into(),
        };
        lines.iter().map(mounted).collect()
    }

    fn found(lines: &[(&str, &str, &str)], path: &str) -> Vec<PathBuf> {
        let aliases = among(&table(lines), std::iter::once(Path::new(path)), |_| None);
        aliases.into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn a_second_mount_is_found() {
        let home = "/home/alice";
        // A disk whose folder is the home folders, and the other way round.
        let disk = [("8:1", "/", "/"), ("8:2", "/", "/data"), ("8:2", "/home", "/home")];
        assert_eq!(found(&disk, home), [Path::new("/data/home/alice")]);
        assert_eq!(found(&disk, "/data/home/alice"), [Path::new(home)]);
        assert_eq!(found(&disk, "/etc"), [] as [&Path; 0]);
        // The whole system once more, and a part of the home folder.
        let more =
            [("8:1", "/", "/"), ("8:1", "/", "/mnt/all"), ("8:1", "/home/alice/p", "/srv/p")];
        assert_eq!(found(&more, home), [Path::new("/mnt/all/home/alice"), Path::new("/srv/p")]);
        // Subvolumes.
        let volumes = [("0:3", "/@", "/"), ("0:3", "/@home", "/home"), ("0:3", "/", "/.top")];
        assert_eq!(found(&volumes, home), [Path::new("/.top/@home/alice")]);
    }

    #[test]
    fn the_kernel_knows_which_mount_is_on_top() {
        let mut table =
            table(&[("8:2", "/", "/home"), ("8:3", "/", "/home"), ("8:2", "/", "/old")]);
        (table[0].id, table[1].id) = (7, 8);
        let found = |id| others(&table, Path::new("/home/alice"), id).pop().map(|it| it.path);
        assert_eq!(found(Some(7)), Some(PathBuf::from("/old/alice")));
        assert_eq!(found(Some(8)), None);
        assert_eq!(found(None), None);
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
            ("0:7", "/", "/home/alice/root/proc"),
            ("0:7", "/", "/proc"),
            ("8:1", "/", "/home/alice/root"),
        ];
        assert_eq!(found(&table, "/home/alice"), [] as [&Path; 0]);
        // What lies below is hidden with it.
        let inner = [("8:1", "/", "/"), ("8:1", "/home/alice", "/home/alice/again")];
        assert_eq!(found(&inner, "/home/alice"), [] as [&Path; 0]);
        // So is what is kept elsewhere, and mounted there.
        let kept = [
            ("0:1", "/", "/"),
            ("8:1", "/", "/keep"),
            ("8:1", "/alice/Documents", "/home/alice/Documents"),
        ];
        assert_eq!(found(&kept, "/home/alice"), [Path::new("/keep/alice/Documents")]);
    }
}
