//! The checker of trees: the logs of parents and children must agree. Pure.
//!
//! All events of one transaction have the same time, and later transactions have no earlier time.

use super::log::{RunLog, ancestors, is_only_recorded, kind, output_text};
use super::violation::{Promise, Violation};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A run as its log has it.
struct Member<'a> {
    run: &'a str,
    /// The runs above it, the root first.
    ancestors: Vec<&'a str>,
    /// One for its start, and one for each message after an end.
    legs: Vec<Leg<'a>>,
    /// The children in its log.
    children: Vec<Child<'a>>,
    /// The results of its calls.
    results: Vec<ToolResult<'a>>,
}

/// A call of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Caller<'a> {
    run: &'a str,
    call: Option<&'a str>,
}

struct Leg<'a> {
    /// The call that waits for its end.
    caller: Option<Caller<'a>>,
    began_at: u64,
    /// When it was asked to stop.
    told_at: Option<u64>,
    /// Model calls since then.
    calls_since: usize,
    end: Option<End<'a>>,
}

#[derive(Clone, Copy)]
struct End<'a> {
    at: u64,
    outcome: &'a str,
}

struct Child<'a> {
    run: &'a str,
    call: Option<&'a str>,
    /// The call resumed an existing child.
    resumed: bool,
    turn: usize,
    at: u64,
    /// Its parent had been asked to stop before.
    late: bool,
}

struct ToolResult<'a> {
    call: &'a str,
    turn: usize,
    at: u64,
    /// The run whose end it reports, and the outcome of that run.
    tells_of: Option<(&'a str, &'a str)>,
}

/// Adds the problems of the trees in `logs`.
pub(super) fn check_kin(logs: &[RunLog], grace_ms: u64, found: &mut Vec<Violation>) {
    let members: Vec<Member<'_>> = logs.iter().map(Member::of).collect();
    let family = Family {
        by_run: members.iter().map(|member| (member.run, member)).collect(),
        members: &members,
        grace_ms,
    };
    for member in &members {
        let mut problems = Vec::new();
        family.check_children(member, &mut problems);
        family.check_parent(member, &mut problems);
        family.check_told(member, &mut problems);
        family.check_results(member, &mut problems);
        family.check_stopped(member, &mut problems);
        let with_run = |(promise, detail): (Promise, String)| {
            Violation::of(promise, format!("run {}: {detail}", member.run))
        };
        found.extend(problems.into_iter().map(with_run));
    }
}

type Problems = Vec<(Promise, String)>;

struct Family<'a> {
    by_run: BTreeMap<&'a str, &'a Member<'a>>,
    members: &'a [Member<'a>],
    grace_ms: u64,
}

impl<'a> Family<'a> {
    /// Every child in its log exists and names it as its caller, and no call has two children.
    fn check_children(&self, member: &Member<'_>, problems: &mut Problems) {
        let mut calls = BTreeSet::new();
        for child in &member.children {
            if child.call.is_some() && !calls.insert((child.turn, child.call)) {
                let detail = format!("call {:?} has two children", child.call);
                problems.push((Promise::KinAgree, detail));
            }
            if child.late {
                let detail = format!("started {} after it was told to stop", child.run);
                problems.push((Promise::StopsBelow, detail));
            }
            let by_this = Some(Caller { run: member.run, call: child.call });
            let knows = self.by_run.get(child.run).is_some_and(|known| {
                let mut legs = known.legs.iter().skip(usize::from(child.resumed));
                match child.resumed {
                    true => legs.any(|leg| leg.caller == by_this),
                    false => legs.next().is_some_and(|leg| leg.caller == by_this),
                }
            });
            if !knows {
                let detail = format!("its child {} does not know it", child.run);
                problems.push((Promise::KinAgree, detail));
            }
        }
    }

    /// The run that started or resumed it exists, and has it in its log.
    fn check_parent(&self, member: &Member<'_>, problems: &mut Problems) {
        for (index, leg) in member.legs.iter().enumerate() {
            let Some(caller) = leg.caller else { continue };
            let parent = self.by_run.get(caller.run);
            let times = parent.map_or(0, |parent| parent.starts_of(member, index).count());
            if times != 1 {
                let detail = format!("{caller:?} knows of it {times} times");
                problems.push((Promise::KinAgree, detail));
            }
            let above = parent.map(|parent| {
                let mut above = parent.ancestors.clone();
                above.push(parent.run);
                above
            });
            if above.is_some_and(|above| above != member.ancestors) {
                let detail = format!("{:?} are not those above it", member.ancestors);
                problems.push((Promise::KinAgree, detail));
            }
        }
    }

    /// The call that waits for it gets each of its ends once.
    fn check_told(&self, member: &Member<'_>, problems: &mut Problems) {
        for (index, leg) in member.legs.iter().enumerate() {
            let (Some(Caller { run, call: Some(call) }), Some(end)) = (leg.caller, leg.end) else {
                continue;
            };
            let Some(parent) = self.by_run.get(run) else { continue };
            let Some(start) = parent.starts_of(member, index).next() else { continue };
            let told: Vec<&ToolResult<'_>> = parent
                .results
                .iter()
                .filter(|result| result.call == call && result.turn == start.turn)
                .filter(|result| result.tells_of.is_some_and(|(run, _)| run == member.run))
                .collect();
            let detail = match told.as_slice() {
                [] if parent.has_stopped_waiting(start.at, end.at) => continue,
                [one] if one.at < end.at => "its end was told before it came".to_owned(),
                [one] if one.tells_of.is_none_or(|(_, outcome)| outcome != end.outcome) => {
                    format!("it ended as {}, and {:?} was told", end.outcome, one.tells_of)
                }
                [_] => continue,
                told => format!("its end was told {} times to {run}, {call}", told.len()),
            };
            problems.push((Promise::ToldOnce, detail));
        }
    }

