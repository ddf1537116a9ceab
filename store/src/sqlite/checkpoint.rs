//! Checkpoints: moves pages from the write-ahead log into the file, concurrently with the writer.
//! If the engine did this in the writer, all requests would wait, some milliseconds each time.

use super::PATIENCE;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteLockingMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How many pages that are not in the file yet make a checkpoint due.
const PAGES: i64 = 800;
/// How many pages of the log make the writer do a checkpoint itself, after a commit. Most are in
/// the file by then, so it takes a moment, and the log starts anew. Above this number, the task
/// leaves it to the writer: the two would block each other, and a writer that is faster than the
/// disk must wait at some time.
pub(super) const AT_LAST: i64 = 4_000;
/// How many requests the writer serves between two looks at the log.
const BETWEEN: usize = 64;

/// How long to wait for readers that prevent the truncation of the log.
const READERS: Duration = Duration::from_millis(200);

/// The end of the writer. It signals that a checkpoint may be due.
pub(super) struct Checkpoints {
    due: mpsc::Sender<()>,
    served: usize,
}

impl Checkpoints {
    /// Records that the writer has served this many more requests.
    pub(super) fn served(&mut self, requests: usize) {
        self.served += requests;
        if self.served >= BETWEEN {
            self.served = 0;
            // If a signal is pending, another one is not needed.
            let _ = self.due.try_send(());
        }
    }
}

/// Returns the end of the writer and the task. The task ends when the writer drops its end.
pub(super) fn beside(connect: SqliteConnectOptions) -> (Checkpoints, impl Future<Output = ()>) {
    let (due, looks) = mpsc::channel(1);
    (Checkpoints { due, served: 0 }, keep_up(connect, looks))
}

async fn keep_up(connect: SqliteConnectOptions, mut looks: mpsc::Receiver<()>) {
    let mut connection = None;
    while looks.recv().await.is_some() {
        // The writer meets the same error and reports it. The next look opens a new connection.
        connection = look(connection.take(), &connect).await.ok();
    }
    if let Some(connection) = connection {
        let _ = connection.close().await;
    }
}

async fn look(
    connection: Option<SqliteConnection>,
    connect: &SqliteConnectOptions,
) -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => connect.connect().await?,
    };
    let row = sqlx::query("PRAGMA wal_checkpoint(NOOP)").fetch_one(&mut connection).await?;
    let (logged, done): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
    if logged - done >= PAGES && logged < AT_LAST {
        // This neither waits for other connections nor blocks them.
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut connection).await?;
    }
    Ok(connection)
}

/// Returns the size of the database in bytes, including the content of the log.
pub(super) async fn bytes(connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let bytes: i64 = sqlx::query_scalar(size).fetch_one(connection).await?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Moves the whole log into the file and truncates it. Readers can prevent the truncation.
pub(super) async fn cut_off(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    be_patient(connection, READERS).await?;
    let until = Instant::now() + READERS;
    let cut = loop {
        let cut = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *connection).await;
        // The engine does not wait for another checkpoint.
        let is_busy =
            cut.as_ref().is_ok_and(|row| row.try_get::<i64, _>(0).is_ok_and(|it| it != 0));
        if !is_busy || Instant::now() >= until {
            break cut;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    be_patient(connection, PATIENCE).await?;
    cut.map(|_| ())
}

/// Does the same for a database that no process has open, without space for the shared index.
pub(super) async fn cut_off_alone(connect: &SqliteConnectOptions) -> Result<(), sqlx::Error> {
    let alone = connect.clone().locking_mode(SqliteLockingMode::Exclusive).busy_timeout(READERS);
    let mut connection = alone.create_if_missing(false).connect().await?;
    let cut = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await;
    connection.close().await?;
    cut.map(|_| ())
}

/// Sets how long the engine waits for other connections.
async fn be_patient(connection: &mut SqliteConnection, time: Duration) -> Result<(), sqlx::Error> {
    let pragma = format!("PRAGMA busy_timeout = {}", time.as_millis());
    sqlx::query(AssertSqlSafe(pragma)).execute(connection).await.map(|_| ())
}
