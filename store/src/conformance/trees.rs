//! Trees of runs: children, their ends, and their ancestors.

use super::sample::{
    append, called, cancel, claim_one, create, creation, finished, message, replied, row, start,
    step,
};
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::append::{Append, Guard, Ownership, Reserve};
use crate::{Filter, Kin, Store, StoreError, Unfinished};
use posse_protocol::{
    Approval, ApprovalAsked, ApprovalGiven, CallId, ChildStarted, Ending, Event, Extra, Outcome,
    Parent, Paused, Purpose, RunFinished, RunId, RunStarted, TimeAtWork, ToolFinished, ToolOutput,
    ToolPending,
};
use std::sync::Arc;

/// Returns the appends that start a child of the last of `ancestors`: the child, an event in the
/// log of its parent, and the condition that all other ancestors are open.
fn birth(ancestors: &[RunId]) -> Result<(RunId, Vec<Append>), Fault> {
    let child = creation("/w", Ownership::Mine)?;
    let parent = *ancestors.last().ok_or_else(|| Fault("no ancestors".to_owned()))?;
    let first = start()?;
    let call = Some(CallId::from("call"));
    let extra = Extra::default();
    let above = Parent {
        run: parent,
        call: call.clone(),
        announce: None,
        account: None,
        limited: Vec::new(),
        abreast: None,
        time: TimeAtWork::default(),
        ancestors: ancestors.to_vec(),
        extra,
    };
    let agent = first.agent.name.clone();
    let first = RunStarted { parent: Some(above), label: "look".to_owned(), ..first };
    let events = Arc::new([first.into(), message("do it")]);
    let note = Event::ChildStarted(Box::new(ChildStarted {
        run: child.run,
        call,
        announce: None,
        agent,
        label: "look".to_owned(),
        resumed: false,
        extra: Extra::default(),
    }));
    let mut batch = vec![Append { events, ..child }, Append::by_anyone(parent, note)];
    let above = ancestors.iter().filter(|run| **run != parent);
    batch.extend(above.map(|run| Append::while_open(*run)));
    Ok((batch.first().map_or(parent, |append| append.run), batch))
}

pub(super) async fn bear(store: &dyn Store, ancestors: &[RunId]) -> Result<RunId, Fault> {
    let (child, batch) = birth(ancestors)?;
    store.append(batch).await?;
    Ok(child)
}

fn answer(call: &str) -> Event {
    Event::ToolFinished(ToolFinished {
        call: call.into(),
        output: ToolOutput::text("done"),
        ending: Ending::Returned,
        by: String::new(),
        took_ms: 0,
        worked_ms: 0,
        extra: Extra::default(),
    })
}

pub(super) async fn a_child_knows_those_above_it(subject: &dyn Subject) -> Verdict {
    let store = subject.open("kin").await;
    let store = &*store;
    let root = create(store, "/w", Ownership::Mine).await?;
    let other = create(store, "/w", Ownership::Mine).await?;
    let one = bear(store, &[root]).await?;
    let two = bear(store, &[root]).await?;
    let below = bear(store, &[root, one]).await?;
    for (run, parent, depth) in [(root, None, 0), (one, Some(root), 1), (below, Some(one), 2)] {
        let row = row(store, run).await?;
        let found = (row.family.parent, row.family.root, row.family.depth);
        ensure!(found == (parent, root, depth), "{run} stands at {found:?}");
    }
    ensure!(row(store, one).await?.about.title == "look", "a label is not the title");
    let table = [
        (Kin::Roots, vec![other, root]),
        (Kin::ChildrenOf(root), vec![two, one]),
        (Kin::ChildrenOf(one), vec![below]),
        (Kin::ChildrenOf(two), vec![]),
        (Kin::TreeOf(root), vec![below, two, one, root]),
        (Kin::TreeOf(one), vec![]),
    ];
    for (kin, expected) in table {
        let listed = store.list(&Filter { kin, ..Filter::default() }).await?;
        let found: Vec<RunId> = listed.iter().map(|row| row.id).collect();
        ensure!(found == expected, "{kin:?} found {found:?} in place of {expected:?}");
    }
    Ok(())
}

