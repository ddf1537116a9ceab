//! Announcements, pauses and priorities.

use super::sample::{
    append, cancel, claim_one, create, creation, finished, message, row, start, step,
};
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{Append, Ownership, Store, StoreError, Wanted};
use posse_protocol::{
    Announce, Announced, ChildStarted, Event, Extra, Message, MessageReceived, Paused, Resumed,
    RunId, RunStarted, Sender, Status, TimePassed,
};
use std::sync::Arc;

fn begun(child: RunId, announce: Announce) -> Result<Event, Fault> {
    let first = start()?;
    Ok(Event::ChildStarted(Box::new(ChildStarted {
        run: child,
        call: None,
        announce: Some(announce),
        agent: first.agent.name.clone(),
        label: "look".to_owned(),
        resumed: false,
        extra: Extra::default(),
    })))
}

fn told(child: RunId, announce: Announce, kept: bool) -> Event {
    let told = Announced {
        run: child,
        announce,
        inherited: false,
        kept,
        worked_ms: 0,
        extra: Extra::default(),
    };
    Event::MessageReceived(MessageReceived {
        from: Sender::Child(told),
        message: Message::user("it has ended"),
        later: false,
        asks: None,
        extra: Extra::default(),
    })
}

async fn status(store: &dyn Store, run: RunId) -> Result<Status, Fault> {
    Ok(row(store, run).await?.status)
}

pub(super) async fn an_announcement_wakes_whoever_waits_and_reopens_nobody(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("told").await;
    let store = &*store;
    for announce in [Announce::Steer, Announce::Followup] {
        let run = create(store, "/w", Ownership::Mine).await?;
        let child = RunId::new();
        append(store, Append::by_anyone(run, begun(child, announce)?)).await?;
        ensure!(row(store, run).await?.family.expects == 1, "it does not know what it waits for");
        append(store, step(run, 1, vec![], Ownership::Waiting)).await?;
        append(store, Append::by_anyone(run, told(child, announce, false))).await?;
        ensure!(status(store, run).await? == Status::Queued, "{announce:?} wakes nobody");
        ensure!(row(store, run).await?.family.expects == 0, "it waits for what has come");
    }
    let run = create(store, "/w", Ownership::Mine).await?;
    append(store, step(run, 1, vec![finished()], Ownership::Mine)).await?;
    let late = RunId::new();
    let refused = append(store, Append::by_anyone(run, told(late, Announce::Steer, false))).await;
    ensure_refused!(refused, StoreError::Finished(_));
    append(store, Append::by_anyone(run, told(late, Announce::Steer, true))).await?;
    append(store, Append::by_anyone(run, told(late, Announce::Silent, false))).await?;
    let row = row(store, run).await?;
    ensure!(row.status == Status::Finished && row.log.last_seq.0 == 5, "it was reopened: {row:?}");
    Ok(())
}

pub(super) async fn what_is_gathered_wakes_with_the_last_or_when_it_is_quiet(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("gathered").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    let children = [RunId::new(), RunId::new(), RunId::new()];
    for child in children {
        append(store, Append::by_anyone(run, begun(child, Announce::Collect)?)).await?;
    }
    append(store, step(run, 1, vec![], Ownership::Waiting)).await?;
    append(store, Append::by_anyone(run, told(children[0], Announce::Collect, false))).await?;
    let after = row(store, run).await?;
    ensure!(after.status == Status::Waiting, "one of three woke it");
    ensure!(
        after.family.gathered_at > 0 && after.family.gathers == 2,
        "it gathers nothing: {after:?}"
    );
    let quiet = TimePassed { worked_ms: 0, quiet: true, extra: Extra::default() };
    append(store, Append::by_anyone(run, Event::TimePassed(quiet))).await?;
    let after = row(store, run).await?;
    ensure!(
        after.status == Status::Queued && after.family.gathered_at == 0,
        "it sleeps on: {after:?}"
    );
    let epoch = taken(store, run).await?;
    append(store, step(run, epoch, vec![], Ownership::Waiting)).await?;
    append(store, Append::by_anyone(run, told(children[1], Announce::Collect, false))).await?;
    ensure!(status(store, run).await? == Status::Waiting, "two of three woke it");
    append(store, Append::by_anyone(run, told(children[2], Announce::Collect, false))).await?;
    ensure!(status(store, run).await? == Status::Queued, "the last did not wake it");
    let other = TimePassed { worked_ms: 0, quiet: false, extra: Extra::default() };
    let refused = append(store, Append::by_anyone(run, Event::TimePassed(other))).await;
    ensure_refused!(refused, StoreError::NotOwner(_));
    Ok(())
}

async fn taken(store: &dyn Store, run: RunId) -> Result<u64, Fault> {
    let claimed = claim_one(store, run).await?;
    claimed.map(|it| it.epoch).ok_or_else(|| Fault(format!("{run} was not claimed")))
}

pub(super) async fn a_paused_run_is_not_claimed_until_it_goes_on_or_is_stopped(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("paused").await;
    let store = &*store;
    let by = || "me".to_owned();
    let all = Wanted { limit: 9, ..Wanted::default() };
    let run = create(store, "/w", Ownership::Queued).await?;
    let paused = Event::Paused(Paused { by: by(), interrupted: false, extra: Extra::default() });
    append(store, Append::by_anyone(run, paused.clone())).await?;
    ensure!(status(store, run).await? == Status::Paused, "it is not paused");
    append(store, Append::by_anyone(run, message("are you there?"))).await?;
    ensure!(store.claim(&all).await?.is_empty(), "a paused run was claimed");
    let resumed = Event::Resumed(Resumed { by: by(), extra: Extra::default() });
    append(store, Append::by_anyone(run, resumed)).await?;
    let epoch = taken(store, run).await?;
    append(store, step(run, epoch, vec![], Ownership::Queued)).await?;
    append(store, Append::by_anyone(run, paused)).await?;
    append(store, Append::by_anyone(run, cancel())).await?;
    taken(store, run).await?;
    Ok(())
}

pub(super) async fn who_has_a_higher_priority_is_claimed_first(subject: &dyn Subject) -> Verdict {
    let store = subject.open("preferred").await;
    let store = &*store;
    let mut runs = Vec::new();
    for priority in [0, -1, 5, 0] {
        let first = start()?;
        let first = RunStarted { priority, ..first };
        let events = Arc::new([first.into(), message("do it")]);
        let made = Append { events, ..creation("/w", Ownership::Queued)? };
        runs.push(made.run);
        append(store, made).await?;
    }
    let all = Wanted { limit: 9, ..Wanted::default() };
    let claimed: Vec<RunId> = store.claim(&all).await?.iter().map(|it| it.row.id).collect();
    ensure!(claimed == [runs[2], runs[0], runs[3], runs[1]], "they came as {claimed:?}");
    Ok(())
}
