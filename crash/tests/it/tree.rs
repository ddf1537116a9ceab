//! Logs of trees, for the tests of the checkers: a root, its child `lead`, and the child `leaf` of that.

use posse_crash::{Asked, Evidence, Promise, RunLog, check as find_violations};
use serde_json::{Value, json};

/// Events with the times at which they were stored.
pub type Log = Vec<(u64, Value)>;

/// A run with this parent, which started it in `way`: `("call", id)` or `("announce", way)`.
pub fn started(parent: &str, way: (&str, &str), ancestors: &[&str]) -> Value {
    let mut parent = json!({"run": parent, "ancestors": ancestors});
    parent[way.0] = way.1.into();
    json!({"type": "run_started", "parent": parent})
}

pub fn root_started() -> Value {
    json!({"type": "run_started"})
}

pub fn called() -> Value {
    json!({"type": "model_called"})
}

/// The text that reports the end of a run.
pub fn block(run: &str, outcome: &str) -> String {
    format!("<task_result id=\"x\" run=\"{run}\" agent=\"a\" outcome=\"{outcome}\">\nI")
}

pub fn cancel() -> Value {
    json!({"type": "cancel_requested", "scope": "run"})
}

pub fn finished(outcome: &str) -> Value {
    json!({"type": "run_finished", "outcome": {"kind": outcome}})
}

/// Checks that these logs break the promises `expected`. An empty log stands for a missing run.
#[track_caller]
pub fn check([root, lead, leaf]: [Log; 3], asked: Vec<Asked>, expected: &[Promise]) {
    let logs = [("root", root), ("lead", lead), ("leaf", leaf)].into_iter();
    let logs = logs.filter(|(_, log)| !log.is_empty()).map(|(run, log)| {
        let record = |((at, event), seq): ((u64, Value), u64)| {
            json!({"run": run, "seq": seq, "at": at, "event": event})
        };
        RunLog { run: run.to_owned(), records: log.into_iter().zip(1..).map(record).collect() }
    });
    let found = find_violations(&Evidence {
        printed: Vec::new(),
        expected_runs: 1..=3,
        logs: logs.collect(),
        effects: Vec::new(),
        messages: Vec::new(),
        requests: 0,
        asked,
        grace_ms: 250,
    });
    let promises: Vec<Promise> = found.iter().map(|violation| violation.promise).collect();
    assert_eq!(promises, expected, "{found:#?}");
}
