//! The files of a run, and how a path from the model becomes an open file.
//!
//! A run has its workspace, perhaps a scratch folder, and folders that it only reads. An absolute path belongs
//! to the folder that contains it; any other path belongs to the workspace. Within that folder, the path is
//! opened beneath a handle. So a path never leads from one folder to another, nor out of all of them.

use crate::failure::{Bounds, PathError, explain};
use crate::linux;
use crate::path_rules::{PathRules, Reached, Usage};
use crate::read_only::ReadOnly;
use crate::scratch::{Opened, Scratch};
use crate::seen::{Knowledge, compare, seen_file};
use crate::workspace::Workspace;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use parking_lot::MutexGuard;
use posse_agent::SeenFiles;
use posse_protocol::SeenFile;
use rustix::fs::OFlags;
use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The maximum number of names in a folder to compare with a missing one.
const NAMES_CONSIDERED: usize = 2000;

/// The folders of a run, for one tool.
pub(crate) struct RunFiles {
    /// The name of the tool.
    pub tool: String,
    pub workspace: Arc<Workspace>,
    pub scratch: Option<Scratch>,
    pub read_only: Vec<ReadOnly>,
    /// Checked for each file after it is open.
    pub rules: Option<Arc<dyn PathRules>>,
}

/// One of the folders of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Workspace,
    Scratch,
    /// The read-only folder with this index.
    ReadOnly(usize),
}

impl RunFiles {
    /// Splits a path from the model into a folder and the path below it.
    pub(crate) fn locate<'p>(&self, path: &'p str) -> Result<(Root, &'p Path), PathError> {
        if path.is_empty() {
            return Err(PathError::Empty { bounds: self.bounds().any() });
        }
        let path = Path::new(path);
        let (root, below) = if path.is_absolute() {
            self.locate_absolute(path).ok_or_else(|| PathError::Outside {
                path: path.display().to_string(),
                bounds: self.bounds().all(),
            })?
        } else {
            (Root::Workspace, path.strip_prefix(".").unwrap_or(path))
        };
        Ok((root, if below.as_os_str().is_empty() { Path::new(".") } else { below }))
    }

    fn locate_absolute<'p>(&self, path: &'p Path) -> Option<(Root, &'p Path)> {
        let in_workspace = self.workspace.part_below(path);
        let scratch = self.scratch.as_ref();
        let in_scratch = scratch.and_then(|scratch| scratch.part_below(path));
        match (in_workspace, in_scratch) {
            // One folder is inside the other: the inner one leaves the shorter rest.
            (Some(one), Some(other)) if other.as_os_str().len() < one.as_os_str().len() => {
                Some((Root::Scratch, other))
            }
            (Some(below), _) => Some((Root::Workspace, below)),
            (None, Some(below)) => Some((Root::Scratch, below)),
            (None, None) => {
                let in_scratch = scratch.and_then(|scratch| scratch.part_below_canonical(path));
                let below = in_scratch.map(|below| (Root::Scratch, below));
                below.or_else(|| self.locate_read_only(path))
            }
        }
    }

    /// Finds the innermost read-only folder. These come last, because files of the workspace are writable.
    fn locate_read_only<'p>(&self, path: &'p Path) -> Option<(Root, &'p Path)> {
        let below = self.read_only.iter().enumerate().filter_map(|(index, folder)| {
            folder.part_below(path).map(|below| (Root::ReadOnly(index), below))
        });
        below.min_by_key(|(_, below)| below.as_os_str().len())
    }

    /// The place that a path from the model means. Creates the scratch folder if the path is in there.
    pub(crate) fn place(self: &Arc<Self>, path: &str) -> Result<RunPath, PathError> {
        let (root, below) = self.locate(path)?;
        self.place_in(root, below)
    }

    /// The place `below` one of the folders.
    pub(crate) fn place_in(
        self: &Arc<Self>,
        root: Root,
        below: &Path,
    ) -> Result<RunPath, PathError> {
        let opened = match (root, &self.scratch) {
            (Root::Scratch, Some(scratch)) => Some(scratch.open()?),
            (Root::ReadOnly(index), _) => match self.read_only.get(index) {
                Some(folder) => Some(folder.open()?),
                None => None,
            },
            _ => None,
        };
        let elsewhere = opened.map(|opened| (root, Arc::new(opened)));
        let reached = Reached::Named;
        Ok(RunPath { files: self.clone(), elsewhere, path: below.to_owned(), reached })
    }

    /// Refuses a path from the model where the run never writes, whatever is there. Creates nothing.
    pub(crate) fn require_writable(self: &Arc<Self>, path: &str) -> Result<(), PathError> {
        let (root, below) = self.locate(path)?;
        if root == Root::Scratch {
            return Ok(());
        }
        let place = self.place_in(root, below)?;
        place.require_writable()?;
        place.require_inside()
    }

    fn bounds(&self) -> Bounds<'_> {
        let scratch = self.scratch.as_ref().map(Scratch::path);
        Bounds { workspace: self.workspace.path(), scratch }
    }
}

