//! Options for a database on a server: its address and its verification.

use super::address::{check_files, check_names};
use super::contact::Contact;
use super::link::DatabaseName;
use super::password;
use crate::clock::{Clock, MachineClock};
use crate::{Scrub, StoreError};
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How to open a database on a PostgreSQL server.
#[derive(Clone)]
pub struct PostgresOptions {
    /// The address: `postgres://user@host/database`. The password comes from this address, from
    /// `password_file`, from `password`, from `PGPASSWORD`, or from the `.pgpass` of the user, in
    /// this order.
    pub url: String,
    /// A file that contains only the password.
    pub password_file: Option<PathBuf>,
    /// The password, such as that in `PGPASSWORD`.
    pub password: Option<String>,
    /// The `.pgpass` of the user, which errors about the password name. It is not read from here.
    pub pgpass: Option<PathBuf>,
    /// The schema of the tables. It is created if it does not exist.
    pub schema: String,
    /// Whether the server must be verified.
    pub server: ServerIdentity,
    /// How this process learns about changes by other processes.
    pub bell: Notifications,
    /// How long a silent worker keeps its runs.
    pub lease: Duration,
    /// How often to poll for changes by other processes, despite notifications. At most a second.
    pub poll: Duration,
    /// The most connections for reading. There are up to three more.
    pub readers: u32,
    /// The steady clock for the own lease of the worker. All other times are those of the server.
    pub clock: Arc<dyn Clock>,
    /// Knows whether the server answers.
    pub contact: Contact,
    /// Removes secrets before they are stored.
    pub scrub: Option<Arc<dyn Scrub>>,
}

/// Whether a server must be verified. A server on this machine, at a Unix socket or a loopback
/// address, need not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerIdentity {
    /// By a certificate for its name (`sslmode=verify-full`).
    #[default]
    Verified,
    /// As the address says, even if others on the network could read and change everything.
    Unverified,
}

/// How a process is notified about changes by other processes. It also polls every
/// [`PostgresOptions::poll`].
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Notifications {
    /// By notifications, on a connection to the same address. It must keep a session.
    #[default]
    On,
    /// By notifications, on a connection to this address. Use it if the other address leads to a
    /// pooler without sessions, such as PgBouncer in transaction mode.
    At(String),
    /// Not at all. This process does not notify others either; they find its changes by polling.
    Off,
}

/// The usual port of a server.
const PORT: u16 = 5432;
/// The longest interval of polling.
const LONGEST_POLL: Duration = Duration::from_secs(1);

impl PostgresOptions {
    /// The default options for the database at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        PostgresOptions {
            url: url.into(),
            password_file: None,
            password: None,
            pgpass: None,
            schema: "posse".to_owned(),
            server: ServerIdentity::Verified,
            bell: Notifications::On,
            lease: Duration::from_secs(10),
            poll: Duration::from_millis(500),
            readers: 4,
            clock: Arc::new(MachineClock::new()),
            contact: Contact::default(),
            scrub: None,
        }
    }

    /// Returns the address without a password, with the host and the name that a connection uses.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn place(&self) -> Result<String, StoreError> {
        self.connect("posse").map(|options| place(&options))
    }

    /// Returns the files with keys of this client that its addresses name.
    pub fn key_files(&self) -> Vec<PathBuf> {
        let of_bell = match &self.bell {
            Notifications::At(url) => Some(url),
            Notifications::On | Notifications::Off => None,
        };
        let named = [&self.url].into_iter().chain(of_bell).flat_map(|url| settings(url));
        let named = named.filter(|(name, _)| matches!(*name, "sslkey" | "ssl-key"));
        named.map(|(_, file)| PathBuf::from(file)).collect()
    }

    /// Returns the password in the address, as it is written there.
    pub fn written_password(&self) -> Option<&str> {
        password_of(&self.url)
    }

    /// Returns the passwords that its connections use, wherever they come from: none must be shown.
    pub fn passwords(&self) -> Vec<String> {
        let statements = self.connect("posse").ok();
        let listen = self.listen("posse").ok().flatten();
        statements.iter().chain(&listen).filter_map(password::of).collect()
    }

    pub(super) fn poll_at_most(&self) -> Duration {
        self.poll.clamp(Duration::from_millis(1), LONGEST_POLL)
    }

    /// Returns the options of connections for statements. The server shows `name` for a connection.
    pub(super) fn connect(&self, name: &str) -> Result<PgConnectOptions, StoreError> {
        self.connect_to(&self.url, name)
    }

    /// Returns the options of the connection for notifications, if there is one.
    pub(super) fn listen(&self, name: &str) -> Result<Option<PgConnectOptions>, StoreError> {
        match &self.bell {
            Notifications::On => self.connect(name).map(Some),
            Notifications::At(url) => self.connect_to(url, name).map(Some),
            Notifications::Off => Ok(None),
        }
    }

    /// Returns the name of the database of `connect` for errors, and what to say if the server
    /// refuses its password.
    pub(super) fn name(&self, connect: &PgConnectOptions) -> DatabaseName {
        let in_address = password_of(&self.url).is_some();
        DatabaseName::new(place(connect), password::advice(self, in_address, connect))
    }

    fn connect_to(&self, url: &str, name: &str) -> Result<PgConnectOptions, StoreError> {
        check_schema(&self.schema)?;
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            let reason = "its address must begin with `postgres://`".to_owned();
            return Err(StoreError::Unusable { path: "on a server".to_owned(), reason });
        }
        // The error of the parser could contain a part of the address, and so of the password.
        let options =
            PgConnectOptions::from_str(&with_host(url)).map_err(|_| StoreError::Unusable {
                path: "on a server".to_owned(),
                reason: "its address cannot be read; `postgres://user@host:5432/database` is one"
                    .to_owned(),
            })?;
        let place = place(&options);
        let unusable = |reason: String| StoreError::Unusable { path: place.clone(), reason };
        check_names(settings(url).map(|(name, _)| name)).map_err(unusable)?;
        check_files(settings(url)).map_err(unusable)?;
        let mut options = options
            .application_name(name)
            // Statements contain values, which must not be logged.
            .disable_statement_logging()
            // No statement is prepared, and a pooler may not know this setting.
            .statement_cache_capacity(0)
            .extra_float_digits(None);
        if password_of(url).is_none() {
            if let Some(file) = &self.password_file {
                options = options.password(&password::in_file(file).map_err(unusable)?);
            } else if let Some(password) = &self.password {
                options = options.password(password);
            }
        }
        if is_local(&options) || self.server == ServerIdentity::Unverified {
            return Ok(options);
        }
        let is_weaker = !matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
        if is_weaker && names_ssl_mode(url) {
            return Err(unusable(
                "its address asks for a connection that anyone on the way could read or change; \
                 use `sslmode=verify-full`, or set `verify = false` in `[postgres]`"
                    .to_owned(),
            ));
        }
        Ok(options.ssl_mode(PgSslMode::VerifyFull))
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = PgConnectOptions::from_str(&with_host(&self.url))
            .map_or_else(|_| "?".into(), |it| place(&it));
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

