//! What goes wrong in a world. The seed decides.

use crate::random::Random;

/// One second, in the time of the simulation.
pub(super) const SECOND: u64 = 1_000_000;
/// How long a lease holds.
pub(super) const LEASE_MS: u64 = 3_000;

/// How much goes wrong, and until when.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    /// Of a thousand messages, how many are lost.
    pub(super) loss: u64,
    /// How many arrive twice.
    pub(super) doubles: u64,
    /// How many take up to seconds.
    pub(super) slow: u64,
    /// The time between two misfortunes, on average.
    pub(super) pace: u64,
    /// How often each kind of misfortune happens, in relation to the others.
    weights: [u64; 5],
    /// The clocks of workers run at most this much too fast or too slow, in parts per million.
    pub(super) drift: u64,
    /// After this time nothing goes wrong.
    pub(super) until: u64,
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfortune {
    /// A worker dies.
    Death,
    /// A worker stands still, often for longer than its lease.
    Standstill,
    /// A worker cannot reach the store.
    Cut,
    /// The store dies, and comes back with what it has committed.
    Restart,
    /// The clock of the store is set forwards.
    Jump,
}

const KINDS: [Misfortune; 5] = [
    Misfortune::Death,
    Misfortune::Standstill,
    Misfortune::Cut,
    Misfortune::Restart,
    Misfortune::Jump,
];

impl Faults {
    /// Chooses the faults of a world. Some worlds have few of a kind, and some have many.
    pub(super) fn of(random: &mut Random, workers: usize, until: u64) -> Self {
        let mut one_of = |choices: [u64; 4]| choices[random.below(4) as usize];
        let workers = workers.max(1) as u64;
        Faults {
            loss: one_of([0, 5, 20, 60]),
            doubles: one_of([0, 2, 10, 30]),
            slow: one_of([0, 5, 20, 50]),
            pace: (one_of([2, 4, 8, 16]) * SECOND / workers).max(1),
            weights: [
                one_of([0, 4, 8, 16]),
                one_of([0, 4, 8, 16]),
                one_of([0, 2, 4, 8]),
                one_of([0, 1, 1, 2]),
                one_of([0, 0, 1, 1]),
            ],
            drift: one_of([0, 100, 1_000, 5_000]),
            until,
        }
    }

    /// Chooses what goes wrong next.
    pub(super) fn next(&self, random: &mut Random) -> Option<Misfortune> {
        let mut left = random.below(self.weights.iter().sum());
        for (kind, weight) in KINDS.into_iter().zip(self.weights) {
            if left < weight {
                return Some(kind);
            }
            left -= weight;
        }
        None
    }
}
