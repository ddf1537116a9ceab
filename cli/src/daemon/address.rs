//! The files of a database's daemon: lock, socket and log.

use crate::common::Common;
use crate::database::{Database, short_name};
use crate::exit::Failure;
use posse::store::SqliteStore;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The longest path of a socket: the kernel's limit without the final zero byte.
const LONGEST: usize = 107;

/// The files of a database's daemon.
pub struct Address {
    /// The database. If it is a file, this is its canonical path.
    pub database: Database,
    /// The lock file, which the daemon holds and which names its socket. It is next to the database
    /// file, so that it is found whatever the environment is.
    pub lock: PathBuf,
    /// The folder of the socket.
    folder: PathBuf,
    /// The socket of a daemon that is started here.
    pub socket: PathBuf,
    /// The log of a daemon without a terminal.
    pub log: PathBuf,
}

impl Address {
    /// The address of the daemon for the database that `common` names.
    pub fn of(common: &Common) -> Result<Self, Failure> {
        let database = match common.database()? {
            Database::File(path) => Database::File(one_name(&path)),
            server @ Database::Server(_) => server,
        };
        // The lock and the socket that it names decide where requests go.
        SqliteStore::check_place(database.path()).map_err(posse::Error::from)?;
        let environment = &common.environment;
        let state = environment.state_folder.as_ref().map(|state| state.join("daemon"));
        let session = environment.runtime_folder.clone();
        // The system creates the folder of a session, so do not create it here. After `su`, the variable
        // may still name the one of the user before.
        let session = session.filter(|folder| folder.parent().is_some_and(is_own));
        let folder = session.or_else(|| state.clone()).ok_or_else(|| {
            Failure::usage("no folder for a socket: neither XDG_RUNTIME_DIR nor HOME is set")
        })?;
        let name = short_name(database.path().as_os_str().as_bytes());
        Ok(Address {
            lock: beside(database.path(), "-daemon"),
            socket: folder.join(format!("{name}.sock")),
            log: state.as_ref().unwrap_or(&folder).join(format!("{name}.log")),
            folder,
            database,
        })
    }

    /// Creates the folders, accessible to their owner only.
    pub fn prepare(&self) -> Result<(), Failure> {
        let length = self.socket.as_os_str().len();
        if length > LONGEST {
            let path = self.socket.display();
            let message = format!("{path} is too long for a socket: {length} bytes of {LONGEST}");
            return Err(Failure::usage(message).hint("set XDG_RUNTIME_DIR to a shorter folder"));
        }
        let cannot = |path: &Path, error: io::Error| {
            Failure::internal(format!("cannot use the folder {}: {error}", path.display()))
        };
        for folder in [Some(self.folder.as_path()), self.log.parent()].into_iter().flatten() {
            private_folder(folder).map_err(|error| cannot(folder, error))?;
        }
        if let Some(folder) = self.database.path().parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder.create(folder).map_err(|error| cannot(folder, error))?;
        }
        Ok(())
    }
}

/// Creates `folder` if it does not exist. In any case, no other user can access it.
fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = std::fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it is not a folder of yours"));
    }
    if found.mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
    }
    Ok(())
}

/// True for a folder of this user.
fn is_own(folder: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    folder.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user)
}

/// The canonical path of a file, as far as it exists.
fn one_name(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path,
    }
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(database);
    path.push(ending);
    path.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_one_name_whatever_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.db"), folder.path().join("link.db"));
        let before = one_name(&real);
        std::fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(one_name(&real), before, "also before it is there");
        assert_eq!(one_name(&link), before);
        assert_ne!(one_name(&folder.path().join("other.db")), before);
    }

    #[test]
    fn a_folder_that_others_could_enter_is_closed_and_another_s_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o755)).unwrap();
        private_folder(&open).unwrap();
        assert_eq!(std::fs::metadata(&open).unwrap().mode() & 0o777, 0o700);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&open, &link).unwrap();
        assert!(private_folder(&link).is_err(), "a link may lead anywhere");
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(private_folder(&folder.path().join("file")).is_err());
    }
}
