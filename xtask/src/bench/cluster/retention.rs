//! Appends beside the removal of old logs by the same process, against the same appends alone.

use super::Cluster;
use crate::bench::Result;
use crate::bench::background::spread;
use crate::bench::harness::Effort;
use crate::bench::line::{Line, rate};
use crate::bench::spine::{append, ended, event, started};
use posse::store::{Guard, Inspection, Leftover, Leftovers, Logs, Ownership, PostgresStore, Store};
use posse::{RunId, Seq};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub async fn measure(cluster: &Cluster, effort: Effort) -> Result<()> {
    let place = cluster.place();
    let store = Arc::new(PostgresStore::open(place.options()).await?);
    let (logs, events) = (effort.pick(2, 5), effort.pick(20_000, 100_000));
    let mut old = Vec::new();
    for _ in 0..logs {
        old.push(long_log(&store, events).await?);
    }
    cluster.database.execute(&format!("VACUUM ANALYZE {}.events", place.schema));
    let alone = appends(&store, async { tokio::time::sleep(Duration::from_secs(3)).await }).await?;
    spread("retention: an append alone", alone);
    let began = Instant::now();
    let removal = async {
        for (run, last) in &old {
            store.erase(*run, *last).await?;
        }
        // An erased log is only hidden. Its events go afterwards, before the store looks for leftovers.
        let look = Leftovers { which: Leftover::Due, ended_for: Duration::ZERO, limit: 1 };
        let count = format!("SELECT count(*) FROM {}.hidden_logs", place.schema);
        store.leftovers(look).await?;
        while cluster.database.text(&count) != "0" {
            store.leftovers(look).await?;
        }
        Ok::<f64, posse::store::StoreError>(began.elapsed().as_secs_f64())
    };
    let took = std::cell::Cell::new(Ok(0.0));
    let beside = appends(&store, async { took.set(removal.await) }).await?;
    spread("retention: an append beside", beside);
    let removed = (logs * events) as f64 / took.into_inner()?;
    Line::new("retention: events removed", rate(removed)).print();
    store.close().await;
    Ok(())
}

/// Creates a run with so many events, which ends. Returns the last position.
async fn long_log(store: &PostgresStore, events: usize) -> Result<(RunId, Seq)> {
    let run = RunId::new();
    store.append(vec![append(run, started().into(), Guard::Create(Ownership::Mine))]).await?;
    let owned = Guard::Owner { epoch: 1, last: None, then: Ownership::Mine };
    for _ in 0..events / 1_000 {
        store.append(vec![append(run, vec![event(); 1_000].into(), owned)]).await?;
    }
    let end = store.append(vec![append(run, [ended()].into(), owned)]).await?;
    Ok((run, end[0].last))
}

/// Appends one event after the other while `meanwhile` goes on. Returns the seconds of each.
async fn appends(
    store: &Arc<PostgresStore>,
    meanwhile: impl Future<Output = ()>,
) -> Result<Vec<f64>> {
    let run = RunId::new();
    store.append(vec![append(run, started().into(), Guard::Create(Ownership::Mine))]).await?;
    let is_over = AtomicBool::new(false);
    let appending = async {
        let mut times = Vec::new();
        while !is_over.load(Ordering::SeqCst) {
            let owned = Guard::Owner { epoch: 1, last: None, then: Ownership::Mine };
            let began = Instant::now();
            store.append(vec![append(run, [event()].into(), owned)]).await?;
            times.push(began.elapsed().as_secs_f64());
        }
        Ok::<_, posse::store::StoreError>(times)
    };
    let meanwhile = async {
        meanwhile.await;
        is_over.store(true, Ordering::SeqCst);
    };
    let (times, ()) = tokio::join!(appending, meanwhile);
    Ok(times?)
}
