//! Damage: the store detects data that another program changed, and other runs are not affected.

use super::sample::*;
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{Append, Ownership, Store, StoreError};
use posse_protocol::{RunId, Seq, Status};

/// Creates a run of six events and changes the fourth.
async fn damaged(subject: &dyn Subject, name: &str) -> Result<RunId, Fault> {
    let store = subject.open(name).await;
    let mut append = creation("/w", Ownership::Queued)?;
    let more = (3..=6).map(|index| message(&format!("message {index}")));
    append.events = append.events.iter().cloned().chain(more).collect();
    let run = append.run;
    store.append(vec![append]).await?;
    ensure!(store.read(run, Seq::ZERO, 9).await?.len() == 6, "it is not as it was made");
    store.close().await;
    subject.damage(name, run, Seq(4)).await;
    Ok(run)
}

/// Fails unless `store` reports that the fourth event was changed.
async fn told(store: &dyn Store, run: RunId) -> Verdict {
    match store.read(run, Seq::ZERO, 9).await {
        Err(StoreError::Damaged { run: named, seq, .. }) => {
            ensure!((named, seq) == (run, Seq(4)), "event {seq} of {named} is blamed");
            Ok(())
        }
        other => Err(Fault(format!("a changed event was read: {other:?}"))),
    }
}

pub(super) async fn a_changed_event_is_told(subject: &dyn Subject) -> Verdict {
    let run = damaged(subject, "changed").await?;
    let store = subject.open("changed").await;
    // The events before it and the stored hashes can still be read.
    let before = store.read(run, Seq::ZERO, 3).await?.len();
    ensure!(before == 3, "{before} events in place of 3 before the changed one");
    ensure!(store.hashes(run, Seq::ZERO, 9).await?.len() == 6, "a hash is missing");
    told(&*store, run).await?;
    let status = row(&*store, run).await?.status;
    ensure!(status == Status::Damaged, "it was told, and the run is {status}");
    told(&*store, run).await
}

pub(super) async fn damage_stops_its_run_and_no_other(subject: &dyn Subject) -> Verdict {
    let run = damaged(subject, "stopped").await?;
    let store = subject.open("stopped").await;
    let store = &*store;
    let good = create(store, "/w", Ownership::Queued).await?;
    told(store, run).await?;
    let late = append(store, Append::by_anyone(run, message("hello"))).await;
    ensure_refused!(late, StoreError::Damaged { .. });
    let claimed: Vec<RunId> = claim(store, 9).await?.iter().map(|it| it.row.id).collect();
    ensure!(claimed == [good], "claimed {claimed:?} beside a damaged run");
    append(store, Append::by_anyone(good, message("hello"))).await?;
    Ok(())
}

pub(super) async fn damage_is_told_to_every_worker(subject: &dyn Subject) -> Verdict {
    let run = damaged(subject, "every").await?;
    let (one, other) = (subject.open("every").await, subject.open("every").await);
    told(&*one, run).await?;
    let status = row(&*other, run).await?.status;
    ensure!(status == Status::Damaged, "to another worker it is {status}");
    ensure!(claim_one(&*other, run).await?.is_none(), "another worker claimed it");
    told(&*other, run).await?;
    one.close().await;
    other.close().await;
    told(&*subject.open("every").await, run).await
}
