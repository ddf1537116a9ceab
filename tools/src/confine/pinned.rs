//! Folders whose names stay as they are while a command runs.
//!
//! Programs of the user follow links in them: see `home_links.rs`. Nothing can be mounted over a link. So the
//! folder around it can only be read, and what else is in it is mounted there so that it can be changed:
//! a command changes files and works in folders, and makes, moves and removes no name beside the link.

use super::command_sandbox::CommandSandbox;
use super::placeholder::is_placeholder;
use super::protected::{ObeyedPaths, obeyed_below_home};
use super::reasons::SAYS;
use posse_protocol::Profile;
use std::path::{Path, PathBuf};

/// Names in such a folder that can be changed, at most: each is a mount.
const NAMES: usize = 200;

/// What is in the workspace on ways that programs of the user follow.
#[derive(Default)]
pub(super) struct Followed {
    pub links: Vec<PathBuf>,
    /// Folders that the ways leave again by `..`.
    pub left: Vec<PathBuf>,
}

pub(super) fn followed(sandbox: &CommandSandbox) -> Followed {
    if sandbox.profile != Profile::WorkspaceWrite {
        return Followed::default();
    }
    let ObeyedPaths { mut links, mut left, .. } =
        obeyed_below_home(&sandbox.workspace, &sandbox.homes, &sandbox.hidden);
    // What the host gave to be written, it meant.
    for paths in [&mut links, &mut left] {
        paths.retain(|path| !sandbox.writable.iter().any(|given| path.starts_with(given)));
    }
    Followed { links, left }
}

/// The folders around `links` that are in none of `closed`, which stay as they are.
pub(super) fn pinned(links: &[PathBuf], closed: &[&Path]) -> Vec<PathBuf> {
    let folders = links.iter().filter_map(|link| link.parent());
    let open = folders.filter(|folder| !closed.iter().any(|it| folder.starts_with(it)));
    let mut pinned: Vec<PathBuf> = open.map(Path::to_owned).collect();
    pinned.sort();
    pinned.dedup();
    pinned
}

/// What in `folder` can still be changed: all but links, where there is not too much of it; else the folders.
pub(super) fn changeable(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
    let entries = entries.filter(|(_, found)| found.is_dir() || found.is_file());
    let (mut folders, files): (Vec<_>, Vec<_>) =
        entries.filter(|(_, found)| !is_placeholder(found)).partition(|(_, it)| it.is_dir());
    if folders.len() + files.len() <= NAMES {
        folders.extend(files);
    }
    if folders.len() > NAMES {
        folders.clear();
    }
    folders.into_iter().map(|(path, _)| path).collect()
}

/// What tells an agent that `text`, the output of a command, may be about such a folder: the folder, and the
/// link in it.
pub(crate) fn hindered(text: &str, sandbox: &CommandSandbox) -> Option<(PathBuf, PathBuf)> {
    if !SAYS.iter().any(|it| text.contains(it)) {
        return None;
    }
    let link = followed(sandbox).links.into_iter().next()?;
    let below = |path: &Path| path.strip_prefix(&sandbox.workspace).ok().map(Path::to_owned);
    Some((below(link.parent()?)?, below(&link)?))
}
