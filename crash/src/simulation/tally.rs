//! Counts what happened in worlds.

use posse_store::StoredEvent;
use std::fmt;
use std::ops::AddAssign;

/// What happened in one world, or in several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs that were stored.
    pub runs: u64,
    /// Things that happened, each at its time.
    pub events: u64,
    /// Committed transactions.
    pub transactions: u64,
    /// Effects of tools.
    pub effects: u64,
    /// Messages between workers and the store.
    pub messages: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Messages that arrived before one that was sent earlier.
    pub reordered: u64,
    /// Messages that arrived twice.
    pub doubled: u64,
    /// Commits whose answer was lost, and which a worker found stored.
    pub learned: u64,
    /// Workers that died.
    pub deaths: u64,
    /// Workers that stood still.
    pub standstills: u64,
    /// Workers that could not reach the store for a while.
    pub cuts: u64,
    /// Restarts of the store.
    pub restarts: u64,
    /// Jumps of the clock of the store.
    pub jumps: u64,
    /// Leases that were over before they were renewed.
    pub lapses: u64,
    /// Runs that lost their owner because its lease was over.
    pub takeovers: u64,
    /// Appends that the store refused because the worker did not own the run.
    pub fenced: u64,
    /// Requests that a worker gave up.
    pub given_up: u64,
    mixed: u64,
}

impl Tally {
    /// Counts an event, and adds it to the digest.
    pub(super) fn note(&mut self, at: u64, serial: u64) {
        self.events += 1;
        self.mix(at);
        self.mix(serial);
    }

    fn mix(&mut self, number: u64) {
        self.mixed = (self.mixed ^ number).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    /// Returns the digest of all events and of the last events of all logs.
    pub(super) fn digest<'a>(&self, last: impl Iterator<Item = &'a StoredEvent>) -> u64 {
        let mut all = self.clone();
        for event in last {
            event.hash.bytes().for_each(|byte| all.mix(u64::from(byte)));
        }
        all.mixed
    }
}

impl AddAssign<&Tally> for Tally {
    fn add_assign(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.events += other.events;
        self.transactions += other.transactions;
        self.effects += other.effects;
        self.messages += other.messages;
        self.lost += other.lost;
        self.reordered += other.reordered;
        self.doubled += other.doubled;
        self.learned += other.learned;
        self.deaths += other.deaths;
        self.standstills += other.standstills;
        self.cuts += other.cuts;
        self.restarts += other.restarts;
        self.jumps += other.jumps;
        self.lapses += other.lapses;
        self.takeovers += other.takeovers;
        self.fenced += other.fenced;
        self.given_up += other.given_up;
        self.mix(other.mixed);
    }
}

impl fmt::Display for Tally {
    /// A table with one line for each count.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            ("runs", self.runs),
            ("events", self.events),
            ("transactions", self.transactions),
            ("effects", self.effects),
            ("messages", self.messages),
            ("messages lost", self.lost),
            ("messages reordered", self.reordered),
            ("messages doubled", self.doubled),
            ("lost answers learned", self.learned),
            ("deaths", self.deaths),
            ("standstills", self.standstills),
            ("cuts", self.cuts),
            ("restarts of the store", self.restarts),
            ("jumps of its clock", self.jumps),
            ("lapses", self.lapses),
            ("takeovers", self.takeovers),
            ("stale writes refused", self.fenced),
            ("requests given up", self.given_up),
        ];
        lines.iter().try_for_each(|(name, count)| writeln!(out, "{name:<24}{count:>14}"))
    }
}
