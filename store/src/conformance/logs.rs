//! Logs: events are read back completely, in order, and once.

use super::sample::*;
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{Append, Guard, Ownership, Projection, StoreError};
use futures_util::future::join_all;
use posse_protocol::{Event, Purpose, RunId, Seq};

use std::sync::Arc;
use std::time::Duration;

pub(super) async fn what_is_appended_is_read_back(subject: &dyn Subject) -> Verdict {
    let store = subject.open("read back").await;
    let mut append = creation("/w", Ownership::Mine)?;
    append.events = [
        started("/w", None)?,
        message("hello"),
        called(100, Purpose::Turn),
        replied(90),
        tool_started(),
        tool_pending(),
        tool_finished(),
        time_passed(),
        called(50, Purpose::Compaction),
        compacted(40),
        called(9, Purpose::Turn),
        failed(1),
        cancel(),
        message(&"a long one, ünïcödé, \u{0} and \" too. ".repeat(10_000)),
        finished(),
        archived(),
    ]
    .into();
    let (run, events) = (append.run, append.events.clone());
    store.append(vec![append]).await?;
    for reader in [store, subject.open("read back").await] {
        let records = reader.read(run, Seq::ZERO, usize::MAX).await?;
        ensure!(records.len() == events.len(), "{} of {} events", records.len(), events.len());
        for (record, event) in records.iter().zip(&*events) {
            ensure!(record.event == *event, "event {} came back changed", record.seq);
            ensure!(record.run == run, "event {} of another run", record.seq);
            ensure!(record.at > 0, "event {} has no time", record.seq);
        }
        let mut projection = Projection::new(run);
        records.iter().for_each(|record| projection.apply(record));
        let difference = projection.difference(&row(&*reader, run).await?);
        ensure!(difference.is_none(), "{difference:?} of the row does not follow from the log");
        let orphans = reader.orphans().await?;
        ensure!(orphans.is_empty(), "events without a row: {orphans:?}");
    }
    let missing = subject.open("read back").await.read(RunId::new(), Seq::ZERO, 1).await;
    ensure_refused!(missing, StoreError::NotFound(_));
    Ok(())
}

pub(super) async fn positions_are_consecutive(subject: &dyn Subject) -> Verdict {
    let store = subject.open("positions").await;
    let append = creation("/w", Ownership::Queued)?;
    let run = append.run;
    let more = Append::by_anyone(run, message("more"));
    let nothing = Append { events: Arc::new([]), ..more.clone() };
    let table = [
        (vec![append], vec![(1, 2)]),
        (vec![more.clone(), more], vec![(3, 3), (4, 4)]),
        (vec![nothing], vec![(5, 4)]),
    ];
    for (batch, expected) in table {
        let answers = store.append(batch).await?;
        let places: Vec<_> = answers.iter().map(|it| (it.first.0, it.last.0)).collect();
        ensure!(places == expected, "appended at {places:?} in place of {expected:?}");
    }
    let seen: Vec<u64> = store.read(run, Seq::ZERO, 9).await?.iter().map(|it| it.seq.0).collect();
    ensure!(seen == [1, 2, 3, 4], "positions {seen:?}");
    Ok(())
}

pub(super) async fn a_log_is_read_in_pages(subject: &dyn Subject) -> Verdict {
    let store = subject.open("pages").await;
    let mut append = creation("/w", Ownership::Queued)?;
    let more = (3..=10).map(|index| message(&format!("message {index}")));
    append.events = append.events.iter().cloned().chain(more).collect();
    let run = append.run;
    store.append(vec![append]).await?;
    let table: &[(u64, usize, std::ops::RangeInclusive<u64>)] = &[
        (0, 3, 1..=3),
        (3, 3, 4..=6),
        (6, 4, 7..=10),
        (9, 5, 10..=10),
        (0, 10, 1..=10),
        (1, usize::MAX, 2..=10),
    ];
    for (after, limit, expected) in table {
        let page = store.read(run, Seq(*after), *limit).await?;
        let seen: Vec<u64> = page.iter().map(|it| it.seq.0).collect();
        let expected: Vec<u64> = expected.clone().collect();
        ensure!(seen == expected, "after {after}, {limit}: {seen:?} instead of {expected:?}");
    }
    for (after, limit) in [(10, 5), (11, 5), (1_000, 5), (0, 0), (5, 0)] {
        let page = store.read(run, Seq(after), limit).await?;
        ensure!(page.is_empty(), "{} events after {after}, limit {limit}", page.len());
    }
    Ok(())
}

pub(super) async fn a_read_that_nobody_looks_at_holds_up_nobody(subject: &dyn Subject) -> Verdict {
    let store = subject.open("idle").await;
    let run = create(&*store, "/w", Ownership::Mine).await?;
    let mut idle = Vec::new();
    for _ in 0..64 {
        let mut read = store.read(run, Seq::ZERO, 100);
        let begun = std::future::poll_fn(|context| {
            let _ = read.as_mut().poll(context);
            std::task::Poll::Ready(())
        });
        begun.await;
        idle.push(read);
    }
    ensure!(store.read(run, Seq::ZERO, 100).await?.len() == 2, "the log has other events");
    store.close().await;
    drop(idle);
    Ok(())
}

