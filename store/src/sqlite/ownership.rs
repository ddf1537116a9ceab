//! Who can change a database and what is beside it. Posse executes the runs that it finds, so nobody but
//! its user, and root, may decide what is there.

use super::wal::beside;
use crate::StoreError;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::{getegid, geteuid};
use std::fs::{FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The files beside a database that Posse or the engine opens.
const FILES: [&str; 9] =
    ["", "-wal", "-shm", "-journal", "-reserve", "-clock", "-damage", "-daemon", "-new"];

/// The folders beside a database.
const FOLDERS: [&str; 5] = ["-workers", "-scratch", "-worktrees", "-repositories", "-nowhere"];

const ALL_USERS: u32 = 0o002;
const GROUP: u32 = 0o020;
const STICKY: u32 = 0o1000;

/// Fails if another user can replace the database at `path`, or has put something in its place or beside
/// it. What does not exist is not checked: where other users may make files, check again after opening.
pub(super) fn check(path: &Path) -> Result<(), StoreError> {
    check_as(path, geteuid().as_raw(), getegid().as_raw())
        .map_err(|reason| StoreError::Unusable { path: path.display().to_string(), reason })
}

fn check_as(path: &Path, user: u32, group: u32) -> Result<(), String> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(&path);
    // What cannot be changed is only read.
    let is_fixed = |it: rustix::fs::StatVfs| it.f_flag.contains(StatVfsMountFlags::RDONLY);
    if statvfs(folder).is_ok_and(is_fixed) {
        return Ok(());
    }
    if let Ok(found) = folder.metadata() {
        check_folder(folder, &found, user, group)?;
    }
    let files = FILES.iter().map(|ending| (ending, true));
    for (ending, is_file) in files.chain(FOLDERS.iter().map(|ending| (ending, false))) {
        check_entry(&beside(&path, ending), user, is_file)?;
    }
    Ok(())
}

fn check_folder(folder: &Path, found: &Metadata, user: u32, group: u32) -> Result<(), String> {
    let shown = folder.display();
    let advice = "keep the database in a folder of your own";
    if is_foreign(found, user) {
        let owner = found.uid();
        return Err(format!(
            "its folder {shown} belongs to another user, with the id {owner}; {advice}"
        ));
    }
    // A group of its own has the user alone.
    let others = match found.mode() {
        mode if mode & STICKY != 0 => return Ok(()),
        mode if mode & ALL_USERS != 0 => "all users",
        mode if mode & GROUP != 0 && found.gid() != group => "the users of a group",
        _ => return Ok(()),
    };
    Err(format!(
        "{others} may replace files in its folder {shown}; {advice}, or run `chmod go-w {shown}`"
    ))
}

fn check_entry(path: &Path, user: u32, is_file: bool) -> Result<(), String> {
    let unread = |error: io::Error| format!("{} cannot be looked at: {error}", path.display());
    let found = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(unread)?,
    };
    let foreign = |found: &Metadata| {
        let (shown, owner) = (path.display(), found.uid());
        Err(format!(
            "{shown} belongs to another user, with the id {owner}, who could decide what Posse \
             executes; keep the database in a folder of your own, or run Posse as that user"
        ))
    };
    if is_foreign(&found, user) {
        return foreign(&found);
    }
    let found = match found.is_symlink() {
        false => found,
        // A link of the user's own.
        true => match path.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found.map_err(unread)?,
        },
    };
    if is_foreign(&found, user) {
        return foreign(&found);
    }
    let (is_right, kind): (fn(&FileType) -> bool, _) = match is_file {
        true => (FileType::is_file, "a regular file"),
        false => (FileType::is_dir, "a folder"),
    };
    match is_right(&found.file_type()) {
        true => Ok(()),
        false => Err(format!("{} is not {kind}", path.display())),
    }
}

/// True for what belongs to somebody else than `user` and root.
fn is_foreign(found: &Metadata, user: u32) -> bool {
    found.uid() != user && found.uid() != 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const STRANGER: u32 = 54_321;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_in_which_others_replace_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let found = folder.path().metadata().unwrap();
        let (user, group) = (found.uid(), found.gid());
        let path = folder.path().join("p.db");
        for (mode, group, fits) in [
            (0o700, group, true),
            (0o755, group, true),
            (0o775, group, true),
            (0o1777, group, true),
            (0o1770, group + 1, true),
            (0o775, group + 1, false),
            (0o757, group, false),
            (0o777, group, false),
        ] {
            set_mode(folder.path(), mode);
            let checked = check_as(&path, user, group);
            assert_eq!(checked.is_ok(), fits, "{mode:o}: {checked:?}");
        }
    }

    #[test]
    fn what_others_have_put_beside_a_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (user, path) = (folder.path().metadata().unwrap().uid(), folder.path().join("p.db"));
        for (ending, is_file) in
            FILES.map(|it| (it, true)).into_iter().chain(FOLDERS.map(|it| (it, false)))
        {
            let path = beside(&path, ending);
            assert_eq!(check_entry(&path, user, is_file), Ok(()), "it need not exist");
            match is_file {
                true => std::fs::write(&path, "").unwrap(),
                false => std::fs::create_dir(&path).unwrap(),
            }
            assert_eq!(check_entry(&path, user, is_file), Ok(()));
            let kind = check_entry(&path, user, !is_file).unwrap_err();
            assert!(kind.contains("is not a"), "{kind}");
            if user == 0 {
                // Root's files are trusted, and a stranger's are not.
                assert_eq!(check_entry(&path, STRANGER, is_file), Ok(()));
                std::os::unix::fs::chown(&path, Some(STRANGER), None).unwrap();
            }
            let other = if user == 0 { user } else { STRANGER };
            let told = check_entry(&path, other, is_file).unwrap_err();
            assert!(told.contains("belongs to another user"), "{ending}: {told}");
        }
    }

    #[test]
    fn a_link_counts_like_what_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().metadata().unwrap().uid();
        let (link, target) = (folder.path().join("p.db-worktrees"), folder.path().join("big"));
        symlink(&target, &link).unwrap();
        assert_eq!(check_entry(&link, user, false), Ok(()), "its target may come");
        std::fs::create_dir(&target).unwrap();
        assert_eq!(check_entry(&link, user, false), Ok(()));
        assert!(check_entry(&link, user, true).is_err());
        if user == 0 {
            std::os::unix::fs::lchown(&link, Some(STRANGER), None).unwrap();
            assert!(check_entry(&link, user, false).is_err(), "a link of another user");
        }
    }
}
