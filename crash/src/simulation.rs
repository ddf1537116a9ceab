//! A simulation of many workers and one store, in one thread and without real time. Everything that
//! happens follows from a seed, so a failure happens again with the same seed.
//!
//! The store decides with the transaction that the real stores use. Workers execute planned trees of
//! runs as the runtime does. The network loses, delays, reorders and doubles messages. Workers die,
//! stand still and lose contact; the store restarts. After a while nothing goes wrong any more, and
//! everything must end. Then a checker compares the logs with what was seen from outside.

mod checker;
mod client;
mod facts;
mod faults;
mod lease;
mod ledger;
mod node;
mod plan;
mod scene;
mod story;
mod tally;
mod worker;

pub use checker::{Breach, Law};
pub use tally::Tally;

use crate::random::Random;
use faults::{Faults, LEASE_MS, Misfortune, SECOND};
use ledger::{Claim, Ledger, Sent, Taken};
use node::{Node, Who};
use plan::Plan;
use posse_protocol::{AgentSpec, RunId, WorkerId};
use scene::{Answer, Happening, Request, Scene, Wish};
use std::collections::BTreeSet;
use std::rc::Rc;
use worker::{Worker, World};

/// The size of a world, and the seed that decides what happens in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// The seed.
    pub seed: u64,
    /// Workers that execute runs at the same time.
    pub workers: usize,
    /// Runs, including those below others.
    pub runs: usize,
}

/// How a simulation ended.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What was counted.
    pub tally: Tally,
    /// The laws that were broken.
    pub breaches: Vec<Breach>,
    /// A number that is the same for the same seed and size.
    pub digest: u64,
}

/// How long everything may take to end after nothing goes wrong any more.
const TO_THE_END: u64 = 600 * SECOND;

impl Simulation {
    /// Lets the world happen, and checks the laws.
    ///
    /// # Errors
    /// When the events of the simulation do not fit the protocol.
    pub fn play(self) -> Result<Simulated, String> {
        let mut stage = Stage::new(self)?;
        stage.run();
        Ok(stage.conclude())
    }
}

/// A world while it happens.
struct Stage {
    scene: Scene,
    node: Node,
    workers: Vec<Worker>,
    /// The worker in each slot; a dead one until another takes its place.
    slots: Vec<usize>,
    room: usize,
    ledger: Ledger,
    plan: Plan,
    agent: AgentSpec,
    /// The runs of hosts whose start was acknowledged.
    acknowledged: BTreeSet<String>,
    noted: usize,
    roots: usize,
    /// The time between two messages of hosts.
    chat: u64,
    limit: u64,
}

impl Stage {
    fn new(size: Simulation) -> Result<Self, String> {
        let Simulation { seed, workers, runs } = size;
        let workers = workers.max(1);
        let mut random = Random::of(seed, 0);
        let plan = Plan::of(&mut random, runs);
        let window = 8 * SECOND + (runs as u64 * SECOND) / (workers as u64 * 10);
        let faults = Faults::of(&mut random, workers, window + 8 * SECOND);
        let (chat, limit) = (faults.until / (runs as u64 / 20 + 1), faults.until + TO_THE_END);
        let pace = faults.pace;
        let mut scene = Scene::new(random, faults);
        let roots: Vec<usize> = plan.roots().collect();
        for number in &roots {
            let at = scene.random.below(window);
            scene.after(at, Happening::Submit { number: *number });
        }
        scene.after(pace, Happening::Misfortune);
        scene.after(chat, Happening::Say);
        let mut stage = Stage {
            scene,
            node: Node::default(),
            workers: Vec::new(),
            slots: vec![0; workers],
            room: (runs / workers / 4).clamp(4, 64),
            ledger: Ledger::default(),
            plan,
            agent: facts::agent()?,
            acknowledged: BTreeSet::new(),
            noted: 0,
            roots: roots.len(),
            chat,
            limit,
        };
        for slot in 0..workers {
            stage.employ(slot)?;
        }
        Ok(stage)
    }

    /// Puts a new worker into a slot.
    fn employ(&mut self, slot: usize) -> Result<(), String> {
        let number = self.workers.len() as u32;
        let id = RunId::from_u128(u128::from(number) + 1).to_string();
        let id: WorkerId = id.parse().map_err(|_| "the id of a worker is none".to_owned())?;
        self.slots[slot] = self.workers.len();
        let worker = Worker::new(Who { number, id }, slot, self.room, &mut self.scene);
        self.workers.push(worker);
        Ok(())
    }

