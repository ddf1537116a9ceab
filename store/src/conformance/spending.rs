//! The ledger: the costs of all model calls, however they ended, and sums over them.

use super::sample::*;
use super::trees::bear;
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::{Append, By, CostCheck, Ownership, Spending, SpendingQuery, Spent, Store, StoreError};
use posse_protocol::{Event, ModelCalled, Purpose, RunId, Seq, Usage};

/// Returns the sum of everything.
async fn total(store: &dyn Store, query: SpendingQuery) -> Result<Spending, Fault> {
    let mut sums = store.spending(&SpendingQuery { by: By::Nothing, ..query }).await?;
    ensure_one(sums.len())?;
    Ok(sums.pop().unwrap_or_default())
}

fn ensure_one(sums: usize) -> Verdict {
    ensure!(sums <= 1, "{sums} sums of everything");
    Ok(())
}

/// A call of `model`.
fn called_with(model: &str, tokens: u64) -> Event {
    let (reserved, model) = (usage(tokens), model.to_owned());
    let (purpose, extra) = (Purpose::Turn, posse_protocol::Extra::default());
    Event::ModelCalled(ModelCalled { reserved, purpose, model, share: None, extra })
}

async fn take(store: &dyn Store, run: RunId, events: Vec<Event>) -> Verdict {
    append(store, step(run, 1, events, Ownership::Mine)).await?;
    Ok(())
}

/// Checks that the ledger rows of `run` match its log.
async fn follows_from_its_log(store: &dyn Store, run: RunId) -> Verdict {
    let mut reckoning = CostCheck::new(run, store.ledger(run).await?);
    let log = store.read(run, Seq::ZERO, usize::MAX).await?;
    log.iter().for_each(|record| reckoning.apply(record));
    let fault = reckoning.fault(Seq(log.len() as u64));
    ensure!(fault.is_none(), "{fault:?}");
    Ok(())
}

pub(super) async fn every_model_call_is_in_the_ledger(subject: &dyn Subject) -> Verdict {
    let store = subject.open("ledger").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    // An event, the number of calls afterwards, and how many of them have no answer.
    let table = [
        (called(1_000, Purpose::Turn), 1, 1),
        (replied(500), 1, 0),
        (tool_started(), 1, 0),
        (called(1_000, Purpose::Turn), 2, 1),
        (failed(100), 2, 0),
        (called(2_000, Purpose::Compaction), 3, 1),
        (compacted(400), 3, 0),
        (called(1_000, Purpose::Turn), 4, 1),
        (called(3_000, Purpose::Turn), 5, 2),
        (called(0, Purpose::Turn), 6, 3),
        (finished(), 6, 3),
    ];
    for (event, calls, unanswered) in table {
        let kind = event.kind();
        take(store, run, vec![event]).await?;
        let (sum, row) = (total(store, SpendingQuery::default()).await?, row(store, run).await?);
        let counts = (sum.runs, sum.calls, sum.unanswered);
        ensure!(counts == (1, calls, unanswered), "after {kind}: runs, calls, open {counts:?}");
        let spent = Spent::from(&(sum.usage + &sum.uncertain));
        let expected = (
            row.spending.spent.input_tokens + row.spending.reserved.input_tokens,
            row.spending.spent.output_tokens + row.spending.reserved.output_tokens,
            row.most_cost(),
        );
        let found = (spent.input_tokens, spent.output_tokens, spent.cost);
        ensure!(found == expected, "after {kind}: {found:?} in place of {expected:?}");
        follows_from_its_log(store, run).await?;
    }
    // A provider may report any number.
    let mad = create(store, "/w", Ownership::Mine).await?;
    for _ in 0..3 {
        let mut answer = replied(1);
        if let Event::ModelReplied(replied) = &mut answer {
            replied.usage = Usage { input_tokens: u64::MAX, ..Usage::default() };
        }
        take(store, mad, vec![called(1, Purpose::Turn), answer]).await?;
    }
    let all = total(store, SpendingQuery::default()).await?;
    ensure!(all.calls == 9 && all.usage.input_tokens > 1 << 50, "{all:?}");
    follows_from_its_log(store, mad).await?;
    let strangers = store.strangers().await?;
    ensure!(strangers.is_empty(), "{strangers:?}");
    Ok(())
}

pub(super) async fn what_is_refused_costs_nothing(subject: &dyn Subject) -> Verdict {
    let store = subject.open("refused spending").await;
    let store = &*store;
    let run = create(store, "/w", Ownership::Mine).await?;
    take(store, run, vec![called(10, Purpose::Turn)]).await?;
    let other = create(store, "/w", Ownership::Queued).await?;
    let batch = vec![
        step(run, 1, vec![replied(5)], Ownership::Mine),
        step(other, 7, vec![called(1, Purpose::Turn)], Ownership::Mine),
    ];
    ensure_refused!(store.append(batch).await, StoreError::NotOwner(_));
    let sum = total(store, SpendingQuery::default()).await?;
    ensure!((sum.calls, sum.unanswered) == (1, 1), "{sum:?}");
    ensure!(sum.usage == Usage::default(), "{:?}", sum.usage);
    ensure!(sum.uncertain == usage(10), "{:?}", sum.uncertain);
    Ok(())
}

