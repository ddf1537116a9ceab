//! Deliveries: stored with their event, taken by one sender at a time, and never lost.

use super::sample::{append, create, finished, message, step};
use super::{Fault, SOON, Subject, Verdict, ensure, ensure_refused};
use crate::{
    Append, Delivery, DeliveryFilter, DeliveryState, Notice, Ownership, Revival, Settled,
    Settlement, Store, StoreError,
};
use posse_protocol::RunId;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(3600);

fn notice(hook: &str) -> Notice {
    let data = Arc::from("{\"text\":\"Grüße\"}");
    Notice { hook: hook.to_owned(), kind: "run.completed".to_owned(), data }
}

/// Creates a run that ends, with a notice to each of `hooks`.
pub(super) async fn ended(store: &dyn Store, hooks: &[&str]) -> Result<RunId, Fault> {
    let run = create(store, "/w", Ownership::Mine).await?;
    let outbox = hooks.iter().map(|hook| notice(hook)).collect();
    let end = Append { outbox, ..step(run, 1, vec![finished()], Ownership::Mine) };
    append(store, end).await?;
    Ok(run)
}

async fn all(store: &dyn Store) -> Result<Vec<Delivery>, Fault> {
    Ok(store.deliveries(&DeliveryFilter::default()).await?)
}

async fn only(store: &dyn Store) -> Result<Delivery, Fault> {
    let mut found = all(store).await?;
    ensure!(found.len() == 1, "{} deliveries in place of one", found.len());
    found.pop().ok_or_else(|| Fault("no delivery".to_owned()))
}

pub(super) async fn a_notice_is_stored_with_its_event(subject: &dyn Subject) -> Verdict {
    let store = subject.open("notices").await;
    let store = &*store;
    let run = ended(store, &["a", "b"]).await?;
    let found = all(store).await?;
    ensure!(found.len() == 2, "{found:?}");
    let log = store.read(run, posse_protocol::Seq::ZERO, 10).await?;
    let last = log.last().ok_or_else(|| Fault("no log".to_owned()))?;
    for delivery in &found {
        let right = (delivery.run, delivery.seq, delivery.created_at) == (run, last.seq, last.at);
        ensure!(right, "it tells of another event: {delivery:?}");
        ensure!(delivery.data.contains("Grüße"), "it tells something else: {delivery:?}");
        let fresh = (delivery.state, delivery.attempts) == (DeliveryState::Due, 0);
        ensure!(fresh, "a new delivery is {delivery:?}");
        ensure!(delivery.id.starts_with("msg_"), "{delivery:?}");
    }
    ensure!(found[0].id != found[1].id, "two hooks share an id");
    Ok(())
}

pub(super) async fn a_refused_event_is_not_told(subject: &dyn Subject) -> Verdict {
    let store = subject.open("untold").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    let outbox = vec![notice("a")];
    let stale = step(run, 7, vec![finished()], Ownership::Mine);
    let stale = Append { outbox: outbox.clone(), ..stale };
    ensure_refused!(append(store, stale).await, StoreError::NotOwner(_));
    let good = Append { outbox: outbox.clone(), ..Append::by_anyone(run, message("hello")) };
    let missing = Append::by_anyone(RunId::new(), message("hello"));
    ensure_refused!(store.append(vec![good, missing]).await, StoreError::NotFound(_));
    let empty = Append { outbox, ..step(run, 1, Vec::new(), Ownership::Mine) };
    ensure_refused!(append(store, empty).await, StoreError::Misplaced(_));
    ensure!(all(store).await?.is_empty(), "something is told that did not happen");
    Ok(())
}

