//! Appends in a second, each acknowledged when it is on the disk, against bare SQLite with a
//! transaction for each.

use super::fill::{append, started};
use crate::bench::Result;
use crate::bench::harness::Effort;
use crate::bench::line::{Line, rate};
use posse::RunId;
use posse::protocol::{CallId, Ending, Event, Extra, ToolFinished, ToolOutput};
use posse::store::{Guard, Logs, Options, Ownership, SqliteStore, Store};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long each is measured.
const TIME: Duration = Duration::from_secs(2);

pub async fn measure(effort: Effort) -> Result<()> {
    for (name, writers) in [
        ("appends: 1 writer", 1),
        ("appends: 100 writers", 100),
        ("appends: 10,000 writers", 10_000),
    ] {
        let mut rounds = Vec::new();
        for _ in 0..effort.pick(1, 3) {
            let folder = tempfile::tempdir()?;
            let bare = bare(&folder.path().join("bare.db")).await?;
            rounds.push((grouped(&folder.path().join("runs.db"), writers).await?, bare));
        }
        Line::compared(name, &rounds, rate).print();
    }
    Ok(())
}

/// What is appended: the result of a tool.
pub fn event() -> Event {
    Event::ToolFinished(ToolFinished {
        call: CallId("toolu_1".to_owned()),
        output: ToolOutput::text("a line of some file\n".repeat(10)),
        ending: Ending::Returned,
        by: String::new(),
        took_ms: 1,
        worked_ms: 1,
        extra: Extra::default(),
    })
}

/// Appends in a second to a table of events alone, with a transaction for each.
async fn bare(path: &Path) -> Result<f64> {
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .connect()
        .await?;
    let table = "CREATE TABLE events (run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, \
                 version BIGINT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL, \
                 PRIMARY KEY (run, seq))";
    sqlx::query(table).execute(&mut connection).await?;
    let run = RunId::new().to_string();
    let body = serde_json::to_string(&event())?;
    let began = Instant::now();
    let mut count: u32 = 0;
    while began.elapsed() < TIME {
        count += 1;
        let row = sqlx::query("INSERT INTO events VALUES ($1, $2, 0, 1, $3, $4)");
        // The last value is as long as a hash.
        let row = row.bind(&run).bind(count).bind(&body).bind("0".repeat(64));
        row.execute(&mut connection).await?;
    }
    let per_second = f64::from(count) / began.elapsed().as_secs_f64();
    connection.close().await?;
    Ok(per_second)
}

/// Appends in a second to the logs of so many runs. Each has one writer, which waits for the
/// acknowledgement.
async fn grouped(path: &Path, writers: usize) -> Result<f64> {
    let store = Arc::new(SqliteStore::open(Options::new(path)).await?);
    let runs: Vec<RunId> = (0..writers).map(|_| RunId::new()).collect();
    for runs in runs.chunks(256) {
        let create = |run: &RunId| append(*run, started().into(), Guard::Create(Ownership::Mine));
        store.append(runs.iter().map(create).collect()).await?;
    }
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for run in runs {
        let store = store.clone();
        tasks.spawn(async move {
            let mut count: u64 = 0;
            while began.elapsed() < TIME {
                let guard = Guard::Owner { epoch: 1, last: None, then: Ownership::Mine };
                store.append(vec![append(run, [event()].into(), guard)]).await?;
                count += 1;
            }
            Ok::<u64, posse::store::StoreError>(count)
        });
    }
    let mut count = 0;
    while let Some(done) = tasks.join_next().await {
        count += done??;
    }
    let per_second = count as f64 / began.elapsed().as_secs_f64();
    store.close().await;
    Ok(per_second)
}