    fn run(&mut self) {
        while let Some(happening) = self.scene.next() {
            self.happen(happening);
            let is_over = self.scene.is_calm()
                && self.node.unfinished == 0
                && self.acknowledged.len() == self.roots;
            if is_over || self.scene.now > self.limit {
                break;
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        let of = match &happening {
            Happening::AtWorker { worker, .. }
            | Happening::Timeout { worker, .. }
            | Happening::AskAgain { worker, .. }
            | Happening::GoOn { worker, .. }
            | Happening::Poll { worker }
            | Happening::Renew { worker } => Some(*worker),
            _ => None,
        };
        if let Some(number) = of {
            return self.at_worker(number, happening);
        }
        match happening {
            Happening::AtStore(request) => self.at_store(request),
            Happening::Noticed { session } => self.node.end_session(session),
            Happening::Submit { number } => self.submit(number),
            Happening::Say => self.say(),
            Happening::Misfortune => self.suffer(),
            // It had a number before, so it has one again.
            Happening::Revive { slot } => _ = self.employ(slot),
            Happening::Resume { worker } => self.resume(worker),
            _ => {}
        }
    }

    fn at_worker(&mut self, number: u32, happening: Happening) {
        let Some(worker) = self.workers.get_mut(number as usize) else { return };
        if !worker.is_alive {
            return;
        }
        if worker.stands_still {
            worker.deferred.push(happening);
            return;
        }
        let (scene, ledger) = (&mut self.scene, &mut self.ledger);
        let mut world = World { scene, ledger, plan: &self.plan, agent: &self.agent };
        match happening {
            Happening::AtWorker { tag, answer, .. } => worker.hear(tag, answer, &mut world),
            Happening::Timeout { tag, .. } => worker.timed_out(tag, &mut world),
            Happening::AskAgain { tag, .. } => worker.ask_again(tag, &mut world),
            Happening::GoOn { run, tag, .. } => worker.wake(run, tag, &mut world),
            Happening::Poll { .. } => worker.poll(&mut world),
            Happening::Renew { .. } => worker.renew(&mut world),
            _ => {}
        }
        for (key, _) in &self.ledger.started[self.noted..] {
            self.acknowledged.insert(key.clone());
        }
        self.noted = self.ledger.started.len();
    }

    fn at_store(&mut self, request: Request) {
        let Request { worker, session, tag, wish } = request;
        if self.scene.now < self.scene.down_until {
            self.scene.tally.lost += 1;
            return;
        }
        let Some(who) = self.workers.get(worker as usize).map(|worker| worker.who) else { return };
        let answer = match wish {
            Wish::Begin => Answer::StartResult(self.node.begin(session)),
            Wish::Commit { transaction, number, work } => {
                let time = (self.scene.now, LEASE_MS);
                match self.node.commit(who, transaction, number, &work, time) {
                    Some(reply) => {
                        self.scene.tally.transactions += 1;
                        let claims = reply.claimed.iter().map(|taken| Claim {
                            run: taken.run,
                            epoch: taken.epoch,
                            worker,
                            last: taken.last,
                        });
                        self.ledger.claims.extend(claims);
                        Answer::Committed(reply)
                    }
                    None => Answer::NotOpen,
                }
            }
            Wish::Became { transaction, number } => {
                Answer::Became(self.node.became(who, transaction, number))
            }
            Wish::Read { run, after } => {
                Answer::Read { run, records: Rc::new(self.node.read(run, after)) }
            }
        };
        self.scene.send(worker, false, Happening::AtWorker { worker, tag, answer });
    }

    /// Returns a living worker.
    fn any_worker(&mut self) -> Option<u32> {
        let slot = self.scene.random.below(self.slots.len() as u64) as usize;
        let worker = &self.workers[self.slots[slot]];
        (worker.is_alive && !worker.stands_still).then_some(worker.who.number)
    }

    /// A host starts a run, and again if it hears nothing.
    fn submit(&mut self, number: usize) {
        if self.acknowledged.contains(&format!("root {number}")) {
            return;
        }
        if let Some(worker) = self.any_worker() {
            let (scene, ledger) = (&mut self.scene, &mut self.ledger);
            let mut world = World { scene, ledger, plan: &self.plan, agent: &self.agent };
            self.workers[worker as usize].submit(number, &mut world);
        }
        self.scene.after(4 * SECOND, Happening::Submit { number });
    }

    /// A host sends a message to a run that it has started.
    fn say(&mut self) {
        let count = self.ledger.started.len() as u64;
        let chosen = self.scene.random.below(count) as usize;
        if let Some((_, run)) = self.ledger.started.get(chosen).cloned()
            && let Some(worker) = self.any_worker()
        {
            let (index, text) =
                (self.ledger.messages.len(), format!("message {}", self.scene.fresh()));
            self.ledger.messages.push(Sent { run, text, taken: Taken::Unknown });
            let (scene, ledger) = (&mut self.scene, &mut self.ledger);
            let mut world = World { scene, ledger, plan: &self.plan, agent: &self.agent };
            self.workers[worker as usize].say(index, &mut world);
        }
        if !self.scene.is_calm() {
            let pause = self.scene.around(self.chat);
            self.scene.after(pause, Happening::Say);
        }
    }

    /// Lets something go wrong.
    fn suffer(&mut self) {
        if self.scene.is_calm() {
            return;
        }
        let pace = self.scene.faults.pace;
        let pause = self.scene.around(pace);
        self.scene.after(pause, Happening::Misfortune);
        let lease = LEASE_MS * 1_000;
        let faults = self.scene.faults.clone();
        let Some(kind) = faults.next(&mut self.scene.random) else { return };
        let Some(number) = self.any_worker() else { return };
        let worker = &mut self.workers[number as usize];
        let scene = &mut self.scene;
        match kind {
            Misfortune::Death => {
                scene.tally.deaths += 1;
                worker.is_alive = false;
                worker.forget();
                let (slot, session) = (worker.slot, worker.client.session);
                let (noticed, back) = (scene.random.below(SECOND), scene.random.below(2 * SECOND));
                scene.after(noticed, Happening::Noticed { session });
                scene.after(back, Happening::Revive { slot });
            }
            Misfortune::Standstill => {
                scene.tally.standstills += 1;
                worker.stands_still = true;
                let length = lease / 10 + scene.random.below(2 * lease);
                scene.after(length, Happening::Resume { worker: number });
            }
            Misfortune::Cut => {
                scene.tally.cuts += 1;
                let length = scene.random.below(2 * lease);
                scene.cut_off(number, length);
            }
            Misfortune::Restart => {
                scene.tally.restarts += 1;
                scene.down_until = scene.now + scene.random.below(SECOND);
                self.node.restart();
            }
            Misfortune::Jump => {
                scene.tally.jumps += 1;
                self.node.ahead_ms += scene.random.below(2 * LEASE_MS);
            }
        }
    }

    /// A worker that stood still goes on, and finds what has happened meanwhile.
    fn resume(&mut self, number: u32) {
        let Some(worker) = self.workers.get_mut(number as usize) else { return };
        worker.stands_still = false;
        for happening in std::mem::take(&mut worker.deferred) {
            self.at_worker(number, happening);
        }
    }

    fn conclude(mut self) -> Simulated {
        let mut tally = std::mem::take(&mut self.scene.tally);
        (tally.lapses, tally.takeovers) = (self.node.lapses, self.node.takeovers);
        tally.fenced = self.node.fenced;
        tally.runs = self.node.logs().len() as u64;
        let mut breaches = checker::check(self.node.logs(), &self.ledger, &self.plan);
        for run in self.node.logs().keys() {
            if let Err(error) = self.node.read(*run, posse_protocol::Seq::ZERO) {
                let detail = format!("run {run} cannot be read: {error}");
                breaches.push(Breach { law: Law::Ordered, detail });
            }
        }
        for breach in breaches.iter_mut().filter(|breach| breach.law == Law::NoRunStuck).take(9) {
            let run = breach.detail.split_whitespace().nth(1).and_then(|run| run.parse().ok());
            if let Some(run) = run {
                breach.detail = format!("{}; {}", breach.detail, self.node.standing(run));
            }
        }
        let digest = tally.digest(self.node.logs().values().filter_map(|log| log.last()));
        Simulated { tally, breaches, digest }
    }
}

#[cfg(test)]
mod tests;
