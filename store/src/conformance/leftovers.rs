//! Ended runs: archiving, and the removal of logs.

use super::sample::*;
use super::trees::bear;
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{Append, By, Leftover, Leftovers, Ownership, RunRow, SpendingQuery, Store, StoreError};
use posse_protocol::{Cleanup, Purpose, RunId, RunStarted, Seq, Status};
use std::time::Duration;

async fn end(store: &dyn Store, run: RunId) -> Result<RunRow, Fault> {
    append(store, step(run, 1, vec![finished()], Ownership::Mine)).await?;
    row(store, run).await
}

async fn left_over(store: &dyn Store, which: Leftover) -> Result<Vec<RunId>, Fault> {
    let wanted = Leftovers { which, ended_for: Duration::ZERO, limit: 10 };
    Ok(store.leftovers(wanted).await?.iter().map(|row| row.id).collect())
}

pub(super) async fn a_log_is_removed_and_what_it_cost_stays(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("removal").await, subject.open("removal").await);
    let store = &*mine;
    let run = create(store, "/w", Ownership::Mine).await?;
    let beside = create(store, "/w", Ownership::Mine).await?;
    append(store, step(run, 1, vec![called(9, Purpose::Turn), replied(5)], Ownership::Mine))
        .await?;
    let before = end(store, run).await?;
    store.erase(run, before.log.last_seq).await?;
    for store in [&*mine, &*other] {
        ensure_refused!(store.read(run, Seq::ZERO, 9).await, StoreError::Erased(gone) if gone == run);
        let after = row(store, run).await?;
        ensure!(after.log.erased && after.status == Status::Archived, "it is {}", after.status);
        let mut kept = RunRow { status: Status::Archived, ..before.clone() };
        (kept.state.archived, kept.log.erased) = (true, true);
        ensure!(after == kept, "{after:?} in place of {kept:?}");
        let query = SpendingQuery { by: By::Run, tree: Some(run), ..SpendingQuery::default() };
        let sums = store.spending(&query).await?;
        ensure!(sums.len() == 1 && sums[0].usage == usage(5), "{sums:?}");
        ensure!(store.read(beside, Seq::ZERO, 9).await?.len() == 2, "its neighbour lost events");
        ensure!(store.orphans().await?.is_empty(), "events were left");
        let late = append(store, Append::by_anyone(run, message("are you there?"))).await;
        ensure_refused!(late, StoreError::Erased(_));
        ensure_refused!(store.erase(run, before.log.last_seq).await, StoreError::Erased(_));
    }
    Ok(())
}

pub(super) async fn only_the_log_of_a_run_that_has_ended_is_removed(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("refused removal").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    let last = row(store, run).await?.log.last_seq;
    ensure_refused!(store.erase(run, last).await, StoreError::Unfinished(_));
    ensure_refused!(store.erase(RunId::new(), last).await, StoreError::NotFound(_));
    let ended = end(store, run).await?;
    // The run was reopened after it was listed.
    append(store, Append::by_anyone(run, message("once more"))).await?;
    ensure_refused!(store.erase(run, ended.log.last_seq).await, StoreError::Unfinished(_));
    let Some(claimed) = claim_one(store, run).await? else {
        return Err(Fault("a reopened run cannot be claimed".to_owned()));
    };
    append(store, step(run, claimed.epoch, vec![finished()], Ownership::Mine)).await?;
    ensure_refused!(store.erase(run, ended.log.last_seq).await, StoreError::Moved { .. });
    ensure!(store.read(run, Seq::ZERO, 9).await?.len() == 5, "events were lost");
    let archived_at = append(store, Append::by_anyone(run, archived())).await?.last;
    store.erase(run, archived_at).await?;
    Ok(())
}

