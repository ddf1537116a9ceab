//! What a cell must have come to, by the expectation of its fault.

use super::behaviour::{ANSWER, Behaviour, SIGNATURE};
use super::cell::{Cell, Hit, MODEL, RETRIES, Remains};
use posse_testkit::{Expectation, Failure, Wire};
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

/// Malformed and stalled replies are asked for again this often at most, as they may be paid for.
const COSTLY_RETRIES: usize = 2;

/// Longer than the longest cell by far, and shorter than any wait that is not kept within bounds.
const LONGEST: Duration = Duration::from_secs(50);

/// The wait that a provider asks for, in milliseconds.
const ASKED: [(&str, u64); 6] = [
    ("rate-limit-seconds", 1000),
    ("rate-limit-date", 1000),
    ("rate-limit-fraction", 50),
    ("rate-limit-milliseconds", 50),
    ("rate-limit-retry-info", 50),
    ("unavailable", 50),
];

/// The most that is waited beyond that, or where nobody asks.
const OWN_WAIT_MS: u64 = 100;

/// Faults that are harmless but for the connection.
const CLOSING: [&str; 4] = ["no-length", "http-1-0", "closed-after", "gzip-lie"];

/// A call that failed, as the log tells it.
struct Failed {
    failure: Failure,
    reason: String,
    /// How long is waited before the call is made again, if it is.
    wait_ms: Option<u64>,
}

impl Failed {
    fn made_again(&self) -> bool {
        self.wait_ms.is_some()
    }
}

/// Says what is wrong with what a run left behind.
pub fn judge(cell: &Cell, remains: &Remains) -> Result<(), String> {
    let failed = failures(&remains.events)?;
    let found = || {
        let told: Vec<String> = failed
            .iter()
            .map(|failed| {
                let Failed { failure, reason, wait_ms } = failed;
                format!("{failure:?} ({reason}), again after {wait_ms:?} ms")
            })
            .collect();
        format!(
            "exit {:?}, failures {told:?}, ledger {:?}, standard error {:?}",
            remains.exit.code, remains.ledger, remains.exit.err
        )
    };
    let judged = || -> Result<(), String> {
        ensure(remains.exit.took < LONGEST, "it took too long")?;
        ensure(remains.strays.is_empty(), "a redirect to another host was followed")?;
        let expectation = cell.expectation();
        let known = |failed: &Failed| expectation.failures().contains(&failed.failure);
        ensure(failed.iter().all(known), "a failure of the wrong kind")?;
        let once: HashSet<&String> = remains.ledger.iter().collect();
        ensure(once.len() == remains.ledger.len(), "a call ran twice")?;
        let asked = ASKED.iter().find(|(name, _)| *name == cell.fault.name());
        let asked = asked.map_or(0, |(_, asked)| *asked);
        let mut waits = failed.iter().filter_map(|failed| failed.wait_ms);
        let kept = |wait: u64| (asked..=asked + OWN_WAIT_MS).contains(&wait);
        ensure(waits.all(kept), "a wait that nobody asked for")?;
        match expectation {
            Expectation::Unharmed => {
                ensure(failed.is_empty(), "a failure where none was expected")?;
                let reused = CLOSING.contains(&cell.fault.name()) || remains.connections == 1;
                ensure(reused, "a connection was not used again")?;
                completed(cell, remains)
            }
            Expectation::Retried(_) => match cell.hit {
                Hit::First | Hit::Last => {
                    // Where replies are soon given up, a busy machine can make a good one late.
                    let most = if cell.is_slow() { RETRIES } else { 1 };
                    ensure((1..=most).contains(&failed.len()), "one retry is due")?;
                    completed(cell, remains)
                }
                Hit::Every => gave_up(cell, remains, &failed),
            },
            Expectation::Refused(_) => {
                ensure(failed.len() == 1 && !failed[0].made_again(), "no retry is due")?;
                ended_badly(cell, remains, &failed)
            }
            Expectation::Tolerated(_) => match (failed.len(), cell.hit) {
                (0, _) if cell.fault.name() == "empty-reply" => said_nothing(cell, remains),
                (0, _) | (1, Hit::First | Hit::Last) => completed(cell, remains),
                _ => gave_up(cell, remains, &failed),
            },
            Expectation::NeverRun(_) => match (failed.len(), cell.hit) {
                (0, _) => not_run(cell, remains),
                (1, Hit::First | Hit::Last) => completed(cell, remains),
                _ => gave_up(cell, remains, &failed),
            },
        }
    };
    judged().map_err(|reason| format!("{reason}: {}", found()))
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| otherwise.to_owned())
}

