//! Budgets: runs draw what they spend from the accounts above them, in advance.

use super::sample::{
    append, called, claim_one, compacted, create, creation, failed, finished, message, replied,
    row, start, step, tool_started,
};
use super::{Fault, Subject, Verdict, ensure, ensure_refused};
use crate::append::{Append, Ownership};
use crate::{RunRow, Store, StoreError, shares};
use futures_util::future::join_all;
use posse_protocol::{
    Budget, ChildStarted, Event, Extra, Limit, Parent, Purpose, RunId, RunStarted, TimeAtWork, Usd,
};
use std::sync::Arc;

/// Returns the appends that create a run with `budget`. If there are `ancestors`, it is a child of
/// the last one and draws on `account`.
fn birth(
    budget: Budget,
    ancestors: &[RunId],
    account: Option<RunId>,
) -> Result<(RunId, Vec<Append>), Fault> {
    let child = creation("/w", Ownership::Mine)?;
    let mut first = start()?;
    first.grant.budget = budget;
    let run = child.run;
    let mut beside = Vec::new();
    let mut parent = None;
    if let Some(caller) = ancestors.last() {
        let note = ChildStarted {
            run,
            call: None,
            announce: None,
            agent: first.agent.name.clone(),
            label: String::new(),
            resumed: false,
            extra: Extra::default(),
        };
        beside.push(Append::by_anyone(*caller, Event::ChildStarted(Box::new(note))));
        parent = Some(Parent {
            run: *caller,
            call: None,
            announce: None,
            account,
            limited: Vec::new(),
            abreast: None,
            time: TimeAtWork::default(),
            ancestors: ancestors.to_vec(),
            extra: Extra::default(),
        });
    }
    let first = RunStarted { parent, ..first };
    let events = Arc::new([first.into(), message("do it")]);
    let mut batch = vec![Append { events, ..child }];
    batch.extend(beside);
    Ok((run, batch))
}

async fn root(store: &dyn Store, budget: Budget) -> Result<RunId, Fault> {
    let (run, batch) = birth(budget, &[], None)?;
    store.append(batch).await?;
    Ok(run)
}

async fn bear(
    store: &dyn Store,
    budget: Budget,
    ancestors: &[RunId],
    account: RunId,
) -> Result<RunId, Fault> {
    let (run, batch) = birth(budget, ancestors, Some(account))?;
    store.append(batch).await?;
    Ok(run)
}

fn money(cost: u64) -> Budget {
    Budget { cost: Some(Usd(cost)), ..Budget::default() }
}

/// A budget of which the runs below may draw `cost`: they leave a quarter of it to the holder.
fn money_below(cost: u64) -> Budget {
    money(cost + cost / 3)
}

/// A call that reserves this many tokens, and three times as much money.
fn call(run: RunId, tokens: u64) -> Append {
    step(run, 1, vec![called(tokens, Purpose::Turn)], Ownership::Mine)
}

fn own(run: RunId, event: Event) -> Append {
    step(run, 1, vec![event], Ownership::Mine)
}

/// Returns the drawn amount of an account, and the held part of it.
async fn drawn(store: &dyn Store, run: RunId, limit: Limit) -> Result<(u64, u64), Fault> {
    let row = row(store, run).await?;
    Ok((row.funds.drawn.unwrap_or_default().of(limit), row.funds.held.of(limit)))
}

macro_rules! ensure_drawn {
    ($store:expr, $run:expr, $limit:expr, $expected:expr) => {
        let found = drawn($store, $run, $limit).await?;
        ensure!(found == $expected, "{} drawn and held: {found:?}, not {:?}", $limit, $expected);
    };
}

pub(super) async fn a_call_draws_what_it_reserves_and_gives_back_the_rest(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("drawing").await;
    let store = &*store;
    let root = root(store, money_below(1_000)).await?;
    let child = bear(store, Budget::default(), &[root], root).await?;
    append(store, call(child, 100)).await?;
    ensure_drawn!(store, root, Limit::Cost, (300, 300));
    append(store, own(child, replied(40))).await?;
    ensure_drawn!(store, root, Limit::Cost, (120, 0));
    append(store, call(child, 100)).await?;
    append(store, own(child, failed(0))).await?;
    ensure_drawn!(store, root, Limit::Cost, (120, 0));
    append(store, step(child, 1, vec![called(10, Purpose::Compaction)], Ownership::Mine)).await?;
    append(store, own(child, compacted(10))).await?;
    ensure_drawn!(store, root, Limit::Cost, (150, 0));
    // The first of these two calls has no answer, so it costs what it reserved.
    append(store, call(child, 100)).await?;
    append(store, call(child, 50)).await?;
    ensure_drawn!(store, root, Limit::Cost, (600, 150));
    append(store, own(child, finished())).await?;
    ensure_drawn!(store, root, Limit::Cost, (600, 0));
    // What was spent is counted, even above the limit.
    append(store, call(root, 133)).await?;
    append(store, own(root, replied(200))).await?;
    ensure_drawn!(store, root, Limit::Cost, (1_200, 0));
    Ok(())
}

