//! The database that holds the runs: a file, or a database on a PostgreSQL server.

use crate::environment::{Environment, is_address};
use crate::exit::Failure;
use crate::print;
use posse::Error;
use posse::config::{DatabaseAddress, PostgresSettings};
use posse::store::{
    Contact, Notifications, PostgresOptions, ServerIdentity, SqliteStore, StoreError,
};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most links on the way to a file, like the kernel's.
const MOST_LINKS: usize = 40;

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

impl Server {
    /// Fails if another user could change the files that this machine keeps of its runs.
    pub fn check_files(&self) -> Result<(), Failure> {
        let folder = self.files.parent().unwrap_or(&self.files);
        // Nobody else can make it any more. If it cannot be made, nothing is kept there.
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        match SqliteStore::check_place(&self.files) {
            Err(StoreError::Unusable { reason, .. }) => Err(Failure::usage(format!(
                "the files of runs cannot be kept in {}: {reason}",
                folder.display()
            ))
            .hint("XDG_DATA_HOME names another place for them")),
            checked => Ok(checked.map_err(Error::Store)?),
        }
    }
}

/// The file that a link names, whether it exists or not. What belongs to a database is beside the file,
/// not beside a link to it.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // The store refuses links that name each other.
    for _ in 0..MOST_LINKS {
        let Ok(target) = path.read_link() else { break };
        path = path.with_file_name("").join(target);
    }
    path
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
    /// The database with this path or address. `contact` knows whether its server answers. `settings`
    /// are read only for an address.
    pub fn at(
        environment: &Environment,
        given: &Path,
        contact: Contact,
        settings: impl FnOnce() -> Result<PostgresSettings, Failure>,
    ) -> Result<Self, Failure> {
        let Some(url) = given.to_str().filter(|text| is_address(text)) else {
            // The text may hold a password: the error must not repeat it.
            if is_like_address(&given.to_string_lossy()) {
                return Err(Failure::usage(
                    "the database looks like the address of a server, but not one that Posse understands",
                )
                .hint(
                    "write postgres://USER@HOST:PORT/DATABASE, or the path of a file; for a file in this \
                     folder with such a name, begin with ./",
                ));
            }
            return Ok(Database::File(behind_links(given)));
        };
        if has_bare_sign(url) {
            return Err(Failure::usage(
                "the address of the database has an `@` in a place where none can be",
            )
            .hint("in a password, write %40 for `@`, %2F for `/`, %3A for `:` and %25 for `%`"));
        }
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
        let pgpass = environment.value("PGPASSFILE").map(PathBuf::from);
        let pgpass = pgpass.or_else(|| Some(environment.home_folder.as_ref()?.join(".pgpass")));
        let schema = settings.schema.value;
        let fresh = PostgresOptions::new(url);
        let options = PostgresOptions {
            password_file,
            password,
            pgpass,
            schema,
            server,
            bell,
            contact,
            ..fresh
        };
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

    /// The files with passwords and keys that its connections need.
    pub fn secret_files(&self) -> Vec<PathBuf> {
        match self {
            Database::File(_) => Vec::new(),
            Database::Server(server) => {
                let PostgresOptions { password_file, pgpass, .. } = &server.options;
                let files = [password_file.clone(), pgpass.clone()].into_iter().flatten();
                files.chain(server.options.key_files()).collect()
            }
        }
    }

    /// The passwords that must never be shown or stored.
    pub fn secrets(&self) -> Vec<String> {
        match self {
            Database::File(_) => Vec::new(),
            Database::Server(server) => {
                let PostgresOptions { password, .. } = &server.options;
                let written = server.options.written_password().map(str::to_owned);
                let used = server.options.passwords();
                let all = [password.clone(), written].into_iter().flatten().chain(used);
                all.filter(|it| !it.is_empty()).collect()
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

/// True if an address has more than one `@` before its options. The text up to the last one would be taken for a password
/// only in part, and the rest would be shown.
fn has_bare_sign(url: &str) -> bool {
    let before_options = url.split('?').next().unwrap_or_default();
    before_options.matches('@').count() > 1
        || before_options.split_once("://").is_some_and(|(_, rest)| {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            !host.contains('@') && path.contains('@')
        })
}

/// True for a text that is probably meant as the address of a server: `mysql://h`, `postgres:/h`, `postgres//h`,
/// `host=h password=p`, `user:password@h`.
fn is_like_address(text: &str) -> bool {
    const SERVERS: [&str; 6] = ["postgres", "postgresql", "postgre", "pgsql", "psql", "pg"];
    const KEYS: [&str; 11] = [
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "password",
        "passfile",
        "sslmode",
        "service",
        "options",
        "application_name",
    ];
    let text = text.trim().to_lowercase();
    if text.starts_with(['.', '~']) || text.starts_with('/') && !text.starts_with("//") {
        return false;
    }
    let is_scheme = |text: &str| {
        text.len() > 1
            && text.starts_with(|it: char| it.is_ascii_alphabetic())
            && text.chars().all(|it| it.is_ascii_alphanumeric() || "+.-:".contains(it))
    };
    let is_url = text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme));
    let has_scheme = text.split_once(':').is_some_and(|(scheme, rest)| {
        is_scheme(scheme) && (rest.starts_with('/') || SERVERS.contains(&scheme))
    });
    let lacks_colon = text.split_once("//").is_some_and(|(scheme, _)| SERVERS.contains(&scheme));
    let is_setting =
        |part: &str| part.split_once('=').is_some_and(|(key, _)| KEYS.contains(&key.trim()));
    let has_user = text.split_once('@').is_some_and(|(user, _)| {
        user.trim_start_matches('/').split_once(':').is_some_and(|(name, _)| !name.contains('/'))
    });
    is_url || has_scheme || lacks_colon || has_user || text.split_whitespace().any(is_setting)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_database_is_beside_the_file_that_a_link_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("middle.db", at("link.db")).unwrap();
        std::os::unix::fs::symlink(at("real.db"), at("middle.db")).unwrap();
        assert_eq!(behind_links(&at("link.db")), at("real.db"), "before it is there");
        std::fs::write(at("real.db"), "").unwrap();
        assert_eq!(behind_links(&at("link.db")), at("real.db"));
        assert_eq!(behind_links(&at("real.db")), at("real.db"));
        std::os::unix::fs::symlink("round.db", at("round.db")).unwrap();
        behind_links(&at("round.db"));
    }

    #[test]
    fn what_looks_like_an_address_is_no_file() {
        for text in [
            "postgres:/u:PW@h/db",
            "postgres//u:PW@h/db",
            "postgresql//u:PW@h/db",
            "postgres:u:PW@h",
            "Postgres://u:PW@h/db",
            "POSTGRESQL://u:PW@h/db",
            " postgres://u:PW@h/db",
            "postgers://u:PW@h/db",
            "mysql://u:PW@h/db",
            "pg://u:PW@h/db",
            "jdbc:postgresql://h/db?password=PW",
            "host=h password=PW",
            "password=PW host=h",
            "host = h password=PW",
            "dbname=x",
            "u:PW@h/db",
            "//u:PW@h/db",
        ] {
            assert!(is_like_address(text), "{text}");
        }
        for text in [
            "runs.db",
            "./postgres:/x",
            "./host=h",
            "/tmp/a:b@c.db",
            "/tmp/host=h",
            "../a//b.db",
            "~/posse.db",
            "data/runs@2.db",
            "a b.db",
            "postgres/runs.db",
            "postgres.db",
            "runs-12:30.db",
        ] {
            assert!(!is_like_address(text), "{text}");
        }
        for text in ["postgres://a:p@ss/w@host/db", "postgres://a:p@ss@host/db", "postgres://h/w@x"]
        {
            assert!(has_bare_sign(text), "{text}");
        }
        for text in
            ["postgres://a:p%40@host/db?x=@", "postgres://host/db", "postgres:///db?host=/x"]
        {
            assert!(!has_bare_sign(text), "{text}");
        }
    }
}
