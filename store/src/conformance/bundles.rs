//! Bundles of runs that work in a checkout.

use super::sample::*;
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{
    Append, Brought, Bundle, BundleAbout, Leftover, Leftovers, Ownership, Piece, RunCopy, RunRow,
    Store, StoreError,
};
use posse_protocol::{Changes, Event, Extra, Outcome, RunFinished, RunId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Returns a bundle of this many bytes.
fn bundle(tip: &str, bytes: usize) -> Arc<Bundle> {
    let data: Vec<u8> = (0..bytes).map(|at| (at * 31 % 253) as u8).collect();
    let about = BundleAbout {
        tip: tip.to_owned(),
        base: "base".to_owned(),
        branch: "posse/it's".to_owned(),
        ..BundleAbout::default()
    };
    Arc::new(Bundle { about, data: data.into() })
}

/// Returns the end of a run whose changes are in a bundle.
fn finished_with(bundle: &Bundle) -> Event {
    let changes = Changes {
        branch: bundle.about.branch.clone(),
        commit: bundle.about.tip.clone(),
        base: bundle.about.base.clone(),
        files: 1,
        added: 1,
        removed: 0,
        difference: String::new(),
        problem: String::new(),
        kept: None,
        bundle: bundle.sha256(),
        left_out: 0,
        extra: Extra::default(),
    };
    let outcome = Outcome::completed("done");
    let changes = Some(Box::new(changes));
    Event::RunFinished(RunFinished { outcome, worked_ms: 3, changes, extra: Extra::default() })
}

async fn is_stored(store: &dyn Store, run: RunId, expected: &Bundle) -> Result<bool, Fault> {
    Ok(store.bundle(run).await?.as_ref() == Some(expected))
}

pub(super) async fn a_bundle_is_stored_with_its_step(subject: &dyn Subject) -> Verdict {
    let (store, other) = (subject.open("bundles").await, subject.open("bundles").await);
    let (store, other) = (&*store, &*other);
    let run = create(store, "/w", Ownership::Mine).await?;
    ensure!(store.bundle(run).await?.is_none(), "a new run has a bundle");
    let (large, small) = (bundle("one", 2_000_000), bundle("two", 10));
    let with =
        |bundle: &Arc<Bundle>, append: Append| Append { bundle: Some(bundle.clone()), ..append };
    append(store, with(&large, step(run, 1, vec![tool_started()], Ownership::Mine))).await?;
    ensure!(is_stored(store, run, &large).await?, "it is not what was stored");
    ensure!(is_stored(other, run, &large).await?, "another worker sees something else");
    let stale = with(&small, step(run, 7, vec![tool_finished()], Ownership::Mine));
    ensure_refused!(append(store, stale).await, StoreError::NotOwner(_));
    let anyone = with(&small, Append::by_anyone(run, message("hello")));
    ensure_refused!(append(store, anyone).await, StoreError::Misplaced(_));
    let too_large = bundle("three", Bundle::MOST + 1);
    let too_large = with(&too_large, step(run, 1, vec![tool_finished()], Ownership::Mine));
    ensure_refused!(append(store, too_large).await, StoreError::Misplaced(_));
    ensure!(is_stored(store, run, &large).await?, "a refused step changed it");
    append(store, step(run, 1, vec![tool_finished()], Ownership::Mine)).await?;
    ensure!(is_stored(store, run, &large).await?, "a step without one changed it");
    append(store, with(&small, step(run, 1, Vec::new(), Ownership::Queued))).await?;
    ensure!(is_stored(other, run, &small).await?, "a new one is not in place of the old one");
    Ok(())
}

pub(super) async fn a_run_begins_with_a_bundle(subject: &dyn Subject) -> Verdict {
    let store = subject.open("bundles").await;
    let bundle = bundle("one", 1_000);
    let made = Append { bundle: Some(bundle.clone()), ..creation("/w", Ownership::Queued)? };
    let run = made.run;
    append(&*store, made).await?;
    ensure!(is_stored(&*store, run, &bundle).await?, "it is not what was stored");
    Ok(())
}

pub(super) async fn a_bundle_is_removed_with_its_log(subject: &dyn Subject) -> Verdict {
    let store = subject.open("bundles").await;
    let store = &*store;
    let (run, kept) = (create(store, "/w", Ownership::Mine).await?, bundle("kept", 500_000));
    let end = step(run, 1, vec![finished_with(&kept)], Ownership::Waiting);
    let last = append(store, Append { bundle: Some(kept.clone()), ..end }).await?.last;
    ensure!(is_stored(store, run, &kept).await?, "the end lost it");
    store.erase(run, last).await?;
    ensure!(store.bundle(run).await?.is_none(), "it is left without its log");
    let flaws = store.flaws().await?;
    ensure!(flaws.is_empty(), "{flaws:?}");
    Ok(())
}

pub(super) async fn an_archived_run_keeps_its_bundle_until_its_log_is_removed(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("bundles").await;
    let store = &*store;
    let (run, kept) = (create(store, "/w", Ownership::Mine).await?, bundle("kept", 2_000_000));
    let end = step(run, 1, vec![finished_with(&kept)], Ownership::Waiting);
    append(store, Append { bundle: Some(kept.clone()), ..end }).await?;
    append(store, Append::by_anyone(run, archived())).await?;
    ensure!(is_stored(store, run, &kept).await?, "archiving removed it");
    let old = leftovers(store).await?;
    ensure!(old.iter().any(|row| row.id == run), "its log is not left over: {old:?}");
    for row in old {
        store.erase(row.id, row.log.last_seq).await?;
    }
    ensure!(store.bundle(run).await?.is_none(), "it is left without its log");
    ensure!(leftovers(store).await?.is_empty(), "its log is left over");
    let flaws = store.flaws().await?;
    ensure!(flaws.is_empty(), "{flaws:?}");
    Ok(())
}

/// Returns the archived runs whose logs can be removed. Removes what has expired, too.
async fn leftovers(store: &dyn Store) -> Result<Vec<RunRow>, StoreError> {
    let (which, ended_for) = (Leftover::Archived, Duration::ZERO);
    store.leftovers(Leftovers { which, ended_for, limit: 9 }).await
}

pub(super) async fn a_staged_bundle_is_seen_by_nobody_and_expires(
    subject: &dyn Subject,
) -> Verdict {
    let (store, other) = (subject.open("bundles").await, subject.open("bundles").await);
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    let (first, second) = (bundle("one", 2_000_000), bundle("two", 1_900_000));
    append(
        store,
        Append { bundle: Some(first.clone()), ..step(run, 1, Vec::new(), Ownership::Mine) },
    )
    .await?;
    for run in [run, RunId::new()] {
        // What is there already costs nothing.
        for _ in 0..2 {
            store.stage(run, Piece::Bundle(second.clone())).await?;
        }
    }
    for store in [store, &*other] {
        ensure!(is_stored(store, run, &first).await?, "it counts before its step");
        let flaws = store.flaws().await?;
        ensure!(flaws.is_empty(), "{flaws:?}");
        let strays = (store.orphans().await?, store.strangers().await?);
        ensure!(strays.0.is_empty() && strays.1.is_empty(), "{strays:?}");
    }
    subject.pass(Piece::KEPT_FOR + Duration::from_secs(1));
    leftovers(store).await?;
    ensure!(is_stored(store, run, &first).await?, "the one that counts is gone");
    // A step stages its bundle again.
    for (next, before) in [(&second, &first), (&first, &second)] {
        let with = step(run, 1, Vec::new(), Ownership::Mine);
        append(store, Append { bundle: Some(next.clone()), ..with }).await?;
        leftovers(store).await?;
        ensure!(is_stored(store, run, next).await?, "{before:?} was not replaced");
    }
    Ok(())
}

pub(super) async fn a_bundle_is_stored_beside_the_steps_of_another_run(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("bundles").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    let other = create(store, "/w", Ownership::Mine).await?;
    let large = bundle("large", 8 << 20);
    let with = step(run, 1, vec![tool_started()], Ownership::Mine);
    let is_stored_now = AtomicBool::new(false);
    let storing = async {
        let stored = append(store, Append { bundle: Some(large.clone()), ..with }).await;
        is_stored_now.store(true, Ordering::SeqCst);
        stored
    };
    let going_on = async {
        let mut steps = 0;
        while steps == 0 || !is_stored_now.load(Ordering::SeqCst) {
            append(store, step(other, 1, vec![message("on")], Ownership::Mine)).await?;
            steps += 1;
        }
        Ok::<u64, StoreError>(steps)
    };
    let (stored, steps) = tokio::join!(storing, going_on);
    stored?;
    let steps = steps?;
    ensure!(is_stored(store, run, &large).await?, "it is not what was stored");
    ensure!(row(store, other).await?.log.last_seq.0 == 2 + steps, "a step is missing");
    Ok(())
}

pub(super) async fn a_copy_of_a_run_has_its_bundle(subject: &dyn Subject) -> Verdict {
    let (from, to) = (subject.open("bundle-from").await, subject.open("bundle-to").await);
    let (from, to) = (&*from, &*to);
    for bytes in [0, 2_900_000] {
        let (run, kept) = (create(from, "/w", Ownership::Mine).await?, bundle("kept", bytes));
        let end = step(run, 1, vec![finished_with(&kept)], Ownership::Waiting);
        append(from, Append { bundle: Some(kept.clone()), ..end }).await?;
        let copy = RunCopy::stage(from, to, run).await?;
        ensure!(to.bundle(run).await?.is_none(), "it is seen before its run");
        ensure!(to.bring(vec![copy]).await? == [Brought::Stored], "the run was there already");
        ensure!(is_stored(to, run, &kept).await?, "the copy has another one");
    }
    for other in [None, Some(bundle("another", 10))] {
        let run = create(from, "/w", Ownership::Mine).await?;
        let end = step(run, 1, vec![finished_with(&bundle("kept", 9))], Ownership::Waiting);
        append(from, Append { bundle: other, ..end }).await?;
        ensure_refused!(RunCopy::stage(from, to, run).await, StoreError::Damaged { .. });
    }
    Ok(())
}
