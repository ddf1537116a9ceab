//! Masks: what a command finds in the place of a hidden file that git tracks. Nobody can read one, and
//! git takes it for the file.

use std::collections::BTreeSet;
use std::fs::{Metadata, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Where they are made: no command sees the real ones of these folders.
const FOLDERS: [&str; 2] = ["/dev/shm", "/tmp"];

/// Masks in one hidden folder, at most: each is a mount.
const MOST: usize = 200;

/// The variable with settings for git that come before all others.
pub(crate) const GIT_SETTINGS: &str = "GIT_CONFIG_PARAMETERS";

/// Git tidies up in the background, and all that a command leaves there is killed. So only the user's
/// own git does that.
pub(crate) const NO_TIDYING: &str = "'gc.auto=0' 'maintenance.auto=false' \
    'rebase.autoStash=false' 'merge.autoStash=false'";

/// Makes git compare files by their size and the second of their last change only.
pub(super) const UNCHANGED: &str = "'core.checkStat=minimal' 'core.trustctime=false'";

/// Masks for all these files; nothing if there are none, or too many, or one cannot be masked.
pub(super) fn of_all(files: &BTreeSet<PathBuf>) -> Option<Vec<(PathBuf, TempPath)>> {
    let can_be = !files.is_empty() && files.len() <= MOST;
    // One that is gone is gone to git too.
    let there = files.iter().filter(|file| file.symlink_metadata().is_ok());
    can_be.then(|| there.map(|file| Some((file.clone(), of(file)?))).collect()).flatten()
}

/// A file with this text, which everybody can read.
pub(super) fn holding(text: &str) -> Option<TempPath> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("posse-mask-").permissions(Permissions::from_mode(0o644));
    let mut file = FOLDERS.iter().find_map(|folder| builder.tempfile_in(folder).ok())?;
    file.write_all(text.as_bytes()).ok()?;
    // Whoever made it may see to it that others cannot.
    file.as_file().set_permissions(Permissions::from_mode(0o644)).ok()?;
    Some(file.into_temp_path())
}

/// A mask as long and as old as the file at `path`.
pub(super) fn of(path: &Path) -> Option<TempPath> {
    let found = path.symlink_metadata().ok().filter(Metadata::is_file)?;
    let mut builder = tempfile::Builder::new();
    // Git looks at this one bit of the mode.
    let mode = found.permissions().mode() & 0o100;
    builder.prefix("posse-mask-").permissions(Permissions::from_mode(mode));
    let mask = FOLDERS.iter().find_map(|folder| builder.tempfile_in(folder).ok())?;
    mask.as_file().set_len(found.len()).ok()?;
    mask.as_file().set_modified(found.modified().ok()?).ok()?;
    Some(mask.into_temp_path())
}
