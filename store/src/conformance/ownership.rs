//! Ownership: one worker at a time appends steps to a run, and other processes only a few events.

use super::sample::*;
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{Append, Guard, Ownership, StoreError};
use posse_protocol::{Purpose, Seq, Status};

pub(super) async fn an_owner_needs_its_epoch(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("epoch").await, subject.open("epoch").await);
    let created = creation("/w", Ownership::Mine)?;
    let run = created.run;
    let epoch = append(&*mine, created).await?.epoch;
    let time = |epoch| step(run, epoch, vec![time_passed()], Ownership::Mine);
    let kept = append(&*mine, time(epoch)).await?;
    ensure!(kept.epoch == epoch, "the epoch moved from {epoch} to {}", kept.epoch);
    for wrong in [epoch + 1, epoch.wrapping_sub(1), u64::MAX] {
        ensure_refused!(append(&*mine, time(wrong)).await, StoreError::NotOwner(_));
    }
    ensure_refused!(append(&*other, time(epoch)).await, StoreError::NotOwner(_));
    let length = mine.read(run, Seq::ZERO, 9).await?.len();
    ensure!(length == 3, "{length} events in place of 3");
    Ok(())
}

pub(super) async fn a_stale_owner_is_refused(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("stale").await, subject.open("stale").await);
    let created = creation("/w", Ownership::Mine)?;
    let run = created.run;
    let old = append(&*mine, created).await?.epoch;
    append(&*mine, step(run, old, Vec::new(), Ownership::Queued)).await?;
    let time = |epoch| step(run, epoch, vec![time_passed()], Ownership::Mine);
    ensure_refused!(append(&*mine, time(old)).await, StoreError::NotOwner(_));
    let Some(claimed) = claim_one(&*other, run).await? else {
        return Err(Fault("a released run cannot be claimed".to_owned()));
    };
    ensure!(claimed.epoch > old, "epoch {} follows {old}", claimed.epoch);
    for epoch in [old, claimed.epoch] {
        ensure_refused!(append(&*mine, time(epoch)).await, StoreError::NotOwner(_));
    }
    append(&*other, time(claimed.epoch)).await?;
    Ok(())
}

pub(super) async fn others_append_no_steps(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("others").await, subject.open("others").await);
    let run = create(&*mine, "/w", Ownership::Mine).await?;
    for store in [&mine, &other] {
        for event in [message("hello"), cancel(), tool_finished()] {
            let kind = event.kind();
            let taken = append(&**store, Append::by_anyone(run, event)).await;
            ensure!(taken.is_ok(), "anyone may append {kind}: {taken:?}");
        }
        let steps = [
            started("/w", None)?,
            called(1, Purpose::Turn),
            replied(1),
            failed(1),
            tool_started(),
            tool_pending(),
            time_passed(),
            compacted(1),
            finished(),
        ];
        for event in steps {
            let taken = append(&**store, Append::by_anyone(run, event)).await;
            ensure_refused!(taken, StoreError::NotOwner(_));
        }
    }
    let status = row(&*other, run).await?.status;
    ensure!(status == Status::Running, "what others append took the run away: it is {status}");
    Ok(())
}

pub(super) async fn an_end_is_followed_only_by_a_message_or_archiving(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("end").await;
    let created = creation("/w", Ownership::Mine)?;
    let run = created.run;
    let epoch = append(&*store, created).await?.epoch;
    let say = |event| append(&*store, Append::by_anyone(run, event));
    ensure_refused!(say(archived()).await, StoreError::Misplaced(_));
    let beyond = step(run, epoch, vec![finished(), time_passed()], Ownership::Mine);
    ensure_refused!(append(&*store, beyond).await, StoreError::Finished(_));
    append(&*store, step(run, epoch, vec![finished()], Ownership::Mine)).await?;

    for event in [cancel(), tool_finished()] {
        ensure_refused!(say(event).await, StoreError::Finished(_));
    }
    let late = step(run, epoch, vec![time_passed()], Ownership::Mine);
    ensure_refused!(append(&*store, late).await, StoreError::NotOwner(_));
    say(message("one more thing")).await?;
    let reopened = row(&*store, run).await?;
    ensure!(reopened.state.outcome.is_none(), "a message did not reopen the run");
    let Some(claimed) = claim_one(&*store, run).await? else {
        return Err(Fault("a reopened run cannot be claimed".to_owned()));
    };
    append(&*store, step(run, claimed.epoch, vec![finished()], Ownership::Mine)).await?;

    say(archived()).await?;
    for event in [archived(), message("hello?"), cancel(), tool_finished()] {
        ensure_refused!(say(event).await, StoreError::Archived(_));
    }
    ensure!(claim_one(&*store, run).await?.is_none(), "an archived run was claimed");
    Ok(())
}

