//! How a worker talks to the store, as the client of PostgreSQL does: one transaction at a time, each
//! with a number. If the answer to a commit is lost, the client asks on a new connection whether the
//! transaction is under way, and then whether its number is stored. It repeats only what was not.

use super::faults::{LEASE_MS, SECOND};
use super::lease::Lease;
use super::node::{Became, Reply, Taken, Wanted, Who, Work};
use super::scene::{Answer, Happening, Request, Scene, Wish};
use posse_store::{Append, Appended, StoreError};
use std::collections::VecDeque;
use std::rc::Rc;

/// How long the client waits for an answer.
const ANSWER: u64 = SECOND;
/// How long the client tries before it gives up.
const PATIENCE: u64 = 30 * SECOND;
/// The most batches in one transaction.
const GROUP: usize = 32;

/// A request of the worker to its client.
pub(super) enum Job {
    Append { ticket: u64, batch: Vec<Append> },
    Claim(Wanted),
    Renew,
}

/// The answer of the client to the worker.
pub(super) enum Done {
    Appended {
        ticket: u64,
        answer: Result<Vec<Appended>, StoreError>,
    },
    Claimed(Vec<Taken>),
    /// It is not known whether a claim was stored.
    Unclear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Beginning,
    Committing,
    /// The answer to the commit was lost.
    Asking,
}

struct Flight {
    phase: Phase,
    /// The tag of the message whose answer the client waits for.
    tag: u64,
    work: Rc<Work>,
    tickets: Vec<u64>,
    transaction: u64,
    /// When the client began to try.
    since: u64,
    /// The end of the lease, if the transaction writes it: from the time before it was sent.
    until: u64,
}

pub(super) struct Client {
    who: Who,
    pub(super) session: u64,
    /// The number of the last transaction.
    number: u64,
    registered: bool,
    pub(super) lease: Lease,
    queue: VecDeque<Job>,
    flight: Option<Flight>,
}

impl Client {
    pub(super) fn new(who: Who, session: u64) -> Self {
        let (lease, queue) = (Lease::default(), VecDeque::new());
        Client { who, session, number: 0, registered: false, lease, queue, flight: None }
    }

    /// Adds a request. `clock` is the clock of the worker, in milliseconds.
    pub(super) fn ask(&mut self, job: Job, clock: u64, scene: &mut Scene) {
        self.queue.push_back(job);
        self.pump(clock, scene);
    }

    /// True if no claim waits.
    pub(super) fn may_claim(&self) -> bool {
        let flies = self.flight.as_ref().is_some_and(|flight| flight.work.claims.is_some());
        !flies && !self.queue.iter().any(|job| matches!(job, Job::Claim(_)))
    }

    /// Begins the next transaction if none is under way.
    fn pump(&mut self, clock: u64, scene: &mut Scene) {
        if self.flight.is_some() {
            return;
        }
        let (mut work, mut tickets) = (Work::default(), Vec::new());
        while work.batches.len() < GROUP {
            match self.queue.pop_front() {
                Some(Job::Append { ticket, batch }) => {
                    tickets.push(ticket);
                    work.batches.push(batch);
                }
                Some(Job::Renew) => work.renews = true,
                // A claim is a transaction of its own.
                Some(Job::Claim(wanted)) if work.batches.is_empty() && !work.renews => {
                    work.claims = Some(wanted);
                    break;
                }
                Some(claim) => {
                    self.queue.push_front(claim);
                    break;
                }
                None => break,
            }
        }
        if work.batches.is_empty() && !work.renews && work.claims.is_none() {
            return;
        }
        work.renews |= !self.registered;
        let since = scene.now;
        self.begin(Rc::new(work), tickets, since, clock, scene);
    }

    fn begin(
        &mut self,
        work: Rc<Work>,
        tickets: Vec<u64>,
        since: u64,
        clock: u64,
        scene: &mut Scene,
    ) {
        let (phase, until) = (Phase::Beginning, clock + LEASE_MS);
        let flight = Flight { phase, tag: 0, work, tickets, transaction: 0, since, until };
        self.flight = Some(flight);
        self.send(Wish::Begin, scene);
    }

    fn send(&mut self, wish: Wish, scene: &mut Scene) {
        let tag = scene.fresh();
        let Some(flight) = &mut self.flight else { return };
        flight.tag = tag;
        let (worker, session) = (self.who.number, self.session);
        scene.after(ANSWER, Happening::Timeout { worker, tag });
        let request = Request { worker, session, tag, wish };
        scene.send(worker, true, Happening::AtStore(request));
    }

