//! Files and folders that definitions, rules and trust are read from.

mod homes;
mod kept;

pub(crate) use homes::{Home, Owner, Places};
pub(crate) use kept::Kept;

use posse_tools::confine::has_git;
use rustix::fs::OFlags;
use serde::Deserialize;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How many folders above the working folder are searched.
const ANCESTORS: usize = 64;
/// The maximum size of a plugin's manifest.
const MANIFEST_BYTES: u64 = 64 << 10;

/// Metadata that shows whether a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

/// How long after a change a file can change again with the same modification time.
const UNSETTLED: Duration = Duration::from_millis(100);

impl Stamp {
    /// The stamp of the file at `path`, if there is one.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let data = std::fs::metadata(path).ok()?;
        Some(Stamp::from(&data))
    }

    pub(crate) fn from(data: &std::fs::Metadata) -> Self {
        Stamp {
            modified: data.modified().ok(),
            changed: (data.ctime(), data.ctime_nsec()),
            size: data.len(),
            inode: data.ino(),
        }
    }

    /// True when a change after `then` would show in the stamp. `then` must be before the stamp was taken. File times
    /// are coarse.
    pub(crate) fn is_settled(&self, then: SystemTime) -> bool {
        let age = self.modified.and_then(|time| then.duration_since(time).ok());
        age.is_some_and(|age| age > UNSETTLED)
    }
}

/// `folder` and the folders above it, up to the one with `.git`. Without one, `folder` alone.
pub(crate) fn up_to_root(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut ancestors = Vec::new();
    for ancestor in folder.ancestors().take(ANCESTORS) {
        ancestors.push(ancestor.to_owned());
        if holds_git(ancestor) {
            return ancestors;
        }
    }
    ancestors.truncate(1);
    ancestors
}

/// `folder` and the folders above it, up to the last one with `.git`: a nested repository does not hide the
/// restrictions of the outer one. Without one, `folder` alone.
pub(crate) fn up_to_outermost_root(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut ancestors: Vec<PathBuf> =
        folder.ancestors().take(ANCESTORS).map(Path::to_owned).collect();
    let outermost = ancestors.iter().rposition(|ancestor| holds_git(ancestor));
    ancestors.truncate(outermost.unwrap_or(0) + 1);
    ancestors
}

/// True for the top of a repository. The placeholder of `.git` while commands run does not count, as in git.
fn holds_git(folder: &Path) -> bool {
    has_git(folder)
}

/// The entries of a folder, sorted, without hidden ones.
pub(crate) fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let shown = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    let mut children: Vec<PathBuf> = shown.map(|entry| entry.path()).collect();
    children.sort();
    children
}

/// The name in a plugin's manifest, else the name of its folder.
pub(crate) fn plugin_name(folder: &Path) -> String {
    #[derive(Deserialize)]
    struct Manifest {
        name: String,
    }
    let manifest = folder.join(".claude-plugin").join("plugin.json");
    let text = read(&manifest, MANIFEST_BYTES).ok();
    let named = text.and_then(|text| serde_json::from_str::<Manifest>(&text).ok());
    named.map(|manifest| manifest.name).unwrap_or_else(|| {
        folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    })
}

/// Opens `path`, and returns its metadata. Does not block on a pipe, which a command may put there at any moment.
pub(crate) fn open(path: &Path) -> std::io::Result<(File, Metadata)> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let data = file.metadata()?;
    Ok((file, data))
}

/// The text of the file at `path`, if it has at most `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> Result<String, String> {
    if let Some(name) = path.file_name().filter(|name| name.to_str().is_none()) {
        return Err(format!("its name {name:?} is not UTF-8; rename it or remove it"));
    }
    let cannot = |error: std::io::Error| format!("it cannot be read: {error}");
    let (file, data) = open(path).map_err(cannot)?;
    if !data.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::with_capacity(data.len().min(most) as usize);
    file.take(most + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > most {
        return Err(format!("it is larger than the {most} bytes that are read"));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!(
            "it is not UTF-8: byte {} is not part of a text",
            error.utf8_error().valid_up_to() + 1
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_readable_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.md");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), "12345");
        assert!(read(&path, 4).unwrap_err().contains("larger than the 4 bytes"));
        std::fs::write(&path, [b'a', 0xff]).unwrap();
        assert!(read(&path, 9).unwrap_err().contains("not UTF-8: byte 2"));
        assert!(read(folder.path(), 9).unwrap_err().contains("not a file"));
    }
}
