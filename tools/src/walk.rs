//! The files that a search visits: all files in a folder except `.git` and those that ignore files below the
//! root (workspace or scratch folder) exclude. They come in the order of their names, and links are not
//! followed. Ignore files above the root do not count: one in a home folder may exclude everything.
//!
//! The walk uses paths, as the `ignore` crate does. So a path that it yields is only a hint, and must
//! be opened again beneath the root before any of it is shown.

use crate::failure::{Failure, PathError};
use crate::path_rules::Usage;
use crate::pattern::Pattern;
use crate::run_path::{Root, RunFiles, RunPath};
use ignore::types::Types;
use ignore::{DirEntry, Walk, WalkBuilder};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The maximum size of an ignore file. A larger one is a mistake or an attack.
const IGNORE_FILE_BYTES: u64 = 1 << 20;

/// The files below a folder.
pub(crate) struct Files<'a> {
    root: &'a Path,
    folder: PathBuf,
    types: Option<Types>,
    walk: Walk,
    /// True if the walk has reached the folder. It never does if the folder is ignored.
    reached: bool,
    cancel: &'a CancellationToken,
}

impl<'a> Files<'a> {
    /// Walks `folder`, which must come from [`folder`].
    pub(crate) fn below(
        folder: &'a RunPath,
        types: Option<Types>,
        cancel: &'a CancellationToken,
    ) -> Result<Self, Failure> {
        let root = folder.root_path();
        let folder = root.join(folder.path());
        for ancestor in folder.ancestors().take_while(|path| path.starts_with(root)) {
            if !ignore_files_are_plain(ancestor) {
                let shown = ancestor.display();
                return Err(Failure(format!(
                    "an ignore file in {shown} is not a regular file or too large; \
                     mend or remove it"
                )));
            }
        }
        // From the root, so that the ignore files on the way to the folder count.
        let walk = walk(root, &folder, types.clone());
        let reached = folder == root;
        Ok(Files { root, folder, types, walk, reached, cancel })
    }
}

impl Iterator for Files<'_> {
    type Item = PathBuf;

    /// The next regular file, as a path relative to the root. Ends early if cancelled.
    fn next(&mut self) -> Option<PathBuf> {
        while !self.cancel.is_cancelled() {
            let Some(entry) = self.walk.next() else {
                if self.reached {
                    return None;
                }
                // The folder is ignored, but the call asks for it explicitly.
                self.reached = true;
                self.walk = walk(&self.folder, &self.folder, self.types.clone());
                continue;
            };
            // An unreadable entry cannot be searched.
            let Ok(entry) = entry else { continue };
            self.reached |= entry.path() == self.folder;
            if entry.file_type().is_some_and(|file_type| file_type.is_file())
                && entry.path().starts_with(&self.folder)
                && let Ok(below) = entry.path().strip_prefix(self.root)
            {
                return Some(below.to_owned());
            }
        }
        None
    }
}

/// Walks from `top` to `folder`, and then everything in `folder`.
fn walk(top: &Path, folder: &Path, types: Option<Types>) -> Walk {
    let mut builder = WalkBuilder::new(top);
    let folder = folder.to_owned();
    builder
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .parents(false)
        // It would read the environment to find the user's own ignore file.
        .git_global(false)
        .current_dir(top)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .filter_entry(move |entry| may_enter(entry, &folder));
    if let Some(types) = types {
        builder.types(types);
    }
    builder.build()
}

/// Where a search begins: at `path`, or otherwise in the folder of an absolute pattern.
pub(crate) fn start(
    files: &Arc<RunFiles>,
    path: Option<&str>,
    pattern: Option<&Pattern>,
) -> Result<RunPath, PathError> {
    match path {
        Some(path) => files.place(path),
        None => {
            let root = pattern.map_or(Root::Workspace, Pattern::root);
            files.place_in(root, Path::new("."))
        }
    }
}

/// The canonical folder of a search. It is opened by handle, so that a folder outside is refused here.
pub(crate) fn folder(place: &RunPath) -> Result<RunPath, PathError> {
    place.open_folder(Usage::Walk)?;
    let canonical = place.canonical()?;
    let is_root = canonical.path() == Path::new(".");
    Ok(if is_root { canonical.at(PathBuf::new()) } else { canonical })
}

fn may_enter(entry: &DirEntry, folder: &Path) -> bool {
    let path = entry.path();
    if entry.file_name() == ".git" || !(path.starts_with(folder) || folder.starts_with(path)) {
        return false;
    }
    let is_folder = entry.file_type().is_some_and(|file_type| file_type.is_dir());
    !is_folder || ignore_files_are_plain(path)
}

/// Returns false if an ignore file of the folder would block or flood the walk, which opens it without
/// a check: a pipe, a device, or a very large file.
fn ignore_files_are_plain(folder: &Path) -> bool {
    [".gitignore", ".ignore", ".git/info/exclude"].iter().all(|name| {
        match std::fs::metadata(folder.join(name)) {
            Ok(found) => found.is_dir() || found.is_file() && found.len() <= IGNORE_FILE_BYTES,
            Err(_) => true,
        }
    })
}