pub(super) async fn what_an_ended_root_has_left_stands_beside_the_roots(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("heads").await;
    let store = &*store;
    let root = create(store, "/w", Ownership::Mine).await?;
    let other = create(store, "/w", Ownership::Mine).await?;
    let left = bear(store, &[root]).await?;
    bear(store, &[other]).await?;
    append(store, step(root, 1, vec![finished()], Ownership::Mine)).await?;
    for (unfinished, expected) in
        [(Unfinished::Only, vec![left, other]), (Unfinished::All, vec![left, other, root])]
    {
        let filter = Filter { kin: Kin::Heads, unfinished, ..Filter::default() };
        let found: Vec<RunId> = store.list(&filter).await?.iter().map(|row| row.id).collect();
        ensure!(found == expected, "{found:?} in place of {expected:?}");
    }
    Ok(())
}

pub(super) async fn nothing_starts_below_a_run_that_was_told_to_stop(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("stopped").await;
    let store = &*store;
    let root = create(store, "/w", Ownership::Mine).await?;
    let child = bear(store, &[root]).await?;
    append(store, Append::by_anyone(root, cancel())).await?;
    ensure!(row(store, root).await?.state.stopping, "a cancel request leaves no mark");
    for ancestors in [&[root][..], &[root, child]] {
        let (run, batch) = birth(ancestors)?;
        ensure_refused!(store.append(batch).await, StoreError::Stopping(_));
        ensure_refused!(row(store, run).await, Fault(_));
    }
    let cancelled = Event::RunFinished(RunFinished {
        outcome: Outcome::cancelled("me", ""),
        worked_ms: 3,
        changes: None,
        extra: Extra::default(),
    });
    append(store, step(root, 1, vec![cancelled], Ownership::Mine)).await?;
    ensure!(!row(store, root).await?.state.stopping, "a run that has ended is still stopping");
    for ancestors in [&[root][..], &[root, child]] {
        let (_, batch) = birth(ancestors)?;
        ensure_refused!(store.append(batch).await, StoreError::Finished(_));
    }
    let guard = Guard::Open;
    let smuggled = Append { guard, ..Append::by_anyone(child, message("psst")) };
    ensure_refused!(append(store, smuggled).await, StoreError::Misplaced(_));
    append(store, Append::by_anyone(root, message("go on"))).await?;
    bear(store, &[root]).await?;
    // A run that has completed may leave others behind, and those may start other runs.
    let done = create(store, "/w", Ownership::Mine).await?;
    let left = bear(store, &[done]).await?;
    append(store, step(done, 1, vec![finished()], Ownership::Mine)).await?;
    bear(store, &[done, left]).await?;
    Ok(())
}

pub(super) async fn nothing_starts_below_a_run_that_is_paused(subject: &dyn Subject) -> Verdict {
    let store = subject.open("paused above").await;
    let store = &*store;
    let top = create(store, "/w", Ownership::Mine).await?;
    let middle = bear(store, &[top]).await?;
    let (by, extra) = ("tester".to_owned(), Extra::default());
    append(store, Append::by_anyone(top, Event::Paused(Paused { by, interrupted: false, extra })))
        .await?;
    let (child, batch) = birth(&[top])?;
    ensure_refused!(store.append(batch).await, StoreError::Paused(run) if run == top);
    let one = Filter { id: Some(child), ..Filter::default() };
    ensure!(store.list(&one).await?.is_empty(), "a child was made all the same");
    // A pause of one run does not affect the runs below it.
    bear(store, &[top, middle]).await?;
    Ok(())
}