/// A path in an open folder of the run. There need not be a file.
#[derive(Clone)]
pub(crate) struct RunPath {
    files: Arc<RunFiles>,
    /// Set if it is not in the workspace.
    elsewhere: Option<(Root, Arc<Opened>)>,
    /// Relative to the folder.
    path: PathBuf,
    reached: Reached,
}

impl RunPath {
    /// Another place in the same folder.
    pub(crate) fn at(&self, path: PathBuf) -> RunPath {
        let RunPath { files, elsewhere, reached, .. } = self.clone();
        RunPath { files, elsewhere, path, reached }
    }

    /// A place in the same folder that a search found.
    pub(crate) fn found(&self, path: PathBuf) -> RunPath {
        RunPath { reached: Reached::Found, ..self.at(path) }
    }

    /// The path below the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of this place.
    pub(crate) fn root(&self) -> Root {
        self.elsewhere.as_ref().map_or(Root::Workspace, |(root, _)| *root)
    }

    /// The canonical, absolute path of that folder. Only a hint: never open it.
    pub(crate) fn root_path(&self) -> &Path {
        match &self.elsewhere {
            Some((_, opened)) => &opened.path,
            None => self.files.workspace.path(),
        }
    }

    /// The handle of that folder.
    pub(crate) fn dir(&self) -> &Dir {
        match &self.elsewhere {
            Some((_, opened)) => &opened.dir,
            None => self.files.workspace.dir(),
        }
    }

