//! The checker is tested on worlds in which one thing is wrong.

use super::*;
use crate::simulation::facts::{self, Ended, Manner};
use crate::simulation::ledger::{Acknowledged, Effect, Sent};
use crate::simulation::node::Who;
use crate::simulation::plan::Part;
use posse_protocol::{Announce, Event, Outcome, Seq};
use posse_store::{Append, Guard, Ownership};

/// A root that starts a background child and ends after it.
struct Planted {
    logs: BTreeMap<RunId, Vec<StoredEvent>>,
    ledger: Ledger,
    plan: Plan,
}

const ROOT: RunId = RunId::from_u128(1);
const CHILD: RunId = RunId::from_u128(2);

impl Planted {
    /// Plays a small tree through the store, without faults.
    fn new() -> Self {
        let effect = Step::Effect { repeatable: false };
        let root = Part {
            steps: vec![Step::Spawn(1, Announce::Followup), effect.clone()],
            ..Part::default()
        };
        let child = Part { is_child: true, ..Part::default() };
        let plan = Plan { runs: vec![root, child] };
        let mut planted = Planted { logs: BTreeMap::new(), ledger: Ledger::default(), plan };
        let agent = facts::agent().unwrap();
        let spawn = Step::Spawn(1, Announce::Followup);
        let above = facts::parent(ROOT, &[], "0.0", Some(Announce::Followup));
        let announce = Some(Announce::Followup);
        let mark = |epoch, number| facts::mark(0, epoch, number);
        let told = Manner::Told { announce: Announce::Followup, inherited: false, kept: false };
        let announcement = facts::announcement(CHILD, ROOT, &told, mark(1, 8));
        planted.push(ROOT, 1, facts::started(&agent, 0, "root 0".to_owned(), None));
        planted.claim(ROOT, 1, 0);
        planted.push(ROOT, 2, facts::tool_started("0.0", &spawn, mark(1, 1)));
        planted.push(CHILD, 3, facts::started(&agent, 1, "child".to_owned(), Some(above)));
        planted.push(ROOT, 3, facts::child_started(CHILD, &agent, "0.0", announce, mark(1, 2)));
        planted.push(ROOT, 4, facts::tool_finished("0.0", Ended::Done, mark(1, 3)));
        planted.push(ROOT, 5, facts::tool_started("1.0", &effect, mark(1, 4)));
        planted.effect();
        planted.push(ROOT, 6, facts::tool_finished("1.0", Ended::Done, mark(1, 5)));
        planted.claim(CHILD, 1, 0);
        planted.push(CHILD, 7, facts::finished(Outcome::completed(mark(1, 7))));
        planted.push(ROOT, 7, announcement.events[0].clone());
        planted.claim(ROOT, 2, 0);
        planted.push(ROOT, 8, facts::finished(Outcome::completed(mark(2, 6))));
        planted.ledger.started.push(("root 0".to_owned(), ROOT));
        planted
    }

    fn push(&mut self, run: RunId, at: u64, event: Event) {
        let log = self.logs.entry(run).or_default();
        let seq = Seq(log.len() as u64 + 1);
        let body = serde_json::to_string(&event).unwrap().into();
        let mark = facts::mark_of(&event);
        self.ledger.acknowledged.push(Acknowledged { run, seq, mark });
        log.push(StoredEvent { run, seq, at, version: 1, body, hash: String::new() });
    }

    fn claim(&mut self, run: RunId, epoch: u64, worker: u32) {
        let last = Seq(self.logs[&run].len() as u64);
        self.ledger.claims.push(Claim { run, epoch, worker, last });
    }

    fn effect(&mut self) {
        self.ledger.effects.push(Effect { run: ROOT, call: "1.0".to_owned() });
    }

    fn laws(&self) -> Vec<Law> {
        let mut laws: Vec<Law> =
            check(&self.logs, &self.ledger, &self.plan).iter().map(|it| it.law).collect();
        laws.sort();
        laws.dedup();
        laws
    }

    fn remove_last(&mut self, run: RunId) -> StoredEvent {
        self.logs.get_mut(&run).unwrap().pop().unwrap()
    }
}