pub(super) async fn an_owner_learns_that_its_log_moved(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("moved").await, subject.open("moved").await);
    let created = creation("/w", Ownership::Mine)?;
    let run = created.run;
    let epoch = append(&*mine, created).await?.epoch;
    append(&*other, Append::by_anyone(run, message("wait"))).await?;
    let expecting = |last| {
        let guard = Guard::Owner { epoch, last: Some(last), then: Ownership::Waiting };
        Append { guard, ..step(run, epoch, vec![time_passed()], Ownership::Mine) }
    };
    for wrong in [Seq(2), Seq(4), Seq::ZERO] {
        match append(&*mine, expecting(wrong)).await {
            Err(StoreError::Moved { last: Seq(3), .. }) => {}
            other => return Err(Fault(format!("after event {wrong}, not 3: {other:?}"))),
        }
    }
    let taken = append(&*mine, expecting(Seq(3))).await?;
    ensure!(taken.last == Seq(4), "appended at {}", taken.last);
    Ok(())
}

pub(super) async fn others_learn_that_a_log_moved(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("passed").await, subject.open("passed").await);
    let run = create(&*mine, "/w", Ownership::Mine).await?;
    let answer = |last| {
        let guard = Guard::Anyone { last: Some(last) };
        Append { guard, ..Append::by_anyone(run, tool_finished()) }
    };
    let first = append(&*other, answer(Seq(2))).await?;
    ensure!(first.last == Seq(3), "appended at {}", first.last);
    for store in [&mine, &other] {
        let second = append(&**store, answer(Seq(2))).await;
        ensure_refused!(second, StoreError::Moved { last: Seq(3), .. });
    }
    Ok(())
}

pub(super) async fn a_finish_gives_up_the_claim(subject: &dyn Subject) -> Verdict {
    let store = subject.open("finish").await;
    let created = creation("/w", Ownership::Mine)?;
    let run = created.run;
    let epoch = append(&*store, created).await?.epoch;
    append(&*store, step(run, epoch, vec![finished()], Ownership::Mine)).await?;
    let row = row(&*store, run).await?;
    ensure!(row.work.owner.is_none(), "a finished run has an owner");
    ensure!(row.status == Status::Finished, "a finished run is {}", row.status);
    ensure!(claim_one(&*store, run).await?.is_none(), "a finished run was claimed");
    Ok(())
}

pub(super) async fn a_waiting_run_is_claimable_when_something_is_appended(
    subject: &dyn Subject,
) -> Verdict {
    let (mine, other) = (subject.open("waiting").await, subject.open("waiting").await);
    for event in [message("go on"), cancel(), tool_finished()] {
        let created = creation("/w", Ownership::Mine)?;
        let run = created.run;
        let epoch = append(&*mine, created).await?.epoch;
        append(&*mine, step(run, epoch, Vec::new(), Ownership::Waiting)).await?;
        for store in [&mine, &other] {
            ensure!(claim_one(&**store, run).await?.is_none(), "a waiting run was claimed");
        }
        let kind = event.kind();
        append(&*other, Append::by_anyone(run, event)).await?;
        let claimed = claim_one(&*mine, run).await?;
        ensure!(claimed.is_some(), "{kind} did not make a waiting run claimable");
    }
    Ok(())
}

pub(super) async fn a_queued_run_is_claimable_at_once(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("queued").await, subject.open("queued").await);
    let run = create(&*mine, "/w", Ownership::Queued).await?;
    let mut last = 0;
    for store in [&other, &mine, &other, &other] {
        let Some(claimed) = claim_one(&**store, run).await? else {
            return Err(Fault("a queued run cannot be claimed".to_owned()));
        };
        ensure!(claimed.epoch > last, "epoch {} follows {last}", claimed.epoch);
        last = claimed.epoch;
        ensure!(claim_one(&*mine, run).await?.is_none(), "an owned run was claimed");
        append(&**store, step(run, last, Vec::new(), Ownership::Queued)).await?;
    }
    Ok(())
}
