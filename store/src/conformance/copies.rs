//! Copies of runs for another store.

use super::claims::bound;
use super::sample::*;
use super::trees::bear;
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{
    Append, Binding, Brought, Bundle, BundleAbout, Filter, Leftover, Leftovers, Ownership, Piece,
    RunCopy, RunRow, SpendingQuery, Store, StoreError, transfer,
};
use posse_protocol::{Event, Purpose, RunId, Seq};
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn a_copy_of_a_run_is_the_same_run(subject: &dyn Subject) -> Verdict {
    let (from, to) = (subject.open("copied-from").await, subject.open("copied-to").await);
    let (from, to) = (&*from, &*to);
    let run = create(from, "/w", Ownership::Mine).await?;
    let steps = vec![called(9, Purpose::Turn), replied(7), tool_started(), tool_finished()];
    append(from, step(run, 1, steps, Ownership::Mine)).await?;
    ensure_refused!(RunCopy::stage(from, to, run).await, StoreError::NotOwner(_));
    append(from, step(run, 1, Vec::new(), Ownership::Queued)).await?;
    let tree = vec![RunCopy::stage(from, to, run).await?];
    ensure!(to.bring(tree.clone()).await? == [Brought::Stored], "the run was there already");
    ensure!(to.bring(tree.clone()).await? == [Brought::Present], "the run was stored twice");
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
    ensure_refused!(to.bring(tree).await, StoreError::Exists(_));
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

pub(super) async fn a_copy_stays_on_the_machine_of_its_workspace(subject: &dyn Subject) -> Verdict {
    let (many, one) = (subject.open("host-many").await, subject.open("host-one").await);
    let back = subject.open("host-back").await;
    let runs = [bound(&*many, "m1", "").await?, bound(&*many, "", "").await?];
    let hosts = async |store: &dyn Store| -> Result<Vec<String>, Fault> {
        let mut hosts = Vec::new();
        for run in runs {
            hosts.push(row(store, run).await?.work.host);
        }
        Ok(hosts)
    };
    // To the store of that machine alone, and from there to one of several machines.
    transfer(&*many, &*one, &Binding::From("m1".to_owned()), |_| {}).await?;
    ensure!(hosts(&*one).await? == ["", ""], "bound to {:?}", hosts(&*one).await?);
    transfer(&*one, &*back, &Binding::To("m2".to_owned()), |_| {}).await?;
    // The workspace of the second one is a folder of the machine that had the store.
    ensure!(hosts(&*back).await? == ["m1", "m2"], "bound to {:?}", hosts(&*back).await?);
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
    let other = create(&*from, "/w", Ownership::Waiting).await?;
    let mut tree = Vec::new();
    for run in [other, ids(&there)[0]] {
        tree.push(RunCopy::stage(&*from, &*to, run).await?);
    }
    ensure_refused!(to.bring(tree).await, StoreError::KeyTaken { .. });
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
    let copy = RunCopy::stage(from, to, run).await?;
    ensure!(to.bring(vec![copy]).await? == [Brought::Stored], "the run was there already");
    ensure!(row(from, run).await? == row(to, run).await?, "the rows differ");
    ensure!(from.ledger(run).await? == to.ledger(run).await?, "the costs differ");
    ensure_refused!(to.read(run, Seq::ZERO, 9).await, StoreError::Erased(_));
    Ok(())
}

/// Creates a tree of a root and a child with long logs, costs and a bundle. No worker owns them.
async fn large_tree(store: &dyn Store) -> Result<[RunId; 2], Fault> {
    let root = create(store, "/w", Ownership::Mine).await?;
    let child = bear(store, &[root]).await?;
    let data: Vec<u8> = (0..2_000_000_u32).map(|at| (at * 29 % 251) as u8).collect();
    let bundle = Arc::new(Bundle { about: BundleAbout::default(), data: data.into() });
    for run in [root, child] {
        let said = (0..700).map(|number| message(&format!("number {number}")));
        let mut events: Vec<Event> = said.collect();
        events.extend([message(&"long ".repeat(400_000)), called(9, Purpose::Turn), replied(7)]);
        let bundle = Some(bundle.clone());
        let with = Append { bundle, ..step(run, 1, events, Ownership::Queued) };
        append(store, with).await?;
    }
    Ok([root, child])
}

/// Fails if anything of these runs can be seen.
async fn is_unseen(store: &dyn Store, runs: &[RunId]) -> Verdict {
    let listed = store.list(&Filter::default()).await?;
    ensure!(listed.is_empty(), "listed {listed:?}");
    let spent = store.spending(&SpendingQuery::default()).await?;
    ensure!(spent.iter().all(|sum| sum.calls == 0), "costs are seen: {spent:?}");
    for run in runs {
        ensure_refused!(store.read(*run, Seq::ZERO, 9).await, StoreError::NotFound(_));
        let hashes = store.hashes(*run, Seq::ZERO, 9).await?;
        ensure!(hashes.is_empty(), "events are seen: {hashes:?}");
        ensure!(store.bundle(*run).await?.is_none(), "a bundle is seen");
    }
    let strays = (store.orphans().await?, store.strangers().await?, store.flaws().await?);
    ensure!(strays.0.is_empty() && strays.1.is_empty() && strays.2.is_empty(), "{strays:?}");
    Ok(())
}

/// Fails if a run is not the same in both stores.
async fn is_same(from: &dyn Store, to: &dyn Store, run: RunId) -> Verdict {
    let logs = (from.read(run, Seq::ZERO, 9_999).await?, to.read(run, Seq::ZERO, 9_999).await?);
    ensure!(logs.0 == logs.1 && logs.0.len() > 700, "the logs differ");
    ensure!(from.bundle(run).await? == to.bundle(run).await?, "the bundles differ");
    ensure!(from.ledger(run).await? == to.ledger(run).await?, "the costs differ");
    ensure!(row(from, run).await? == row(to, run).await?, "the rows differ");
    Ok(())
}

pub(super) async fn a_copy_that_breaks_off_is_seen_by_nobody(subject: &dyn Subject) -> Verdict {
    let (from, to) = (subject.open("broken-from").await, subject.open("broken-to").await);
    let (again, from) = (subject.open("broken-to").await, &*from);
    let tree = large_tree(from).await?;
    let copy = RunCopy::stage(from, &*to, tree[0]).await?;
    is_unseen(&*to, &tree).await?;
    is_unseen(&*again, &tree).await?;
    // Another process begins again.
    let second = RunCopy::stage(from, &*again, tree[0]).await?;
    ensure_refused!(to.bring(vec![copy]).await, StoreError::Unstaged(_));
    is_unseen(&*again, &tree).await?;
    drop(second);
    // And once more, the whole tree.
    let binding = Binding::To(String::new());
    let done = transfer(from, &*again, &binding, |_| {}).await?;
    ensure!((done.copied, done.present, done.left.len()) == (2, 0, 0), "copied {done:?}");
    for run in tree {
        is_same(from, &*to, run).await?;
    }
    let done = transfer(from, &*to, &binding, |_| {}).await?;
    ensure!((done.copied, done.present, done.left.len()) == (0, 2, 0), "copied {done:?}");
    Ok(())
}

pub(super) async fn a_copy_that_comes_late_hides_nothing(subject: &dyn Subject) -> Verdict {
    let (from, to) = (subject.open("slow-from").await, subject.open("slow-to").await);
    let (late, from, to) = (subject.open("slow-to").await, &*from, &*to);
    let tree = large_tree(from).await?;
    let done = transfer(from, to, &Binding::To(String::new()), |_| {}).await?;
    ensure!(done.copied == 2, "copied {done:?}");
    // Another transfer saw before that they are missing.
    for run in tree {
        let staged = RunCopy::stage(from, &*late, run).await;
        ensure_refused!(staged, StoreError::Unstaged(_) | StoreError::Exists(_));
        is_same(from, to, run).await?;
        let hashes = (from.hashes(run, Seq::ZERO, 9_999).await?, to.hashes(run, Seq::ZERO, 9_999));
        ensure!(hashes.0 == hashes.1.await?, "events are hidden");
    }
    let flaws = to.flaws().await?;
    ensure!(flaws.is_empty(), "{flaws:?}");
    Ok(())
}

/// Removes what was staged and has expired.
async fn remove_expired(store: &dyn Store) -> Verdict {
    let (which, ended_for) = (Leftover::Archived, Duration::ZERO);
    store.leftovers(Leftovers { which, ended_for, limit: 9 }).await?;
    Ok(())
}

pub(super) async fn what_was_copied_in_part_expires(subject: &dyn Subject) -> Verdict {
    let (from, to) = (subject.open("late-from").await, subject.open("late-to").await);
    let (from, to) = (&*from, &*to);
    let tree = large_tree(from).await?;
    let mut copies = Vec::new();
    for run in tree {
        copies.push(RunCopy::stage(from, to, run).await?);
    }
    subject.pass(Piece::KEPT_FOR + Duration::from_secs(1));
    remove_expired(to).await?;
    ensure_refused!(to.bring(copies).await, StoreError::Unstaged(_));
    is_unseen(to, &tree).await?;
    let done = transfer(from, to, &Binding::To(String::new()), |_| {}).await?;
    ensure!((done.copied, done.left.len()) == (2, 0), "copied {done:?}");
    for run in tree {
        is_same(from, to, run).await?;
    }
    Ok(())
}

pub(super) async fn what_a_copy_has_staged_stays_while_it_goes_on(
    subject: &dyn Subject,
) -> Verdict {
    let (from, to) = (subject.open("long-from").await, subject.open("long-to").await);
    let (other, from, to) = (subject.open("long-to").await, &*from, &*to);
    let a_while = Piece::KEPT_FOR * 2 / 3;
    let tree = large_tree(from).await?;
    // What somebody began before is taken over, and kept as long as the rest.
    RunCopy::stage(from, &*other, tree[0]).await?;
    subject.pass(a_while);
    let mut copies = Vec::new();
    for run in tree {
        copies.push(RunCopy::stage(from, to, run).await?);
        subject.pass(a_while);
        remove_expired(&*other).await?;
    }
    let brought = to.bring(copies).await?;
    ensure!(brought == [Brought::Stored, Brought::Stored], "the runs were there already");
    for run in tree {
        is_same(from, to, run).await?;
    }
    Ok(())
}