#[test]
fn a_world_without_mistakes_breaks_no_law() {
    let planted = Planted::new();
    let found = check(&planted.logs, &planted.ledger, &planted.plan);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_lost_run_is_found() {
    let mut planted = Planted::new();
    planted.logs.remove(&CHILD);
    assert!(planted.laws().contains(&Law::NothingLost));
    let mut planted = Planted::new();
    planted.logs.remove(&ROOT);
    assert!(planted.laws().contains(&Law::NothingLost));
}

#[test]
fn a_lost_event_and_a_run_that_does_not_end_are_found() {
    let mut planted = Planted::new();
    planted.remove_last(ROOT);
    assert_eq!(planted.laws(), [Law::NothingLost, Law::NoRunStuck]);
    // The worker never heard that it was stored.
    planted.ledger.acknowledged.pop();
    assert_eq!(planted.laws(), [Law::NoRunStuck]);
}

#[test]
fn a_doubled_announcement_is_found() {
    let mut planted = Planted::new();
    let end = planted.remove_last(ROOT);
    let told = Manner::Told { announce: Announce::Followup, inherited: false, kept: false };
    let again = facts::announcement(CHILD, ROOT, &told, facts::mark(1, 1, 9));
    planted.push(ROOT, 7, again.events[0].clone());
    planted.logs.get_mut(&ROOT).unwrap().push(StoredEvent { seq: Seq(9), ..end });
    planted.ledger.acknowledged.clear();
    assert_eq!(planted.laws(), [Law::ToldOnce]);
}

#[test]
fn a_missing_announcement_is_found() {
    let mut planted = Planted::new();
    let end = planted.remove_last(ROOT);
    planted.remove_last(ROOT);
    planted.ledger.acknowledged.clear();
    planted.ledger.claims.last_mut().unwrap().last = Seq(6);
    planted.logs.get_mut(&ROOT).unwrap().push(StoredEvent { seq: Seq(7), ..end });
    let laws = planted.laws();
    assert!(laws.contains(&Law::ToldOnce), "{laws:?}");
}

#[test]
fn a_doubled_and_a_missing_effect_are_found() {
    let mut planted = Planted::new();
    planted.effect();
    assert_eq!(planted.laws(), [Law::NoEffectTwice]);
    planted.ledger.effects.clear();
    assert_eq!(planted.laws(), [Law::NoEffectTwice]);
}

#[test]
fn an_accepted_write_of_a_stale_owner_is_found() {
    // Another worker claimed the run before the effect was recorded.
    let mut planted = Planted::new();
    planted.ledger.claims[0].last = Seq(1);
    let stale = Claim { run: ROOT, epoch: 2, worker: 7, last: Seq(5) };
    planted.ledger.claims.retain(|claim| claim.run != ROOT || claim.epoch == 1);
    planted.ledger.claims.push(stale);
    planted.ledger.claims.push(Claim { run: ROOT, epoch: 3, worker: 0, last: Seq(7) });
    assert_eq!(planted.laws(), [Law::NoStaleWrite]);
}

#[test]
fn an_append_that_was_stored_twice_is_found() {
    let mut planted = Planted::new();
    let text = "message 1".to_owned();
    planted.push(ROOT, 9, facts::message(text.clone()));
    planted.push(ROOT, 9, facts::message(text.clone()));
    planted.claim(ROOT, 3, 0);
    planted.push(ROOT, 10, facts::finished(Outcome::completed(facts::mark(0, 3, 10))));
    let taken = Taken::Unknown;
    planted.ledger.messages.push(Sent { run: ROOT, text, taken });
    assert_eq!(planted.laws(), [Law::NothingLost]);
}

#[test]
fn the_store_of_the_simulation_refuses_a_stale_owner() {
    let who = |number: u32| {
        let id = RunId::from_u128(u128::from(number) + 1).to_string();
        Who { number, id: id.parse().unwrap() }
    };
    let mut node = crate::simulation::node::Node::default();
    let mut commit = |who: Who, number: u64, batches: Vec<Vec<Append>>, claims, at| {
        let transaction = node.begin(1);
        let work = crate::simulation::node::Work { batches, renews: false, claims };
        node.commit(who, transaction, number, &work, (at, 3_000)).unwrap()
    };
    let one = || Some(crate::simulation::node::Wanted { limit: 1, again: None });
    let started = facts::started(&facts::agent().unwrap(), 0, "root 0".to_owned(), None);
    let create = facts::append(ROOT, vec![started], Guard::Create(Ownership::Queued));
    commit(who(0), 1, vec![vec![create]], None, 0);
    let first = commit(who(0), 2, Vec::new(), one(), 0).claimed[0];
    assert!(commit(who(1), 1, Vec::new(), one(), 2_000_000).claimed.is_empty());
    let second = commit(who(1), 2, Vec::new(), one(), 4_000_000).claimed[0];
    assert_eq!((first.epoch, second.epoch), (1, 2));
    let end = |epoch| {
        let events = vec![facts::finished(Outcome::completed("done"))];
        vec![vec![facts::by_owner(ROOT, epoch, Seq(1), events, Ownership::Waiting)]]
    };
    let reply = commit(who(0), 3, end(1), None, 4_000_000);
    assert!(reply.appended[0].is_err() && !reply.known);
    assert!(commit(who(1), 3, end(2), None, 4_000_000).appended[0].is_ok());
}
