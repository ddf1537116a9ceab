//! Dead and silent workers: others can claim their runs, and the store refuses their later appends.
//! The cases let time pass with [`Subject::pass`].

use super::deliveries::ended;
use super::sample::*;
use super::{Fault, SOON, Subject, Verdict, WallJump, ensure, ensure_refused};
use crate::{Append, Claimed, Filter, Look, Ownership, Store, StoreError};
use posse_protocol::{RunId, Seq, Status};
use std::time::Duration;
use tokio::time::timeout;

const MOMENT: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Creates a run that `store` owns. Returns its first epoch.
async fn owned(store: &dyn Store) -> Result<(RunId, u64), Fault> {
    let created = creation("/w", Ownership::Mine)?;
    let run = created.run;
    Ok((run, append(store, created).await?.epoch))
}

fn time(run: RunId, epoch: u64) -> Append {
    step(run, epoch, vec![time_passed()], Ownership::Mine)
}

/// Claims `run`, whose owner is dead or silent.
async fn inherit(store: &dyn Store, run: RunId) -> Result<Claimed, Fault> {
    let claimed = claim_one(store, run).await?;
    claimed.ok_or_else(|| Fault("what a dead worker owned cannot be claimed".to_owned()))
}

pub(super) async fn a_silent_worker_keeps_its_runs_until_its_lease_is_over(
    subject: &dyn Subject,
) -> Verdict {
    let (silent, other) = (subject.open("silent").await, subject.open("silent").await);
    let (run, epoch) = owned(&*silent).await?;
    subject.pass(subject.lease() / 2);
    ensure!(claim_one(&*other, run).await?.is_none(), "it was claimed before the lease was over");
    let status = row(&*other, run).await?.status;
    ensure!(status == Status::Running, "it is {status} while the lease holds");
    subject.pass(subject.lease() / 2 + MOMENT);
    let status = row(&*other, run).await?.status;
    ensure!(status == Status::Crashed, "it is {status} when the lease is over");
    let claimed = inherit(&*other, run).await?;
    ensure!(claimed.epoch > epoch, "epoch {} follows {epoch}", claimed.epoch);
    append(&*other, time(run, claimed.epoch)).await?;
    Ok(())
}

pub(super) async fn a_renewed_lease_holds(subject: &dyn Subject) -> Verdict {
    let (owner, other) = (subject.open("renewed").await, subject.open("renewed").await);
    let (run, epoch) = owned(&*owner).await?;
    for _ in 0..4 {
        subject.pass(subject.lease() / 2);
        owner.renew().await?;
        ensure!(claim_one(&*other, run).await?.is_none(), "it was claimed from a living owner");
    }
    append(&*owner, time(run, epoch)).await?;
    Ok(())
}

pub(super) async fn a_fenced_owner_is_refused_whatever_it_says(subject: &dyn Subject) -> Verdict {
    let (stale, other) = (subject.open("fenced").await, subject.open("fenced").await);
    let (run, old) = owned(&*stale).await?;
    let (mine, _) = owned(&*other).await?;
    subject.pass(subject.lease() + MOMENT);
    other.renew().await?;
    let claimed = inherit(&*other, run).await?;
    let length = other.read(run, Seq::ZERO, 99).await?.len();
    for epoch in [old, claimed.epoch] {
        for event in [time_passed(), finished(), tool_started()] {
            for then in [Ownership::Mine, Ownership::Queued, Ownership::Waiting] {
                let late = step(run, epoch, vec![event.clone()], then);
                ensure_refused!(append(&*stale, late).await, StoreError::NotOwner(_));
            }
        }
        // The rest of the batch is refused too, although any worker may append it.
        let batch = vec![Append::by_anyone(mine, message("by the way")), time(run, epoch)];
        ensure_refused!(stale.append(batch).await, StoreError::NotOwner(_));
    }
    // A renewed lease does not return the run.
    stale.renew().await?;
    ensure_refused!(append(&*stale, time(run, old)).await, StoreError::NotOwner(_));
    for (run, expected) in [(run, length), (mine, 2)] {
        let found = other.read(run, Seq::ZERO, 99).await?.len();
        ensure!(found == expected, "{found} events in place of {expected}");
    }
    let kept = row(&*other, run).await?;
    let holds = (kept.work.owner, kept.work.epoch) == (Some(other.worker()), claimed.epoch);
    ensure!(holds, "a stale owner moved the claim: {kept:?}");
    append(&*other, time(run, claimed.epoch)).await?;
    Ok(())
}

