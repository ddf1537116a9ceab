//! The queue: its order, some runs of every root, and new runs.

use super::sample::*;
use super::{Fault, Subject, Verdict, ensure};
use crate::{Append, Look, Ownership, Passed, Queue, Store, Wanted};
use posse_protocol::{AgentSpec, Extra, Parent, RunId, RunStarted, TimeAtWork};
use std::collections::HashSet;
use std::sync::Arc;

/// The properties of a run.
#[derive(Clone, Default)]
struct Made {
    root: Option<RunId>,
    agent: &'static str,
    priority: i32,
}

fn made(made: &Made) -> Result<Append, Fault> {
    let first = start()?;
    let agent = match made.agent {
        "" => first.agent.clone(),
        name => AgentSpec::new(name.parse().map_err(|_| Fault(format!("`{name}` is no name")))?),
    };
    let parent = made.root.map(|run| Parent {
        run,
        call: None,
        announce: None,
        account: None,
        limited: Vec::new(),
        abreast: None,
        time: TimeAtWork::default(),
        ancestors: vec![run],
        extra: Extra::default(),
    });
    let first = RunStarted { agent, parent, priority: made.priority, ..first };
    let events = Arc::new([first.into(), message("hello")]);
    Ok(Append { events, ..creation("/w", Ownership::Queued)? })
}

async fn queued(store: &dyn Store, what: Made) -> Result<RunId, Fault> {
    let append = made(&what)?;
    let run = append.run;
    store.append(vec![append]).await?;
    Ok(run)
}

async fn many(store: &dyn Store, what: Made, count: usize) -> Result<Vec<RunId>, Fault> {
    let batch: Vec<Append> = (0..count).map(|_| made(&what)).collect::<Result<_, _>>()?;
    let runs = batch.iter().map(|append| append.run).collect();
    store.append(batch).await?;
    Ok(runs)
}

fn ids(queue: &Queue) -> HashSet<RunId> {
    queue.runs.iter().map(|run| run.id).collect()
}

const AHEAD: Look = Look::Ahead { workspace: None };

pub(super) async fn a_higher_priority_is_claimed_first(subject: &dyn Subject) -> Verdict {
    let store = subject.open("urgency").await;
    let store = &*store;
    let mut runs = Vec::new();
    for priority in [0, -1, 5, 0, 5] {
        runs.push(queued(store, Made { priority, ..Made::default() }).await?);
    }
    let order = [runs[2], runs[4], runs[0], runs[3], runs[1]];
    let places = store.places(&runs).await?;
    for (run, place) in order.iter().zip(1..) {
        ensure!(places.get(run) == Some(&place), "{run} stands at {:?}", places.get(run));
    }
    // The order is the same with and without ids.
    let wanted = Wanted { limit: 3, runs: runs.clone(), ..Wanted::default() };
    let named: Vec<RunId> = store.claim(&wanted).await?.iter().map(|it| it.row.id).collect();
    ensure!(named == order[..3], "claimed {named:?} in place of {order:?}");
    let rest: Vec<RunId> = claim(store, 9).await?.iter().map(|it| it.row.id).collect();
    ensure!(rest == order[3..], "claimed {rest:?} in place of {order:?}");
    Ok(())
}

pub(super) async fn whoever_waits_has_a_place_and_nobody_else(subject: &dyn Subject) -> Verdict {
    let store = subject.open("places").await;
    let store = &*store;
    let runs = many(store, Made::default(), 700).await?;
    let at_work = create(store, "/w", Ownership::Mine).await?;
    let asked: Vec<RunId> = runs.iter().copied().chain([at_work, RunId::new()]).collect();
    let places = store.places(&asked).await?;
    ensure!(places.len() == 700, "{} places for 700 runs", places.len());
    for (run, place) in runs.iter().zip(1..) {
        ensure!(places.get(run) == Some(&place), "{run} stands at {:?}", places.get(run));
    }
    let first = claim(store, 1).await?;
    ensure!(first.first().map(|it| it.row.id) == Some(runs[0]), "claimed {first:?}");
    let places = store.places(&runs[..2]).await?;
    ensure!(places.len() == 1 && places.get(&runs[1]) == Some(&1), "then they are {places:?}");
    ensure!(store.places(&[]).await?.is_empty(), "places of nobody");
    Ok(())
}

