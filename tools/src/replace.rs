//! Writes a file in one step: a reader sees the old content or the new content, never a part.
//!
//! Everything happens beside the file, through a handle of its folder. A new file gets a temporary
//! name, its content is flushed to the disk, it is renamed, and the folder is flushed to the disk.

use crate::failure::PathError;
use crate::path_rules::Usage;
use crate::read::WHOLE_FILE_BYTES;
use crate::run_path::{RunPath, nonblocking, read_up_to};
use crate::{kind, linux};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// The mode of a new file, before the umask is applied.
const NEW_FILE_MODE: u32 = 0o644;

/// A name in a folder, to be written.
pub(crate) struct Target {
    folder: Dir,
    name: OsString,
    place: RunPath,
}

/// The file that exists there now.
pub(crate) struct Existing {
    pub bytes: Vec<u8>,
    mode: u32,
    owner: (u32, u32),
}

impl Existing {
    /// Returns true if no user may write it. The rename would ignore that.
    pub(crate) fn is_read_only(&self) -> bool {
        self.mode & 0o222 == 0
    }
}

impl Target {
    /// Finds the folder of `place`, and creates it if it is missing. Follows a link to its target, if
    /// that is below the same root.
    pub(crate) fn find(asked: &RunPath) -> Result<Target, PathError> {
        asked.require_writable()?;
        let dir = asked.dir();
        let is_link = dir.symlink_metadata(asked.path()).is_ok_and(|found| found.is_symlink());
        let place = if is_link {
            asked.canonical().map_err(|error| match error {
                PathError::Missing { path, .. } => PathError::DanglingLink { path },
                other => other,
            })?
        } else {
            asked.clone()
        };
        let Some(name) = place.path().file_name().map(OsStr::to_owned) else {
            return Err(PathError::Folder { path: place.show() });
        };
        let parent = match place.path().parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let folder = match dir.open_dir(parent) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                place.check_missing(Usage::Change)?;
                dir.create_dir_all(parent).and_then(|()| dir.open_dir(parent))
            }
            found => found,
        };
        let folder = folder.map_err(|error| place.at(parent.to_owned()).explain(error))?;
        asked.check(Usage::Change, &folder, Path::new(&name))?;
        Ok(Target { folder, name, place })
    }

    /// The file that exists there now, if any. Any entry other than a regular file is an error.
    pub(crate) fn existing(&self) -> Result<Option<Existing>, PathError> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(nonblocking() | OFlags::NOFOLLOW.bits() as i32);
        let file = match self.folder.open_with(&self.name, &options) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| self.place.explain(error))?,
        };
        let (mut file, metadata) = self.place.regular(file.into_std())?;
        let bytes = read_up_to(&mut file, metadata.len(), WHOLE_FILE_BYTES + 1)
            .map_err(|error| self.place.explain(error))?;
        if bytes.len() > WHOLE_FILE_BYTES {
            let limit = kind::size(WHOLE_FILE_BYTES as u64);
            let source = io::Error::other(format!("it is larger than {limit}, change it by Bash"));
            return Err(PathError::Io { path: self.place.show(), source });
        }
        let mode = metadata.permissions().mode() & 0o7777;
        Ok(Some(Existing { bytes, mode, owner: (metadata.uid(), metadata.gid()) }))
    }

    /// Writes `content`. An existing file keeps its mode and owner. If there was none, a file that
    /// appeared meanwhile is not overwritten ([`ErrorKind::AlreadyExists`]).
    pub(crate) fn write(&self, content: &[u8], existing: Option<&Existing>) -> io::Result<()> {
        let (mut file, temporary) = Temporary::create(&self.folder, &self.name, existing)?;
        fail::fail_point!("tool.write.temp_created");
        file.write_all(content)?;
        file.sync_all()?;
        fail::fail_point!("tool.write.temp_written");
        temporary.rename(&self.name, existing)?;
        fail::fail_point!("tool.write.renamed");
        // The handle itself only names the folder. Flushing needs an open file.
        self.folder.open(".")?.sync_all()?;
        fail::fail_point!("tool.write.synced");
        Ok(())
    }
}

/// A file with a temporary name. It is removed unless it gets its final name.
struct Temporary<'f> {
    folder: &'f Dir,
    name: OsString,
    renamed: bool,
}

impl<'f> Temporary<'f> {
    fn create(
        folder: &'f Dir,
        beside: &OsStr,
        existing: Option<&Existing>,
    ) -> io::Result<(File, Temporary<'f>)> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // Private until it has the mode of the file that it replaces.
        options.mode(if existing.is_some() { 0o600 } else { NEW_FILE_MODE });
        let (file, name) = loop {
            let name = passing_name(beside);
            match folder.open_with(&name, &options) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                other => break (other?.into_std(), name),
            }
        };
        let temporary = Temporary { folder, name, renamed: false };
        if let Some(existing) = existing {
            let metadata = file.metadata()?;
            if (metadata.uid(), metadata.gid()) != existing.owner {
                // Only root may change owners. For other users the file becomes their own.
                let (user, group) = existing.owner;
                let owner = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
                let _ = rustix::fs::fchown(&file, owner.0, owner.1);
            }
            rustix::fs::fchmod(&file, Mode::from_raw_mode(existing.mode))?;
        }
        Ok((file, temporary))
    }

    fn rename(mut self, to: &OsStr, existing: Option<&Existing>) -> io::Result<()> {
        match existing {
            Some(_) => self.folder.rename(&self.name, self.folder, to)?,
            None => linux::rename_unless_taken(self.folder, &self.name, to)?,
        }
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = self.folder.remove_file(&self.name);
        }
    }
}

fn passing_name(beside: &OsStr) -> OsString {
    let random = RandomState::new().hash_one(beside);
    OsString::from(format!(".posse-{random:016x}.tmp"))
}
