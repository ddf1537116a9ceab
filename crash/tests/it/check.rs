//! The checker of the crash harness must be able to fail, and its list of fail-points must be
//! that of the sources.

use posse_crash::{Effect, Evidence, POINTS, Promise, RunLog, check as find_violations, names_in};
use serde_json::{Value, json};
use std::path::Path;

const RUN: &str = "run-1";

fn started() -> Value {
    json!({"type": "run_started"})
}

fn said() -> Value {
    json!({"type": "message_received", "message": {"parts": [{"type": "text", "text": "go"}]}})
}

fn called() -> Value {
    json!({"type": "model_called"})
}

fn replied(calls: &[(&str, &str)]) -> Value {
    let parts: Vec<Value> = calls
        .iter()
        .map(|(id, nonce)| {
            let input = json!({"command": format!("echo {nonce} >> ledger")});
            json!({"type": "tool_call", "id": id, "name": "Bash", "input": input})
        })
        .collect();
    json!({"type": "model_replied", "seen": 2, "message": {"parts": parts}})
}

fn tool_started(id: &str) -> Value {
    json!({"type": "tool_started", "call": id, "tool": "Bash"})
}

fn tool_finished(id: &str, ending: &str) -> Value {
    let failed = ending != "returned";
    json!({"type": "tool_finished", "call": id, "ending": ending, "output": {"is_error": failed}})
}

fn finished(outcome: &str) -> Value {
    json!({"type": "run_finished", "outcome": {"kind": outcome}})
}

/// A run that called one tool, and ended well.
fn good() -> Vec<Value> {
    vec![
        started(),
        said(),
        called(),
        replied(&[("c1", "fx-1.")]),
        tool_started("c1"),
        tool_finished("c1", "returned"),
        called(),
        replied(&[]),
        finished("completed"),
    ]
}

fn evidence(events: Vec<Value>) -> Evidence {
    let numbered = events.into_iter().zip(1..);
    let records = numbered.map(|(event, seq)| json!({"run": RUN, "seq": seq, "event": event}));
    Evidence {
        printed: vec![json!({"run": RUN, "seq": 1, "event": started()})],
        expected_runs: 1..=1,
        logs: vec![RunLog { run: RUN.to_owned(), records: records.collect() }],
        effects: vec![Effect { nonce: "fx-1.".to_owned(), seen: 1 }],
        messages: vec!["go".to_owned()],
        requests: 2,
        asked: Vec::new(),
        grace_ms: 250,
    }
}

#[track_caller]
fn check(evidence: &Evidence, expected: &[Promise]) {
    let found: Vec<Promise> =
        find_violations(evidence).into_iter().map(|violation| violation.promise).collect();
    assert_eq!(found, expected, "{:?}", find_violations(evidence));
}

/// The good log with `event` in place of the one at `position`, counted from 1.
fn with(position: usize, event: Value) -> Vec<Value> {
    let mut events = good();
    events[position - 1] = event;
    events
}

/// The good log with `event` before the one at `position`, counted from 1.
fn inserted(position: usize, event: Value) -> Vec<Value> {
    let mut events = good();
    events.insert(position - 1, event);
    events
}

/// The good log without the event at `position`, counted from 1.
fn without(position: usize) -> Vec<Value> {
    let mut events = good();
    events.remove(position - 1);
    events
}

#[test]
fn a_good_log_breaks_no_promise() {
    check(&evidence(good()), &[]);
}

#[test]
fn an_effect_that_happened_twice_is_found() {
    let mut twice = evidence(good());
    twice.effects[0].seen = 2;
    check(&twice, &[Promise::EffectAtMostOnce]);
}

#[test]
fn an_effect_that_a_returned_call_did_not_have_is_found() {
    let mut never = evidence(good());
    never.effects[0].seen = 0;
    check(&never, &[Promise::EffectAtMostOnce]);
}

#[test]
fn an_interrupted_call_may_have_had_its_effect_or_not_but_not_twice() {
    let mut interrupted = evidence(with(6, tool_finished("c1", "interrupted")));
    for (seen, expected) in [(0, &[][..]), (1, &[]), (2, &[Promise::EffectAtMostOnce])] {
        interrupted.effects[0].seen = seen;
        check(&interrupted, expected);
    }
}

#[test]
fn an_effect_of_a_call_that_never_started_is_found() {
    let mut refused = with(6, tool_finished("c1", "refused"));
    refused.remove(4);
    check(&evidence(refused), &[Promise::EffectAtMostOnce]);
}

#[test]
fn a_call_that_was_started_again_is_found_unless_it_may_be() {
    check(&evidence(inserted(6, tool_started("c1"))), &[Promise::EffectAtMostOnce]);
    let repeatable = json!({"type": "tool_started", "call": "c1", "repeatable": true});
    let mut events = with(5, repeatable.clone());
    events.insert(5, repeatable);
    check(&evidence(events), &[]);
}

#[test]
fn a_lost_run_is_found() {
    let mut lost = evidence(good());
    lost.printed.push(json!({"run": "run-2", "sent": true}));
    check(&lost, &[Promise::NoRunLost]);
    lost = Evidence { logs: Vec::new(), requests: 0, ..evidence(good()) };
    let nothing =
        [Promise::NoRunLost, Promise::NoRunLost, Promise::EffectAtMostOnce, Promise::MessageOnce];
    check(&lost, &nothing);
}