pub(super) async fn an_end_and_its_announcement_are_one(subject: &dyn Subject) -> Verdict {
    let store = subject.open("announced").await;
    let store = &*store;
    let root = create(store, "/w", Ownership::Mine).await?;
    let child = bear(store, &[root]).await?;
    let last = step(child, 1, vec![finished()], Ownership::Mine);
    let told = Append::by_anyone(root, answer("call"));
    append(store, step(root, 1, vec![finished()], Ownership::Mine)).await?;
    let refused = store.append(vec![last.clone(), told.clone()]).await;
    ensure_refused!(refused, StoreError::Finished(run) if run == root);
    ensure!(row(store, child).await?.state.outcome.is_none(), "half of a batch was stored");
    append(store, Append::by_anyone(root, message("go on"))).await?;
    store.append(vec![last, told]).await?;
    ensure!(row(store, child).await?.state.outcome.is_some(), "the child has not ended");
    Ok(())
}

pub(super) async fn a_run_that_awaits_results_sleeps_until_the_last(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("awaiting").await;
    let store = &*store;
    let reserve = Reserve::Leave;
    for interruption in [None, Some(message("hello")), Some(cancel())] {
        let run = create(store, "/w", Ownership::Mine).await?;
        append(store, step(run, 1, Vec::new(), Ownership::Awaiting(3))).await?;
        for call in ["a", "b"] {
            append(store, Append { reserve, ..Append::by_anyone(run, answer(call)) }).await?;
            ensure!(claim_one(store, run).await?.is_none(), "it woke up at `{call}`");
        }
        let wakes = interruption.unwrap_or_else(|| answer("c"));
        let kind = wakes.kind();
        append(store, Append::by_anyone(run, wakes)).await?;
        ensure!(claim_one(store, run).await?.is_some(), "it sleeps on after {kind}");
        ensure!(row(store, run).await?.family.awaits == 0, "a claimed run awaits results");
    }
    Ok(())
}

pub(super) async fn a_question_is_counted_and_its_answer_wakes(subject: &dyn Subject) -> Verdict {
    let store = subject.open("asking").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    append(store, step(run, 1, vec![asked("a"), asked("b")], Ownership::Awaiting(2))).await?;
    let asking = Filter { unfinished: Unfinished::Asking, ..Filter::default() };
    for left in [1, 0] {
        ensure!(store.list(&asking).await?.len() == 1, "a run that asks is not listed");
        append(store, Append::by_anyone(run, allowed("a"))).await?;
        ensure!(row(store, run).await?.state.asks == left, "questions are not counted");
        let claimed = claim_one(store, run).await?;
        let epoch = claimed.ok_or_else(|| Fault("it sleeps on after an answer".to_owned()))?.epoch;
        append(store, step(run, epoch, Vec::new(), Ownership::Awaiting(left))).await?;
    }
    ensure!(store.list(&asking).await?.is_empty(), "a run that asks nothing is listed");
    Ok(())
}

fn asked(call: &str) -> Event {
    Event::ApprovalAsked(Box::new(ApprovalAsked {
        call: call.into(),
        tool: "Bash".into(),
        digest: call.into(),
        shown: "ls".into(),
        by: "the mode".into(),
        rule: None,
        extra: Extra::default(),
    }))
}

fn allowed(call: &str) -> Event {
    Event::ApprovalGiven(ApprovalGiven {
        call: call.into(),
        digest: call.into(),
        answer: Approval::Once,
        by: "me".into(),
        extra: Extra::default(),
    })
}

pub(super) async fn a_result_that_comes_early_is_no_retry(subject: &dyn Subject) -> Verdict {
    let store = subject.open("early").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    let waits_for = "[explore] look".to_owned();
    let pending = ToolPending { call: "a".into(), waits_for, extra: Extra::default() };
    append(store, step(run, 1, vec![called(1, Purpose::Turn), replied(1)], Ownership::Mine))
        .await?;
    append(store, Append::by_anyone(run, answer("a"))).await?;
    let events = vec![Event::ToolPending(pending), called(1, Purpose::Turn)];
    append(store, step(run, 1, events, Ownership::Mine)).await?;
    let turns = row(store, run).await?.spending.turns;
    ensure!(turns == 2, "{turns} turns in place of 2");
    Ok(())
}