pub(super) async fn a_batch_is_all_or_nothing(subject: &dyn Subject) -> Verdict {
    let store = subject.open("batch").await;
    let first = create(&*store, "/w", Ownership::Queued).await?;
    let second = creation("/w", Ownership::Queued)?;
    let child = second.run;
    let unknown = Append::by_anyone(RunId::new(), message("to nobody"));
    let hello = Append::by_anyone(first, message("hello"));
    let refused = store.append(vec![hello.clone(), second.clone(), unknown]).await;
    ensure_refused!(refused, StoreError::NotFound(_));
    let stayed = store.read(first, Seq::ZERO, 9).await?.len();
    ensure!(stayed == 2, "a refused batch left {stayed} events in place of 2");
    ensure_refused!(store.read(child, Seq::ZERO, 9).await, StoreError::NotFound(_));
    let late = Append::by_anyone(child, message("to the child"));
    let answers = store.append(vec![second, hello, late]).await?;
    let last: Vec<u64> = answers.iter().map(|it| it.last.0).collect();
    ensure!(last == [2, 3, 3], "the logs end at {last:?}");
    Ok(())
}

pub(super) async fn a_refusal_takes_no_neighbour_with_it(subject: &dyn Subject) -> Verdict {
    let store = subject.open("neighbours").await;
    let runs = create_many(&*store, "/w", 50).await?;
    let appends = (0..400).map(|index| {
        let run = runs[index % runs.len()];
        match index % 4 {
            0 => Append::by_anyone(run, finished()),
            1 => Append::by_anyone(RunId::new(), message("to nobody")),
            2 => step(run, 77, vec![time_passed()], Ownership::Mine),
            _ => Append::by_anyone(run, message("hello")),
        }
    });
    let store = &*store;
    let results = join_all(appends.map(|it| async move { append(store, it).await })).await;
    for (index, result) in results.into_iter().enumerate() {
        match index % 4 {
            1 => ensure_refused!(result, StoreError::NotFound(_)),
            3 => ensure!(result.is_ok(), "a good append: {result:?}"),
            _ => ensure_refused!(result, StoreError::NotOwner(_)),
        }
    }
    let mut events = 0;
    for run in runs {
        events += store.read(run, Seq::ZERO, 99).await?.len();
    }
    ensure!(events == 200, "{events} events in place of 200");
    Ok(())
}

pub(super) async fn nothing_is_lost_among_many_writers(subject: &dyn Subject) -> Verdict {
    let stores = [subject.open("writers").await, subject.open("writers").await];
    let run = create(&*stores[0], "/w", Ownership::Queued).await?;
    let writes = (0..200).map(|index| {
        let store = &stores[index % 2];
        let event = message(&format!("number {index}"));
        async move { append(&**store, Append::by_anyone(run, event)).await }
    });
    let mut places = Vec::new();
    for (index, result) in join_all(writes).await.into_iter().enumerate() {
        places.push((result?.last, message(&format!("number {index}"))));
    }
    places.sort_by_key(|(seq, _)| *seq);
    let records = stores[0].read(run, Seq(2), 999).await?;
    let stored: Vec<(Seq, Event)> = records.into_iter().map(|it| (it.seq, it.event)).collect();
    ensure!(stored == places, "the log does not hold what was answered");
    Ok(())
}

pub(super) async fn a_run_is_created_once(subject: &dyn Subject) -> Verdict {
    let stores = [subject.open("once").await, subject.open("once").await];
    let mut creations = Vec::new();
    for _ in 0..20 {
        creations.push(creation("/w", Ownership::Queued)?);
    }
    for append in &creations[..10] {
        stores[0].append(vec![append.clone()]).await?;
    }
    for store in &stores {
        let again = join_all(creations[..10].iter().map(|it| store.append(vec![it.clone()]))).await;
        for result in again {
            ensure_refused!(result, StoreError::Exists(_));
        }
    }
    // Known and new runs together.
    let results = join_all(creations.iter().map(|it| stores[1].append(vec![it.clone()]))).await;
    for (index, result) in results.into_iter().enumerate() {
        match index < 10 {
            true => ensure_refused!(result, StoreError::Exists(_)),
            false => ensure!(result.is_ok(), "a new run: {result:?}"),
        }
    }
    let twice = vec![creation("/w", Ownership::Queued)?; 2];
    ensure_refused!(stores[0].append(twice).await, StoreError::Exists(_));
    for append in creations {
        let events = stores[0].read(append.run, Seq::ZERO, 9).await?.len();
        ensure!(events == 2, "{events} events in place of 2");
    }
    Ok(())
}

