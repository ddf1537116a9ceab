//! Budgets: what a run does when there is little left, when others hold it, and when it is gone.

use crate::answers::Case;
use crate::world::{Dice, World};
use async_trait::async_trait;
use posse_agent::protocol::*;
use posse_agent::{Allowance, Ended, Expect, Journal, JournalError, Step, run};
use std::sync::Mutex;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const HOLDER: RunId = RunId::from_u128(77);

fn share(limit: Limit, left: u64, held: u64) -> Allowance {
    Allowance(vec![Share { limit, holder: HOLDER, left, held }])
}

/// How much of `limit` a log has drawn.
fn drawn(world: &World, limit: Limit) -> u64 {
    let usage = world.transcript.usage();
    let count = |is: fn(&Event) -> bool| {
        world.records.iter().filter(|record| is(&record.event)).count() as u64
    };
    match limit {
        Limit::Turns => count(|event| matches!(event, Event::ModelCalled(_))),
        Limit::ToolCalls => count(|event| matches!(event, Event::ToolStarted(_))),
        limit => Amount::from(&usage).of(limit),
    }
}

/// Plays until the run is out of `budget`, all of which is its own. Every reply asks for two tools.
fn play(limit: Limit, budget: u64) -> World {
    let mut world = World::new(false, Limits::default());
    world.bounds.model.context_window = 1_000_000;
    let rolls: Vec<u8> = [8, 2, 0, 0, 7, 7].into_iter().cycle().take(6_000).collect();
    let mut dice = Dice::new(&rolls);
    let mut told = Vec::new();
    for _ in 0..3_000 {
        let used = drawn(&world, limit);
        assert!(used <= budget, "{used} of {budget} {limit}");
        world.bounds.allowance = share(limit, budget - used, 0);
        match world.next() {
            Step::Done(Outcome::OutOfBudget { limit: of, holder, partial, .. }) => {
                assert_eq!((of, holder, told), (limit, HOLDER, vec![limit]));
                assert!(partial.starts_with("text "), "the partial result is kept: {partial}");
                return world;
            }
            Step::Tell { limit, .. } => told.push(limit),
            _ => {}
        }
        world.step(&mut dice);
    }
    panic!("did not end: {:?}", world.next());
}

#[test]
fn a_run_is_told_and_then_ends_when_a_budget_is_used_up() {
    for (limit, budget) in [
        (Limit::Turns, 5),
        (Limit::ToolCalls, 5),
        (Limit::InputTokens, 4_000),
        (Limit::OutputTokens, 400),
        (Limit::Cost, 60_000),
    ] {
        let world = play(limit, budget);
        assert!(drawn(&world, limit) > 0, "{limit}");
    }
}

