//! Moving a file out of a workspace, through handles: neither the way to it nor where it goes can be
//! made to lead elsewhere by whoever made the file.

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Files of one name that are kept, at most.
const KEPT: u32 = 1_000;

/// Moves what is at `path` below `workspace` into `folder`, and returns its name there.
pub(crate) fn set_aside(workspace: &Dir, path: &Path, folder: &Dir) -> io::Result<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let names = (1..=KEPT).map(|count| format!("set-aside-{count}-{name}"));
    let free = names.into_iter().find(|it| folder.symlink_metadata(it).is_err());
    let free = free.ok_or_else(|| io::Error::other("there are too many of its name already"))?;
    match workspace.rename(path, folder, &free) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            copy(workspace, path, folder, &free)?;
            workspace.remove_file(path)?;
        }
        moved => moved?,
    }
    Ok(free)
}

/// Copies a file. Of anything else there is nothing to keep.
fn copy(workspace: &Dir, path: &Path, folder: &Dir, name: &str) -> io::Result<()> {
    if !workspace.symlink_metadata(path)?.is_file() {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    options.read(true).custom_flags(flags.bits().cast_signed());
    let mut from = workspace.open_with(path, &options)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    io::copy(&mut from, &mut folder.open_with(name, &options)?).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_moved_goes_nowhere_else() {
        let around = tempfile::tempdir().unwrap();
        let [from, to, other] = ["from", "to", "other"].map(|name| around.path().join(name));
        for folder in [&from, &to, &other] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(from.join("x"), "content").unwrap();
        fs::write(other.join("y"), "not to be moved").unwrap();
        std::os::unix::fs::symlink(&other, from.join("link")).unwrap();
        std::os::unix::fs::symlink(other.join("new"), to.join("set-aside-1-x")).unwrap();
        let open = |path| Dir::open_ambient_dir(path, cap_std::ambient_authority()).unwrap();
        let (workspace, folder) = (open(&from), open(&to));
        assert_eq!(set_aside(&workspace, Path::new("x"), &folder).unwrap(), "set-aside-2-x");
        assert_eq!(fs::read(to.join("set-aside-2-x")).unwrap(), b"content");
        assert!(set_aside(&workspace, Path::new("link/y"), &folder).is_err());
        assert!(other.join("y").exists() && !other.join("new").exists());
        copy(&open(&to), Path::new("set-aside-2-x"), &folder, "copy").unwrap();
        assert_eq!(fs::read(to.join("copy")).unwrap(), b"content");
    }
}