impl fmt::Debug for Notifications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Notifications::On => "On",
            // The address may contain a password.
            Notifications::At(_) => "At(..)",
            Notifications::Off => "Off",
        })
    }
}

/// Returns the name of the database for errors, without a password.
pub(super) fn place(options: &PgConnectOptions) -> String {
    let (user, port) = (options.get_username(), options.get_port());
    let database = options.get_database().unwrap_or(user);
    match options.get_socket() {
        Some(socket) => {
            let port = if port == PORT { String::new() } else { format!("&port={port}") };
            format!("postgres://{user}@/{database}?host={}{port}", socket.display())
        }
        None => format!("postgres://{user}@{}:{port}/{database}", options.get_host()),
    }
}

/// Gives an address with a user a host if only its options name one, as for a Unix socket
/// (`postgres://user@/database?host=/run/postgresql`): the parser wants one, and believes the option.
fn with_host(url: &str) -> Cow<'_, str> {
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next());
    let named = settings(url).any(|(name, _)| name == "host");
    match authority {
        Some(authority) if named && authority.ends_with('@') => {
            let end = url.find("://").map_or(0, |at| at + 3) + authority.len();
            let (before, after) = url.split_at(end);
            Cow::Owned(format!("{before}localhost{after}"))
        }
        _ => Cow::Borrowed(url),
    }
}

/// Returns true for a server on this machine.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host().trim_matches(['[', ']']);
    options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the parameters in an address: names and values.
fn settings(url: &str) -> impl Iterator<Item = (&str, &str)> {
    let settings = url.split_once('?').map_or("", |(_, settings)| settings);
    settings.split('&').map(|setting| setting.split_once('=').unwrap_or((setting, "")))
}

fn names_ssl_mode(url: &str) -> bool {
    settings(url).any(|(name, _)| matches!(name, "sslmode" | "ssl-mode"))
}

/// Returns the password in an address, as it is written there.
fn password_of(url: &str) -> Option<&str> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let in_user = user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
    in_user.or_else(|| settings(url).find(|(name, _)| *name == "password").map(|(_, value)| value))
}

/// Checks the name of a schema, which becomes part of statements and of the name of a channel.
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
    fn the_name_of_a_database_at_a_socket_is_an_address_of_it() {
        for url in [
            "postgres://u@/d?host=/run/pg&port=5433",
            "postgres:///d?host=/run/pg&user=u&port=5433",
            "postgres://u@%2Frun%2Fpg:5433/d",
        ] {
            let place = PostgresOptions::new(url).place().unwrap();
            assert_eq!(place, "postgres://u@/d?host=/run/pg&port=5433", "{url}");
        }
        let place = PostgresOptions::new("postgres://u:p@/d?host=/run/pg").place().unwrap();
        assert_eq!(place, "postgres://u@/d?host=/run/pg");
        assert_eq!(with_host("postgres://u@h/d?host=x"), "postgres://u@h/d?host=x");
        assert_eq!(with_host("postgres://u:a@/d"), "postgres://u:a@/d");
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
            let bell = Notifications::At(url.clone());
            let options = PostgresOptions { bell, ..PostgresOptions::new(url) };
            let shown = format!("{options:?} {:?}", options.connect("test").err());
            assert!(!shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn a_password_of_the_address_goes_before_that_of_a_file() {
        assert_eq!(password_of("postgres://u:p@h/d"), Some("p"));
        assert_eq!(password_of("postgres:///d?user=u&password=p"), Some("p"));
        assert_eq!(password_of("postgres://u@h:5432/d?a=b:c@d"), None);
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
