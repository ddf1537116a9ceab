//! How a database on a server is found and trusted.

use crate::clock::{Clock, MachineClock};
use crate::{Scrub, StoreError};
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How a database on a PostgreSQL server is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Where it is: `postgres://user@host/database`. The password is the one of this address, or that of
    /// `password_file`, of `PGPASSWORD`, or of the user's `.pgpass`, in this order.
    pub url: String,
    /// A file that holds the password, and nothing else.
    pub password_file: Option<PathBuf>,
    /// The schema of the database that the tables are in. Made if it does not exist.
    pub schema: String,
    /// Whether the server must prove who it is.
    pub server: ServerIdentity,
    /// How this process learns what others have stored.
    pub bell: Bell,
    /// How long a worker that has fallen silent keeps its runs.
    pub lease: Duration,
    /// How often changes by other processes are looked for, whatever the bell says. A second at most.
    pub poll: Duration,
    /// Connections for reading, at most. There are up to three more.
    pub readers: u32,
    /// The steady time by which a worker judges its own lease. All other times are the server's.
    pub clock: Arc<dyn Clock>,
    /// What must not be stored.
    pub scrub: Option<Arc<dyn Scrub>>,
}

/// Whether a server must prove who it is. One on this machine need not: a Unix socket, or a loopback
/// address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerIdentity {
    /// By a certificate for its name (`sslmode=verify-full`).
    #[default]
    Verified,
    /// As the address says, even if anyone on the way could read and change everything.
    Unverified,
}

/// How a process learns at once what others have stored. It looks every [`PostgresOptions::poll`] in any
/// case.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Bell {
    /// By notifications, on a connection to the same address. It needs a session of its own.
    #[default]
    On,
    /// By notifications, on a connection to this address: where the other one leads through a pooler that
    /// keeps no sessions, such as PgBouncer in transaction mode.
    At(String),
    /// Not at all. Others are not told of what is stored here either: they find it when they look.
    Off,
}

/// The longest time between two looks.
const LONGEST_POLL: Duration = Duration::from_secs(1);

impl PostgresOptions {
    /// The database at `url`, everything else as it should be.
    pub fn new(url: impl Into<String>) -> Self {
        PostgresOptions {
            url: url.into(),
            password_file: None,
            schema: "posse".to_owned(),
            server: ServerIdentity::Verified,
            bell: Bell::On,
            lease: Duration::from_secs(10),
            poll: Duration::from_millis(500),
            readers: 4,
            clock: Arc::new(MachineClock::new()),
            scrub: None,
        }
    }

    pub(super) fn poll_at_most(&self) -> Duration {
        self.poll.clamp(Duration::from_millis(1), LONGEST_POLL)
    }

    /// How to connect, for statements. `name` is what the server shows of the connection.
    pub(super) fn connect(&self, name: &str) -> Result<PgConnectOptions, StoreError> {
        self.connect_to(&self.url, name)
    }

    /// The same for notifications, if there are any.
    pub(super) fn listen(&self, name: &str) -> Result<Option<PgConnectOptions>, StoreError> {
        match &self.bell {
            Bell::On => self.connect(name).map(Some),
            Bell::At(url) => self.connect_to(url, name).map(Some),
            Bell::Off => Ok(None),
        }
    }

    fn connect_to(&self, url: &str, name: &str) -> Result<PgConnectOptions, StoreError> {
        check_schema(&self.schema)?;
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            let reason = "its address must begin with `postgres://`".to_owned();
            return Err(StoreError::Unusable { path: "on a server".to_owned(), reason });
        }
        // What the parser says could hold a part of the address, and so of the password.
        let options = PgConnectOptions::from_str(url).map_err(|_| StoreError::Unusable {
            path: "on a server".to_owned(),
            reason: "its address cannot be read; `postgres://user@host:5432/database` is one"
                .to_owned(),
        })?;
        let place = place(&options);
        let unusable = |reason: String| StoreError::Unusable { path: place.clone(), reason };
        let mut options = options
            .application_name(name)
            // Values stand in the statements: they are nobody's to log.
            .disable_statement_logging()
            // No statement is prepared, and a pooler need not know of this setting.
            .statement_cache_capacity(0)
            .extra_float_digits(None);
        if let Some(file) = self.password_file.as_ref().filter(|_| !has_password(url)) {
            let read = std::fs::read_to_string(file).map_err(|error| {
                unusable(format!("its password cannot be read from {}: {error}", file.display()))
            })?;
            options = options.password(read.trim_end_matches(['\r', '\n']));
        }
        if is_local(&options) || self.server == ServerIdentity::Unverified {
            return Ok(options);
        }
        let is_weaker = !matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
        if is_weaker && names_ssl_mode(url) {
            return Err(unusable(
                "its address asks for a connection that anyone on the way could read or change; \
                 use `sslmode=verify-full`, or say in the options that the server may be unverified"
                    .to_owned(),
            ));
        }
        Ok(options.ssl_mode(PgSslMode::VerifyFull))
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place =
            PgConnectOptions::from_str(&self.url).map_or_else(|_| "?".into(), |it| place(&it));
        f.debug_struct("PostgresOptions")
            .field("url", &place)
            .field("password_file", &self.password_file)
            .field("schema", &self.schema)
            .field("server", &self.server)
            .field("bell", &self.bell)
            .field("lease", &self.lease)
            .field("poll", &self.poll)
            .field("readers", &self.readers)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bell::On => "On",
            // Its address may hold a password.
            Bell::At(_) => "At(..)",
            Bell::Off => "Off",
        })
    }
}

