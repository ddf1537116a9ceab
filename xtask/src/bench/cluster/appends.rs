//! Appends in a second, each acknowledged when the server has it on its disk, against bare inserts of
//! the same rows on the same server: each writer on a connection of its own, one row in each transaction.

use super::{Cluster, Place};
use crate::bench::harness::Effort;
use crate::bench::line::{Line, rate, written};
use crate::bench::part::{Process, ready};
use crate::bench::spine::{append, event, started};
use crate::bench::{Part, Result};
use posse::RunId;
use posse::store::{Guard, Logs, Ownership, PostgresStore, Store};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long each is measured.
const TIME: Duration = Duration::from_secs(3);
/// The most connections of the bare side. With more, this server does less.
const CONNECTIONS: usize = 100;

/// Appends from many tasks.
#[derive(Serialize, Deserialize)]
pub struct Writers {
    place: Place,
    writers: usize,
    is_bare: bool,
}

pub fn measure(cluster: &Cluster, effort: Effort) -> Result<()> {
    for writers in [1, 100, 1_000] {
        let rounds = effort.rounds(|| {
            let bare = Writers { place: cluster.place(), writers, is_bare: true };
            let bare: f64 = Process::report(&Part::Writers(bare))?;
            let posse = Writers { place: cluster.place(), writers, is_bare: false };
            Ok((Process::report(&Part::Writers(posse))?, bare))
        })?;
        let plural = if writers == 1 { "" } else { "s" };
        let name = format!("appends: {} writer{plural}", written(writers));
        let line = Line::compared(name, &rounds, rate);
        let line = if writers == 100 { line.at_least(3.0, "bare") } else { line };
        line.print();
    }
    Ok(())
}

impl Writers {
    /// Appends in a second.
    pub async fn run(self) -> Result<f64> {
        if self.is_bare { self.bare().await } else { self.grouped().await }
    }

    async fn bare(self) -> Result<f64> {
        let connections = self.writers.min(CONNECTIONS) as u32;
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .min_connections(connections)
            .acquire_timeout(Duration::from_secs(60))
            .connect(&self.place.url)
            .await?;
        let table = "CREATE TABLE IF NOT EXISTS bare (run TEXT COLLATE \"C\" NOT NULL, \
                     seq BIGINT NOT NULL, at BIGINT NOT NULL, version BIGINT NOT NULL, \
                     body TEXT COLLATE \"C\" NOT NULL, hash TEXT COLLATE \"C\" NOT NULL, \
                     PRIMARY KEY (run, seq))";
        sqlx::query(table).execute(&pool).await?;
        let body: Arc<str> = serde_json::to_string(&event())?.into();
        ready().await?;
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..self.writers {
            let (pool, body, run) = (pool.clone(), body.clone(), RunId::new().to_string());
            tasks.spawn(async move {
                let mut count: i64 = 0;
                while began.elapsed() < TIME {
                    count += 1;
                    let row = sqlx::query("INSERT INTO bare VALUES ($1, $2, 0, 1, $3, $4)");
                    // The last value is as long as a hash.
                    let row = row.bind(&run).bind(count).bind(&*body).bind("0".repeat(64));
                    row.execute(&pool).await?;
                }
                Ok::<i64, sqlx::Error>(count)
            });
        }
        let mut count = 0;
        while let Some(done) = tasks.join_next().await {
            count += done??;
        }
        let per_second = count as f64 / began.elapsed().as_secs_f64();
        sqlx::query("DROP TABLE bare").execute(&pool).await?;
        pool.close().await;
        Ok(per_second)
    }

    /// Each writer owns a run and waits for each acknowledgement.
    async fn grouped(self) -> Result<f64> {
        let store = Arc::new(PostgresStore::open(self.place.options()).await?);
        let runs: Vec<RunId> = (0..self.writers).map(|_| RunId::new()).collect();
        for runs in runs.chunks(256) {
            let create =
                |run: &RunId| append(*run, started().into(), Guard::Create(Ownership::Mine));
            store.append(runs.iter().map(create).collect()).await?;
        }
        ready().await?;
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
}
