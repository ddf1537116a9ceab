//! The names that git in a sandbox ignores besides those of the user: the placeholders of protected names.
//! Otherwise `git clean` and `git stash` would fail half-way, because they cannot remove placeholders.

use super::command_sandbox::CommandSandbox;
use super::mask;
use super::placeholder::is_placeholder;
use super::protected::{MODULES, PROTECTED, data_of, makes_a_repository, obeyed_below_home};
use posse_protocol::Profile;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// The file in which a repository lists the names that git ignores.
const EXCLUDE: &str = "info/exclude";

/// The maximum number of bytes to read from it.
const MOST: u64 = 1 << 20;

/// Returns this file of the workspace's repository, and its replacement: the same text with the names
/// of the placeholders added. `None` if there is no such file.
pub(super) fn excluded(sandbox: &CommandSandbox) -> Option<(PathBuf, TempPath)> {
    let workspace = &sandbox.workspace;
    let (file, top) = place(sandbox)?;
    let mut text = text_of(&file)?;
    let below = workspace.strip_prefix(top).ok()?;
    let obeyed = obeyed_below_home(workspace, &sandbox.homes, &sandbox.hidden).places;
    let obeyed = obeyed.iter().filter_map(|path| path.strip_prefix(workspace).ok());
    let names = PROTECTED.into_iter().chain(makes_a_repository(workspace)).map(Path::new);
    for name in names.chain(obeyed) {
        let is_held = match workspace.join(name).symlink_metadata() {
            Ok(found) => is_placeholder(&found),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        if is_held {
            text.push_str(&format!("\n/{}", escaped(&below.join(name))?));
        }
    }
    text.push('\n');
    Some((file, mask::holding(&text)?))
}

/// The path of this file, and the folder to which it applies.
fn place(sandbox: &CommandSandbox) -> Option<(PathBuf, &Path)> {
    if sandbox.profile != Profile::WorkspaceWrite {
        return None;
    }
    let workspace = &sandbox.workspace;
    let own = data_of(workspace).into_iter().find(|data| data != workspace);
    let own = own.map(|data| (data, &**workspace));
    let above = || {
        let data = sandbox.repository.as_ref()?;
        Some((data.clone(), data.parent()?))
    };
    let (data, top) = own.or_else(above)?;
    Some((data.join(EXCLUDE), top))
}

/// Returns `.gitmodules` at the top of the workspace's repository if it is a placeholder. Git would
/// read it, so an empty file replaces it, provided that git can be made to ignore that file.
pub(super) fn emptied(sandbox: &CommandSandbox) -> Option<PathBuf> {
    let (file, top) = place(sandbox)?;
    let modules = top.join(MODULES);
    let found = modules.symlink_metadata().ok()?;
    let is_held = is_placeholder(&found) && !found.is_dir();
    (top == sandbox.workspace && is_held && text_of(&file).is_some()).then_some(modules)
}

/// The text of the file. It follows no link, because a command could have put one there.
fn text_of(file: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let handle = openat2(CWD, file, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    let file = File::from(handle);
    let mut text = String::new();
    let is_file = file.metadata().ok()?.is_file();
    (is_file && file.take(MOST).read_to_string(&mut text).is_ok()).then_some(text)
}

/// Escapes a path as a pattern that matches only this path.
fn escaped(path: &Path) -> Option<String> {
    let mut pattern = String::new();
    for letter in path.to_str().filter(|text| !text.contains('\n'))?.chars() {
        if "\\*?[]!# ".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    Some(pattern)
}
