//! Figure 4: appends in a second, each acknowledged when it is on the disk, against bare SQLite
//! with a transaction for each.

use super::Result;
use super::fill::started;
use super::line::{Goal, Line, Samples, rate, times};
use super::spine::Effort;
use posse::RunId;
use posse::protocol::{CallId, Ending, Event, Extra, ToolFinished, ToolOutput};
use posse::store::{Append, Guard, Logs, Options, Ownership, Reserve, SqliteStore, Store};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
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
        for _ in 0..effort.rounds() {
            let folder = tempfile::tempdir()?;
            let bare = bare(&folder.path().join("bare.db")).await?;
            rounds.push((grouped(&folder.path().join("runs.db"), writers).await?, bare));
        }
        Line {
            name: name.to_owned(),
            posse: Samples::new(rounds.iter().map(|round| round.0).collect()).shown(rate),
            raw: Samples::new(rounds.iter().map(|round| round.1).collect()).shown(rate),
            ratio: Samples::ratios(&rounds).shown(times),
            goal: Goal::None,
        }
        .print();
    }
    Ok(())
}

/// What is appended: the result of a tool.
fn event() -> Event {
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

/// Appends in a second to a table of events, nothing else, a transaction each.
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
        insert(&mut connection, &run, count, &body).await?;
    }
    let per_second = f64::from(count) / began.elapsed().as_secs_f64();
    connection.close().await?;
    Ok(per_second)
}

async fn insert(connection: &mut SqliteConnection, run: &str, seq: u32, body: &str) -> Result<()> {
    sqlx::query(
        "INSERT INTO events (run, seq, at, version, body, hash) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(run)
    .bind(seq)
    .bind(0)
    .bind(1)
    .bind(body)
    // As long as a hash.
    .bind("0".repeat(64))
    .execute(connection)
    .await?;
    Ok(())
}

/// Appends in a second to the logs of as many runs as there are `writers`, each by its owner, who
/// waits for the acknowledgement.
async fn grouped(path: &Path, writers: usize) -> Result<f64> {
    let store = Arc::new(SqliteStore::open(Options::new(path)).await?);
    let runs: Vec<RunId> = (0..writers).map(|_| RunId::new()).collect();
    for runs in runs.chunks(256) {
        let create = |run: &RunId| Append {
            run: *run,
            events: started().into(),
            guard: Guard::Create(Ownership::Mine),
            reserve: Reserve::Leave,
            outbox: Vec::new(),
        };
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
                let append = Append {
                    run,
                    events: [event()].into(),
                    guard,
                    reserve: Reserve::Leave,
                    outbox: Vec::new(),
                };
                store.append(vec![append]).await?;
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
