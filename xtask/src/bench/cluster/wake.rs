//! How soon others notice: from a stored run to its claim by another worker, and from the last reply of
//! a child to the next request of its parent.

use super::{Cluster, Place};
use crate::bench::Result;
use crate::bench::background::{measure_wake, spread};
use crate::bench::harness::Effort;
use crate::bench::spine::{append, started};
use posse::RunId;
use posse::store::{
    Claims, Guard, Logs, Notifications, Ownership, PostgresOptions, PostgresStore, Store, Wanted,
};
use std::time::{Duration, Instant};

pub async fn measure(cluster: &Cluster, effort: Effort) -> Result<()> {
    for (name, bell) in [
        ("wake: stored to claimed elsewhere", Notifications::On),
        ("wake: without notifications", Notifications::Off),
    ] {
        let times = effort.pick(20, if bell == Notifications::On { 300 } else { 60 });
        spread(name, elsewhere(&cluster.place(), bell, times).await?);
    }
    let place = cluster.place();
    measure_wake(effort, "wake: last reply to next request", |config| {
        Place::set(Some(&place), config);
    })
    .await
}

/// Seconds from the acknowledgement of each of so many runs to its claim by another worker.
async fn elsewhere(place: &Place, bell: Notifications, times: usize) -> Result<Vec<f64>> {
    let options = PostgresOptions { bell, ..place.options() };
    let near = PostgresStore::open(options.clone()).await?;
    let far = PostgresStore::open(options).await?;
    let mut ready = far.ready();
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        let run = RunId::new();
        let create = append(run, started().into(), Guard::Create(Ownership::Queued));
        ready.mark_unchanged();
        near.append(vec![create]).await?;
        let began = Instant::now();
        loop {
            tokio::time::timeout(Duration::from_secs(10), ready.changed()).await??;
            let wanted = Wanted { limit: 64, ..Wanted::default() };
            if far.claim(&wanted).await?.iter().any(|claimed| claimed.row.id == run) {
                break;
            }
        }
        took.push(began.elapsed().as_secs_f64());
    }
    near.close().await;
    far.close().await;
    Ok(took)
}
