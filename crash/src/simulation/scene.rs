//! Time and the network. Nothing here waits: the next event is the one with the smallest time.

use super::Tally;
use super::faults::Faults;
use super::node::{Became, Reply, Work};
use crate::random::Random;
use posse_protocol::{Record, RunId, Seq};
use posse_store::StoreError;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

/// A message to the store. `tag` returns with the answer.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) worker: u32,
    pub(super) session: u64,
    pub(super) tag: u64,
    pub(super) wish: Wish,
}

#[derive(Clone, Debug)]
pub(super) enum Wish {
    Begin,
    Commit { transaction: u64, number: u64, work: Rc<Work> },
    Became { transaction: u64, number: u64 },
    Read { run: RunId, after: Seq },
}

/// A message to a worker.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    StartResult(u64),
    Committed(Rc<Reply>),
    /// The transaction is not open.
    NotOpen,
    Became(Became),
    Read {
        run: RunId,
        records: Rc<Result<Vec<Record>, StoreError>>,
    },
}

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    AtStore(Request),
    AtWorker {
        worker: u32,
        tag: u64,
        answer: Answer,
    },
    /// The answer to a request takes too long.
    Timeout {
        worker: u32,
        tag: u64,
    },
    /// The worker asks again how its transaction ended.
    AskAgain {
        worker: u32,
        tag: u64,
    },
    /// The store notices that a connection is broken.
    Noticed {
        session: u64,
    },
    /// A task of a worker goes on: its tool is done, or it tries again.
    GoOn {
        worker: u32,
        run: RunId,
        tag: u64,
    },
    Poll {
        worker: u32,
    },
    Renew {
        worker: u32,
    },
    /// A host starts a run of the plan.
    Submit {
        number: usize,
    },
    /// A host sends a message to a run that it started.
    Say,
    Misfortune,
    Revive {
        slot: usize,
    },
    Resume {
        worker: u32,
    },
}

struct Due {
    at: u64,
    serial: u64,
    what: Happening,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    /// The earliest is the greatest, for the heap.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

/// The time, what is to come, chance, and the network.
pub(super) struct Scene {
    /// Microseconds since the simulation began.
    pub(super) now: u64,
    queue: BinaryHeap<Due>,
    serial: u64,
    tags: u64,
    pub(super) random: Random,
    pub(super) faults: Faults,
    pub(super) tally: Tally,
    /// Until when a worker is cut off.
    cut: BTreeMap<u32, u64>,
    /// Until when the store is down.
    pub(super) down_until: u64,
    /// When the last message between a worker and the store arrives, in each direction.
    latest: BTreeMap<(u32, bool), u64>,
}

impl Scene {
    pub(super) fn new(random: Random, faults: Faults) -> Self {
        Scene {
            now: 0,
            queue: BinaryHeap::new(),
            serial: 0,
            tags: 0,
            random,
            faults,
            tally: Tally::default(),
            cut: BTreeMap::new(),
            down_until: 0,
            latest: BTreeMap::new(),
        }
    }

    /// Returns a number that no one else has: for tags, sessions, marks and runs.
    pub(super) fn fresh(&mut self) -> u64 {
        self.tags += 1;
        self.tags
    }

    pub(super) fn is_calm(&self) -> bool {
        self.now >= self.faults.until
    }

    pub(super) fn after(&mut self, delay: u64, what: Happening) {
        self.serial += 1;
        self.queue.push(Due { at: self.now + delay, serial: self.serial, what });
    }

    /// Returns the next event, and moves the time to it.
    pub(super) fn next(&mut self) -> Option<Happening> {
        let Due { at, serial, what } = self.queue.pop()?;
        self.now = at;
        self.tally.note(at, serial);
        Some(what)
    }

    /// Returns a random time up to twice `mean`.
    pub(super) fn around(&mut self, mean: u64) -> u64 {
        self.random.below(2 * mean)
    }

    pub(super) fn cut_off(&mut self, worker: u32, length: u64) {
        self.cut.insert(worker, self.now + length);
    }

    /// Sends a message: the network may lose, delay, reorder and double it.
    pub(super) fn send(&mut self, worker: u32, to_store: bool, what: Happening) {
        self.tally.messages += 1;
        let calm = self.is_calm();
        let is_cut = self.cut.get(&worker).is_some_and(|until| *until > self.now);
        if !calm && (is_cut || self.random.below(1_000) < self.faults.loss) {
            self.tally.lost += 1;
            return;
        }
        if !calm && self.random.below(1_000) < self.faults.doubles {
            self.tally.doubled += 1;
            self.carry(worker, to_store, what.clone());
        }
        self.carry(worker, to_store, what);
    }

    fn carry(&mut self, worker: u32, to_store: bool, what: Happening) {
        let mut delay = 300 + self.random.below(2_000);
        if !self.is_calm() && self.random.below(1_000) < self.faults.slow {
            delay += self.random.below(2_500_000);
        }
        let arrives = self.now + delay;
        let latest = self.latest.entry((worker, to_store)).or_default();
        self.tally.reordered += u64::from(arrives < *latest);
        *latest = arrives.max(*latest);
        self.after(delay, what);
    }
}