pub(super) async fn what_does_not_fit_is_refused_and_changes_nothing(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("refusing").await;
    let store = &*store;
    let root = root(store, money_below(1_000)).await?;
    let one = bear(store, Budget::default(), &[root], root).await?;
    let two = bear(store, Budget::default(), &[root], root).await?;
    append(store, call(one, 200)).await?;
    let before = (row(store, two).await?, row(store, root).await?);
    let events = vec![replied(1), called(134, Purpose::Turn)];
    let refused = append(store, step(two, 1, events, Ownership::Mine)).await;
    ensure_refused!(
        refused,
        StoreError::OverBudget { run, holder, limit: Limit::Cost, wanted: 402, left: 397, held: 600 }
            if run == two && holder == root
    );
    ensure!((row(store, two).await?, row(store, root).await?) == before, "something changed");
    append(store, call(two, 133)).await?;
    let chain = [row(store, two).await?, row(store, root).await?];
    let found = shares(two, &chain);
    let share = found.first().map(|share| (share.limit, share.holder, share.left, share.held));
    ensure!(share == Some((Limit::Cost, root, 1, 600)) && found.len() == 1, "{found:?}");
    // The rest is left to the run above, which must still report the results.
    append(store, call(root, 47)).await?;
    Ok(())
}

pub(super) async fn each_thing_is_drawn_from_the_nearest_budget_that_limits_it(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("nearest").await;
    let store = &*store;
    let top = Budget { tool_calls: Some(2), ..money(1_000) };
    let root = root(store, top).await?;
    let turns = Budget { turns: Some(2), ..Budget::default() };
    let middle = bear(store, turns, &[root], root).await?;
    let below = bear(store, Budget::default(), &[root, middle], middle).await?;
    let call = step(below, 1, vec![called(100, Purpose::Turn), replied(100)], Ownership::Mine);
    append(store, call.clone()).await?;
    ensure_drawn!(store, middle, Limit::Turns, (1, 0));
    ensure_drawn!(store, root, Limit::Turns, (0, 0));
    ensure_drawn!(store, root, Limit::Cost, (300, 0));
    ensure_refused!(
        append(store, call).await,
        StoreError::OverBudget { holder, limit: Limit::Turns, .. } if holder == middle
    );
    // One turn is left to the run above, which draws on its own budget like the runs below it.
    append(store, self::call(middle, 1)).await?;
    append(store, own(middle, replied(1))).await?;
    ensure_refused!(
        append(store, self::call(middle, 1)).await,
        StoreError::OverBudget { holder, limit: Limit::Turns, .. } if holder == middle
    );
    append(store, own(below, tool_started())).await?;
    append(store, own(middle, tool_started())).await?;
    ensure_refused!(
        append(store, own(below, tool_started())).await,
        StoreError::OverBudget { holder, limit: Limit::ToolCalls, .. } if holder == root
    );
    Ok(())
}

pub(super) async fn a_budget_of_its_own_is_carved_out_and_comes_back(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("carving").await;
    let store = &*store;
    let root = root(store, money_below(1_000)).await?;
    let child = bear(store, money(700), &[root], root).await?;
    ensure_drawn!(store, root, Limit::Cost, (700, 700));
    let (large, batch) = birth(money(301), &[root], Some(root))?;
    ensure_refused!(
        store.append(batch).await,
        StoreError::OverBudget { wanted: 301, left: 300, held: 700, .. }
    );
    ensure_refused!(row(store, large).await, Fault(_));
    append(store, call(child, 200)).await?;
    append(store, own(child, replied(100))).await?;
    ensure_drawn!(store, root, Limit::Cost, (700, 700));
    ensure_refused!(
        append(store, call(child, 134)).await,
        StoreError::OverBudget { holder, wanted: 402, left: 400, held: 0, .. } if holder == child
    );
    append(store, own(child, finished())).await?;
    ensure_drawn!(store, root, Limit::Cost, (300, 0));
    ensure_drawn!(store, child, Limit::Cost, (300, 0));
    Ok(())
}