pub(super) async fn a_late_owner_whom_nobody_replaced_goes_on(subject: &dyn Subject) -> Verdict {
    let owner = subject.open("late").await;
    let (run, epoch) = owned(&*owner).await?;
    subject.pass(subject.lease() * 3);
    append(&*owner, time(run, epoch)).await?;
    let other = subject.open("late").await;
    owner.renew().await?;
    ensure!(claim_one(&*other, run).await?.is_none(), "one that came back was robbed");
    let status = row(&*other, run).await?.status;
    ensure!(status == Status::Running, "it is {status}");
    Ok(())
}

pub(super) async fn what_a_killed_worker_owned_is_claimed_with_a_new_epoch(
    subject: &dyn Subject,
) -> Verdict {
    let other = subject.open("heirs").await;
    let runs = create_many(&*other, "/w", 3).await?;
    let mut last = 0;
    for _ in 0..3 {
        let owner = subject.open("heirs").await;
        let taken = claim(&*owner, 9).await?;
        ensure!(taken.len() == 3, "{} of 3 runs were claimed", taken.len());
        ensure!(claim(&*other, 9).await?.is_empty(), "what a living worker owns was claimed");
        ensure!(taken.iter().all(|it| it.epoch > last), "an epoch came twice: {taken:?}");
        subject.kill(owner).await;
        subject.pass(subject.lease() + MOMENT);
        let status = row(&*other, runs[0]).await?.status;
        ensure!(status == Status::Crashed, "what a dead worker owned is {status}");
        let inherited = claim(&*other, 9).await?;
        let ids: Vec<RunId> = inherited.iter().map(|it| it.row.id).collect();
        ensure!(ids == runs, "claimed {ids:?} of {runs:?}");
        for (new, old) in inherited.iter().zip(&taken) {
            ensure!(new.epoch > old.epoch, "epoch {} follows {}", new.epoch, old.epoch);
            last = last.max(new.epoch);
        }
        for claimed in inherited {
            let back = step(claimed.row.id, claimed.epoch, Vec::new(), Ownership::Queued);
            append(&*other, back).await?;
        }
    }
    Ok(())
}

pub(super) async fn what_was_answered_before_a_death_is_kept(subject: &dyn Subject) -> Verdict {
    let owner = subject.open("kept").await;
    let (run, epoch) = owned(&*owner).await?;
    for _ in 0..20 {
        append(&*owner, time(run, epoch)).await?;
    }
    subject.kill(owner).await;
    let other = subject.open("kept").await;
    let found = other.read(run, Seq::ZERO, 99).await?.len();
    ensure!(found == 22, "{found} events in place of 22 after a death");
    let last = row(&*other, run).await?.log.last_seq;
    ensure!(last == Seq(22), "the row ends at {last}");
    Ok(())
}

pub(super) async fn a_death_leaves_half_of_nothing(subject: &dyn Subject) -> Verdict {
    for round in 0..5 {
        let name = format!("half {round}");
        let (owner, other) = (subject.open(&name).await, subject.open(&name).await);
        let (one, epoch) = owned(&*owner).await?;
        let (two, same) = owned(&*owner).await?;
        let more = || vec![time(one, epoch), time(two, same)];
        let mut answered = owner.append(more()).await?.len() / 2;
        let mut asked = Vec::new();
        for _ in 0..20 {
            let mut append = owner.append(more());
            // In progress when its worker dies; some have not even begun.
            let begun = std::future::poll_fn(|context| {
                std::task::Poll::Ready(append.as_mut().poll(context))
            });
            if let std::task::Poll::Ready(answer) = begun.await {
                answered += answer?.len() / 2;
            } else {
                asked.push(append);
            }
        }
        tokio::time::sleep(Duration::from_millis(round)).await;
        // Callers that wait for answers hold the store, but not its worker.
        let worker = owner.clone();
        subject.kill(worker).await;
        for append in asked {
            if timeout(SOON, append).await.is_ok_and(|answer| answer.is_ok()) {
                answered += 1;
            }
        }
        // An engine may still execute earlier requests, so one query reads both rows.
        let rows = other.list(&Filter::default()).await?;
        let ends: Vec<Seq> = rows.iter().map(|row| row.log.last_seq).collect();
        ensure!(ends.len() == 2 && ends[0] == ends[1], "batches of two left logs of {ends:?}");
        let least = Seq(2 + answered as u64);
        ensure!(ends[0] >= least, "{ends:?}, and {answered} batches were answered");
        for row in rows {
            let length = other.read(row.id, Seq::ZERO, 99).await?.len() as u64;
            ensure!(length >= row.log.last_seq.0, "{length} events of {}", row.log.last_seq);
        }
    }
    Ok(())
}