    /// Every result that reports the end of a run has such an end.
    fn check_results(&self, member: &Member<'_>, problems: &mut Problems) {
        for result in &member.results {
            let Some((run, _)) = result.tells_of else { continue };
            let caller = Some(Caller { run: member.run, call: Some(result.call) });
            let ended = |leg: &Leg<'_>| leg.caller == caller && leg.end.is_some();
            if !self.by_run.get(run).is_some_and(|child| child.legs.iter().any(ended)) {
                let detail = format!("{} was told of an end of {run} that it was not", result.call);
                problems.push((Promise::ToldOnce, detail));
            }
        }
    }

    /// After a cancel it stops, and no run below it starts or works on.
    fn check_stopped(&self, member: &Member<'_>, problems: &mut Problems) {
        for (index, leg) in member.legs.iter().enumerate() {
            let Some(told_at) = leg.told_at else { continue };
            if leg.calls_since > 1 {
                let detail = format!("called its model {} times when stopping", leg.calls_since);
                problems.push((Promise::StopsBelow, detail));
            }
            let again_at = member.legs.get(index + 1).map_or(u64::MAX, |next| next.began_at);
            let below = self.members.iter().filter(|other| other.ancestors.contains(&member.run));
            for (other, below) in
                below.flat_map(|other| other.legs.iter().map(move |it| (other, it)))
            {
                if told_at < below.began_at && below.began_at < again_at {
                    let detail = format!("{} began below it when it was stopping", other.run);
                    problems.push((Promise::StopsBelow, detail));
                }
                let (Some(own), Some(end)) = (leg.end, below.end) else { continue };
                let unaware = below.told_at.is_none() && below.began_at <= told_at;
                if unaware && end.at > own.at.saturating_add(self.grace_ms) {
                    let detail = format!("{} ran on below it as if nothing were", other.run);
                    problems.push((Promise::StopsBelow, detail));
                }
            }
        }
    }
}

impl<'a> Member<'a> {
    fn of(log: &'a RunLog) -> Self {
        let (ancestors, legs, children, results) = (vec![], vec![], vec![], vec![]);
        let mut member = Member { run: &log.run, ancestors, legs, children, results };
        let mut turn = 0;
        for record in &log.records {
            turn += usize::from(kind(&record["event"]) == "model_replied");
            member.read(&record["event"], record["at"].as_u64().unwrap_or_default(), turn);
        }
        member
    }

    fn read(&mut self, event: &'a Value, at: u64, turn: usize) {
        match kind(event) {
            "run_started" => {
                self.ancestors = ancestors(event);
                self.legs.push(Leg::new(&event["parent"], at));
            }
            "message_received" if is_only_recorded(event) => {}
            "message_received" if self.legs.last().is_some_and(|leg| leg.end.is_some()) => {
                self.legs.push(Leg::new(&event["from"]["run"], at));
            }
            "child_started" => {
                let late = self.legs.last().is_some_and(|leg| leg.told_at.is_some());
                let run = event["run"].as_str().unwrap_or_default();
                let (call, resumed) = (event["call"].as_str(), event["resumed"] == true);
                self.children.push(Child { run, call, resumed, turn, at, late });
            }
            "tool_finished" => {
                let call = event["call"].as_str().unwrap_or_default();
                let tells_of = output_text(event).and_then(tells_of);
                self.results.push(ToolResult { call, turn, at, tells_of });
            }
            kind => {
                let Some(leg) = self.legs.last_mut() else { return };
                match kind {
                    "model_called" => leg.calls_since += usize::from(leg.told_at.is_some()),
                    "cancel_requested" if event["scope"] != "turn" => {
                        leg.told_at.get_or_insert(at);
                    }
                    "run_finished" => {
                        let outcome = event["outcome"]["kind"].as_str().unwrap_or_default();
                        leg.end = Some(End { at, outcome });
                    }
                    _ => {}
                }
            }
        }
    }

    /// The events of this run that started leg `index` of `child`.
    fn starts_of(
        &self,
        child: &Member<'a>,
        index: usize,
    ) -> impl Iterator<Item = &Child<'a>> + use<'_, 'a> {
        let (run, resumed) = (child.run, index > 0);
        let call = child.legs.get(index).and_then(|leg| leg.caller?.call);
        let meant = move |known: &&Child<'_>| {
            known.run == run && known.resumed == resumed && known.call == call
        };
        self.children.iter().filter(meant)
    }

    /// Whether it no longer waited at `at` for a child that it started at `began_at`.
    fn has_stopped_waiting(&self, began_at: u64, at: u64) -> bool {
        let leg = self.legs.iter().rfind(|leg| leg.began_at <= began_at);
        leg.is_some_and(|leg| leg.told_at.is_some() || leg.end.is_some_and(|end| end.at <= at))
    }
}

impl<'a> Leg<'a> {
    /// A leg that began at `at`, for `caller` if there is one.
    fn new(caller: &'a Value, at: u64) -> Self {
        let call = caller["call"].as_str();
        let caller = caller["run"].as_str().map(|run| Caller { run, call });
        Leg { caller, began_at: at, told_at: None, calls_since: 0, end: None }
    }
}

/// The run and the outcome in a text that reports the end of a run.
pub(super) fn tells_of(text: &str) -> Option<(&str, &str)> {
    let head = text.strip_prefix("<task_result ")?.split('>').next()?;
    let field = |name: &str| {
        let after = head.split_once(&format!(" {name}=\""))?.1;
        after.split('"').next()
    };
    Some((field("run")?, field("outcome")?))
}
