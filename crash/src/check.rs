//! The checker: finds broken promises in the logs and in what was seen from outside. Pure.

use super::announce::{FAILS, LATE};
use super::kin::check_kin;
use super::log::{RunLog, is_only_recorded, kind, tool_calls};
use super::told::{check_told, runs_in};
use super::violation::{Promise, Violation};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// What is known at the end of a cycle.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Every line of JSON that was printed. A run is acknowledged as soon as its id was printed.
    pub printed: Vec<Value>,
    /// How many runs there should be, at least and at most.
    pub expected_runs: RangeInclusive<usize>,
    /// The log of every run.
    pub logs: Vec<RunLog>,
    /// The effects of tools, as files show them.
    pub effects: Vec<Effect>,
    /// Messages to runs, each sent once.
    pub messages: Vec<String>,
    /// Requests that reached the model.
    pub requests: usize,
    /// What is in them, in the order in which they came.
    pub asked: Vec<Asked>,
    /// How long a subagent of a cancelled run may work on after the end of that run, in milliseconds.
    pub grace_ms: u64,
}

/// What is in a request to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The first text of a user, which says whose request it is.
    pub prompt: String,
    /// The runs whose ends it reports, once for each report.
    pub told: Vec<String>,
}

impl Asked {
    /// A request with these texts as messages.
    pub fn of(prompt: String, texts: &[String]) -> Self {
        let told = texts.iter().flat_map(|text| runs_in(text)).map(str::to_owned).collect();
        Asked { prompt, told }
    }
}

/// The effect of one scripted tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// A text that only the input of this call has. The workspace has it when the call is done.
    pub nonce: String,
    /// How often it is in the workspace.
    pub seen: usize,
}

/// Every promise that `evidence` shows to be broken.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut found = Vec::new();
    check_runs(evidence, &mut found);
    let mut calls = Vec::new();
    for log in &evidence.logs {
        let mut reading = Reading::of(log);
        reading.read();
        found.append(&mut reading.found);
        calls.append(&mut reading.settled);
    }
    check_kin(&evidence.logs, evidence.grace_ms, &mut found);
    check_told(&evidence.logs, &evidence.asked, &mut found);
    for effect in &evidence.effects {
        check_effect(effect, &calls, &mut found);
    }
    for text in &evidence.messages {
        let heard: usize = evidence.logs.iter().map(|log| log.heard(text)).sum();
        if heard != 1 {
            let detail = format!("{text:?} is in the logs {heard} times");
            found.push(Violation::of(Promise::MessageOnce, detail));
        }
    }
    let announced: usize = evidence.logs.iter().map(|log| log.count("model_called")).sum();
    if evidence.requests > announced {
        let detail = format!(
            "{} requests reached the model, {announced} are in the logs",
            evidence.requests
        );
        found.push(Violation::of(Promise::IntentFirst, detail));
    }
    found
}

fn check_runs(evidence: &Evidence, found: &mut Vec<Violation>) {
    let expected = &evidence.expected_runs;
    if !expected.contains(&evidence.logs.len()) {
        let detail = format!("{} runs where {expected:?} belong", evidence.logs.len());
        found.push(Violation::of(Promise::NoRunLost, detail));
    }
    let logs: BTreeMap<&str, &RunLog> =
        evidence.logs.iter().map(|log| (log.run.as_str(), log)).collect();
    let mut gone = BTreeSet::new();
    for line in &evidence.printed {
        let Some(run) = line["run"].as_str() else { continue };
        match logs.get(run) {
            Some(log) => check_printed(log, line, found),
            None => _ = gone.insert(run),
        }
    }
    for run in gone {
        found.push(Violation::of(Promise::NoRunLost, format!("run {run} is gone")));
    }
}

/// Posse stores before it shows: what was printed of a run must be in its log.
fn check_printed(log: &RunLog, line: &Value, found: &mut Vec<Violation>) {
    let stored = if let Some(position) = line["seq"].as_u64() {
        let index = usize::try_from(position).unwrap_or(usize::MAX).wrapping_sub(1);
        log.records.get(index) == Some(line)
    } else if line["outcome"]["kind"].is_string() {
        log.events().any(|event| event["outcome"] == line["outcome"])
    } else {
        true
    };
    if !stored {
        found.push(Violation::of(Promise::ShownIsStored, format!("not in the log: {line}")));
    }
}

