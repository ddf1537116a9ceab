//! The files of a folder that Posse obeys or runs, and one hash over all of them.

use crate::files::{Stamp, up_to_root};
use posse_protocol::hex;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Folders whose contents count: in each, settings and these subfolders.
pub(super) const FOLDERS: [&str; 2] = [".posse", ".claude"];
const BELOW: [&str; 5] = ["agents", "commands", "hooks", "plugins", "skills"];
/// Further files that count.
const FILES: [&str; 2] = ["posse.toml", ".mcp.json"];
/// File name extensions of settings in the folders.
const SETTINGS: [&str; 2] = ["json", "toml"];

/// The most that is read. A folder with more cannot be trusted: Posse does not read all of it.
const MOST_FILES: usize = 10_000;
const MOST_BYTES: u64 = 64 << 20;
const DEEPEST: usize = 32;

/// Opening a pipe must not wait for a writer.
const NONBLOCK: i32 = 0o4000;

/// The files of a folder that need trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesToTrust {
    /// The folder, canonical.
    pub folder: PathBuf,
    /// The files, by paths relative to it, sorted.
    pub files: Vec<PathBuf>,
    /// The hash over their names, contents and executable bits.
    pub digest: String,
    /// The hash of each file, by its path relative to the folder, for reporting changes.
    pub digests: BTreeMap<String, String>,
}

impl FilesToTrust {
    /// Reads the files of `folder` that need trust; `None` if there are none.
    ///
    /// # Errors
    /// When they cannot be read completely, with the reason.
    pub fn by(folder: &Path) -> Result<Option<Self>, String> {
        let found = find(folder)?;
        if found.is_empty() {
            return Ok(None);
        }
        let mut digest = Sha256::new();
        let mut digests = BTreeMap::new();
        let mut left = MOST_BYTES;
        for item in &found {
            let mut own = Sha256::new();
            item.digest(folder, &mut left, &mut |bytes| {
                digest.update(bytes);
                own.update(bytes);
            })?;
            digests.insert(item.name.clone(), hex(&own.finalize()));
        }
        let files = found.into_iter().map(|item| item.path).collect();
        let digest = hex(&digest.finalize());
        Ok(Some(FilesToTrust { folder: folder.to_owned(), files, digest, digests }))
    }

    /// Reads the files of `folder` and of the folders above it in its repository, nearest first.
    ///
    /// # Errors
    /// When one folder cannot be read completely, with the reason.
    pub fn around(folder: &Path) -> Result<Vec<Self>, String> {
        let found = up_to_root(folder).into_iter().map(|folder| FilesToTrust::by(&folder));
        Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }
}

/// Returns the stamps of all files that count. If they are the same, nothing has changed.
pub(super) fn stamps(folder: &Path) -> Result<Vec<(PathBuf, Stamp)>, String> {
    Ok(find(folder)?.into_iter().map(|item| (item.path, item.stamp)).collect())
}

/// A file or folder that counts, by its path relative to the folder.
struct Item {
    path: PathBuf,
    /// The path as text, unchanged in every character, so that no other item has the same.
    name: String,
    kind: Kind,
    stamp: Stamp,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File {
        executable: bool,
    },
    /// A broken link, a pipe, a device: nothing is read from it.
    Other,
}

impl Item {
    fn digest(
        &self,
        folder: &Path,
        left: &mut u64,
        into: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        let name = self.path.as_os_str().as_encoded_bytes();
        into(&(name.len() as u64).to_be_bytes());
        into(name);
        let Kind::File { executable } = self.kind else {
            into(b"other");
            return Ok(());
        };
        into(if executable { b"run".as_slice() } else { b"file".as_slice() });
        let path = folder.join(&self.path);
        let cannot = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).custom_flags(NONBLOCK).open(&path).map_err(cannot)?;
        if !file.metadata().map_err(cannot)?.is_file() {
            return Err(format!("{} is not a file any more", path.display()));
        }
        let mut bytes = Vec::new();
        file.take(*left + 1).read_to_end(&mut bytes).map_err(cannot)?;
        let size = bytes.len() as u64;
        *left = left.checked_sub(size).ok_or_else(|| {
            format!(
                "{} has more than {MOST_BYTES} bytes of agents, skills and settings",
                folder.display()
            )
        })?;
        into(&size.to_be_bytes());
        into(&bytes);
        Ok(())
    }
}

/// Returns all items of `folder` that count, sorted by path. It follows links like the readers of
/// agents and skills do; it enters a folder once.
fn find(folder: &Path) -> Result<Vec<Item>, String> {
    let mut walk = Walk { root: folder, found: Vec::new(), seen: HashSet::new() };
    for name in FILES {
        walk.add(&folder.join(name))?;
    }
    for name in FOLDERS {
        let place = folder.join(name);
        for name in BELOW {
            walk.enter(&place.join(name), 0)?;
        }
        for child in children(&place)? {
            let ending = child.extension().and_then(|ending| ending.to_str());
            if ending.is_some_and(|it| SETTINGS.contains(&&*it.to_ascii_lowercase())) {
                walk.add(&child)?;
            }
        }
    }
    let mut found = walk.found;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

struct Walk<'f> {
    root: &'f Path,
    found: Vec<Item>,
    seen: HashSet<(u64, u64)>,
}