#[test]
fn what_was_shown_and_is_not_in_the_log_is_found() {
    let mut shown = evidence(good());
    shown.printed.push(json!({"run": RUN, "seq": 9, "event": finished("failed")}));
    shown.printed.push(json!({"run": RUN, "seq": 10, "event": said()}));
    shown.printed.push(json!({"run": RUN, "outcome": {"kind": "cancelled"}}));
    check(&shown, &[Promise::ShownIsStored; 3]);
    shown.printed = vec![
        json!({"run": RUN, "seq": 9, "event": finished("completed")}),
        json!({"run": RUN, "outcome": {"kind": "completed"}}),
        json!({"text": "a delta"}),
    ];
    check(&shown, &[]);
}

#[test]
fn a_run_that_was_made_twice_is_found() {
    let mut two = evidence(good());
    let mut again = two.logs[0].clone();
    "run-2".clone_into(&mut again.run);
    for record in &mut again.records {
        record["run"] = "run-2".into();
    }
    two.logs.push(again);
    check(
        &two,
        &[Promise::NoRunLost, Promise::OrderedLog, Promise::EffectAtMostOnce, Promise::MessageOnce],
    );
}

#[test]
fn a_second_answer_is_found() {
    let again = tool_finished("c1", "interrupted");
    check(&evidence(inserted(7, again)), &[Promise::AnsweredOnce]);
}

#[test]
fn an_unanswered_call_is_found() {
    check(&evidence(without(6)), &[Promise::AnsweredOnce]);
}

#[test]
fn a_result_without_a_start_is_found() {
    let expected = [Promise::IntentFirst, Promise::EffectAtMostOnce];
    check(&evidence(without(5)), &expected);
}

#[test]
fn an_answer_to_no_call_is_found() {
    check(&evidence(inserted(7, tool_finished("c9", "returned"))), &[Promise::OrderedLog]);
}

#[test]
fn an_event_after_the_end_is_found() {
    let mut events = good();
    events.push(json!({"type": "time_passed"}));
    check(&evidence(events), &[Promise::NothingAfterEnd]);
}

#[test]
fn a_message_may_follow_the_end_but_must_be_answered() {
    let mut events = good();
    events.push(json!({"type": "message_received", "message": {"parts": []}}));
    check(&evidence(events.clone()), &[Promise::NoRunStuck]);
    let answer = json!({"type": "model_replied", "seen": 11, "message": {"parts": []}});
    events.extend([called(), answer, finished("completed")]);
    check(&evidence(events), &[]);
}

#[test]
fn an_end_that_leaves_a_message_unanswered_is_found() {
    let late = json!({"type": "message_received", "message": {"parts": []}});
    check(&evidence(inserted(9, late)), &[Promise::MessageOnce]);
}

#[test]
fn a_run_without_an_end_is_found_unless_it_is_a_session_at_rest() {
    check(&evidence(without(9)), &[Promise::NoRunStuck]);
    let session = |mut events: Vec<Value>| {
        events[0] = json!({"type": "run_started", "session": true});
        Evidence { printed: Vec::new(), ..evidence(events) }
    };
    check(&session(without(9)), &[]);
    let open = Evidence { requests: 1, ..session(good()[..5].to_vec()) };
    check(&open, &[Promise::NoRunStuck, Promise::AnsweredOnce]);
}

#[test]
fn a_cancelled_run_that_completed_is_found() {
    let request = json!({"type": "cancel_requested", "scope": "run"});
    check(&evidence(inserted(7, request.clone())), &[Promise::RightOutcome]);
    let mut events = inserted(7, request);
    events[9] = finished("cancelled");
    check(&evidence(events), &[]);
}

#[test]
fn a_run_that_failed_is_found() {
    check(&evidence(with(9, finished("failed"))), &[Promise::RightOutcome]);
}

#[test]
fn a_gap_in_the_log_is_found() {
    let mut gap = evidence(good());
    gap.logs[0].records[8]["seq"] = 10.into();
    check(&gap, &[Promise::OrderedLog]);
}

#[test]
fn a_second_beginning_is_found() {
    check(&evidence(inserted(3, started())), &[Promise::OrderedLog]);
}

#[test]
fn a_reply_or_a_request_without_a_stored_intent_is_found() {
    let mut events = without(7);
    check(&evidence(events.clone()), &[Promise::IntentFirst, Promise::IntentFirst]);
    events = good();
    check(&Evidence { requests: 3, ..evidence(events) }, &[Promise::IntentFirst]);
}

#[test]
fn a_lost_or_repeated_message_is_found() {
    // The second one is not answered either: the reply had not seen it.
    check(&evidence(inserted(3, said())), &[Promise::MessageOnce; 2]);
    let mut unheard = evidence(good());
    unheard.messages.push("and more".to_owned());
    check(&unheard, &[Promise::MessageOnce]);
}

#[test]
fn a_log_that_is_no_json_is_refused_by_line() {
    let error = RunLog::parse(RUN, "{}\nnonsense\n").unwrap_err();
    assert!(error.starts_with("line 2"), "{error}");
}

#[test]
fn every_fail_point_of_the_sources_is_in_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in ["agent", "model", "offline", "runtime", "store", "tools", "cli", "server"] {
        collect(&root.join(folder).join("src"), &mut found);
    }
    // Both engines pass some of them.
    found.sort();
    found.dedup();
    let mut listed: Vec<String> = POINTS.iter().map(|point| point.name.to_owned()).collect();
    listed.sort();
    assert_eq!(found, listed, "each in crash/src/points.rs");
}

fn collect(folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            found.extend(names_in(&source).map(str::to_owned));
        }
    }
}