fn check_effect(effect: &Effect, calls: &[Call], found: &mut Vec<Violation>) {
    let Effect { nonce, seen } = effect;
    let asked: Vec<&Call> = calls.iter().filter(|call| call.input.contains(nonce)).collect();
    if asked.len() > 1 {
        let detail = format!("the call of {nonce} is in the logs {} times", asked.len());
        found.push(Violation::of(Promise::OrderedLog, detail));
    }
    let least = asked.iter().filter(|call| call.certain).count();
    let most = asked.iter().filter(|call| call.started > 0).count();
    if *seen > most {
        let detail = format!("{nonce} was done {seen} times, begun {most} times");
        found.push(Violation::of(Promise::EffectAtMostOnce, detail));
    }
    if *seen < least {
        let detail = format!("{nonce} was done {seen} times, but its call returned");
        found.push(Violation::of(Promise::EffectAtMostOnce, detail));
    }
}

/// A tool call as the log has it.
#[derive(Clone, Debug, Default)]
struct Call {
    input: String,
    started: u32,
    repeatable: bool,
    answered: bool,
    /// It returned without an error, so it had its effect.
    certain: bool,
}

/// One pass over a log.
struct Reading<'a> {
    log: &'a RunLog,
    found: Vec<Violation>,
    /// Calls of replies before the last.
    settled: Vec<Call>,
    /// Calls of the last reply.
    calls: BTreeMap<String, Call>,
    outcome: Option<String>,
    cancelled: bool,
    model_calls: i64,
    last_message: u64,
    seen: u64,
}

impl<'a> Reading<'a> {
    fn of(log: &'a RunLog) -> Self {
        Reading {
            log,
            found: Vec::new(),
            settled: Vec::new(),
            calls: BTreeMap::new(),
            outcome: None,
            cancelled: false,
            model_calls: 0,
            last_message: 0,
            seen: 0,
        }
    }

    fn break_promise(&mut self, promise: Promise, detail: impl AsRef<str>) {
        let detail = format!("run {}: {}", self.log.run, detail.as_ref());
        self.found.push(Violation::of(promise, detail));
    }

    fn read(&mut self) {
        for (index, record) in self.log.records.iter().enumerate() {
            let position = index as u64 + 1;
            let in_place = record["seq"] == position && record["run"] == self.log.run.as_str();
            if !in_place {
                let detail = format!("record {position} is {}/{}", record["run"], record["seq"]);
                self.break_promise(Promise::OrderedLog, detail);
            }
            let event = &record["event"];
            let begins = kind(event) == "run_started";
            if begins != (index == 0) {
                let detail = format!("event {position} is {}", kind(event));
                self.break_promise(Promise::OrderedLog, detail);
            }
            self.place(position, event);
        }
        self.close();
    }

    fn place(&mut self, position: u64, event: &Value) {
        let kind = kind(event);
        // An announcement that the run no longer waits for may be recorded. Any other would start the run
        // again.
        let from_below = !event["from"]["child"].is_null();
        let may_follow = match kind {
            "message_received" => !from_below || is_only_recorded(event),
            "archived" => true,
            _ => false,
        };
        if self.outcome.is_some() && !may_follow {
            self.break_promise(Promise::NothingAfterEnd, format!("{kind} at {position}"));
        }
        match kind {
            "message_received" if is_only_recorded(event) => {}
            "message_received" => {
                // A message to a run that has ended reopens it. An earlier cancel no longer counts.
                if self.outcome.take().is_some() {
                    self.cancelled = false;
                }
                self.last_message = position;
            }
            "model_called" => self.model_calls = 1,
            "model_replied" | "model_failed" | "compacted" => self.settle_model(position, event),
            "tool_started" => self.start(event),
            "tool_finished" => self.finish(event),
            "cancel_requested" => self.cancelled |= event["scope"] != "turn",
            "run_finished" => self.end(position, event),
            _ => {}
        }
    }

