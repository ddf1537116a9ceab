//! Random numbers that depend only on a seed.

/// A stream of numbers (splitmix64), good enough to choose moments.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream of one cycle: it does not depend on the cycles before.
    pub(crate) fn of(seed: u64, cycle: usize) -> Self {
        let mut mixed = Random(seed ^ (cycle as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed.next();
        mixed
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 when that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or_default()
    }

    /// True once in `times`.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
