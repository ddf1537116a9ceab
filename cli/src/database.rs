//! The database that holds the runs: a file, or a database on a PostgreSQL server.

use crate::environment::Environment;
use crate::exit::Failure;
use crate::print;
use posse::Error;
use posse::config::{DatabaseAddress, PostgresSettings};
use posse::store::{Notifications, PostgresOptions, ServerIdentity};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The database that holds the runs.
#[derive(Clone, Debug)]
pub enum Database {
    File(PathBuf),
    Server(Arc<Server>),
}

/// A database on a PostgreSQL server.
#[derive(Debug)]
pub struct Server {
    pub options: PostgresOptions,
    /// Its address without a password.
    shown: String,
    /// The path next to which this machine keeps the other files of its runs.
    files: PathBuf,
}

/// What names the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Option,
    Variable,
    Settings,
    Default,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Named::Option => "--db",
            Named::Variable => "POSSE_DB",
            Named::Settings => "your settings",
            Named::Default => "default",
        })
    }
}

impl Database {
    /// The database with this path or address. `settings` are read only for an address.
    pub fn at(
        environment: &Environment,
        given: &Path,
        settings: impl FnOnce() -> Result<PostgresSettings, Failure>,
    ) -> Result<Self, Failure> {
        let Some(url) = given.to_str().filter(|text| is_address(text)) else {
            return Ok(Database::File(given.to_owned()));
        };
        let settings = settings()?;
        let password = environment.value("PGPASSWORD");
        let is_verified = settings.verify.value;
        let server =
            if is_verified { ServerIdentity::Verified } else { ServerIdentity::Unverified };
        let bell = match settings.notify_at.value {
            _ if !settings.notifications.value => Notifications::Off,
            Some(DatabaseAddress(url)) => Notifications::At(url),
            None => Notifications::On,
        };
        let password_file = settings.password_file.value.map(PathBuf::from);
        let schema = settings.schema.value;
        let fresh = PostgresOptions::new(url);
        let options = PostgresOptions { password_file, password, schema, server, bell, ..fresh };
        if let Some(password) = options.written_password() {
            print::hide([password]);
        }
        let shown = options.place().map_err(|error| Failure::from(Error::Store(error)))?;
        let name = short_name(format!("{shown} {}", options.schema).as_bytes());
        let files = data_folder(environment)?.join("servers").join(name);
        Ok(Database::Server(Arc::new(Server { options, shown, files })))
    }

    /// The database file that is used if none is named.
    pub fn default_file(environment: &Environment) -> Result<PathBuf, Failure> {
        Ok(data_folder(environment)?.join("posse.db"))
    }

    /// The path of the file, or the path next to which this machine keeps what is not in the
    /// database: scratch folders, worktrees, the lock of the daemon.
    pub fn path(&self) -> &Path {
        match self {
            Database::File(path) => path,
            Database::Server(server) => &server.files,
        }
    }

    /// The path of the file. Fails for a database on a server, because `command` cannot be used
    /// there.
    pub fn file(&self, command: &str) -> Result<&Path, Failure> {
        match self {
            Database::File(path) => Ok(path),
            Database::Server(_) => Err(Failure::usage(format!(
                "{command} works on a database file, and {self} is on a server"
            ))
            .hint("use the backups of the server; `posse runs verify` checks what it holds")),
        }
    }

    /// The passwords that must never be shown or stored.
    pub fn secrets(&self) -> Vec<String> {
        match self {
            Database::File(_) => Vec::new(),
            Database::Server(server) => {
                let PostgresOptions { password_file, password, .. } = &server.options;
                let of_file =
                    password_file.as_ref().and_then(|it| std::fs::read_to_string(it).ok());
                let written = server.options.written_password().map(str::to_owned);
                let all = [of_file.map(|it| it.trim().to_owned()), password.clone(), written];
                all.into_iter().flatten().filter(|it| !it.is_empty()).collect()
            }
        }
    }
}

/// Shows the path, or the address without its password.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Database::File(path) => path.display().fmt(f),
            Database::Server(server) => f.write_str(&server.shown),
        }
    }
}

/// True for the address of a server.
fn is_address(text: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme))
}

fn data_folder(environment: &Environment) -> Result<&PathBuf, Failure> {
    environment.data_folder.as_ref().ok_or_else(|| {
        Failure::usage("no folder for data: neither HOME nor XDG_DATA_HOME is set")
            .hint("name a database with --db FILE")
    })
}

/// A short name for files that belong to a database, the same in every process.
pub fn short_name(database: &[u8]) -> String {
    let digest = Sha256::digest(database);
    digest.iter().take(8).fold(String::new(), |mut name, byte| {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}
