//! A connection to the server: sends a message, receives the answer, and classifies errors.

use super::contact::Contact;
use super::message::Message;
use crate::StoreError;
use futures_util::StreamExt;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Either, Error};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How long to wait for an answer. The server gives up waiting for a lock much earlier.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a reader retries after its connection was lost. A restart of the server takes a while.
const PATIENCE: Duration = Duration::from_secs(10);
pub(super) const A_MOMENT: Duration = Duration::from_millis(20);

/// Why a message failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection is lost, or cannot be made. The last message may have been executed.
    Lost(String),
    /// Another transaction conflicted. Nothing was changed, and the whole can be tried again.
    Again(String),
    /// The request cannot be performed.
    Refused(StoreError),
}

/// The rows of each statement of a message.
pub(super) struct Replies(Vec<Vec<PgRow>>);

impl Replies {
    /// Returns the rows of a statement, by its position.
    pub(super) fn rows(&self, statement: usize) -> &[PgRow] {
        self.0.get(statement).map_or(&[], Vec::as_slice)
    }
}

/// The name of the database for errors.
#[derive(Clone)]
pub(super) struct DatabaseName {
    place: Arc<str>,
    /// What to say if the server refuses the password.
    password: Arc<str>,
}

impl DatabaseName {
    pub(super) fn new(place: String, password: String) -> Self {
        DatabaseName { place: place.into(), password: password.into() }
    }

    pub(super) fn unusable(&self, reason: impl Into<String>) -> StoreError {
        StoreError::Unusable { path: self.place.to_string(), reason: reason.into() }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.place
    }

    /// The error for a missing or unreadable row.
    pub(super) fn strange(&self, error: &Error) -> Trouble {
        Trouble::Refused(self.unusable(error.to_string()))
    }

    /// The error for a server that cannot be verified.
    fn unproven(&self, reason: &str) -> Trouble {
        let reason = match reason.contains("does not support TLS") {
            true => {
                "the server is not on this machine and does not support TLS; turn it on there, or \
                     set `verify = false` in `[postgres]`"
                    .to_owned()
            }
            false => format!(
                "the server does not prove that it is the right one ({reason}); name the file of its \
                 authority with `sslrootcert=` in the address, or set `verify = false` in `[postgres]`"
            ),
        };
        Trouble::Refused(self.unusable(reason))
    }

    fn trouble(&self, error: Error) -> Trouble {
        let database = match error {
            Error::Database(error) => error,
            Error::PoolClosed => return Trouble::Refused(StoreError::Closed),
            Error::Tls(error) => return self.unproven(&error.to_string()),
            Error::Io(error) if is_about_proof(&error) => {
                return self.unproven(&error.to_string());
            }
            // The text of the library for it is a link to its documentation.
            Error::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Trouble::Lost("the server closed the connection".to_owned());
            }
            Error::Io(error) => return Trouble::Lost(error.to_string()),
            Error::Protocol(reason) if reason.contains("SSLRequest") => {
                let reason = "what answers there is not a PostgreSQL server".to_owned();
                return Trouble::Lost(reason);
            }
            Error::Protocol(reason) => return Trouble::Lost(reason),
            Error::PoolTimedOut => {
                return Trouble::Lost("no connection has become free in time".to_owned());
            }
            error => return Trouble::Refused(self.unusable(error.to_string())),
        };
        let reason = database.message().to_owned();
        let code = database.code().unwrap_or_default();
        match &*code {
            // A serialization failure, a deadlock, a lock timeout, and a key that another
            // transaction inserted first.
            "40001" | "40P01" | "55P03" | "23505" => Trouble::Again(reason),
            // The server stops, starts or is out of connections, or the transaction was idle too
            // long.
            "57P01" | "57P02" | "57P03" | "53300" | "25P03" => Trouble::Lost(reason),
            "53100" => Trouble::Refused(StoreError::Full),
            "XX001" | "XX002" => {
                Trouble::Refused(StoreError::Corrupt { path: self.place.to_string(), reason })
            }
            code if code.starts_with("08") => Trouble::Lost(reason),
            // A value that the server cannot represent, or that exceeds one of its limits.
            code if code.starts_with("22") || code.starts_with("54") => {
                Trouble::Refused(StoreError::Unstorable { path: self.place.to_string(), reason })
            }
            // The password is wrong, or there is none.
            "28P01" => Trouble::Refused(self.unusable(format!("{reason}; {}", self.password))),
            // The role lacks a right.
            "42501" => Trouble::Refused(self.unusable(format!(
                "{reason}; give its role the right with GRANT, or connect as the role that owns the tables"
            ))),
            _ => Trouble::Refused(self.unusable(reason)),
        }
    }
}

/// True if the certificate of the server is not accepted. Trying again would not help.
fn is_about_proof(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::InvalidData && error.to_string().contains("certificate")
}

