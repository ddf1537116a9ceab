//! Watching: watchers learn about appends at once or soon.

use super::sample::*;
use super::{Fault, SOON, Subject, Verdict, ensure};
use crate::{Append, Ownership};
use posse_protocol::{RunId, Seq};
use tokio::sync::watch;
use tokio::time::timeout;

pub(super) async fn a_watcher_sees_appends_at_once(subject: &dyn Subject) -> Verdict {
    let store = subject.open("watch").await;
    let creation = creation("/w", Ownership::Mine)?;
    let run = creation.run;
    let before = store.watch(run);
    let epoch = append(&*store, creation).await?.epoch;
    let after = store.watch(run);
    ensure!(*before.borrow() == Seq(2), "a watcher is told {}", *before.borrow());
    for last in 3..10 {
        append(&*store, step(run, epoch, vec![time_passed()], Ownership::Mine)).await?;
        for tail in [&before, &after] {
            ensure!(*tail.borrow() == Seq(last), "{} in place of {last}", *tail.borrow());
        }
    }
    Ok(())
}

pub(super) async fn a_watcher_sees_other_workers_soon(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("far").await, subject.open("far").await);
    let run = create(&*mine, "/w", Ownership::Mine).await?;
    let mut tail = other.watch(run);
    for last in 3..6 {
        append(&*mine, Append::by_anyone(run, message("news"))).await?;
        let told = timeout(SOON, tail.wait_for(|seq| *seq >= Seq(last))).await;
        let told = told.ok().and_then(|seen| seen.ok().map(|seq| *seq));
        ensure!(told == Some(Seq(last)), "event {last} was not told: {told:?}");
    }
    Ok(())
}

pub(super) async fn a_watcher_learns_that_the_store_is_closed(subject: &dyn Subject) -> Verdict {
    let store = subject.open("left").await;
    let mut before = store.watch(create(&*store, "/w", Ownership::Mine).await?);
    before.mark_unchanged();
    store.close().await;
    let mut after = store.watch(RunId::new());
    for tail in [&mut before, &mut after] {
        let told = timeout(SOON, tail.changed()).await;
        ensure!(matches!(told, Ok(Err(_))), "a watcher was told {told:?} by a closed store");
    }
    Ok(())
}

async fn woken(ready: &mut watch::Receiver<u64>, by: &str) -> Verdict {
    let told = timeout(SOON, ready.changed()).await;
    ensure!(matches!(told, Ok(Ok(()))), "nobody was woken by {by}");
    ready.mark_unchanged();
    Ok(())
}

pub(super) async fn a_claimer_is_woken(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("ready").await, subject.open("ready").await);
    let mut near = mine.ready();
    let mut far = other.ready();
    let run = create(&*mine, "/w", Ownership::Queued).await?;
    ensure!(
        near.has_changed().is_ok_and(|changed| changed),
        "a new run wakes its own worker only later"
    );
    woken(&mut near, "a new run").await?;
    woken(&mut far, "a new run of another worker").await?;
    let Some(claimed) = claim_one(&*mine, run).await? else {
        return Err(Fault("a new run cannot be claimed".to_owned()));
    };
    append(&*mine, step(run, claimed.epoch, Vec::new(), Ownership::Waiting)).await?;
    near.mark_unchanged();
    append(&*mine, Append::by_anyone(run, message("hello"))).await?;
    woken(&mut near, "a message to a waiting run").await?;
    let Some(_) = claim_one(&*mine, run).await? else {
        return Err(Fault("a run that was woken cannot be claimed".to_owned()));
    };
    far.mark_unchanged();
    mine.close().await;
    woken(&mut far, "the departure of an owner").await?;
    ensure!(claim_one(&*other, run).await?.is_some(), "what a departed worker had is not free");
    Ok(())
}