/// What the database is called in errors: without a password.
pub(super) fn place(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    format!("postgres://{user}@{host}/{database}")
}

/// True for a server on this machine.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host().trim_matches(['[', ']']);
    options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The settings that stand behind the `?` of an address.
fn settings(url: &str) -> impl Iterator<Item = &str> {
    let settings = url.split_once('?').map_or("", |(_, settings)| settings);
    settings.split('&').map(|setting| setting.split('=').next().unwrap_or_default())
}

fn names_ssl_mode(url: &str) -> bool {
    settings(url).any(|name| matches!(name, "sslmode" | "ssl-mode"))
}

fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':')) || settings(url).any(|name| name == "password")
}

/// A schema's name goes into statements and into the name of a channel.
fn check_schema(schema: &str) -> Result<(), StoreError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = schema.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if begins && schema.len() <= 48 && schema.bytes().all(is_plain) && !schema.starts_with("pg_") {
        return Ok(());
    }
    Err(StoreError::Unusable {
        path: "on a server".to_owned(),
        reason: "a schema is named with at most 48 small letters, digits and `_`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str, server: ServerIdentity) -> Option<PgSslMode> {
        let options = PostgresOptions { server, ..PostgresOptions::new(url) };
        options.connect("test").ok().map(|it| it.get_ssl_mode())
    }

    #[test]
    fn a_server_elsewhere_proves_who_it_is() {
        use ServerIdentity::{Unverified, Verified};
        let table = [
            ("postgres://u@db.example/d", Verified, Some("VerifyFull")),
            ("postgres://u@db.example/d?sslmode=verify-full", Verified, Some("VerifyFull")),
            ("postgres://u@db.example/d?sslmode=require", Verified, None),
            ("postgres://u@db.example/d?sslmode=disable", Verified, None),
            ("postgres://u@db.example/d?sslmode=disable", Unverified, Some("Disable")),
            ("postgres://u@10.0.0.7/d", Verified, Some("VerifyFull")),
            ("postgres://u@127.0.0.1/d?sslmode=disable", Verified, Some("Disable")),
            ("postgres://u@localhost/d?sslmode=disable", Verified, Some("Disable")),
            ("postgres://u@[::1]/d?sslmode=disable", Verified, Some("Disable")),
            ("postgres:///d?host=/run/pg&sslmode=disable", Verified, Some("Disable")),
            ("mysql://u@localhost/d", Verified, None),
        ];
        for (url, server, expected) in table {
            let found = mode(url, server).map(|mode| format!("{mode:?}"));
            assert_eq!(found.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_password_is_shown_to_nobody() {
        let secret = "hunter2";
        let urls = [
            format!("postgres://u:{secret}@localhost/d"),
            format!("postgres://u@db.example/d?sslmode=disable&password={secret}"),
            format!("postgres://u:{secret}@local host:x/d"),
            format!("http://u:{secret}@h/d"),
        ];
        for url in urls {
            let bell = Bell::At(url.clone());
            let options = PostgresOptions { bell, ..PostgresOptions::new(url) };
            let shown = format!("{options:?} {:?}", options.connect("test").err());
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn a_password_of_the_address_goes_before_that_of_a_file() {
        assert!(has_password("postgres://u:p@h/d"));
        assert!(has_password("postgres:///d?user=u&password=p"));
        assert!(!has_password("postgres://u@h:5432/d?a=b:c@d"));
        let missing = Some(PathBuf::from("/nowhere/at/all"));
        let with = |url: &str| {
            let options =
                PostgresOptions { password_file: missing.clone(), ..PostgresOptions::new(url) };
            options.connect("test")
        };
        assert!(with("postgres://u:p@localhost/d").is_ok());
        assert!(with("postgres://u@localhost/d").is_err());
    }

    #[test]
    fn only_plain_names_are_schemas() {
        for name in ["posse", "team_2", "_x"] {
            assert!(check_schema(name).is_ok(), "{name}");
        }
        for name in ["", "2x", "Posse", "a b", "a\"b", "pg_x", "ü", &"x".repeat(49)] {
            assert!(check_schema(name).is_err(), "{name}");
        }
    }
}
