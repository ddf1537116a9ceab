//! Who can change a database and what is beside it. Posse executes the runs that it finds, so nobody but
//! its user, and root, may decide what is there.

mod access;

use super::wal::beside;
use crate::StoreError;
use access::User;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The files beside a database that Posse or the engine opens.
const FILES: [&str; 9] =
    ["", "-wal", "-shm", "-journal", "-reserve", "-clock", "-damage", "-daemon", "-new"];

/// The folders beside a database.
const FOLDERS: [&str; 5] = ["-workers", "-scratch", "-worktrees", "-repositories", "-nowhere"];

/// The bit of the mode of a folder in which each user may only remove own files.
const STICKY: u32 = 0o1000;

/// The most links on the way to a file, like the kernel's.
const MOST_LINKS: usize = 40;

const ADVICE: &str = "keep the database in a folder in which only you can make files";

/// The database at `path`, and the files and folders beside it.
pub(super) fn places(path: &Path) -> impl Iterator<Item = PathBuf> {
    FILES.iter().chain(&FOLDERS).map(|ending| beside(path, ending))
}

/// Fails if another user can replace the database at `path`, or make, change or replace one of the files
/// and folders beside it.
pub(super) fn check(path: &Path) -> Result<(), StoreError> {
    check_as(path, &User::present())
        .map_err(|reason| StoreError::Unusable { path: path.display().to_string(), reason })
}

/// True for a file on a file system that cannot be changed, which is only read.
pub(super) fn is_fixed(path: &Path) -> bool {
    let real = path.canonicalize();
    let path = real.as_deref().unwrap_or(path);
    is_read_only(path.parent().unwrap_or(path))
}

/// True for a folder in which nobody can change anything through this mount.
fn is_read_only(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|it| it.f_flag.contains(StatVfsMountFlags::RDONLY))
}

fn check_as(path: &Path, user: &User) -> Result<(), String> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // If the folder does not exist, Posse makes it for its user alone.
    let Some(path) = follow(&path, user)? else { return Ok(()) };
    let folder = path.parent().unwrap_or(&path);
    if is_read_only(folder) {
        return Ok(());
    }
    let found = look(folder)?.ok_or_else(|| format!("{} is gone", folder.display()))?;
    if let Some(writers) = user.writers(folder, &found) {
        let shown = folder.display();
        // Many users share a sticky folder, such as /tmp: it must stay open.
        let cure = match found.mode() & STICKY {
            0 => format!(", or run `chmod go-w {shown}`"),
            _ => String::new(),
        };
        return Err(format!("{writers} may make files in its folder {shown}; {ADVICE}{cure}"));
    }
    let files = FILES.iter().map(|ending| (ending, true));
    for (ending, is_file) in files.chain(FOLDERS.iter().map(|ending| (ending, false))) {
        check_entry(&beside(&path, ending), user, is_file)?;
    }
    Ok(())
}

/// The path without links of what `path` names. `None` if a folder on the way does not exist. Fails if
/// another user could replace a folder or a link on the way.
fn follow(path: &Path, user: &User) -> Result<Option<PathBuf>, String> {
    let mut place = PathBuf::from("/");
    let mut ahead = names(path);
    let mut links = 0;
    if let Some(found) = look(&place)?
        && !is_read_only(&place)
    {
        check_above(&place, &found, user)?;
    }
    while let Some(name) = ahead.pop() {
        if name == ".." {
            place.pop();
            continue;
        }
        let next = place.join(&name);
        let Some(found) = look(&next)? else {
            return Ok(ahead.is_empty().then_some(next));
        };
        if found.is_symlink() {
            if let Some(owner) = user.stranger(&found).filter(|_| !is_read_only(&place)) {
                return Err(foreign(&next, owner));
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(format!("there are too many links on the way to {}", path.display()));
            }
            let target = next.read_link().map_err(|error| unread(&next, &error))?;
            if target.is_absolute() {
                place = PathBuf::from("/");
            }
            ahead.extend(names(&target));
            continue;
        }
        if found.is_dir() && !is_read_only(&next) {
            check_above(&next, &found, user)?;
        }
        place = next;
    }
    Ok(Some(place))
}