pub(super) async fn a_delivery_is_taken_by_one_at_a_time(subject: &dyn Subject) -> Verdict {
    let (one, other) = (subject.open("taken").await, subject.open("taken").await);
    for _ in 0..20 {
        ended(&*one, &["a"]).await?;
    }
    let (first, second) = tokio::join!(one.take_due("a", 15, LONG), other.take_due("a", 15, LONG));
    let (first, second) = (first?, second?);
    ensure!(first.len() + second.len() == 20, "{} and {}", first.len(), second.len());
    let mut ids: Vec<&str> = first.iter().chain(&second).map(|it| it.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    ensure!(ids.len() == 20, "a delivery was taken twice");
    ensure!(first.iter().all(|it| it.attempts == 1), "an attempt is not counted");
    ensure!(other.take_due("a", 15, LONG).await?.is_empty(), "what is taken was taken again");
    ensure!(one.take_due("b", 15, LONG).await?.is_empty(), "another's was taken");
    Ok(())
}

pub(super) async fn what_was_taken_and_not_settled_is_due_again(subject: &dyn Subject) -> Verdict {
    let (store, other) = (subject.open("lost").await, subject.open("lost").await);
    ended(&*store, &["a"]).await?;
    let first = store.take_due("a", 1, Duration::from_millis(1)).await?;
    let lost = first.first().ok_or_else(|| Fault("nothing to take".to_owned()))?;
    let deadline = Instant::now() + SOON;
    let again = loop {
        if let Some(again) = other.take_due("a", 1, LONG).await?.pop() {
            break again;
        }
        ensure!(Instant::now() < deadline, "it is never due again");
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    ensure!((&again.id, again.attempts) == (&lost.id, 2), "{again:?}");
    let late = store.settle(lost, Settlement::Dead, "too late").await?;
    ensure!(late == Settled::TooLate, "who lost a delivery settles it");
    let done = other.settle(&again, Settlement::Delivered, "200").await?;
    ensure!(done == Settled::Noted, "who has a delivery cannot settle it");
    let twice = other.settle(&again, Settlement::Dead, "no").await?;
    ensure!(twice == Settled::TooLate, "a delivery is settled twice");
    let end = only(&*store).await?;
    ensure!(end.state == DeliveryState::Delivered && end.note == "200", "{end:?}");
    ensure!(end.data.is_empty(), "what was delivered is kept");
    Ok(())
}

pub(super) async fn a_delivery_waits_is_given_up_and_brought_back(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("dead").await;
    let store = &*store;
    let take = async || -> Result<Option<Delivery>, Fault> {
        Ok(store.take_due("a", 1, LONG).await?.pop())
    };
    let nothing = || Fault("nothing is due".to_owned());
    ensure!(store.next_due("a").await?.is_none(), "something is due before there is anything");
    ended(store, &["a"]).await?;
    ensure!(store.next_due("a").await? == Some(Duration::ZERO), "a new delivery is not due");
    let first = take().await?.ok_or_else(nothing)?;
    store.settle(&first, Settlement::Again(LONG), "500").await?;
    ensure!(take().await?.is_none(), "it does not wait");
    let wait = store.next_due("a").await?.ok_or_else(nothing)?;
    ensure!(wait > LONG / 2 && wait <= LONG, "it is due in {wait:?}");
    ensure!(only(store).await?.note == "500", "the note is lost");
    let other = ended(store, &["a"]).await?;
    let second = take().await?.ok_or_else(nothing)?;
    store.settle(&second, Settlement::Dead, "410").await?;
    ensure!(take().await?.is_none(), "a dead one is due");
    let one = Revival::One(first.id.clone());
    ensure!(store.revive(&one).await?.is_empty(), "one that is not dead is brought back");
    let dead = DeliveryFilter { state: Some(DeliveryState::Dead), ..DeliveryFilter::default() };
    let listed = store.deliveries(&dead).await?;
    ensure!(listed.len() == 1 && listed[0].run == other, "{listed:?}");
    let back = store.revive(&Revival::All).await?;
    ensure!(back.len() == 1 && back[0].id == second.id && back[0].attempts == 0, "{back:?}");
    let again = take().await?.ok_or_else(nothing)?;
    ensure!(again.id == second.id && again.data == second.data, "{again:?}");
    store.settle(&again, Settlement::Dead, "410").await?;
    let back = store.revive(&Revival::One(second.id.clone())).await?;
    ensure!(back.len() == 1, "one is not brought back by its id");
    let by_id = DeliveryFilter { id: Some(second.id), ..DeliveryFilter::default() };
    ensure!(store.deliveries(&by_id).await?.len() == 1, "it is not found by its id");
    Ok(())
}