pub(super) async fn model_calls_are_summed_up_by_what_is_asked_for(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("sums").await;
    let store = &*store;
    let root = create(store, "/w", Ownership::Mine).await?;
    let child = bear(store, &[root]).await?;
    let other = create(store, "/w", Ownership::Mine).await?;
    take(store, root, vec![called_with("a/one", 900), replied(100)]).await?;
    // The run continues with another model.
    take(store, root, vec![called_with("a/one", 900), failed(0), called_with("b/two", 900)])
        .await?;
    take(store, root, vec![replied(20)]).await?;
    take(store, child, vec![called_with("b/two", 900), replied(300), finished()]).await?;
    // This call never gets an answer.
    take(store, other, vec![called(7, Purpose::Turn)]).await?;
    let (root, child, other) = (root.to_string(), child.to_string(), other.to_string());
    type Sums<'a> = Vec<(&'a str, u64, u64)>;
    let table: [(By, Sums<'_>); 5] = [
        (By::Run, vec![(&child, 1, 300), (&root, 3, 120), (&other, 1, 7)]),
        (By::Tree, vec![(&root, 4, 420), (&other, 1, 7)]),
        (By::Agent, vec![("tester", 5, 427)]),
        (By::Model, vec![("b/two", 2, 320), ("a/one", 2, 100), ("test/model", 1, 7)]),
        // The label of the child is "look". That of its tree is empty.
        (By::Label, vec![("", 5, 427)]),
    ];
    for (by, expected) in table {
        let sums = store.spending(&SpendingQuery { by, ..SpendingQuery::default() }).await?;
        let tokens = |sum: &Spending| sum.usage.input_tokens + sum.uncertain.input_tokens;
        let found = sums.iter().map(|sum| (sum.key.as_str(), sum.calls, tokens(sum)));
        let found: Vec<_> = found.collect();
        ensure!(found == expected, "by {by:?}: {found:?} in place of {expected:?}");
    }
    let days = store.spending(&SpendingQuery { by: By::Day, ..SpendingQuery::default() }).await?;
    let calls: u64 = days.iter().map(|day| day.calls).sum();
    ensure!((1..=2).contains(&days.len()) && calls == 5, "{days:?}");
    let is_date = |key: &str| key.len() == 10 && key.split('-').count() == 3;
    ensure!(days.iter().all(|day| is_date(&day.key)), "{days:?}");
    let first = SpendingQuery { by: By::Run, limit: 1, ..SpendingQuery::default() };
    let first = store.spending(&first).await?;
    ensure!(first.len() == 1 && first[0].key == child, "the costliest: {first:?}");
    Ok(())
}

pub(super) async fn sums_can_be_narrowed(subject: &dyn Subject) -> Verdict {
    let store = subject.open("narrowed sums").await;
    let store = &*store;
    let root = create(store, "/here", Ownership::Mine).await?;
    let child = bear(store, &[root]).await?;
    let below = bear(store, &[root, child]).await?;
    let other = create(store, "/there", Ownership::Mine).await?;
    for (run, tokens) in [(root, 1), (child, 10), (below, 100), (other, 1_000)] {
        take(store, run, vec![called(5, Purpose::Turn), replied(tokens)]).await?;
    }
    take(store, below, vec![called(20_000, Purpose::Turn)]).await?;
    let at = row(store, other).await?.updated_at;
    let all = SpendingQuery::default;
    let table = [
        (all(), 21_111),
        (SpendingQuery { tree: Some(root), ..all() }, 20_111),
        (SpendingQuery { tree: Some(child), ..all() }, 20_110),
        (SpendingQuery { tree: Some(below), ..all() }, 20_100),
        (SpendingQuery { tree: Some(RunId::new()), ..all() }, 0),
        (SpendingQuery { workspace: Some("/there".to_owned()), ..all() }, 1_000),
        (SpendingQuery { tree: Some(root), workspace: Some("/there".to_owned()), ..all() }, 0),
        (SpendingQuery { since: Some(at + 3_600_000), ..all() }, 0),
        (SpendingQuery { since: Some(at - 3_600_000), ..all() }, 21_111),
        (SpendingQuery { until: Some(at - 3_600_000), ..all() }, 0),
        (
            SpendingQuery {
                tree: Some(child),
                workspace: Some("/w".to_owned()),
                since: Some(at - 3_600_000),
                until: Some(at + 3_600_000),
                ..all()
            },
            20_110,
        ),
    ];
    for (query, expected) in table {
        let sum = total(store, query.clone()).await?;
        let tokens = sum.usage.input_tokens + sum.uncertain.input_tokens;
        ensure!(tokens == expected, "{query:?} gives {tokens} in place of {expected}");
    }
    append(store, Append::by_anyone(root, message("more"))).await?;
    Ok(())
}
