//! The checker of announcements: the end of every background child is announced exactly once, to the
//! right run and in the right way, and the model of that run sees it. Pure.
//!
//! An end and its announcement have the same time, because one transaction stores both.

use super::check::Asked;
use super::kin::tells_of;
use super::log::{RunLog, ancestors, is_only_recorded, kind, message_text};
use super::violation::{Promise, Violation};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A run as its log has it.
struct Life<'a> {
    run: &'a str,
    prompt: &'a str,
    session: bool,
    /// The runs above it, the root first.
    ancestors: Vec<&'a str>,
    /// Its ends that no call waits for.
    ends: Vec<End<'a>>,
    /// When it worked: the beginning, and the end if it has ended.
    legs: Vec<(u64, Option<u64>)>,
    /// The announcements it received.
    told: Vec<Told<'a>>,
    /// Children whose announcement is still to come.
    expects: BTreeSet<&'a str>,
    outcome: Option<&'a str>,
    /// Children whose announcement was still to come when it completed.
    missed: Vec<&'a str>,
}

struct End<'a> {
    at: u64,
    outcome: &'a str,
    parent: &'a str,
    announce: &'a str,
}

struct Told<'a> {
    child: &'a str,
    at: u64,
    announce: &'a str,
    inherited: bool,
    kept: bool,
    /// The outcome in the text of the announcement.
    outcome: Option<String>,
}

/// Adds the problems of the announcements in `logs`, and of those that models saw.
pub(super) fn check_told(logs: &[RunLog], asked: &[Asked], found: &mut Vec<Violation>) {
    let lives: Vec<Life<'_>> = logs.iter().map(Life::of).collect();
    let by_run: BTreeMap<&str, &Life<'_>> = lives.iter().map(|life| (life.run, life)).collect();
    let family = Family { lives: &lives, by_run };
    for life in &lives {
        let mut problems = Vec::new();
        family.check_ends(life, &mut problems);
        check_expected(&family, life, &mut problems);
        check_known(life, asked, &mut problems);
        let with_run = |(promise, detail): (Promise, String)| {
            Violation::of(promise, format!("run {}: {detail}", life.run))
        };
        found.extend(problems.into_iter().map(with_run));
    }
}

type Problems = Vec<(Promise, String)>;

struct Family<'a> {
    lives: &'a [Life<'a>],
    by_run: BTreeMap<&'a str, &'a Life<'a>>,
}

impl Family<'_> {
    /// Each of its ends has one announcement, and there are no others about it.
    fn check_ends(&self, life: &Life<'_>, problems: &mut Problems) {
        let heard = |other: &&Life<'_>| other.told.iter().any(|told| told.child == life.run);
        let all = self.lives.iter().filter(heard);
        let told: Vec<(&Life<'_>, &Told<'_>)> = all
            .flat_map(|other| other.told.iter().map(move |told| (other, told)))
            .filter(|(_, told)| told.child == life.run)
            .collect();
        if told.len() != life.ends.len() {
            let to: Vec<&str> = told.iter().map(|(to, _)| to.run).collect();
            let detail = format!("{} ends, told {} times: {to:?}", life.ends.len(), told.len());
            problems.push((Promise::AnnouncedOnce, detail));
            return;
        }
        let mut told = told;
        told.sort_by_key(|(_, told)| told.at);
        for (end, (to, told)) in life.ends.iter().zip(told) {
            let wrong = match () {
                () if told.at != end.at => Some(format!("at {} and not with it", told.at)),
                () if told.outcome.as_deref() != Some(end.outcome) => {
                    Some(format!("as {:?}", told.outcome))
                }
                () => self.misled(life, end, to, told),
            };
            if let Some(wrong) = wrong {
                let detail = format!("its end ({} at {}) was told {wrong}", end.outcome, end.at);
                problems.push((Promise::AnnouncedOnce, detail));
            }
        }
    }

    /// The problem, if `told` went to the wrong run or in the wrong way.
    fn misled(
        &self,
        life: &Life<'_>,
        end: &End<'_>,
        to: &Life<'_>,
        told: &Told<'_>,
    ) -> Option<String> {
        let gone = |run: &str| self.by_run.get(run).is_some_and(|life| life.had_ended_by(told.at));
        let between: Vec<&str> =
            life.ancestors.iter().rev().copied().take_while(|run| *run != to.run).collect();
        if told.inherited {
            let above = life.ancestors.contains(&to.run) && to.run != end.parent;
            return match () {
                () if !above => Some(format!("to {}, which is not above its parent", to.run)),
                () if told.announce != "followup" => Some(format!("as {}", told.announce)),
                () if between.iter().any(|run| !gone(run)) => {
                    Some(format!("to {}, though one nearer was there", to.run))
                }
                () => None,
            };
        }
        if to.run != end.parent {
            return Some(format!("to {}, and not to its parent {}", to.run, end.parent));
        }
        if told.announce != end.announce {
            return Some(format!("as {}, and not as {}", told.announce, end.announce));
        }
        // An announcement is only kept if no run was left to receive it, or if the end of a cancelled
        // run must not wake a session.
        let others = life.ancestors.iter().all(|run| gone(run)) || end.outcome == "cancelled";
        let spares = to.session && end.outcome == "cancelled";
        let lost = told.kept && !spares && !(gone(to.run) && others);
        lost.then(|| "to nobody, though there was someone".to_owned())
    }
}