impl Walk<'_> {
    fn enter(&mut self, folder: &Path, depth: usize) -> Result<(), String> {
        let Ok(data) = std::fs::metadata(folder) else {
            return match std::fs::symlink_metadata(folder) {
                Ok(_) => self.add(folder),
                Err(_) => Ok(()),
            };
        };
        if !data.is_dir() {
            return self.add(folder);
        }
        if !self.seen.insert((data.dev(), data.ino())) {
            return Ok(());
        }
        if depth > DEEPEST {
            return Err(format!("{} is more than {DEEPEST} folders deep", folder.display()));
        }
        for child in children(folder)? {
            self.enter(&child, depth + 1)?;
        }
        Ok(())
    }

    /// Adds a path that is read as a file. Folders are never read as files. While commands run,
    /// empty folders block the paths of files that must not appear: they do not count.
    fn add(&mut self, path: &Path) -> Result<(), String> {
        let data = match std::fs::metadata(path).or_else(|_| std::fs::symlink_metadata(path)) {
            Ok(data) => data,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(format!("{} cannot be looked at: {error}", path.display())),
        };
        if data.is_dir() {
            return Ok(());
        }
        if self.found.len() >= MOST_FILES {
            return Err(format!(
                "{} has more than {MOST_FILES} files of agents, skills and settings",
                self.root.display()
            ));
        }
        let below = path.strip_prefix(self.root).unwrap_or(path).to_owned();
        let Some(name) = below.to_str().map(str::to_owned) else {
            return Err(format!("the name of {path:?} is not UTF-8; rename it or remove it"));
        };
        self.found.push(Item { path: below, name, kind: kind(&data), stamp: Stamp::from(&data) });
        Ok(())
    }
}

fn kind(data: &Metadata) -> Kind {
    match data.is_file() {
        true => Kind::File { executable: data.permissions().mode() & 0o111 != 0 },
        false => Kind::Other,
    }
}

/// Lists a folder, including hidden entries; empty if it is not a folder.
fn children(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let cannot = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_none(&error) => return Ok(Vec::new()),
        Err(error) => return Err(cannot(error)),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<Result<_, _>>().map_err(cannot)
}

fn is_none(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn digest(root: &Path) -> String {
        FilesToTrust::by(root).unwrap().unwrap().digest
    }

    #[test]
    fn a_folder_that_brings_nothing_along_needs_no_trust() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "src/main.rs", "fn main() {}");
        write(root.path(), ".claude/worktrees/x/file", "not obeyed");
        assert_eq!(FilesToTrust::by(root.path()).unwrap(), None);
    }

    #[test]
    fn every_change_of_what_counts_changes_the_hash_and_nothing_else_does() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, ".posse/agents/one.md", "one");
        write(root, ".claude/skills/x/scripts/run.sh", "echo");
        let mut known = vec![digest(root)];
        let mut check = |what: &str| {
            let now = digest(root);
            assert!(!known.contains(&now), "{what}");
            known.push(now);
        };
        write(root, ".posse/agents/one.md", "two");
        check("contents");
        std::fs::rename(root.join(".posse/agents/one.md"), root.join(".posse/agents/b.md"))
            .unwrap();
        check("a name");
        write(root, "posse.toml", "");
        check("an empty file");
        write(root, ".claude/settings.json", "{}");
        check("settings");
        write(root, ".claude/skills/x/.hidden/deep/er", "x");
        check("a hidden file");
        let script = root.join(".claude/skills/x/scripts/run.sh");
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        check("that it can be executed");
        write(root, "elsewhere.md", "a");
        symlink(root.join("elsewhere.md"), root.join(".posse/agents/link.md")).unwrap();
        check("a link");
        write(root, "elsewhere.md", "b");
        check("what a link leads to");
        std::fs::remove_file(root.join("elsewhere.md")).unwrap();
        check("a link to nothing");
        let before = digest(root);
        write(root, "src/main.rs", "fn main() {}");
        write(root, ".claude/todos/x", "x");
        assert_eq!(digest(root), before);
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_brings_nothing_along_and_what_replaces_it_does() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, ".posse/agents/one.md", "one");
        let before = FilesToTrust::by(root).unwrap();
        for name in ["posse.toml", ".mcp.json", ".claude", ".posse/settings.json"] {
            std::fs::create_dir(root.join(name)).unwrap();
            assert_eq!(FilesToTrust::by(root).unwrap(), before, "{name}");
        }
        for name in ["posse.toml", ".mcp.json"] {
            std::fs::remove_dir(root.join(name)).unwrap();
            write(root, name, "");
            assert_ne!(FilesToTrust::by(root).unwrap(), before, "{name}");
            std::fs::remove_file(root.join(name)).unwrap();
        }
    }

    #[test]
    fn a_name_that_is_not_utf_8_cannot_be_trusted_and_is_named() {
        use std::os::unix::ffi::OsStrExt;
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, ".posse/agents/helper\u{fffd}.md", "one");
        let odd = std::ffi::OsStr::from_bytes(b".posse/agents/helper\x80.md");
        std::fs::write(root.join(odd), "two").unwrap();
        let error = FilesToTrust::by(root).unwrap_err();
        assert!(error.contains("helper\\x80.md\" is not UTF-8"), "{error}");
    }

    #[test]
    fn links_in_circles_and_to_devices_end() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, ".posse/agents/a.md", "a");
        symlink(root.join(".posse"), root.join(".posse/agents/again")).unwrap();
        symlink("/dev/zero", root.join(".posse/agents/zero.md")).unwrap();
        let found = FilesToTrust::by(root).unwrap().unwrap();
        let names: Vec<&str> = found.files.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(names, [".posse/agents/a.md", ".posse/agents/zero.md"]);
    }

    #[test]
    fn more_than_can_be_looked_at_cannot_be_trusted() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".posse/skills/large/data");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(&path).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let error = FilesToTrust::by(root.path()).unwrap_err();
        assert!(error.contains("more than 67108864 bytes"), "{error}");
    }
}
