//! Masks: files that a command sees in place of hidden files that git tracks. A mask cannot be read,
//! and git takes it for the file.

use std::collections::BTreeSet;
use std::fs::{Metadata, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Where masks are made. No command sees the machine's own versions of these folders.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];

/// The maximum number of masks in one hidden folder. Each of them is a mount.
const MOST: usize = 200;

/// The environment variable with settings for git. They take precedence over all other settings.
pub(crate) const GIT_SETTINGS: &str = "GIT_CONFIG_PARAMETERS";

/// Settings that stop git from tidying up in the background. The supervisor kills all processes that a
/// command leaves, so only the user's own git tidies up.
pub(crate) const NO_TIDYING: &str = "'gc.auto=0' 'maintenance.auto=false' \
    'rebase.autoStash=false' 'merge.autoStash=false'";

/// Makes git compare files only by their size and the second of their last change.
pub(super) const UNCHANGED: &str = "'core.checkStat=minimal' 'core.trustctime=false'";

/// Masks for all these files. `None` if there are no files or too many, or if one cannot be masked.
pub(super) fn of_all(files: &BTreeSet<PathBuf>) -> Option<Vec<(PathBuf, TempPath)>> {
    let can_be = !files.is_empty() && files.len() <= MOST;
    // A file that does not exist is missing for git, too.
    let there = files.iter().filter(|file| file.symlink_metadata().is_ok());
    can_be.then(|| there.map(|file| Some((file.clone(), of(file)?))).collect()).flatten()
}

/// A file with this text, which every user can read.
pub(super) fn holding(text: &str) -> Option<TempPath> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("posse-mask-").permissions(Permissions::from_mode(0o644));
    let mut file = FOLDERS.iter().find_map(|folder| builder.tempfile_in(folder).ok())?;
    file.write_all(text.as_bytes()).ok()?;
    // The umask of this process may have closed the file to others.
    file.as_file().set_permissions(Permissions::from_mode(0o644)).ok()?;
    Some(file.into_temp_path())
}

/// A mask with the size and time of the file at `path`.
pub(super) fn of(path: &Path) -> Option<TempPath> {
    let found = path.symlink_metadata().ok().filter(Metadata::is_file)?;
    let mut builder = tempfile::Builder::new();
    // This is the only bit of the mode that git compares.
    let mode = found.permissions().mode() & 0o100;
    builder.prefix("posse-mask-").permissions(Permissions::from_mode(mode));
    let mask = FOLDERS.iter().find_map(|folder| builder.tempfile_in(folder).ok())?;
    mask.as_file().set_len(found.len()).ok()?;
    mask.as_file().set_modified(found.modified().ok()?).ok()?;
    Some(mask.into_temp_path())
}