/// A completed run has received all announcements that it expected.
fn check_expected(family: &Family<'_>, life: &Life<'_>, problems: &mut Problems) {
    for child in &life.missed {
        let detail = format!("was done before {child} was");
        problems.push((Promise::AwaitsAll, detail));
    }
    let over = |run: &&&str| family.by_run.get(**run).is_none_or(|life| life.outcome.is_some());
    if life.outcome.is_none()
        && let Some(child) = life.expects.iter().find(over)
    {
        let detail = format!("waits for {child}, which has ended");
        problems.push((Promise::NoRunStuck, detail));
    }
}

/// Each announcement is once in every later request of the run, and there are no others.
fn check_known(life: &Life<'_>, asked: &[Asked], problems: &mut Problems) {
    if life.prompt.is_empty() {
        return;
    }
    let own = || asked.iter().filter(|asked| asked.prompt.contains(life.prompt));
    let is_done = life.outcome == Some("completed") || life.outcome.is_none() && life.session;
    let children: BTreeSet<&str> = life.told.iter().map(|told| told.child).collect();
    for child in children {
        let of_child = || life.told.iter().filter(|told| told.child == child);
        let heard = of_child().filter(|told| !told.kept && told.announce != "silent").count();
        let known = |asked: &Asked| asked.told.iter().filter(|run| *run == child).count();
        let most = own().map(known).max().unwrap_or_default();
        let last = own().next_back().map(known).unwrap_or_default();
        // A kept announcement is read with the next message, if there is one.
        let kept = of_child().filter(|told| told.kept && told.announce != "silent").count();
        let may_know = heard..=heard + kept;
        if most > *may_know.end() || is_done && !may_know.contains(&last) {
            let detail = format!(
                "{child} was told {heard} times, and its model read {most}, in the end {last}"
            );
            problems.push((Promise::KnownOnce, detail));
        }
    }
}

impl<'a> Life<'a> {
    fn of(log: &'a RunLog) -> Self {
        let mut life = Life {
            run: &log.run,
            prompt: log.prompt(),
            session: false,
            ancestors: Vec::new(),
            ends: Vec::new(),
            legs: Vec::new(),
            told: Vec::new(),
            expects: BTreeSet::new(),
            outcome: None,
            missed: Vec::new(),
        };
        let mut caller = None;
        for record in &log.records {
            let at = record["at"].as_u64().unwrap_or_default();
            life.read(&record["event"], at, &mut caller);
        }
        life
    }

    fn read(&mut self, event: &'a Value, at: u64, caller: &mut Option<(&'a str, &'a str)>) {
        match kind(event) {
            "run_started" => {
                self.ancestors = ancestors(event);
                self.session = event["session"] == true;
                self.legs.push((at, None));
                *caller = receiver(&event["parent"]);
            }
            "message_received" => {
                let from = &event["from"];
                if let Some(child) = from["child"]["run"].as_str() {
                    self.hear(child, event, at);
                }
                if from["run"]["call"].is_string() || from["run"]["announce"].is_string() {
                    *caller = receiver(&from["run"]);
                }
                if !is_only_recorded(event) && self.outcome.take().is_some() {
                    self.legs.push((at, None));
                }
            }
            "child_started" => {
                let (run, announce) = (event["run"].as_str(), event["announce"].as_str());
                if announce.is_some_and(|announce| announce != "silent") {
                    self.expects.extend(run);
                }
            }
            "run_finished" => {
                let outcome = event["outcome"]["kind"].as_str().unwrap_or_default();
                self.outcome = Some(outcome);
                if let Some(leg) = self.legs.last_mut() {
                    leg.1 = Some(at);
                }
                let expected = std::mem::take(&mut self.expects);
                if outcome == "completed" {
                    self.missed.extend(expected);
                }
                if let Some((parent, announce)) = caller.take() {
                    self.ends.push(End { at, outcome, parent, announce });
                }
            }
            _ => {}
        }
    }

    fn hear(&mut self, child: &'a str, event: &'a Value, at: u64) {
        let told = &event["from"]["child"];
        let inherited = told["inherited"] == true;
        if !inherited {
            self.expects.remove(child);
        }
        self.told.push(Told {
            child,
            at,
            announce: told["announce"].as_str().unwrap_or_default(),
            inherited,
            kept: told["kept"] == true,
            outcome: outcome_in(message_text(event)),
        });
    }

    /// Whether it had ended by then, and had not started again.
    fn had_ended_by(&self, at: u64) -> bool {
        let leg = self.legs.iter().rfind(|(began_at, _)| *began_at <= at);
        leg.is_some_and(|(_, ended_at)| ended_at.is_some_and(|ended_at| ended_at <= at))
    }
}

/// The run that gets the announcement of a child of `caller`, and in which way; none if a call waits for
/// the child.
fn receiver(caller: &Value) -> Option<(&str, &str)> {
    if caller["call"].is_string() {
        return None;
    }
    Some((caller["run"].as_str()?, caller["announce"].as_str()?))
}

/// The outcome in the text of an announcement, in the word of the log.
fn outcome_in(text: &str) -> Option<String> {
    tells_of(text).map(|(_, outcome)| outcome.replace(' ', "_"))
}

/// The runs whose ends `text` reports.
pub(super) fn runs_in(text: &str) -> impl Iterator<Item = &str> {
    text.split("<task_result id=").skip(1).filter_map(|block| {
        let head = block.split('>').next()?;
        head.split_once(" run=\"")?.1.split('"').next()
    })
}
