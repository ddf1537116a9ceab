//! The laws of a world, checked from outside. The checker sees what a ledger outside of the store has,
//! and the final logs as JSON. It knows no type of an event, so it shares no mistake with the store.

mod life;

use super::ledger::{Claim, Ledger, Taken};
use super::plan::{Plan, Step};
use life::{Life, Told};
use posse_protocol::RunId;
use posse_store::StoredEvent;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

/// A law that every world must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// What the store acknowledged is there, once and in its place.
    NothingLost,
    /// An effect happens once if its call returned, and otherwise at most once for each start.
    NoEffectTwice,
    /// The transaction that ends a run announces the end to its caller, exactly once.
    ToldOnce,
    /// When nothing goes wrong any more, every run ends.
    NoRunStuck,
    /// The store accepts nothing of a worker that has lost the run.
    NoStaleWrite,
    /// Events stand where they may.
    Ordered,
}

impl fmt::Display for Law {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Law::NothingLost => "nothing acknowledged is lost or doubled",
            Law::NoEffectTwice => "no effect twice",
            Law::ToldOnce => "ends told exactly once",
            Law::NoRunStuck => "no run stuck",
            Law::NoStaleWrite => "no write of a stale owner",
            Law::Ordered => "ordered logs",
        })
    }
}

/// A law that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Which law.
    pub law: Law,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.law, self.detail)
    }
}

/// Returns every breach that the logs and the ledger show.
pub(super) fn check(
    logs: &BTreeMap<RunId, Vec<StoredEvent>>,
    ledger: &Ledger,
    plan: &Plan,
) -> Vec<Breach> {
    let mut found = Vec::new();
    let mut lives = BTreeMap::new();
    for (run, log) in logs {
        lives.insert(run.to_string(), Life::of(log, &mut found));
    }
    let world = Evidence { logs, ledger, plan, lives: &lives };
    world.check_acknowledged(&mut found);
    world.check_starts(&mut found);
    world.check_messages(&mut found);
    world.check_effects(&mut found);
    world.check_owners(&mut found);
    world.check_told(&mut found);
    for (run, life) in &lives {
        world.check_children(run, life, &mut found);
        world.check_steps(run, life, &mut found);
        if life.is_open {
            let detail = format!("run {run} has not ended; its last event is {}", life.last);
            found.push(Breach { law: Law::NoRunStuck, detail });
        }
    }
    found
}

struct Evidence<'a> {
    logs: &'a BTreeMap<RunId, Vec<StoredEvent>>,
    ledger: &'a Ledger,
    plan: &'a Plan,
    lives: &'a BTreeMap<String, Life>,
}

fn breach(law: Law, detail: String) -> Breach {
    Breach { law, detail }
}

