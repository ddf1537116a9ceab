//! Brings what stands in the write-ahead log into the file, beside the writer: were it left to the
//! engine, everyone who waits for the writer would wait for that too, some milliseconds each time.

use super::PATIENCE;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteLockingMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Pages in the log that are not in the file yet, from which on they are brought there.
const PAGES: i64 = 800;
/// Pages in the log from which on the writer does it by itself, after a commit. Most are in the file
/// by then, so that it takes a moment, and the log begins anew. From there on it is left to the
/// writer: whoever is at it keeps the other from it, and a writer that is faster than the disk has to
/// wait for it at some time.
pub(super) const AT_LAST: i64 = 4_000;
/// How many requests the writer serves between two looks at the log.
const BETWEEN: usize = 64;

/// How long whoever reads may keep the log from being cut off.
const READERS: Duration = Duration::from_millis(200);

/// The writer's end: tells when there may be something to do.
pub(super) struct Checkpoints {
    due: mpsc::Sender<()>,
    served: usize,
}

impl Checkpoints {
    /// The writer has served so many requests more.
    pub(super) fn served(&mut self, requests: usize) {
        self.served += requests;
        if self.served >= BETWEEN {
            self.served = 0;
            // One that is not taken up yet tells the same.
            let _ = self.due.try_send(());
        }
    }
}

/// The two ends. The second is done when the first is gone.
pub(super) fn beside(connect: SqliteConnectOptions) -> (Checkpoints, impl Future<Output = ()>) {
    let (due, looks) = mpsc::channel(1);
    (Checkpoints { due, served: 0 }, keep_up(connect, looks))
}

async fn keep_up(connect: SqliteConnectOptions, mut looks: mpsc::Receiver<()>) {
    let mut connection = None;
    while looks.recv().await.is_some() {
        // What fails here meets the writer, who tells: the next look begins anew.
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
        // Waits for nobody, and nobody for it.
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut connection).await?;
    }
    Ok(connection)
}

/// How many bytes the database has with all that stands in the log.
pub(super) async fn bytes(connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let bytes: i64 = sqlx::query_scalar(size).fetch_one(connection).await?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Brings all of the log into the file and cuts it off. Whoever still reads from it keeps it as it is.
pub(super) async fn cut_off(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    be_patient(connection, READERS).await?;
    let until = Instant::now() + READERS;
    let cut = loop {
        let cut = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *connection).await;
        // For whoever brings the log into the file meanwhile the engine does not wait.
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

/// The same for a database that nobody has open, where there is no space for what readers and the
/// writer share.
pub(super) async fn cut_off_alone(connect: &SqliteConnectOptions) -> Result<(), sqlx::Error> {
    let alone = connect.clone().locking_mode(SqliteLockingMode::Exclusive).busy_timeout(READERS);
    let mut connection = alone.create_if_missing(false).connect().await?;
    let cut = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut connection).await;
    connection.close().await?;
    cut.map(|_| ())
}

/// How long the engine waits for others from now on.
async fn be_patient(connection: &mut SqliteConnection, time: Duration) -> Result<(), sqlx::Error> {
    let pragma = format!("PRAGMA busy_timeout = {}", time.as_millis());
    sqlx::query(AssertSqlSafe(pragma)).execute(connection).await.map(|_| ())
}
