//! Claims: their order, their filters, that they are exclusive, and their release at the close.

use super::sample::*;
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{Append, Claimed, Look, Ownership, Passed, Store, StoreError, Wanted, WorkerAbout};
use futures_util::future::join_all;
use posse_protocol::{RunId, Seq, Site};
use std::collections::HashSet;
use std::sync::Arc;

fn ids(claimed: &[Claimed]) -> Vec<RunId> {
    claimed.iter().map(|it| it.row.id).collect()
}

/// Waits until the clock of the store shows a later time.
async fn tick(store: &dyn Store, run: RunId) -> Verdict {
    append(store, Append::by_anyone(run, message("now"))).await?;
    let before = row(store, run).await?.updated_at;
    for _ in 0..10_000 {
        append(store, Append::by_anyone(run, message("tick"))).await?;
        if row(store, run).await?.updated_at > before {
            return Ok(());
        }
    }
    Err(Fault("the store's clock stands still".to_owned()))
}

pub(super) async fn the_longest_waiting_run_is_claimed_first(subject: &dyn Subject) -> Verdict {
    let store = subject.open("order").await;
    let store = &*store;
    let clock = create(store, "/clock", Ownership::Mine).await?;
    let runs = create_many(store, "/w", 5).await?;
    let first = claim(store, 2).await?;
    ensure!(ids(&first) == runs[..2], "claimed {:?} of {runs:?}", ids(&first));
    tick(store, clock).await?;
    append(store, step(runs[0], first[0].epoch, Vec::new(), Ownership::Queued)).await?;
    // A message does not change the place of a queued run.
    append(store, Append::by_anyone(runs[3], message("hurry"))).await?;
    let rest = ids(&claim(store, 9).await?);
    ensure!(rest == [runs[2], runs[3], runs[4], runs[0]], "claimed {rest:?} of {runs:?}");
    ensure!(claim(store, 9).await?.is_empty(), "owned runs were claimed");
    Ok(())
}

pub(super) async fn claims_can_be_narrowed(subject: &dyn Subject) -> Verdict {
    let store = subject.open("narrow").await;
    let store = &*store;
    let here = create_many(store, "/here", 4).await?;
    let there = create_many(store, "/there", 2).await?;
    ensure!(claim(store, 0).await?.is_empty(), "a claim of at most 0");
    let wanted = |limit, runs: &[RunId], workspace: Option<&str>| Wanted {
        limit,
        runs: runs.to_vec(),
        workspace: workspace.map(str::to_owned),
        ..Wanted::default()
    };
    let claimed = store.claim(&wanted(9, &there[..1], Some("/here"))).await?;
    ensure!(claimed.is_empty(), "claimed {:?} in another folder", ids(&claimed));
    let claimed = store.claim(&wanted(9, &there[..1], None)).await?;
    ensure!(ids(&claimed) == there[..1], "claimed {:?}, not the named run", ids(&claimed));
    let claimed = store.claim(&wanted(1, &[], Some("/here"))).await?;
    ensure!(ids(&claimed) == here[..1], "claimed {:?} in /here", ids(&claimed));
    let claimed = store.claim(&wanted(9, &[], Some("/nowhere"))).await?;
    ensure!(claimed.is_empty(), "claimed {:?} in an empty folder", ids(&claimed));
    // Many ids, most of them unknown, one of them twice.
    let mut names: Vec<RunId> = (0..3_000).map(|_| RunId::new()).collect();
    names.extend([here[3], here[2], here[3], here[0]]);
    let claimed = store.claim(&wanted(9, &names, Some("/here"))).await?;
    ensure!(ids(&claimed) == here[2..], "claimed {:?} of many", ids(&claimed));
    let claimed = claim(store, 9).await?;
    ensure!(ids(&claimed) == [here[1], there[1]], "claimed {:?} at last", ids(&claimed));
    Ok(())
}