impl Evidence<'_> {
    /// What the store acknowledged is in its place.
    fn check_acknowledged(&self, found: &mut Vec<Breach>) {
        for told in &self.ledger.acknowledged {
            let index = usize::try_from(told.seq.0).unwrap_or_default().wrapping_sub(1);
            let event = self.logs.get(&told.run).and_then(|log| log.get(index));
            if event.is_none_or(|event| !event.body.contains(&told.mark)) {
                let detail = format!("run {} has no `{}` at {}", told.run, told.mark, told.seq);
                found.push(breach(Law::NothingLost, detail));
            }
        }
        // No append is stored twice. A mark is in one event of all logs.
        let mut seen: HashSet<&str> = HashSet::new();
        for mark in self.lives.values().flat_map(|life| &life.marks) {
            if !seen.insert(mark) {
                found.push(breach(Law::NothingLost, format!("`{mark}` was stored twice")));
            }
        }
    }

    /// Each run of the plan that had to start has started, once.
    fn check_starts(&self, found: &mut Vec<Breach>) {
        let mut keys: HashMap<&str, &str> = HashMap::new();
        for (run, life) in self.lives {
            if let Some(other) = keys.insert(&life.key, run) {
                let detail = format!("runs {other} and {run} have the key `{}`", life.key);
                found.push(breach(Law::NothingLost, detail));
            }
        }
        for (key, run) in &self.ledger.started {
            let run = run.to_string();
            if keys.get(key.as_str()) != Some(&run.as_str()) {
                let detail = format!("run {run} with the key `{key}` is gone");
                found.push(breach(Law::NothingLost, detail));
            }
        }
        let started: BTreeSet<&str> = self.ledger.started.iter().map(|it| it.0.as_str()).collect();
        for number in self.plan.roots() {
            if !started.contains(format!("root {number}").as_str()) {
                let detail = format!("the start of run {number} was never acknowledged");
                found.push(breach(Law::NoRunStuck, detail));
            }
        }
    }

    fn check_messages(&self, found: &mut Vec<Breach>) {
        let mut heard: HashMap<&str, usize> = HashMap::new();
        for text in self.lives.values().flat_map(|life| &life.heard) {
            *heard.entry(text).or_default() += 1;
        }
        for sent in &self.ledger.messages {
            let times = heard.get(sent.text.as_str()).copied().unwrap_or_default();
            let may_be = match sent.taken {
                Taken::Yes => times == 1,
                Taken::No => times == 0,
                Taken::Unknown => times <= 1,
            };
            if !may_be {
                let detail = format!(
                    "`{}` to run {} is there {times} times; taken: {:?}",
                    sent.text, sent.run, sent.taken
                );
                found.push(breach(Law::NothingLost, detail));
            }
        }
    }

    /// Compares the effects with the calls in the logs.
    fn check_effects(&self, found: &mut Vec<Breach>) {
        let mut seen: BTreeMap<(String, &str), u32> = BTreeMap::new();
        for effect in &self.ledger.effects {
            *seen.entry((effect.run.to_string(), &effect.call)).or_default() += 1;
        }
        for ((run, name), times) in &seen {
            let call = self.lives.get(run).and_then(|life| life.calls.get(*name));
            let most = call.map_or(0, |call| call.started);
            if *times > most {
                let detail = format!("{name} of run {run} was done {times} times, begun {most}");
                found.push(breach(Law::NoEffectTwice, detail));
            }
        }
        for (run, life) in self.lives {
            for (name, call) in &life.calls {
                let mut wrong = |what: &str| {
                    let detail = format!("{name} of run {run} {what}");
                    found.push(breach(Law::NoEffectTwice, detail));
                };
                if call.started > 1 && !call.repeatable {
                    wrong("was begun twice");
                }
                let times = seen.get(&(run.clone(), name.as_str())).copied().unwrap_or_default();
                if call.acts && call.is_certain && times == 0 {
                    wrong("returned, and was never done");
                }
                if call.answers > 1 {
                    wrong("was answered twice");
                }
            }
        }
    }

    /// Each event of an owner belongs to a claim, and no later claim was made before it.
    fn check_owners(&self, found: &mut Vec<Breach>) {
        let mut claims: HashMap<String, Vec<&Claim>> = HashMap::new();
        for claim in &self.ledger.claims {
            claims.entry(claim.run.to_string()).or_default().push(claim);
        }
        for (run, life) in self.lives {
            let mut claims = claims.remove(run).unwrap_or_default();
            claims.sort_by_key(|claim| claim.epoch);
            for owner in &life.owners {
                let at = claims.iter().position(|claim| claim.epoch == owner.epoch);
                let claim = at.map(|at| claims[at]);
                let next = at.and_then(|at| claims.get(at + 1));
                let is_owner =
                    claim.is_some_and(|it| it.worker == owner.worker && it.last.0 < owner.seq);
                if !is_owner || next.is_some_and(|next| owner.seq > next.last.0) {
                    let detail = format!(
                        "worker {} wrote event {} of run {run} with epoch {}; claims: {claims:?}",
                        owner.worker, owner.seq, owner.epoch
                    );
                    found.push(breach(Law::NoStaleWrite, detail));
                }
            }
        }
    }

    /// The logs of a run and its children agree.
    fn check_children(&self, run: &str, life: &Life, found: &mut Vec<Breach>) {
        let mut calls = BTreeSet::new();
        for child in &life.children {
            let known = self.lives.get(&child.run).and_then(|life| life.parent.as_deref());
            if known != Some(run) {
                let detail = format!("run {} of run {run} is gone", child.run);
                found.push(breach(Law::NothingLost, detail));
            }
            if child.call.as_ref().is_some_and(|call| !calls.insert(call)) {
                let detail = format!("a call of run {run} has two children: {:?}", child.call);
                found.push(breach(Law::Ordered, detail));
            }
        }
        let Some(parent) = &life.parent else { return };
        let named = self
            .lives
            .get(parent)
            .map_or(0, |above| above.children.iter().filter(|child| child.run == run).count());
        if named != 1 {
            let detail = format!("run {parent} names its child {run} {named} times");
            found.push(breach(Law::NothingLost, detail));
        }
    }

    /// A run that completed has done all its steps, and has heard what it expected.
    fn check_steps(&self, run: &str, life: &Life, found: &mut Vec<Breach>) {
        if life.outcome != "completed" && life.outcome != "failed" {
            return;
        }
        let Some(part) = self.plan.runs.get(life.number) else {
            found.push(breach(Law::Ordered, format!("run {run} is in no plan")));
            return;
        };
        if (life.outcome == "failed") != part.fails {
            let detail = format!("run {run} ended as {}", life.outcome);
            found.push(breach(Law::Ordered, detail));
        }
        for (index, step) in part.steps.iter().enumerate() {
            let count = if let Step::Calls(children) = step { children.len() } else { 1 };
            let is_answered = |call: usize| {
                life.calls.get(&format!("{index}.{call}")).is_some_and(|call| call.answers > 0)
            };
            if !(0..count).all(is_answered) {
                let detail = format!("run {run} ended before step {index} was done");
                found.push(breach(Law::NothingLost, detail));
            }
        }
        let expected = life.children.iter().filter(|child| child.is_expected);
        for child in expected.filter(|_| life.outcome == "completed") {
            if !life.told.iter().any(|told| told.child == child.run) {
                let detail = format!("run {run} completed before it heard of {}", child.run);
                found.push(breach(Law::ToldOnce, detail));
            }
        }
    }

    /// Checks that each end was announced once.
    fn check_told(&self, found: &mut Vec<Breach>) {
        let mut told: HashMap<&str, Vec<(&str, &Told)>> = HashMap::new();
        for (to, life) in self.lives {
            for it in &life.told {
                told.entry(&it.child).or_default().push((to, it));
            }
        }
        for (run, life) in self.lives {
            let Some(parent) = &life.parent else { continue };
            let heard = told.remove(run.as_str()).unwrap_or_default();
            let wrong = match &life.call {
                Some(call) => self.result_problem(life, parent, call, heard.len()),
                None => self.announcement_problem(life, parent, &heard),
            };
            if let Some(wrong) = wrong {
                found.push(breach(Law::ToldOnce, format!("the end of run {run} {wrong}")));
            }
        }
        for run in told.keys() {
            found.push(breach(Law::ToldOnce, format!("run {run} has no end, and was told")));
        }
    }

    fn result_problem(
        &self,
        life: &Life,
        parent: &str,
        call: &str,
        heard: usize,
    ) -> Option<String> {
        let above = self.lives.get(parent)?;
        let answers = above.calls.get(call).map_or(0, |call| call.answers);
        let returned = above.calls.get(call).is_some_and(|call| call.is_certain);
        match () {
            () if heard > 0 => Some("was announced, though a call waited".to_owned()),
            () if answers != 1 => Some(format!("answered {call} of run {parent} {answers} times")),
            () if returned && life.ends.is_empty() => Some("was told before it came".to_owned()),
            () if !returned && !above.had_ended_by(life.ends.first().copied()?) => {
                Some(format!("did not reach run {parent}"))
            }
            () => None,
        }
    }

    fn announcement_problem(
        &self,
        life: &Life,
        parent: &str,
        heard: &[(&str, &Told)],
    ) -> Option<String> {
        let [(to, told)] = heard else {
            let to: Vec<&str> = heard.iter().map(|(to, _)| *to).collect();
            return Some(format!("was told {} times: {to:?}", heard.len()));
        };
        let gone = |run: &str| self.lives.get(run).is_some_and(|above| above.had_ended_by(told.at));
        if life.ends.first() != Some(&told.at) {
            return Some(format!("({:?}) was told at {}, not with it", life.ends, told.at));
        }
        let nearer: Vec<&String> =
            life.ancestors.iter().rev().take_while(|above| above != to).collect();
        let wrong = match (told.inherited, told.kept) {
            (true, _) => {
                !life.ancestors.iter().any(|above| above == to)
                    || *to == parent
                    || nearer.iter().any(|above| !gone(above))
            }
            (false, true) => *to != parent || !gone(parent),
            (false, false) => *to != parent,
        };
        wrong.then(|| format!("was told to run {to}: {told:?}"))
    }
}

#[cfg(test)]
mod tests;
