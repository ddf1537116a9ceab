//! Which files a search looks at: all in a folder but `.git` and what ignore files below its
//! root (workspace or scratch folder) name, in order of their names, without following links.
//! Ignore files above the root say nothing: one in a home folder may well name everything.
//!
//! The walk goes by path, as the `ignore` crate does; so a path it yields is only a hint, and
//! must be opened again beneath the root before anything of it is shown.

use crate::failure::{Failure, PathError};
use crate::path_rules::Usage;
use crate::pattern::Pattern;
use crate::place::{Place, Root, RunFiles};
use ignore::types::Types;
use ignore::{DirEntry, Walk, WalkBuilder};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// An ignore file above this is a mistake or an attack.
const IGNORE_FILE_BYTES: u64 = 1 << 20;

/// The files below a folder.
pub(crate) struct Files<'a> {
    root: &'a Path,
    folder: PathBuf,
    types: Option<Types>,
    walk: Walk,
    /// Whether the walk can come by the folder, or was told to ignore it.
    reached: bool,
    cancel: &'a CancellationToken,
}

impl<'a> Files<'a> {
    /// Walks `folder`, which is from [`folder`].
    pub(crate) fn below(
        folder: &'a Place,
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
        // From the top, so that the ignore files on the way to the folder count.
        let walk = walk(root, &folder, types.clone());
        let reached = folder == root;
        Ok(Files { root, folder, types, walk, reached, cancel })
    }
}

impl Iterator for Files<'_> {
    type Item = PathBuf;

    /// The next regular file, as a path below the root. Ends early when cancelled.
    fn next(&mut self) -> Option<PathBuf> {
        while !self.cancel.is_cancelled() {
            let Some(entry) = self.walk.next() else {
                if self.reached {
                    return None;
                }
                // Ignored, and asked for all the same.
                self.reached = true;
                self.walk = walk(&self.folder, &self.folder, self.types.clone());
                continue;
            };
            // What cannot be read cannot be searched.
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

/// Walks from `top` to `folder`, and then all of that.
fn walk(top: &Path, folder: &Path, types: Option<Types>) -> Walk {
    let mut builder = WalkBuilder::new(top);
    let folder = folder.to_owned();
    builder
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .parents(false)
        // Would look at the environment to find the user's own file.
        .git_global(false)
        .current_dir(top)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .filter_entry(move |entry| may_enter(entry, &folder));
    if let Some(types) = types {
        builder.types(types);
    }
    builder.build()
}

/// Where a search begins: at `path`, or else in the folder that an absolute pattern names.
pub(crate) fn start(
    files: &Arc<RunFiles>,
    path: Option<&str>,
    pattern: Option<&Pattern>,
) -> Result<Place, PathError> {
    match path {
        Some(path) => files.place(path),
        None => {
            let root = pattern.map_or(Root::Workspace, Pattern::root);
            files.place_in(root, Path::new("."))
        }
    }
}

/// The folder that a search is asked to look at, canonical: by handle, so that one outside is
/// refused here.
pub(crate) fn folder(place: &Place) -> Result<Place, PathError> {
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

/// True unless an ignore file of the folder would block or flood the walk, which opens it
/// without looking: a pipe, a device, or something very large.
fn ignore_files_are_plain(folder: &Path) -> bool {
    [".gitignore", ".ignore", ".git/info/exclude"].iter().all(|name| {
        match std::fs::metadata(folder.join(name)) {
            Ok(found) => found.is_dir() || found.is_file() && found.len() <= IGNORE_FILE_BYTES,
            Err(_) => true,
        }
    })
}