pub(super) async fn what_ended_is_left_over_once_its_tree_has_ended(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("ended trees").await;
    let store = &*store;
    let root = create(store, "/w", Ownership::Mine).await?;
    let child = bear(store, &[root]).await?;
    let below = bear(store, &[root, child]).await?;
    let alone = create(store, "/w", Ownership::Mine).await?;
    end(store, child).await?;
    ensure!(left_over(store, Leftover::Ended).await?.is_empty(), "its root goes on");
    end(store, alone).await?;
    end(store, root).await?;
    let found = left_over(store, Leftover::Ended).await?;
    ensure!(found == [alone], "{found:?}: someone below goes on");
    end(store, below).await?;
    let mut found = left_over(store, Leftover::Ended).await?;
    found.sort_unstable();
    let mut all = vec![root, child, below, alone];
    all.sort_unstable();
    ensure!(found == all, "{found:?} in place of {all:?}");
    let long =
        Leftovers { which: Leftover::Ended, ended_for: Duration::from_secs(3_600), limit: 10 };
    ensure!(store.leftovers(long).await?.is_empty(), "nothing ended an hour ago");
    let one = Leftovers { ended_for: Duration::ZERO, limit: 1, ..long };
    ensure!(store.leftovers(one).await?.len() == 1, "not as many as were asked for");

    ensure!(left_over(store, Leftover::Archived).await?.is_empty(), "nothing is archived");
    append(store, Append::by_anyone(alone, archived())).await?;
    let found = left_over(store, Leftover::Archived).await?;
    ensure!(found == [alone], "archived is {found:?}");
    ensure!(left_over(store, Leftover::Ended).await?.len() == 3, "what is archived is not left");
    store.erase(alone, row(store, alone).await?.log.last_seq).await?;
    ensure!(left_over(store, Leftover::Archived).await?.is_empty(), "its log is removed");
    // A message to an ended run reopens it, and so its tree.
    append(store, Append::by_anyone(below, message("once more"))).await?;
    ensure!(left_over(store, Leftover::Ended).await?.is_empty(), "the tree is open again");
    Ok(())
}

/// Creates a run whose first event `change` has changed.
async fn create_like(
    store: &dyn Store,
    change: impl FnOnce(&mut RunStarted),
) -> Result<RunId, Fault> {
    let mut first = start()?;
    change(&mut first);
    let events = vec![first.into(), message("do it")];
    let made = Append { events: events.into(), ..creation("/w", Ownership::Mine)? };
    let run = made.run;
    append(store, made).await?;
    Ok(run)
}

pub(super) async fn what_has_a_time_of_its_own_is_due_when_that_is_over(
    subject: &dyn Subject,
) -> Verdict {
    const HOUR_MS: u64 = 3_600_000;
    let store = subject.open("times of their own").await;
    let store = &*store;
    let at_once = create_like(store, |first| first.archive_after_ms = Some(0)).await?;
    let later = create_like(store, |first| first.archive_after_ms = Some(HOUR_MS)).await?;
    let plain = create(store, "/w", Ownership::Mine).await?;
    ensure!(left_over(store, Leftover::Due).await?.is_empty(), "nothing has ended");
    for run in [at_once, later, plain] {
        end(store, run).await?;
    }
    ensure!(
        row(store, later).await?.state.archive_after_ms == Some(HOUR_MS),
        "its row does not say it"
    );
    let found = left_over(store, Leftover::Due).await?;
    ensure!(found == [at_once], "{found:?} in place of {at_once}");
    let which = Leftover::Due;
    let long = Leftovers { which, ended_for: Duration::from_millis(HOUR_MS), limit: 10 };
    ensure!(store.leftovers(long).await?.is_empty(), "its time was not over an hour ago");
    // The time of a reopened run starts again at its next end.
    append(store, Append::by_anyone(at_once, message("once more"))).await?;
    ensure!(left_over(store, Leftover::Due).await?.is_empty(), "it is open again");
    let Some(claimed) = claim_one(store, at_once).await? else {
        return Err(Fault("a reopened run cannot be claimed".to_owned()));
    };
    append(store, step(at_once, claimed.epoch, vec![finished()], Ownership::Mine)).await?;
    ensure!(left_over(store, Leftover::Due).await? == [at_once], "it has ended again");
    append(store, Append::by_anyone(at_once, archived())).await?;
    ensure!(left_over(store, Leftover::Due).await?.is_empty(), "it is archived");
    Ok(())
}

pub(super) async fn what_was_to_be_removed_is_left_over_once_nothing_below_is_open(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("unwanted logs").await;
    let store = &*store;
    let run = create_like(store, |first| first.cleanup = Cleanup::Delete).await?;
    let child = bear(store, &[run]).await?;
    let kept = create(store, "/w", Ownership::Mine).await?;
    end(store, kept).await?;
    ensure!(left_over(store, Leftover::Unwanted).await?.is_empty(), "it has not ended");
    let ended = end(store, run).await?;
    ensure!(left_over(store, Leftover::Unwanted).await?.is_empty(), "someone below goes on");
    end(store, child).await?;
    let found = left_over(store, Leftover::Unwanted).await?;
    ensure!(found == [run], "{found:?} in place of {run}");
    store.erase(run, ended.log.last_seq).await?;
    ensure!(left_over(store, Leftover::Unwanted).await?.is_empty(), "it is removed");
    Ok(())
}
