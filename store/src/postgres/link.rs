//! A connection to the server: one message, one answer, and what an error means.

use super::message::Message;
use crate::StoreError;
use futures_util::StreamExt;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Either, Error};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long the server may take to let somebody in.
const CONNECT: Duration = Duration::from_secs(10);
/// How long it may take to answer a message. It gives up waiting for a lock much earlier.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a reader tries again whose connection has gone: a server that starts again takes a while.
const PATIENCE: Duration = Duration::from_secs(10);
const A_MOMENT: Duration = Duration::from_millis(20);

/// Why a message was not answered as it should be.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection is gone, or could not be had. What was said last may have been done, or not.
    Lost(String),
    /// Others were in the way. Nothing was done, and all of it may be tried again.
    Again(String),
    /// It cannot be done.
    Refused(StoreError),
}

/// The rows of each statement of a message.
pub(super) struct Replies(Vec<Vec<PgRow>>);

impl Replies {
    /// Those of the statement that stands there.
    pub(super) fn rows(&self, statement: usize) -> &[PgRow] {
        self.0.get(statement).map_or(&[], Vec::as_slice)
    }
}

/// What the database is called, to tell of trouble with it.
#[derive(Clone)]
pub(super) struct Place(pub(super) Arc<str>);

impl Place {
    pub(super) fn unusable(&self, reason: impl Into<String>) -> StoreError {
        StoreError::Unusable { path: self.0.to_string(), reason: reason.into() }
    }

    /// What came back for which there is no row, or one that cannot be read.
    pub(super) fn strange(&self, error: &Error) -> Trouble {
        Trouble::Refused(self.unusable(error.to_string()))
    }

    fn trouble(&self, error: Error) -> Trouble {
        let database = match error {
            Error::Database(error) => error,
            Error::PoolClosed => return Trouble::Refused(StoreError::Closed),
            Error::Io(error) => return Trouble::Lost(error.to_string()),
            Error::Protocol(reason) => return Trouble::Lost(reason),
            Error::PoolTimedOut => {
                return Trouble::Lost("no connection has become free in time".to_owned());
            }
            error => return Trouble::Refused(self.unusable(error.to_string())),
        };
        let reason = database.message().to_owned();
        let code = database.code().unwrap_or_default();
        match &*code {
            // A failed serialisation, a deadlock, a lock that took too long, and one that came first.
            "40001" | "40P01" | "55P03" | "23505" => Trouble::Again(reason),
            // The server stops, starts or has no room for one more; it was silent for too long.
            "57P01" | "57P02" | "57P03" | "53300" | "25P03" => Trouble::Lost(reason),
            "53100" => Trouble::Refused(StoreError::Full),
            "XX001" | "XX002" => {
                Trouble::Refused(StoreError::Corrupt { path: self.0.to_string(), reason })
            }
            code if code.starts_with("08") => Trouble::Lost(reason),
            _ => Trouble::Refused(self.unusable(reason)),
        }
    }
}

/// A connection that is made anew when it is gone.
pub(super) struct Link {
    options: PgConnectOptions,
    place: Place,
    connection: Option<PgConnection>,
}

impl Link {
    pub(super) fn new(options: PgConnectOptions, place: Place) -> Self {
        Link { options, place, connection: None }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Says everything in `message` and waits for the answers. After an error that is not a loss nothing
    /// of an open transaction is left.
    pub(super) async fn send(&mut self, message: Message) -> Result<Replies, Trouble> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.options, &self.place).await?,
        };
        let answered = exchange(&mut connection, message, &self.place).await;
        if !matches!(answered, Err(Trouble::Lost(_))) {
            self.connection = Some(connection);
        }
        answered
    }

    pub(super) async fn close(mut self) {
        if let Some(connection) = self.connection.take() {
            // The server notices in any case.
            let _ = timeout(CONNECT, connection.close()).await;
        }
    }
}

async fn connect(options: &PgConnectOptions, place: &Place) -> Result<PgConnection, Trouble> {
    match timeout(CONNECT, options.connect()).await {
        Ok(connected) => connected.map_err(|error| place.trouble(error)),
        Err(_) => Err(Trouble::Lost("the server does not answer".to_owned())),
    }
}

async fn exchange(
    connection: &mut PgConnection,
    message: Message,
    place: &Place,
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
                // The server has undone it, or will when it notices; only the connection is of no use.
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

/// Reads by one of several connections. One that is gone is tried again with another: nothing was
/// changed.
pub(super) async fn read(
    pool: &PgPool,
    place: &Place,
    message: impl Fn() -> Message,
) -> Result<Replies, StoreError> {
    let (mut tries, deadline) = (0, Instant::now() + PATIENCE);
    loop {
        tries += 1;
        let answered = match pool.acquire().await {
            Err(error) => Err(place.trouble(error)),
            Ok(mut connection) => match exchange(&mut connection, message(), place).await {
                Err(Trouble::Lost(reason)) => {
                    drop(connection.detach());
                    Err(Trouble::Lost(reason))
                }
                answered => answered,
            },
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