/// The run came to its answer, and each call ran once.
fn completed(cell: &Cell, remains: &Remains) -> Result<(), String> {
    ensure(remains.exit.code == Some(0), "exit code 0 is due")?;
    let output = outcome(remains)["output"].as_str().unwrap_or_default();
    ensure(output == ANSWER, &format!("the answer is {output:?}"))?;
    let lines = cell.behaviour.ledger();
    ensure(remains.ledger == lines, "each call is to run once")?;
    if cell.behaviour == Behaviour::Thinking {
        thinking_kept(cell.wire, remains)?;
    }
    Ok(())
}

/// The run ended with a reply that says nothing, which is an answer: there may be nothing to add.
fn said_nothing(cell: &Cell, remains: &Remains) -> Result<(), String> {
    ensure(remains.exit.code == Some(0), "exit code 0 is due")?;
    let lines = match cell.hit {
        Hit::Last => cell.behaviour.ledger(),
        Hit::First | Hit::Every => &[],
    };
    ensure(remains.ledger == lines, "each call is to run once")
}

/// What was thought went back as it came, where the wire has a way to send it back.
fn thinking_kept(wire: Wire, remains: &Remains) -> Result<(), String> {
    if wire == Wire::OpenAiChat {
        return Ok(());
    }
    let last = remains.requests.last().map(|request| request.raw.as_slice()).unwrap_or_default();
    let kept = String::from_utf8_lossy(last).contains(SIGNATURE);
    ensure(kept, "the thinking is not in the next request")
}

/// The run went on, and did without the spoilt call.
fn not_run(cell: &Cell, remains: &Remains) -> Result<(), String> {
    let spoilt = cell.behaviour.ledger().last().copied().unwrap_or_default();
    ensure(!remains.ledger.iter().any(|line| line == spoilt), "a spoilt call ran")?;
    // A reply that the cap on its length has ended may end the run, which is told as such.
    let capped = outcome(remains)["limit"] == "output_tokens";
    let code = if capped { Some(5) } else { Some(0) };
    ensure(remains.exit.code == code, "the run is to go on")
}

/// Patience came to its end: as many calls as it allows, and then a failure.
fn gave_up(cell: &Cell, remains: &Remains, failed: &[Failed]) -> Result<(), String> {
    let costly = |failed: &Failed| matches!(failed.failure, Failure::Malformed | Failure::Stalled);
    let retries = match failed.iter().any(costly) {
        true => RETRIES.min(COSTLY_RETRIES),
        false => RETRIES,
    };
    ensure(failed.len() == retries + 1, "patience allows other numbers of calls")?;
    let (last, before) = failed.split_last().ok_or("no failure")?;
    ensure(before.iter().all(Failed::made_again), "a call was not made again")?;
    ensure(!last.made_again(), "the last failure stands")?;
    ended_badly(cell, remains, failed)
}

/// The run failed, in words that name the model and the reason, and no call ran.
fn ended_badly(cell: &Cell, remains: &Remains, failed: &[Failed]) -> Result<(), String> {
    ensure(remains.exit.code == Some(1), "exit code 1 is due")?;
    let reason = outcome(remains)["reason"].as_str().unwrap_or_default();
    ensure(reason.contains(MODEL), &format!("{reason:?} does not name the model"))?;
    let last = failed.last().map(|failed| failed.reason.as_str()).unwrap_or_default();
    ensure(reason == last, &format!("{reason:?} is not the reason"))?;
    let lines = match cell.hit {
        Hit::Last => cell.behaviour.ledger(),
        Hit::First | Hit::Every => &[],
    };
    ensure(remains.ledger == lines, "a call of a reply that failed ran")
}

fn outcome(remains: &Remains) -> &Value {
    let last = remains.events.last().unwrap_or(&Value::Null);
    &last["outcome"]
}

fn failures(events: &[Value]) -> Result<Vec<Failed>, String> {
    let failed = events.iter().filter(|event| event["type"] == "model_failed");
    let failed = failed.map(|event| {
        let reason = event["reason"].as_str().unwrap_or_default().to_owned();
        let wait_ms = event["remedy"]["retry"]["after_ms"].as_u64();
        Ok(Failed { failure: failure(&reason)?, reason, wait_ms })
    });
    failed.collect()
}

/// What kind of failure these words tell of.
fn failure(reason: &str) -> Result<Failure, String> {
    const WORDS: [(&str, Failure); 9] = [
        ("limits the rate of requests", Failure::RateLimited),
        ("is overloaded or in trouble", Failure::Overloaded),
        ("rejected the request", Failure::Rejected),
        ("does not accept the key", Failure::Unauthorised),
        ("the transcript does not fit the window", Failure::ContextOverflow),
        ("cannot reach", Failure::Unreachable),
        ("stalled: no event for", Failure::Stalled),
        ("was cut off", Failure::Cut),
        ("is malformed", Failure::Malformed),
    ];
    let told = WORDS.iter().find(|(words, _)| reason.contains(words));
    told.map(|(_, failure)| *failure).ok_or_else(|| format!("{reason:?} tells of no known failure"))
}