pub(super) async fn a_log_begins_with_its_start_and_only_there(subject: &dyn Subject) -> Verdict {
    let store = subject.open("start").await;
    for events in [Vec::new(), vec![message("hello")]] {
        let append = Append { events: events.into(), ..creation("/w", Ownership::Queued)? };
        ensure_refused!(store.append(vec![append]).await, StoreError::Misplaced(_));
    }
    let created = creation("/w", Ownership::Mine)?;
    let run = created.run;
    let epoch = append(&*store, created).await?.epoch;
    let again = step(run, epoch, vec![started("/w", None)?], Ownership::Mine);
    ensure_refused!(store.append(vec![again]).await, StoreError::Misplaced(_));
    Ok(())
}

pub(super) async fn a_key_finds_the_first_run(subject: &dyn Subject) -> Verdict {
    let stores = [subject.open("key").await, subject.open("key").await];
    let first = keyed("the key")?;
    stores[0].append(vec![first.clone()]).await?;
    for store in &stores {
        for again in [keyed("the key")?, first.clone()] {
            match store.append(vec![again]).await {
                Err(StoreError::KeyTaken { key, run }) => {
                    ensure!((key.as_str(), run) == ("the key", first.run), "{key} finds {run}");
                }
                other => return Err(Fault(format!("a taken key: {other:?}"))),
            }
        }
    }
    let pair = vec![keyed("another")?, keyed("another")?];
    ensure_refused!(stores[0].append(pair).await, StoreError::KeyTaken { .. });
    let alone = stores[1].append(vec![keyed("another")?]).await;
    ensure!(alone.is_ok(), "a key of a refused batch stays taken: {alone:?}");
    Ok(())
}

pub(super) async fn one_of_many_creators_with_a_key_wins(subject: &dyn Subject) -> Verdict {
    let stores = [subject.open("race").await, subject.open("race").await];
    for round in 0..5 {
        let key = format!("round {round}");
        let mut creations = Vec::new();
        for index in 0..50 {
            let guard = Guard::Create(Ownership::Mine);
            creations.push((index, Append { guard, ..keyed(&key)? }));
        }
        let results = join_all(creations.into_iter().map(|(index, append)| {
            let (store, run) = (&stores[index % 2], append.run);
            async move { (run, store.append(vec![append]).await) }
        }))
        .await;
        let winners: Vec<RunId> = results.iter().filter(|it| it.1.is_ok()).map(|it| it.0).collect();
        ensure!(winners.len() == 1, "{} creators won", winners.len());
        for (_, result) in results.into_iter().filter(|it| it.1.is_err()) {
            match result {
                Err(StoreError::KeyTaken { run, .. }) if run == winners[0] => {}
                other => return Err(Fault(format!("a creator that lost: {other:?}"))),
            }
        }
    }
    Ok(())
}

pub(super) async fn hashes_tie_each_event_to_all_before_it(subject: &dyn Subject) -> Verdict {
    let store = subject.open("hashes").await;
    let mut append = creation("/w", Ownership::Queued)?;
    // The same text each time, so only the position makes a difference.
    let more = (3..=8).map(|_| message("the same"));
    append.events = append.events.iter().cloned().chain(more).collect();
    let run = append.run;
    store.append(vec![append]).await?;
    let hashes = store.hashes(run, Seq::ZERO, usize::MAX).await?;
    ensure!(hashes.len() == 8, "{} hashes of 8 events", hashes.len());
    let mut distinct = hashes.clone();
    distinct.sort_unstable();
    distinct.dedup();
    ensure!(distinct.len() == 8, "two events have one hash: {hashes:?}");
    let last = row(&*store, run).await?.log.last_hash;
    ensure!(hashes.last() == Some(&last), "the row ends with {last}, the log with {hashes:?}");
    for (after, limit, expected) in [(0, 3, 0..3), (3, 4, 3..7), (7, 9, 7..8), (8, 9, 8..8)] {
        let page = store.hashes(run, Seq(after), limit).await?;
        ensure!(page == hashes[expected], "after {after}, {limit}: {page:?}");
    }
    store.append(vec![Append::by_anyone(run, message("more"))]).await?;
    let longer = subject.open("hashes").await.hashes(run, Seq::ZERO, 99).await?;
    ensure!(longer.starts_with(&hashes), "what is appended changed the hashes before it");
    ensure!(longer.len() == 9, "{} hashes of 9 events", longer.len());
    Ok(())
}

pub(super) async fn the_store_tells_the_time_that_it_stamps(subject: &dyn Subject) -> Verdict {
    const HOUR: u64 = 3_600_000;
    let (store, other) = (subject.open("time").await, subject.open("time").await);
    let run = create(&*store, "/w", Ownership::Mine).await?;
    let mut last = 0;
    for _ in 0..3 {
        let before = other.now().await?;
        let at = append(&*store, Append::by_anyone(run, message("now"))).await?.at;
        let after = other.now().await?;
        ensure!(before <= at && at <= after, "stamped {at} between {before} and {after}");
        ensure!(before >= last, "{before} follows {last}");
        last = after + HOUR;
        subject.pass(Duration::from_millis(HOUR));
    }
    Ok(())
}