#[test]
fn a_reply_is_no_longer_than_what_is_left_pays_for() {
    let mut world = World::new(false, Limits::default());
    world.bounds.model.context_window = 1_000_000;
    world.bounds.model.max_output = 20_000;
    let max_tokens = |world: &World| match world.next() {
        Step::CallModel { max_tokens, reserved, .. } => {
            assert_eq!(reserved.output_tokens, max_tokens);
            Some(max_tokens)
        }
        Step::WaitForBudget => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(max_tokens(&world), Some(20_000));
    world.bounds.allowance = share(Limit::OutputTokens, 6_000, 0);
    assert_eq!(max_tokens(&world), Some(5_744), "room is kept for a report");
    // A long reply is possible now; a longer one would be, if others gave back what they hold.
    world.bounds.allowance = share(Limit::OutputTokens, 6_000, 90_000);
    assert_eq!(max_tokens(&world), Some(6_000));
    world.bounds.allowance = share(Limit::OutputTokens, 2_000, 90_000);
    assert_eq!(max_tokens(&world), None, "a short one would be cut");
    world.bounds.allowance = share(Limit::Turns, 0, 3);
    assert_eq!(max_tokens(&world), None);
    world.bounds.limits.turns = Some(0);
    let own = Outcome::stopped(Limit::Turns, "");
    assert_eq!(world.next(), Step::Finish(own), "its own limit comes first");
}

#[test]
fn what_is_left_is_told_after_what_runs_below_have_drawn() {
    let limits = Limits { cost: Some(Usd(10)), ..Limits::default() };
    let mut world = World::new(false, limits);
    let left = |world: &World| match world.next() {
        Step::Finish(Outcome::Stopped { limit: Limit::Cost, shortfall: Some(short), .. }) => {
            short.left
        }
        other => panic!("{other:?}"),
    };
    world.bounds.allowance = share(Limit::Cost, 10, 0);
    assert_eq!(left(&world), 10);
    world.bounds.allowance = share(Limit::Cost, 3, 1);
    assert_eq!(left(&world), 4);
}

#[test]
fn calls_wait_for_a_budget_of_which_others_hold_some() {
    let mut world = World::new(false, Limits::default());
    world.reply_with_calls(3);
    world.bounds.allowance = share(Limit::ToolCalls, 2, 0);
    let Step::CallTools(calls) = world.next() else { panic!("{:?}", world.next()) };
    assert_eq!(calls.len(), 2);
    world.bounds.allowance = share(Limit::ToolCalls, 0, 4);
    assert_eq!(world.next(), Step::WaitForBudget);
    world.bounds.allowance = share(Limit::ToolCalls, 0, 0);
    let Step::Answer { calls, ending, by, .. } = world.next() else { panic!("{:?}", world.next()) };
    assert_eq!((calls.len(), ending), (3, Ending::OverLimit));
    assert!(by.starts_with("the budget of run "), "{by}");
}

#[test]
fn a_call_made_again_is_no_new_turn() {
    let mut world = World::new(false, Limits::default());
    world.bounds.allowance = share(Limit::Turns, 1, 0);
    let Step::CallModel { reserved, .. } = world.next() else { panic!("{:?}", world.next()) };
    let (purpose, extra) = (Purpose::Turn, Extra::default());
    let model = String::new();
    world.push(Event::ModelCalled(ModelCalled { reserved, purpose, model, share: None, extra }));
    world.model_failed(FailureKind::Other, Some(Remedy::retry(10)));
    world.bounds.allowance = share(Limit::Turns, 0, 0);
    assert!(matches!(world.next(), Step::CallModel { .. }), "{:?}", world.next());
}

/// A log in memory, beside a budget of money that others draw on too.
struct Bank {
    records: Mutex<Vec<Record>>,
    left: Mutex<u64>,
    held: Mutex<u64>,
    /// Looks at the budget until others give back what they hold.
    looks: Mutex<Option<u32>>,
    /// Draws that others have made since it was looked at.
    overtaken: Mutex<u32>,
}

#[async_trait]
impl Journal for Bank {
    async fn record(&self, events: Vec<Event>, expect: Expect) -> Result<Seq, JournalError> {
        let mut records = self.records.lock().unwrap();
        let last = Seq(records.len() as u64);
        if matches!(expect, Expect::Last(expected) if expected != last) {
            return Err(JournalError::Moved);
        }
        for event in &events {
            if let Event::ModelCalled(called) = event {
                let (mut left, mut overtaken) =
                    (self.left.lock().unwrap(), self.overtaken.lock().unwrap());
                if *overtaken > 0 || called.reserved.cost.0 > *left {
                    // Someone has drawn, and gives it back before the budget is looked at.
                    let held = 1 + u64::from(*overtaken);
                    *overtaken = overtaken.saturating_sub(1);
                    let (limit, holder) = (Limit::Cost, HOLDER);
                    return Err(JournalError::OverBudget(Share { limit, holder, left: 0, held }));
                }
                *left -= called.reserved.cost.0;
            }
        }
        for event in events {
            let (run, seq) = (RunId::from_u128(1), Seq(records.len() as u64 + 1));
            let extra = Extra::default();
            records.push(Record { run, seq, at: 0, version: 1, event, extra });
        }
        Ok(last.next())
    }

    async fn read_after(&self, seq: Seq) -> Result<Vec<Record>, JournalError> {
        Ok(self.records.lock().unwrap()[seq.0 as usize..].to_vec())
    }

    fn tail(&self) -> Seq {
        Seq(self.records.lock().unwrap().len() as u64)
    }

    async fn changed(&self, _seq: Seq) {
        std::future::pending().await
    }

    async fn allowance(&self) -> Result<Allowance, JournalError> {
        let mut looks = self.looks.lock().unwrap();
        let (mut left, mut held) = (self.left.lock().unwrap(), self.held.lock().unwrap());
        *looks = looks.map(|looks| looks.saturating_sub(1));
        if *looks == Some(0) {
            *left += std::mem::take(&mut *held);
        }
        Ok(share(Limit::Cost, *left, *held))
    }
}

/// Runs one question with a budget. Returns how it ended, how long it took, and the log.
async fn ask(left: u64, held: u64, looks: Option<u32>, overtaken: u32) -> (Ended, Duration, Bank) {
    let case = Case::new(false, None, Limits::default(), &["done"]);
    let bank = Bank {
        records: Mutex::new(case.log.records.clone()),
        left: Mutex::new(left),
        held: Mutex::new(held),
        looks: Mutex::new(looks),
        overtaken: Mutex::new(overtaken),
    };
    let began = tokio::time::Instant::now();
    let ended = run(&case.agent, &bank, &CancellationToken::new()).await.unwrap();
    (ended, began.elapsed(), bank)
}

fn calls(bank: &Bank) -> usize {
    let records = bank.records.lock().unwrap();
    records.iter().filter(|record| matches!(record.event, Event::ModelCalled(_))).count()
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_what_others_hold_and_goes_on() {
    let (ended, took, bank) = ask(100, 1_000_000, Some(5), 0).await;
    assert_eq!(ended, Ended::Finished(Outcome::completed("done")));
    assert!(took > Duration::ZERO && took < Duration::from_secs(10), "{took:?}");
    assert_eq!(calls(&bank), 1);
}

/// The run ended because its next call could cost more than is left.
fn check_out_of_money(ended: &Ended, left: u64) {
    match ended {
        Ended::Finished(Outcome::OutOfBudget { limit: Limit::Cost, holder, shortfall, .. }) => {
            let short = shortfall.as_ref().expect("it says what it needed");
            assert_eq!((*holder, short.left), (HOLDER, left));
            assert!(short.needed > left, "{short:?}");
        }
        ended => panic!("{ended:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_wait_for_ever() {
    let (ended, took, bank) = ask(100, 1_000_000, None, 0).await;
    check_out_of_money(&ended, 100);
    assert!(took >= Duration::from_secs(600) && took < Duration::from_secs(610), "{took:?}");
    assert_eq!(calls(&bank), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_nothing_to_wait_for_ends_at_once() {
    let (ended, took, _) = ask(100, 0, None, 0).await;
    check_out_of_money(&ended, 100);
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_overtaken_draws_again_and_loses_nothing() {
    let (ended, _, bank) = ask(1_000_000, 0, None, 3).await;
    assert_eq!(ended, Ended::Finished(Outcome::completed("done")));
    assert_eq!(calls(&bank), 1, "what was refused is not in the log");
}