    fn settle_model(&mut self, position: u64, event: &Value) {
        let kind = kind(event);
        if self.model_calls == 0 {
            self.break_promise(Promise::IntentFirst, format!("{kind} at {position} uncalled"));
        }
        self.model_calls = 0;
        if kind != "model_replied" {
            return;
        }
        self.settle_calls();
        self.seen = event["seen"].as_u64().unwrap_or_default();
        for (id, input) in tool_calls(event) {
            let call = Call { input: input.to_string(), ..Call::default() };
            self.calls.insert(id.to_owned(), call);
        }
    }

    fn settle_calls(&mut self) {
        for (id, call) in std::mem::take(&mut self.calls) {
            if !call.answered {
                self.break_promise(Promise::AnsweredOnce, format!("{id} was never answered"));
            }
            self.settled.push(call);
        }
    }

    fn start(&mut self, event: &Value) {
        let id = event["call"].as_str().unwrap_or_default();
        let repeatable = event["repeatable"] == true;
        // The child may have ended while the next process was about to look for it.
        let finds_its_child = repeatable && event["tool"] == "Task";
        let problem = match self.calls.get_mut(id) {
            None => Some((Promise::OrderedLog, "was started, but is no call of the last reply")),
            Some(call) => {
                call.started += 1;
                let repeated = call.started > 1 && !(repeatable && call.repeatable);
                call.repeatable = repeatable;
                match (call.answered, repeated) {
                    (true, false) if finds_its_child && call.started > 1 => None,
                    (true, _) => Some((Promise::AnsweredOnce, "was started after its answer")),
                    (_, true) => Some((Promise::EffectAtMostOnce, "was started twice")),
                    _ => None,
                }
            }
        };
        if let Some((promise, what)) = problem {
            self.break_promise(promise, format!("{id} {what}"));
        }
    }

    fn finish(&mut self, event: &Value) {
        let id = event["call"].as_str().unwrap_or_default();
        let returned = event["ending"].as_str().unwrap_or("returned") == "returned";
        let failed = event["output"]["is_error"] == true;
        let problem = match self.calls.get_mut(id) {
            None => Some((Promise::OrderedLog, "was answered, but is no call of the last reply")),
            Some(call) if call.answered => Some((Promise::AnsweredOnce, "was answered twice")),
            Some(call) => {
                call.answered = true;
                call.certain = returned && !failed;
                let unannounced = returned && call.started == 0;
                unannounced.then_some((Promise::IntentFirst, "returned without having started"))
            }
        };
        if let Some((promise, what)) = problem {
            self.break_promise(promise, format!("{id} {what}"));
        }
    }

    fn end(&mut self, position: u64, event: &Value) {
        self.settle_calls();
        let outcome = event["outcome"]["kind"].as_str().unwrap_or("unknown").to_owned();
        let right = if self.cancelled { "cancelled" } else { promised(self.log.prompt()) };
        if outcome != right {
            let detail = format!("ended as {} at {position}, not as {right}", event["outcome"]);
            self.break_promise(Promise::RightOutcome, detail);
        }
        if outcome == "completed" && self.last_message > self.seen {
            let detail = format!("ended without an answer to event {}", self.last_message);
            self.break_promise(Promise::MessageOnce, detail);
        }
        self.outcome = Some(outcome);
    }

    /// What must hold at the end of the log.
    fn close(&mut self) {
        let session = self.log.events().next().is_some_and(|event| event["session"] == true);
        let busy = self.calls.values().any(|call| !call.answered) || self.last_message > self.seen;
        if self.outcome.is_none() && (!session || busy) {
            let last = self.log.events().last().map(kind).unwrap_or("nothing");
            let detail = format!("has not ended; its last event is {last}");
            self.break_promise(Promise::NoRunStuck, detail);
        }
        self.settle_calls();
    }
}

/// How a run with this prompt ends if it is not cancelled.
fn promised(prompt: &str) -> &'static str {
    match prompt {
        told if told.contains(FAILS) => "failed",
        told if told.contains(LATE) => "timed_out",
        _ => "completed",
    }
}