pub(super) async fn a_claim_whose_answer_was_lost_can_be_repeated(
    subject: &dyn Subject,
) -> Verdict {
    let (mine, other) = (subject.open("repeated").await, subject.open("repeated").await);
    let runs = create_many(&*mine, "/w", 3).await?;
    let first = claim(&*mine, 1).await?;
    ensure!(ids(&first) == runs[..1], "claimed {:?}", ids(&first));
    let again = Wanted { limit: 9, runs: runs[..2].to_vec(), again: true, ..Wanted::default() };
    let claimed = mine.claim(&again).await?;
    ensure!(ids(&claimed) == runs[..2], "claimed {:?} again", ids(&claimed));
    ensure!(claimed[0].epoch > first[0].epoch, "the second claim kept the epoch of the first");
    let late = step(runs[0], first[0].epoch, vec![message("late")], Ownership::Mine);
    ensure_refused!(append(&*mine, late).await, StoreError::NotOwner(_));
    let other = other.claim(&Wanted { runs: runs.clone(), ..again }).await?;
    ensure!(ids(&other) == runs[2..], "another worker claimed {:?}", ids(&other));
    Ok(())
}

pub(super) async fn each_run_is_claimed_once(subject: &dyn Subject) -> Verdict {
    let stores = [subject.open("claimers").await, subject.open("claimers").await];
    let mut creations = Vec::new();
    for _ in 0..1_000 {
        creations.push(creation("/w", Ownership::Queued)?);
    }
    let runs: HashSet<RunId> = creations.iter().map(|it| it.run).collect();
    let made = join_all(creations.into_iter().map(|it| stores[0].append(vec![it]))).await;
    for result in made {
        result?;
    }
    let claimers = (0..8).map(|index| {
        let store = &*stores[index % 2];
        async move {
            let mut mine = Vec::new();
            loop {
                let claimed = claim(store, 7).await?;
                if claimed.is_empty() {
                    return Ok::<_, Fault>(mine);
                }
                ensure!(claimed.len() <= 7, "claimed {} of at most 7", claimed.len());
                for claimed in claimed {
                    let event = vec![time_passed()];
                    let run = claimed.row.id;
                    append(store, step(run, claimed.epoch, event, Ownership::Mine)).await?;
                    mine.push(run);
                }
            }
        }
    });
    let mut claimed = Vec::new();
    for mine in join_all(claimers).await {
        claimed.extend(mine?);
    }
    ensure!(claimed.len() == 1_000, "{} claims of 1000 runs", claimed.len());
    let distinct: HashSet<RunId> = claimed.iter().copied().collect();
    ensure!(distinct == runs, "{} distinct runs claimed", distinct.len());
    Ok(())
}

pub(super) async fn closing_frees_the_claims(subject: &dyn Subject) -> Verdict {
    let (mine, other) = (subject.open("closing").await, subject.open("closing").await);
    let runs = create_many(&*mine, "/w", 3).await?;
    let before = claim(&*mine, 2).await?;
    ensure!(before.len() == 2, "{} claims", before.len());
    mine.close().await;
    let after = claim(&*other, 9).await?;
    ensure!(ids(&after) == runs, "claimed {:?} of {runs:?}", ids(&after));
    ensure!(after[0].epoch > before[0].epoch, "a claim kept its epoch");
    let log = other.read(runs[0], Seq::ZERO, 9).await?.len();
    ensure!(log == 2, "closing left {log} events in place of 2");
    Ok(())
}

pub(super) async fn a_closed_store_says_so(subject: &dyn Subject) -> Verdict {
    let store = subject.open("closed").await;
    let run = create(&*store, "/w", Ownership::Mine).await?;
    let creation = creation("/w", Ownership::Queued)?;
    let asked_before = store.append(vec![creation.clone()]);
    let (asked_before, ()) = futures_util::future::join(asked_before, store.close()).await;
    ensure!(asked_before.is_ok(), "what was asked before closing: {asked_before:?}");
    store.close().await;
    let late = append(&*store, Append::by_anyone(run, message("hello"))).await;
    ensure_refused!(late, StoreError::Closed);
    ensure_refused!(store.read(run, Seq::ZERO, 1).await, StoreError::Closed);
    ensure_refused!(store.renew().await, StoreError::Closed);
    let wanted = Wanted { limit: 1, ..Wanted::default() };
    ensure_refused!(store.claim(&wanted).await, StoreError::Closed);
    let again = subject.open("closed").await;
    let kept = again.read(creation.run, Seq::ZERO, 9).await?.len();
    ensure!(kept == 2, "{kept} events in place of 2 after opening again");
    Ok(())
}