pub(super) async fn a_claimer_is_woken_by_a_death(subject: &dyn Subject) -> Verdict {
    let (owner, other) = (subject.open("woken").await, subject.open("woken").await);
    let created = creation("/w", Ownership::Mine)?;
    let run = created.run;
    let mut tail = other.watch(run);
    append(&*owner, created).await?;
    let told = timeout(SOON, tail.wait_for(|seq| *seq > Seq::ZERO)).await;
    let is_told = matches!(told, Ok(Ok(_)));
    drop(told);
    ensure!(is_told, "it never learned of the run");
    let mut ready = other.ready();
    ready.mark_unchanged();
    subject.kill(owner).await;
    subject.pass(subject.lease() + MOMENT);
    let told = timeout(SOON, ready.changed()).await;
    ensure!(matches!(told, Ok(Ok(()))), "nobody was woken by a death");
    inherit(&*other, run).await?;
    Ok(())
}

pub(super) async fn what_a_dead_worker_owned_is_seen_to_wait(subject: &dyn Subject) -> Verdict {
    let (owner, other) = (subject.open("waits").await, subject.open("waits").await);
    let runs = create_many(&*owner, "/w", 2).await?;
    ensure!(claim(&*owner, 2).await?.len() == 2, "not claimed");
    let ahead = Look::Ahead { workspace: None };
    ensure!(other.queue(&ahead).await?.runs.is_empty(), "what someone owns waits");
    subject.kill(owner).await;
    subject.pass(subject.lease() + MOMENT);
    let mut seen: Vec<RunId> = other.queue(&ahead).await?.runs.iter().map(|it| it.id).collect();
    seen.sort_unstable();
    ensure!(seen == runs, "{seen:?} wait in place of {runs:?}");
    let log = other.read(runs[0], Seq::ZERO, 9).await?.len();
    ensure!(log == 2, "looking left {log} events in place of 2");
    Ok(())
}

pub(super) async fn a_worker_knows_whether_its_lease_has_held(subject: &dyn Subject) -> Verdict {
    let store = subject.open("number").await;
    owned(&*store).await?;
    let first = store.lease();
    ensure!(first.is_some(), "a worker that was just heard has no lease");
    subject.pass(subject.lease() / 2);
    store.renew().await?;
    subject.pass(subject.lease() * 3 / 4);
    ensure!(store.lease() == first, "it was renewed in time, and is {:?}", store.lease());
    subject.pass(subject.lease() / 2);
    ensure!(store.lease().is_none(), "it is over, and is {:?}", store.lease());
    store.renew().await?;
    let again = store.lease();
    ensure!(again.is_some() && again != first, "it was over for a while, and is {again:?}");
    Ok(())
}

pub(super) async fn setting_the_wall_clock_takes_no_run_away(subject: &dyn Subject) -> Verdict {
    let (owner, other) = (subject.open("wall").await, subject.open("wall").await);
    let (run, epoch) = owned(&*owner).await?;
    for jump in [
        WallJump::Forwards(YEAR),
        WallJump::Back(YEAR * 2),
        WallJump::Forwards(YEAR),
        WallJump::Back(subject.lease() * 2),
    ] {
        subject.set_wall(jump);
        ensure!(claim_one(&*other, run).await?.is_none(), "{jump:?} took the run away");
        let status = row(&*other, run).await?.status;
        ensure!(status == Status::Running, "after {jump:?} it is {status}");
        append(&*owner, time(run, epoch)).await?;
        owner.renew().await?;
    }
    subject.pass(subject.lease() + MOMENT);
    inherit(&*other, run).await?;
    Ok(())
}

pub(super) async fn a_delivery_that_a_dead_worker_took_is_due_again(
    subject: &dyn Subject,
) -> Verdict {
    const HOUR: Duration = Duration::from_secs(3_600);
    let (owner, other) = (subject.open("post").await, subject.open("post").await);
    ended(&*owner, &["a"]).await?;
    let taken = owner.take_due("a", 1, HOUR).await?;
    ensure!(taken.len() == 1, "{} were taken", taken.len());
    subject.kill(owner).await;
    ensure!(other.take_due("a", 1, HOUR).await?.is_empty(), "it was taken too early");
    let wait = other.next_due("a").await?;
    ensure!(wait.is_some_and(|wait| wait <= HOUR && wait > HOUR / 2), "it is due in {wait:?}");
    subject.pass(HOUR + MOMENT);
    let again = other.take_due("a", 1, HOUR).await?;
    let right = again.first().is_some_and(|it| it.id == taken[0].id && it.attempts == 2);
    ensure!(right, "what a dead worker took is {again:?}");
    Ok(())
}