/// A connection that is replaced when it is lost.
pub(super) struct Link {
    options: PgConnectOptions,
    place: DatabaseName,
    contact: Contact,
    connection: Option<PgConnection>,
}

impl Link {
    pub(super) fn new(options: PgConnectOptions, place: DatabaseName, contact: Contact) -> Self {
        Link { options, place, contact, connection: None }
    }

    pub(super) fn place(&self) -> &DatabaseName {
        &self.place
    }

    /// Sends `message` and waits for the answers. An open transaction is rolled back after any
    /// error but [`Trouble::Lost`].
    pub(super) async fn send(&mut self, message: Message) -> Result<Replies, Trouble> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.contact.attend(connect(&self.options, &self.place)).await?,
        };
        let answered = exchange(&mut connection, message, &self.place).await;
        self.contact.note(Instant::now().into_std(), &answered);
        if !matches!(answered, Err(Trouble::Lost(_))) {
            self.connection = Some(connection);
        }
        answered
    }

    /// Sends a message that the server answers quickly, and notes when it is silent. Then the
    /// connection may lead nowhere, so the next message uses another one.
    pub(super) async fn probe(&mut self, message: Message) -> Result<Replies, Trouble> {
        let contact = self.contact.clone();
        let answer = timeout(CONNECT, self.send(message));
        let answer = async {
            answer
                .await
                .unwrap_or_else(|_| Err(Trouble::Lost("the server does not answer".to_owned())))
        };
        contact.attend(answer).await
    }

    pub(super) async fn close(mut self) {
        if let Some(connection) = self.connection.take() {
            // The server notices in any case.
            let _ = timeout(CONNECT, connection.close()).await;
        }
    }
}

async fn connect(
    options: &PgConnectOptions,
    place: &DatabaseName,
) -> Result<PgConnection, Trouble> {
    match timeout(CONNECT, options.connect()).await {
        Ok(connected) => connected.map_err(|error| place.trouble(error)),
        Err(_) => Err(Trouble::Lost("the server does not answer".to_owned())),
    }
}

async fn exchange(
    connection: &mut PgConnection,
    message: Message,
    place: &DatabaseName,
) -> Result<Replies, Trouble> {
    let answered = timeout(ANSWER, gather(connection, message)).await;
    let Ok(answered) = answered else {
        return Err(Trouble::Lost("the server does not answer".to_owned()));
    };
    match answered.map_err(|error| place.trouble(error)) {
        Err(trouble) if !matches!(trouble, Trouble::Lost(_)) => {
            let undo = sqlx::raw_sql("ROLLBACK").execute(connection);
            match timeout(ANSWER, undo).await {
                Ok(Ok(_)) => Err(trouble),
                // The server has rolled back, or will soon. Only the connection is unusable.
                _ => Err(Trouble::Lost("the connection broke off".to_owned())),
            }
        }
        answered => answered,
    }
}

async fn gather(connection: &mut PgConnection, message: Message) -> Result<Replies, Error> {
    let mut replies = Vec::with_capacity(message.statements());
    let mut rows = Vec::new();
    let text = AssertSqlSafe(message.into_text());
    let mut answers = sqlx::raw_sql(text).fetch_many(connection);
    while let Some(answer) = answers.next().await {
        match answer? {
            Either::Left(_) => replies.push(std::mem::take(&mut rows)),
            Either::Right(row) => rows.push(row),
        }
    }
    Ok(Replies(replies))
}

/// Reads with one of several connections. It retries after a lost connection, because a read
/// changes nothing.
pub(super) async fn read(
    pool: &PgPool,
    place: &DatabaseName,
    contact: &Contact,
    message: impl Fn() -> Message,
) -> Result<Replies, StoreError> {
    let (mut tries, deadline) = (0, Instant::now() + PATIENCE);
    loop {
        tries += 1;
        let answered = match pool.acquire().await {
            Err(error) => Err(match (place.trouble(error), contact.away()) {
                // The pool does not say why it got no connection.
                (Trouble::Lost(_), Some(away)) => Trouble::Lost(away.reason),
                (trouble, _) => trouble,
            }),
            Ok(mut connection) => {
                let answered = exchange(&mut connection, message(), place).await;
                contact.note(Instant::now().into_std(), &answered);
                if let Err(Trouble::Lost(_)) = &answered {
                    drop(connection.detach());
                }
                answered
            }
        };
        match answered {
            Ok(replies) => return Ok(replies),
            Err(Trouble::Refused(error)) => return Err(error),
            Err(Trouble::Lost(reason) | Trouble::Again(reason)) if Instant::now() >= deadline => {
                return Err(place.unusable(reason));
            }
            Err(_) => sleep(A_MOMENT * tries.min(20)).await,
        }
    }
}