/// Creates a run that is bound to a machine and needs a label, each unless it is empty.
pub(super) async fn bound(store: &dyn Store, host: &str, needs: &str) -> Result<RunId, Fault> {
    let mut started = start()?;
    if !host.is_empty() {
        started.grant.site = Site::Host { name: host.to_owned() };
    }
    started.grant.needs = needs.to_owned();
    let events = Arc::new([started.into(), message("go")]);
    let created = Append { events, ..creation("/w", Ownership::Queued)? };
    let run = created.run;
    append(store, created).await?;
    Ok(run)
}

pub(super) async fn a_worker_takes_what_it_can_have(subject: &dyn Subject) -> Verdict {
    let store = subject.open("takes").await;
    let about = WorkerAbout {
        host: "a".to_owned(),
        labels: vec!["gpu".to_owned(), "big".to_owned()],
        lacks: vec!["other".to_owned()],
        ..WorkerAbout::default()
    };
    let mut all = Vec::new();
    for (host, needs) in
        [("", ""), ("a", ""), ("b", ""), ("", "gpu"), ("", "tpu"), ("a", "big"), ("b", "big")]
    {
        all.push((bound(&*store, host, needs).await?, host, needs));
    }
    // Ending a cancelled run needs no label.
    let cancelled = bound(&*store, "", "tpu").await?;
    append(&*store, Append::by_anyone(cancelled, cancel())).await?;
    all.push((cancelled, "", ""));
    let mut started = start()?;
    started.model = "other/model".to_owned();
    let events = Arc::new([started.into(), message("go")]);
    let not_callable = Append { events, ..creation("/w", Ownership::Queued)? };
    all.push((not_callable.run, "b", ""));
    append(&*store, not_callable).await?;
    store.introduce(about.clone());
    let mine = |it: &&(RunId, &str, &str)| about.takes_from(it.1, it.2, "any");
    let expected: HashSet<RunId> = all.iter().filter(mine).map(|it| it.0).collect();
    let ids: Vec<RunId> = all.iter().map(|it| it.0).collect();
    let passed = Passed { agents: vec!["nobody".to_owned()], ..Passed::default() };
    for look in [
        Look::Ahead { workspace: None },
        Look::Past { workspace: None, passed },
        Look::Since(0),
        Look::Of(ids.clone()),
    ] {
        let seen: HashSet<RunId> =
            store.queue(&look).await?.runs.into_iter().map(|run| run.id).collect();
        ensure!(seen == expected, "{look:?} shows {} runs of {}", seen.len(), expected.len());
    }
    let wanted = Wanted { limit: 99, runs: ids, ..Wanted::default() };
    let claimed: HashSet<RunId> =
        store.claim(&wanted).await?.into_iter().map(|claimed| claimed.row.id).collect();
    ensure!(
        claimed == expected,
        "{} runs were claimed in place of {}",
        claimed.len(),
        expected.len()
    );
    Ok(())
}

pub(super) async fn workers_are_listed_with_what_they_say(subject: &dyn Subject) -> Verdict {
    let (one, two) = (subject.open("listed").await, subject.open("listed").await);
    let about = |host: &str| WorkerAbout {
        host: host.to_owned(),
        version: "9".to_owned(),
        slots: 7,
        ..WorkerAbout::default()
    };
    for (store, host) in [(&one, "a"), (&two, "b")] {
        store.introduce(about(host));
        store.renew().await?;
    }
    let hosts = async |store: &dyn Store| -> Result<Vec<(String, u64)>, Fault> {
        let workers = store.workers().await?;
        let mut hosts: Vec<_> =
            workers.into_iter().map(|it| (it.about.host, it.about.slots)).collect();
        hosts.sort();
        Ok(hosts)
    };
    let both = hosts(&*one).await?;
    ensure!(both == [("a".to_owned(), 7), ("b".to_owned(), 7)], "{both:?} are listed");
    two.close().await;
    let left = hosts(&*one).await?;
    ensure!(left == [("a".to_owned(), 7)], "{left:?} are listed after one has closed");
    Ok(())
}