pub(super) async fn runs_below_count_until_they_end(subject: &dyn Subject) -> Verdict {
    let store = subject.open("counting").await;
    let store = &*store;
    let few = |children| Budget { children: Some(children), ..Budget::default() };
    let root = root(store, few(4)).await?;
    let child = bear(store, few(2), &[root], root).await?;
    ensure_drawn!(store, root, Limit::Children, (3, 3));
    let below = bear(store, Budget::default(), &[root, child], child).await?;
    let other = bear(store, Budget::default(), &[root], root).await?;
    ensure_drawn!(store, root, Limit::Children, (4, 4));
    let (_, batch) = birth(Budget::default(), &[root], Some(root))?;
    ensure_refused!(
        store.append(batch).await,
        StoreError::OverBudget { limit: Limit::Children, wanted: 1, left: 0, held: 4, .. }
    );
    append(store, own(other, finished())).await?;
    append(store, own(child, finished())).await?;
    // A run below the ended one still executes.
    ensure_drawn!(store, root, Limit::Children, (1, 1));
    append(store, own(below, finished())).await?;
    ensure_drawn!(store, root, Limit::Children, (0, 0));
    append(store, Append::by_anyone(other, message("go on"))).await?;
    ensure_drawn!(store, root, Limit::Children, (1, 1));
    Ok(())
}

pub(super) async fn what_is_below_an_ended_run_draws_on_the_next_budget(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.open("straggling").await;
    let store = &*store;
    let root = root(store, money_below(1_000)).await?;
    let child = bear(store, money(600), &[root], root).await?;
    let below = bear(store, Budget::default(), &[root, child], child).await?;
    append(store, call(below, 100)).await?;
    append(store, own(child, finished())).await?;
    ensure_drawn!(store, root, Limit::Cost, (300, 300));
    append(store, own(below, replied(50))).await?;
    ensure_drawn!(store, root, Limit::Cost, (150, 0));
    append(store, call(below, 100)).await?;
    ensure_drawn!(store, root, Limit::Cost, (450, 300));
    append(store, own(root, finished())).await?;
    // There is no account above the root, so the runs below have only its rest.
    ensure_refused!(
        append(store, call(below, 200)).await,
        StoreError::OverBudget { holder, left: 550, .. } if holder == root
    );
    append(store, own(below, replied(100))).await?;
    ensure_drawn!(store, root, Limit::Cost, (450, 0));
    Ok(())
}

pub(super) async fn a_run_that_goes_on_takes_a_new_allowance(subject: &dyn Subject) -> Verdict {
    let store = subject.open("again").await;
    let store = &*store;
    let root = root(store, money_below(1_000)).await?;
    let child = bear(store, money(600), &[root], root).await?;
    append(store, call(child, 150)).await?;
    append(store, own(child, finished())).await?;
    ensure_drawn!(store, root, Limit::Cost, (450, 0));
    let again = Append::by_anyone(child, message("go on"));
    ensure_refused!(
        append(store, again.clone()).await,
        StoreError::OverBudget { holder, wanted: 600, left: 550, .. } if holder == root
    );
    ensure!(row(store, child).await?.state.outcome.is_some(), "it goes on without a budget");
    append(store, own(root, finished())).await?;
    append(store, Append::by_anyone(root, message("go on"))).await?;
    ensure_drawn!(store, root, Limit::Cost, (0, 0));
    append(store, again).await?;
    ensure_drawn!(store, root, Limit::Cost, (600, 600));
    ensure_drawn!(store, child, Limit::Cost, (0, 0));
    let claimed = claim_one(store, child).await?;
    let epoch = claimed.map_or(0, |claimed| claimed.epoch);
    let event = called(200, Purpose::Turn);
    append(store, step(child, epoch, vec![event, finished()], Ownership::Mine)).await?;
    ensure_drawn!(store, root, Limit::Cost, (600, 0));
    Ok(())
}

pub(super) async fn what_nobody_limits_changes_no_other_row(subject: &dyn Subject) -> Verdict {
    let store = subject.open("free").await;
    let store = &*store;
    let free = create(store, "/w", Ownership::Mine).await?;
    append(store, call(free, u64::MAX / 10)).await?;
    let turns = Budget { turns: Some(9), ..Budget::default() };
    let root = root(store, turns).await?;
    let child = bear(store, Budget::default(), &[root], root).await?;
    let before: RunRow = row(store, root).await?;
    append(store, step(child, 1, vec![called(9, Purpose::Compaction)], Ownership::Mine)).await?;
    append(store, own(child, tool_started())).await?;
    ensure!(row(store, root).await? == before, "the account changed");
    append(store, own(child, finished())).await?;
    ensure!(row(store, root).await? == before, "the account changed at the end");
    Ok(())
}

pub(super) async fn many_at_once_draw_no_more_than_there_is(subject: &dyn Subject) -> Verdict {
    let stores = [subject.open("many").await, subject.open("many").await];
    let root = root(&*stores[0], money_below(1_000)).await?;
    let mut runs = Vec::new();
    for store in stores.iter().cycle().take(40) {
        runs.push((store, bear(&**store, Budget::default(), &[root], root).await?));
    }
    let calls = runs.iter().map(|(store, run)| append(&***store, call(*run, 20)));
    let taken = join_all(calls).await.into_iter().filter(Result::is_ok).count();
    ensure!(taken == 16, "{taken} calls of 60 were made with a budget of 1000");
    ensure_drawn!(&*stores[0], root, Limit::Cost, (960, 960));
    Ok(())
}