/// The names in a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// Fails if another user can exchange what is in a folder on the way to a database.
fn check_above(folder: &Path, found: &Metadata, user: &User) -> Result<(), String> {
    let shown = folder.display();
    if let Some(owner) = user.stranger_above(found) {
        return Err(format!(
            "the folder {shown} belongs to another user, with the id {owner}; {ADVICE}"
        ));
    }
    match user.movers(folder, found) {
        None => Ok(()),
        Some(movers) => Err(format!(
            "{movers} may replace what is in the folder {shown}; {ADVICE}, or run `chmod go-w {shown}`"
        )),
    }
}

/// Fails if `path` exists and is not of the right kind, or if another user can change it.
fn check_entry(path: &Path, user: &User, is_file: bool) -> Result<(), String> {
    let Some(mut found) = look(path)? else { return Ok(()) };
    let mut real = path.to_owned();
    if found.is_symlink() {
        let Some(target) = follow(path, user)? else { return Ok(()) };
        let Some(it) = look(&target)? else { return Ok(()) };
        (real, found) = (target, it);
    }
    if let Some(owner) = user.stranger(&found) {
        return Err(foreign(path, owner));
    }
    let (is_right, kind): (fn(&FileType) -> bool, _) = match is_file {
        true => (FileType::is_file, "a regular file"),
        false => (FileType::is_dir, "a folder"),
    };
    if !is_right(&found.file_type()) {
        return Err(format!("{} is not {kind}", path.display()));
    }
    match user.writers(&real, &found) {
        None => Ok(()),
        Some(writers) => {
            let shown = real.display();
            Err(format!("{writers} may write to {shown}; run `chmod go-w {shown}`"))
        }
    }
}

fn look(path: &Path) -> Result<Option<Metadata>, String> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some).map_err(|error| unread(path, &error)),
    }
}

fn unread(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be looked at: {error}", path.display())
}

