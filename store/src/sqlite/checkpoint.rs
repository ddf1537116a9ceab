//! Brings what stands in the write-ahead log into the file, beside the writer: were it left to the
//! engine, everyone who waits for the writer would wait for that too, some milliseconds each time.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Row};
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