    fn inquire(&mut self, scene: &mut Scene) {
        let Some(flight) = &mut self.flight else { return };
        flight.phase = Phase::Asking;
        let wish = Wish::Became { transaction: flight.transaction, number: self.number };
        self.send(wish, scene);
    }

    /// Leaves a connection whose answer does not come. The store notices that later.
    fn reconnect(&mut self, scene: &mut Scene) {
        let (session, delay) = (self.session, 50_000 + scene.random.below(2 * SECOND));
        scene.after(delay, Happening::Noticed { session });
        self.session = scene.fresh();
    }

    pub(super) fn timed_out(&mut self, tag: u64, clock: u64, scene: &mut Scene) -> Vec<Done> {
        let Some(flight) = self.flight.as_ref().filter(|flight| flight.tag == tag) else {
            return Vec::new();
        };
        let (phase, since) = (flight.phase, flight.since);
        self.reconnect(scene);
        if scene.now - since > PATIENCE {
            return self.give_up(clock, scene);
        }
        match phase {
            Phase::Beginning => self.again(clock, scene),
            Phase::Committing | Phase::Asking => self.inquire(scene),
        }
        Vec::new()
    }

    /// Begins the same transaction again, because it was not stored.
    fn again(&mut self, clock: u64, scene: &mut Scene) {
        let Some(flight) = self.flight.take() else { return };
        self.begin(flight.work, flight.tickets, flight.since, clock, scene);
    }

    pub(super) fn ask_again(&mut self, tag: u64, scene: &mut Scene) {
        if self.flight.as_ref().is_some_and(|flight| flight.tag == tag) {
            self.inquire(scene);
        }
    }

    /// Takes an answer of the store.
    pub(super) fn hear(
        &mut self,
        tag: u64,
        answer: Answer,
        clock: u64,
        scene: &mut Scene,
    ) -> Vec<Done> {
        let Some(flight) = self.flight.as_mut().filter(|flight| flight.tag == tag) else {
            return Vec::new();
        };
        match (flight.phase, answer) {
            (Phase::Beginning, Answer::StartResult(transaction)) => {
                self.number += 1;
                (flight.phase, flight.transaction) = (Phase::Committing, transaction);
                let (number, work) = (self.number, flight.work.clone());
                self.send(Wish::Commit { transaction, number, work }, scene);
            }
            (Phase::Committing, Answer::Committed(reply)) => {
                return self.conclude(&reply, clock, scene);
            }
            // A double of the commit may have come first.
            (Phase::Committing, Answer::NotOpen) => self.inquire(scene),
            (Phase::Asking, Answer::Became(Became::UnderWay)) => {
                let worker = self.who.number;
                scene.after(100_000, Happening::AskAgain { worker, tag });
            }
            (Phase::Asking, Answer::Became(Became::Stored(reply))) => {
                scene.tally.learned += 1;
                return self.conclude(&reply, clock, scene);
            }
            (Phase::Asking, Answer::Became(Became::Undone)) => self.again(clock, scene),
            _ => {}
        }
        Vec::new()
    }

    fn conclude(&mut self, reply: &Reply, clock: u64, scene: &mut Scene) -> Vec<Done> {
        let Some(flight) = self.flight.take() else { return Vec::new() };
        if self.registered && !reply.known {
            self.lease.lost();
        }
        if reply.renewed {
            self.lease.renewed(clock, flight.until);
        }
        self.registered = true;
        let appended = flight.tickets.into_iter().zip(reply.appended.iter().cloned());
        let mut done: Vec<Done> =
            appended.map(|(ticket, answer)| Done::Appended { ticket, answer }).collect();
        if flight.work.claims.is_some() {
            done.push(Done::Claimed(reply.claimed.clone()));
        }
        self.pump(clock, scene);
        done
    }

    fn give_up(&mut self, clock: u64, scene: &mut Scene) -> Vec<Done> {
        let Some(flight) = self.flight.take() else { return Vec::new() };
        scene.tally.given_up += 1;
        let unusable = || StoreError::Unusable {
            path: String::new(),
            reason: "whether it was stored is not known".to_owned(),
        };
        let tickets = flight.tickets.into_iter();
        let done = tickets.map(|ticket| Done::Appended { ticket, answer: Err(unusable()) });
        let unclear = flight.work.claims.as_ref().map(|_| Done::Unclear);
        let done = done.chain(unclear).collect();
        self.pump(clock, scene);
        done
    }
}