fn foreign(path: &Path, owner: u32) -> String {
    let shown = path.display();
    format!(
        "{shown} belongs to another user, with the id {owner}, who could decide what Posse executes; \
         keep the database in a folder of your own, or run Posse as that user"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    const STRANGER: u32 = 54_321;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A folder, this user, and the lists of users in which others are members of the folder's group or not.
    fn world(others: bool) -> (tempfile::TempDir, User) {
        let folder = tempfile::tempdir().unwrap();
        let found = folder.path().metadata().unwrap();
        let (id, group) = (found.uid(), found.gid());
        let member = if others { "stranger" } else { "" };
        let lists = folder.path().join("etc");
        std::fs::create_dir(&lists).unwrap();
        std::fs::write(lists.join("group"), format!("users:x:{group}:{member}\n")).unwrap();
        let user = User::with(id, &lists);
        (folder, user)
    }

    #[test]
    fn a_folder_in_which_others_make_files_is_refused() {
        for (mode, others, fits) in [
            (0o700, true, true),
            (0o755, true, true),
            (0o775, false, true),
            (0o775, true, false),
            (0o757, false, false),
            (0o777, false, false),
            (0o1777, false, false),
            (0o1770, true, false),
        ] {
            let (folder, user) = world(others);
            let near = folder.path().join("near");
            std::fs::create_dir(&near).unwrap();
            set_mode(&near, mode);
            let checked = check_as(&near.join("p.db"), &user);
            assert_eq!(checked.is_ok(), fits, "{mode:o} {others}: {checked:?}");
            // Above the folder of the database, others may make files, and not replace any.
            let below = near.join("below");
            std::fs::create_dir(&below).unwrap();
            set_mode(&below, 0o700);
            let checked = check_as(&below.join("p.db"), &user);
            let fits = fits || mode & 0o1000 != 0;
            assert_eq!(checked.is_ok(), fits, "above: {mode:o} {others}: {checked:?}");
            let checked = check_as(&near.join("missing/p.db"), &user);
            assert_eq!(checked.is_ok(), fits, "missing: {mode:o} {others}: {checked:?}");
        }
    }

    #[test]
    fn what_others_have_put_beside_a_database_is_refused() {
        let (folder, user) = world(true);
        let (id, path) = (folder.path().metadata().unwrap().uid(), folder.path().join("p.db"));
        for (ending, is_file) in
            FILES.map(|it| (it, true)).into_iter().chain(FOLDERS.map(|it| (it, false)))
        {
            let path = beside(&path, ending);
            assert_eq!(check_entry(&path, &user, is_file), Ok(()), "it need not exist");
            match is_file {
                true => std::fs::write(&path, "").unwrap(),
                false => std::fs::create_dir(&path).unwrap(),
            }
            set_mode(&path, 0o755);
            assert_eq!(check_entry(&path, &user, is_file), Ok(()));
            let kind = check_entry(&path, &user, !is_file).unwrap_err();
            assert!(kind.contains("is not a"), "{kind}");
            for (mode, whom) in [(0o757, "all users"), (0o775, "the users of its group")] {
                set_mode(&path, mode);
                let told = check_entry(&path, &user, is_file).unwrap_err();
                assert!(told.contains(whom) && told.contains("chmod go-w"), "{ending}: {told}");
            }
            set_mode(&path, 0o755);
            let other = match id {
                // Root's files are trusted, and a stranger's are not.
                0 => {
                    assert_eq!(check_entry(&path, &User::with(STRANGER, &path), is_file), Ok(()));
                    chown(&path, Some(STRANGER), None).unwrap();
                    user.stranger(&path.metadata().unwrap()).unwrap();
                    id
                }
                _ => STRANGER,
            };
            let told = check_entry(&path, &User::with(other, &path), is_file).unwrap_err();
            assert!(told.contains("belongs to another user"), "{ending}: {told}");
        }
    }

    #[test]
    fn a_link_counts_like_what_it_names() {
        let (folder, user) = world(true);
        let id = folder.path().metadata().unwrap().uid();
        let (link, target) = (folder.path().join("p.db-worktrees"), folder.path().join("big"));
        symlink(&target, &link).unwrap();
        assert_eq!(check_entry(&link, &user, false), Ok(()), "its target may come");
        std::fs::create_dir(&target).unwrap();
        set_mode(&target, 0o700);
        assert_eq!(check_entry(&link, &user, false), Ok(()));
        assert!(check_entry(&link, &user, true).is_err());
        set_mode(&target, 0o777);
        assert!(check_entry(&link, &user, false).is_err(), "others may write to what it names");
        set_mode(&target, 0o700);
        if id == 0 {
            lchown(&link, Some(STRANGER), None).unwrap();
            assert!(check_entry(&link, &user, false).is_err(), "a link of another user");
        }
    }

    #[test]
    fn every_folder_on_the_way_counts_and_so_does_each_link() {
        let (folder, user) = world(true);
        let at = |name: &str| folder.path().join(name);
        for name in ["open", "open/near", "closed", "closed/near"] {
            std::fs::create_dir(at(name)).unwrap();
            set_mode(&at(name), 0o755);
        }
        symlink("../open/../closed/near", at("closed/through")).unwrap();
        symlink(at("closed/through"), at("link")).unwrap();
        for name in ["link/p.db", "closed/near/p.db", "open/near/p.db", "open/../closed/near/p.db"]
        {
            assert_eq!(check_as(&at(name), &user), Ok(()), "{name}");
        }
        // The folder is only passed through.
        set_mode(&at("open"), 0o777);
        for name in ["link/p.db", "open/near/p.db"] {
            let told = check_as(&at(name), &user).unwrap_err();
            assert!(told.contains("may replace what is in the folder"), "{name}: {told}");
        }
        assert_eq!(check_as(&at("closed/near/p.db"), &user), Ok(()));
        symlink("round", at("closed/round")).unwrap();
        assert!(check_as(&at("closed/round/p.db"), &user).unwrap_err().contains("too many links"));
    }
}