pub(super) async fn a_look_shows_some_of_every_root(subject: &dyn Subject) -> Verdict {
    let store = subject.open("fairness").await;
    let store = &*store;
    let crowd = create(store, "/w", Ownership::Mine).await?;
    many(store, Made { root: Some(crowd), ..Made::default() }, 3_000).await?;
    let mut guests = Vec::new();
    for _ in 0..20 {
        guests.push(queued(store, Made::default()).await?);
    }
    let urgent = queued(store, Made { root: Some(crowd), priority: 1, ..Made::default() }).await?;
    let queue = store.queue(&AHEAD).await?;
    let seen = ids(&queue);
    ensure!(seen.len() == queue.runs.len(), "a run is shown twice");
    ensure!(guests.iter().all(|guest| seen.contains(guest)), "a root is out of sight");
    ensure!(seen.contains(&urgent), "the most urgent is out of sight");
    ensure!(queue.more && queue.cut.contains(&crowd), "nothing says that there is more");
    ensure!(guests.iter().all(|guest| !queue.cut.contains(guest)), "more of a root of one");
    let shown = queue.runs.iter().find(|run| run.id == urgent);
    let facts = shown.map(|run| (run.root, run.parent, run.priority, run.workspace.as_str()));
    ensure!(facts == Some((crowd, Some(crowd), 1, "/w")), "it is shown as {facts:?}");
    let elsewhere = store.queue(&Look::Ahead { workspace: Some("/v".to_owned()) }).await?;
    ensure!(elsewhere.runs.is_empty(), "{} wait in another folder", elsewhere.runs.len());
    let here = store.queue(&Look::Ahead { workspace: Some("/w".to_owned()) }).await?;
    ensure!(ids(&here) == seen, "a folder shows {} of {}", here.runs.len(), seen.len());
    Ok(())
}

pub(super) async fn a_look_shows_what_has_come_since(subject: &dyn Subject) -> Verdict {
    let store = subject.open("since").await;
    let store = &*store;
    let first = many(store, Made::default(), 3).await?;
    let queue = store.queue(&AHEAD).await?;
    ensure!(ids(&queue) == first.iter().copied().collect(), "{:?} wait", ids(&queue));
    ensure!(!queue.more && queue.cut.is_empty(), "more than there are");
    let second = queued(store, Made::default()).await?;
    let news = store.queue(&Look::Since(queue.until)).await?;
    ensure!(ids(&news).contains(&second), "what came since is not shown");
    ensure!(news.until >= queue.until, "it went back in time");
    ensure!(store.queue(&Look::Since(news.until + 1)).await?.runs.is_empty(), "from the future");
    // A waiting run that is woken counts as new.
    let claimed = claim_one(store, first[0]).await?.ok_or(Fault("not claimed".to_owned()))?;
    append(store, step(first[0], claimed.epoch, Vec::new(), Ownership::Waiting)).await?;
    let parked = store.queue(&Look::Of(first.clone())).await?;
    ensure!(!ids(&parked).contains(&first[0]), "one that rests waits for a slot");
    let before = store.queue(&AHEAD).await?.until;
    append(store, Append::by_anyone(first[0], message("go on"))).await?;
    let news = store.queue(&Look::Since(before)).await?;
    ensure!(ids(&news).contains(&first[0]), "one that was woken is no news");
    Ok(())
}

pub(super) async fn a_look_passes_over_what_is_not_wanted(subject: &dyn Subject) -> Verdict {
    let store = subject.open("passing").await;
    let store = &*store;
    let root = create(store, "/w", Ownership::Mine).await?;
    let scouts = many(store, Made { agent: "scout", ..Made::default() }, 1_100).await?;
    let below = queued(store, Made { root: Some(root), agent: "coder", ..Made::default() }).await?;
    let coder = queued(store, Made { agent: "coder", ..Made::default() }).await?;
    let look = |agents: &[&str], parents: &[RunId], models: &[&str]| Look::Past {
        workspace: None,
        passed: Passed {
            agents: agents.iter().map(|name| (*name).to_owned()).collect(),
            models: models.iter().map(|name| (*name).to_owned()).collect(),
            parents: parents.to_vec(),
        },
    };
    let queue = store.queue(&look(&["scout"], &[], &[])).await?;
    ensure!(ids(&queue) == HashSet::from([below, coder]), "{} are shown", queue.runs.len());
    let queue = store.queue(&look(&["scout"], &[root], &[])).await?;
    ensure!(ids(&queue) == HashSet::from([coder]), "{:?} are shown", ids(&queue));
    let queue = store.queue(&look(&[], &[], &["test/model"])).await?;
    ensure!(queue.runs.is_empty(), "{} of a model that is full", queue.runs.len());
    let named: Vec<RunId> = scouts[..300].to_vec();
    let queue = store.queue(&Look::Of(named.clone())).await?;
    ensure!(ids(&queue) == named.into_iter().collect(), "{} of 300", queue.runs.len());
    Ok(())
}