    /// The path that the model uses: relative in the workspace, absolute elsewhere.
    fn name(&self) -> Cow<'_, Path> {
        let folder = match self.root() {
            Root::Workspace => None,
            Root::Scratch => self.files.scratch.as_ref().map(Scratch::path),
            Root::ReadOnly(index) => self.files.read_only.get(index).map(ReadOnly::path),
        };
        match folder {
            Some(folder) if self.path == Path::new(".") => Cow::Borrowed(folder),
            Some(folder) => Cow::Owned(folder.join(&self.path)),
            None => Cow::Borrowed(&self.path),
        }
    }

    /// Refuses a place in a read-only folder.
    pub(crate) fn require_writable(&self) -> Result<(), PathError> {
        match self.root() {
            Root::ReadOnly(_) => Err(PathError::ReadOnly { path: self.show() }),
            Root::Workspace | Root::Scratch => Ok(()),
        }
    }

    /// Refuses a path that leads out of its folder, as far as existing files show.
    fn require_inside(&self) -> Result<(), PathError> {
        for ancestor in self.path.ancestors() {
            let here = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
            match self.dir().metadata(here) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => match self.explain(error) {
                    escapes @ PathError::Escapes { .. } => return Err(escapes),
                    _ => return Ok(()),
                },
                Ok(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// The path as it is shown to the model.
    pub(crate) fn show(&self) -> String {
        self.name().display().to_string()
    }

    /// Opens a regular file. Fails at once, without waiting, for any other kind, and if the rules
    /// refuse this usage.
    pub(crate) fn open_file(&self, usage: Usage) -> Result<(File, Metadata), PathError> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(nonblocking());
        let opened = self.dir().open_with(&self.path, &options);
        let opened = self.regular(opened.map_err(|error| self.explain(error))?.into_std())?;
        self.check(usage, &opened.0, Path::new(""))?;
        Ok(opened)
    }

    /// Returns an error if the rules refuse the file `below` the one behind `handle`.
    pub(crate) fn check(
        &self,
        usage: Usage,
        handle: impl AsFd,
        below: &Path,
    ) -> Result<(), PathError> {
        let Some(rules) = self.files.rules.as_ref().filter(|rules| rules.are_about(usage)) else {
            return Ok(());
        };
        let unknown = |source: io::Error| PathError::Io { path: self.show(), source };
        let real = linux::real_path(handle).map_err(unknown)?;
        let root = linux::real_path(self.dir()).map_err(unknown)?;
        // Both may have moved since the run began. What counts is the path from one to the other.
        let inside = real.strip_prefix(&root).map_err(|_| unknown(io::Error::other("it moved")))?;
        let real = joined(&joined(self.root_path(), inside), below);
        let named = self.absolute();
        self.ask(&**rules, usage, &named, &real)
    }

    /// Returns an error if the rules refuse `real`, which is this place with links resolved.
    pub(crate) fn check_real(&self, usage: Usage, real: &RunPath) -> Result<(), PathError> {
        let Some(rules) = &self.files.rules else { return Ok(()) };
        self.ask(&**rules, usage, &self.absolute(), &real.absolute())
    }

    fn ask(
        &self,
        rules: &dyn PathRules,
        usage: Usage,
        named: &Path,
        real: &Path,
    ) -> Result<(), PathError> {
        match rules.refuse(Some(&self.files.tool), usage, self.reached, named, real) {
            Some(reason) => Err(PathError::Rule { path: self.show(), reason }),
            None => Ok(()),
        }
    }

    /// The absolute path, without resolving links. Only a hint: never open it.
    pub(crate) fn absolute(&self) -> PathBuf {
        joined(self.root_path(), &self.path)
    }

    /// Returns true if there is a link here, whatever its target.
    pub(crate) fn is_link(&self) -> bool {
        self.dir().symlink_metadata(&self.path).is_ok_and(|found| found.is_symlink())
    }

    /// Returns an error if the rules refuse a file whose folder does not exist yet. They check the real
    /// path of the nearest existing folder.
    pub(crate) fn check_missing(&self, usage: Usage) -> Result<(), PathError> {
        for ancestor in self.path.ancestors().skip(1) {
            let here = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
            if let Ok(folder) = self.dir().open_dir(here) {
                let below = self.path.strip_prefix(ancestor).unwrap_or(&self.path);
                return self.check(usage, &folder, below);
            }
        }
        self.check_name(usage)
    }

    /// Returns an error if the rules refuse a file at exactly this place, without links.
    pub(crate) fn check_name(&self, usage: Usage) -> Result<(), PathError> {
        self.check_real(usage, self)
    }

    /// Refuses everything but a regular file.
    pub(crate) fn regular(&self, file: File) -> Result<(File, Metadata), PathError> {
        let metadata = file.metadata().map_err(|error| self.explain(error))?;
        let file_type = metadata.file_type();
        if file_type.is_file() {
            return Ok((file, metadata));
        }
        if file_type.is_dir() {
            return Err(PathError::Folder { path: self.show() });
        }
        let kind = match () {
            () if file_type.is_fifo() => "a named pipe",
            () if file_type.is_socket() => "a socket",
            () => "a device",
        };
        Err(PathError::Special { path: self.show(), kind })
    }

    /// Opens a folder, unless the rules refuse this usage.
    pub(crate) fn open_folder(&self, usage: Usage) -> Result<Dir, PathError> {
        let opened = self.dir().open_dir(&self.path).map_err(|error| self.explain(error))?;
        self.check(usage, &opened, Path::new(""))?;
        Ok(opened)
    }

    /// The same place without links, `.` and `..`.
    pub(crate) fn canonical(&self) -> Result<RunPath, PathError> {
        let path = self.dir().canonicalize(&self.path).map_err(|error| self.explain(error))?;
        Ok(self.at(path))
    }

    /// Where a file that does not exist yet would be: below the nearest existing folder, with links
    /// resolved. The path after that folder must not contain `..`.
    pub(crate) fn canonical_missing(&self) -> Result<RunPath, PathError> {
        for ancestor in self.path.ancestors().skip(1) {
            let here = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
            let Ok(folder) = self.dir().canonicalize(here) else { continue };
            let below = self.path.strip_prefix(ancestor).unwrap_or(&self.path);
            let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
            return match is_plain {
                true => Ok(self.at(joined(Path::new(""), &folder).join(below))),
                false => Err(self.explain(ErrorKind::NotFound.into())),
            };
        }
        Err(self.explain(ErrorKind::NotFound.into()))
    }

    /// Converts `error` into a message for the model.
    pub(crate) fn explain(&self, error: io::Error) -> PathError {
        match error.kind() {
            ErrorKind::NotFound => PathError::Missing { path: self.show(), near: self.near() },
            _ => explain(self.show(), error, &self.files.bounds()),
        }
    }

    /// Prevents other runs in this process from writing here between a read and a write. The scratch
    /// folder needs no lock: only its own run writes there, one call after another.
    pub(crate) fn lock_for_writing(&self) -> Option<MutexGuard<'_, ()>> {
        match self.root() {
            Root::Workspace => Some(self.files.workspace.lock_for_writing(&self.path)),
            Root::Scratch | Root::ReadOnly(_) => None,
        }
    }

    /// Records that the run knows `content` of this place.
    pub(crate) fn seen(&self, content: &[u8]) -> Vec<SeenFile> {
        vec![seen_file(self.name().to_string_lossy().into_owned(), content)]
    }

    /// Compares the files that a run has `seen` with `content`, which this place holds now.
    pub(crate) fn compare(&self, seen: &SeenFiles, content: &[u8]) -> Knowledge {
        compare(seen, &self.name().to_string_lossy(), content)
    }

    /// Names in the same folder that resemble the missing one.
    fn near(&self) -> Vec<String> {
        let (Some(name), Some(parent)) = (self.path.file_name(), self.path.parent()) else {
            return Vec::new();
        };
        let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let Ok(entries) = self.dir().read_dir(folder) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .take(NAMES_CONSIDERED)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        similar::get_close_matches(&*name.to_string_lossy(), &names, 3, 0.6)
            .into_iter()
            .map(|name| self.at(parent.join(name)).show())
            .collect()
    }
}

/// Joins `folder` and `below` without resolving links.
fn joined(folder: &Path, below: &Path) -> PathBuf {
    let mut path = folder.to_owned();
    for part in below.components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                path.pop();
            }
            _ => {}
        }
    }
    path
}

/// Flags that prevent an open from blocking on a FIFO or device, or from acquiring a terminal.
pub(crate) fn nonblocking() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32
}

/// Reads at most `cap` bytes of a file of about `size` bytes, in one read where possible.
pub(crate) fn read_up_to(file: &mut File, size: u64, cap: usize) -> io::Result<Vec<u8>> {
    let expected = usize::try_from(size).unwrap_or(cap).min(cap);
    // One byte more than expected, so that the end shows without growing the buffer.
    let mut bytes = vec![0; (expected + 1).min(cap)];
    let mut filled = 0;
    loop {
        if filled == bytes.len() {
            if filled == cap {
                break;
            }
            bytes.resize((filled * 2).clamp(4096, cap.max(1)), 0);
        }
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => {
                filled += count;
                // A short read, and all bytes that the file reported: this is the end. A read that is
                // short for another reason must not count as the whole file.
                if filled < bytes.len() && filled as u64 == size {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
