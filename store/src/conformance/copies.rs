//! Copies of runs for another store.

use super::sample::*;
use super::trees::bear;
use super::{Subject, Verdict, ensure, ensure_refused};
use crate::{Binding, Brought, Filter, Ownership, RunRow, StoreError, transfer};
use posse_protocol::{Purpose, Seq};

pub(super) async fn a_copy_of_a_run_is_the_same_run(subject: &dyn Subject) -> Verdict {
    let (from, to) = (subject.open("copied-from").await, subject.open("copied-to").await);
    let (from, to) = (&*from, &*to);
    let run = create(from, "/w", Ownership::Mine).await?;
    let steps = vec![called(9, Purpose::Turn), replied(7), tool_started(), tool_finished()];
    append(from, step(run, 1, steps, Ownership::Mine)).await?;
    ensure_refused!(from.copy(run).await, StoreError::NotOwner(_));
    append(from, step(run, 1, Vec::new(), Ownership::Queued)).await?;
    let copy = from.copy(run).await?;
    ensure!(to.bring(copy.clone()).await? == Brought::Stored, "the run was there already");
    ensure!(to.bring(copy.clone()).await? == Brought::Present, "the run was stored twice");
    for after in [0, 3] {
        let logs = (from.read(run, Seq(after), 99).await?, to.read(run, Seq(after), 99).await?);
        ensure!(logs.0 == logs.1, "the logs differ: {logs:?}");
    }
    let hashes = (from.hashes(run, Seq::ZERO, 99).await?, to.hashes(run, Seq::ZERO, 99).await?);
    ensure!(hashes.0 == hashes.1 && hashes.0.len() == 6, "the hashes differ: {hashes:?}");
    let costs = (from.ledger(run).await?, to.ledger(run).await?);
    ensure!(costs.0 == costs.1 && costs.0.len() == 1, "the costs differ: {costs:?}");
    let rows = (row(from, run).await?, row(to, run).await?);
    ensure!(rows.0 == rows.1, "the rows differ: {rows:?}");
    // It goes on in the other store.
    let claimed = claim_one(to, run).await?;
    ensure!(claimed.as_ref().is_some_and(|it| it.epoch == 2), "claimed {claimed:?}");
    append(to, step(run, 2, vec![finished()], Ownership::Waiting)).await?;
    ensure_refused!(to.bring(copy).await, StoreError::Exists(_));
    Ok(())
}

pub(super) async fn a_tree_is_copied_whole_or_not_at_all(subject: &dyn Subject) -> Verdict {
    let (from, to) = (subject.open("tree-from").await, subject.open("tree-to").await);
    let (from, to) = (&*from, &*to);
    let other = create(from, "/w", Ownership::Waiting).await?;
    let root = create(from, "/w", Ownership::Mine).await?;
    let child = bear(from, &[root]).await?;
    append(from, step(root, 1, Vec::new(), Ownership::Queued)).await?;
    let binding = Binding::To("a".to_owned());
    let done = transfer(from, to, &binding, |_| {}).await?;
    ensure!((done.copied, done.present) == (1, 0), "copied {done:?}");
    let is_why = matches!(&done.left[..], [(run, StoreError::NotOwner(_))] if *run == child);
    ensure!(is_why, "left {:?}", done.left);
    let there = to.list(&Filter::default()).await?;
    ensure!(there.iter().all(|row| row.id == other), "a part of a tree was copied: {there:?}");
    append(from, step(child, 1, Vec::new(), Ownership::Queued)).await?;
    let done = transfer(from, to, &binding, |_| {}).await?;
    ensure!((done.copied, done.present, done.left.len()) == (2, 1, 0), "copied {done:?}");
    Ok(())
}

pub(super) async fn a_copy_takes_no_key_of_another_run(subject: &dyn Subject) -> Verdict {
    let (from, to) = (subject.open("keyed-from").await, subject.open("keyed-to").await);
    for store in [&from, &to] {
        append(&**store, keyed("k")?).await?;
    }
    let all = Filter::default();
    let (there, here) = (from.list(&all).await?, to.list(&all).await?);
    let ids = |rows: &[RunRow]| rows.iter().map(|row| row.id).collect::<Vec<_>>();
    let copy = from.copy(ids(&there)[0]).await?;
    ensure_refused!(to.bring(copy).await, StoreError::KeyTaken { .. });
    ensure!(ids(&to.list(&all).await?) == ids(&here), "a refused copy left something");
    Ok(())
}

pub(super) async fn a_run_without_its_log_is_copied_with_its_costs(
    subject: &dyn Subject,
) -> Verdict {
    let (from, to) = (subject.open("erased-from").await, subject.open("erased-to").await);
    let (from, to) = (&*from, &*to);
    let run = create(from, "/w", Ownership::Mine).await?;
    let steps = vec![called(9, Purpose::Turn), replied(7), finished()];
    let last = append(from, step(run, 1, steps, Ownership::Waiting)).await?.last;
    from.erase(run, last).await?;
    let copy = from.copy(run).await?;
    ensure!(to.bring(copy).await? == Brought::Stored, "the run was there already");
    ensure!(row(from, run).await? == row(to, run).await?, "the rows differ");
    ensure!(from.ledger(run).await? == to.ledger(run).await?, "the costs differ");
    ensure_refused!(to.read(run, Seq::ZERO, 9).await, StoreError::Erased(_));
    Ok(())
}
