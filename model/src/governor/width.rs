//! Finds out how many calls a provider accepts at once: quickly more until it refuses, then at once
//! fewer, and then carefully around that number. Pure.

/// A step beyond the known width comes after this many rounds of calls, and after twice as many
/// each time it is refused, up to the second number.
const FIRST_CAUTION: usize = 4;
const MOST_CAUTION: usize = 64;

/// Trouble that is not about the number of our calls narrows the width only when it is more than
/// one answer in this many.
const TOLERATED: u32 = 8;

/// The growth of the width after a time without refusals, before the first refusal.
const WIDENING: usize = 5;

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// We send too much.
    Ours,
    /// The provider is in trouble for another reason.
    Theirs,
}

/// How many calls may be in flight.
#[derive(Debug)]
pub(super) struct Width {
    now: usize,
    most: usize,
    /// How many calls were accepted when one more was refused.
    known: Option<usize>,
    /// Calls that began since the width was last cut.
    round: u64,
    /// Calls accepted since the last step beyond the known width.
    taken: usize,
    caution: usize,
    /// The size of the next step, which grows each time a step was accepted.
    step: usize,
    /// The last answers, the newest in the lowest bit: ones were trouble.
    answers: u64,
    answered: u32,
}

impl Width {
    /// Begins with `first`; never more than `most`.
    pub(super) fn new(first: usize, most: usize) -> Self {
        let most = most.max(1);
        Width {
            now: first.clamp(1, most),
            most,
            known: None,
            round: 0,
            taken: 0,
            caution: FIRST_CAUTION,
            step: 1,
            answers: 0,
            answered: 0,
        }
    }

    pub(super) fn now(&self) -> usize {
        self.now
    }

    /// True when every call was taken so far.
    pub(super) fn was_never_refused(&self) -> bool {
        self.known.is_none() && self.round == 0
    }

    /// Lets many more calls go: nothing was refused yet.
    pub(super) fn widen(&mut self) {
        self.now = self.now.saturating_mul(WIDENING).min(self.most);
    }

    /// The number of the present round: a cut begins a new one.
    pub(super) fn round(&self) -> u64 {
        self.round
    }

    /// Notes that a call was taken. `in_flight` is how many there are with it, and `waiting` how
    /// many wait. A width that is not used up says nothing.
    pub(super) fn taken(&mut self, in_flight: usize, waiting: usize) {
        self.answer(0);
        if in_flight + waiting < self.now {
            return;
        }
        match self.known {
            Some(known) if self.now >= known => {
                self.taken += 1;
                if self.taken >= self.now.saturating_mul(self.caution) {
                    self.step_beyond(known);
                }
            }
            _ => self.now += 1,
        }
        self.now = self.now.min(self.most);
    }

    fn step_beyond(&mut self, known: usize) {
        self.taken = 0;
        if self.now > known {
            // The last step was accepted, so the provider may accept more.
            self.known = Some(self.now);
            self.caution = 1;
            self.step = self.step.saturating_mul(2);
        }
        self.now = self.now.saturating_add(self.step.max(self.now / 16));
    }

    /// Notes that a call of `round` was refused while `others` are in flight. Returns whether this
    /// narrowed the width: calls of the same round narrow it once.
    pub(super) fn refused(&mut self, refusal: Refusal, round: u64, others: usize) -> bool {
        self.answer(1);
        let others = others.max(1);
        match refusal {
            Refusal::Theirs if !self.is_in_trouble() => return false,
            Refusal::Theirs if round == self.round => self.now = (self.now / 2).max(1),
            Refusal::Ours if round == self.round => self.cut(others),
            // Another call of the same round: fewer were accepted than it seemed.
            Refusal::Ours
                if round + 1 == self.round && self.known.is_some_and(|it| others < it) =>
            {
                self.known = Some(others);
                self.now = self.now.min(others);
                return false;
            }
            _ => return false,
        }
        self.round += 1;
        true
    }

    fn cut(&mut self, others: usize) {
        let half = (self.now / 2).max(1);
        (self.taken, self.step) = (0, 1);
        match self.known {
            // Few were sent, so their number is not the reason.
            _ if (others + 1) * 2 < self.now => self.now = half,
            // Only the step beyond was refused: the known width is confirmed.
            Some(known) if self.now > known && others >= known => {
                self.caution = (self.caution * 2).min(MOST_CAUTION);
                self.now = known;
            }
            _ => {
                self.caution = FIRST_CAUTION;
                self.known = Some(others);
                self.now = half.min(others);
            }
        }
    }

    fn answer(&mut self, trouble: u64) {
        self.answers = self.answers << 1 | trouble;
        self.answered = (self.answered + 1).min(u64::BITS);
    }

    fn is_in_trouble(&self) -> bool {
        self.answers.count_ones() * TOLERATED > self.answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A provider that takes `limit` at a time: `rounds` full rounds. Returns how many were taken
    /// and how many refused.
    fn play(width: &mut Width, limit: usize, rounds: usize) -> (usize, usize) {
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..rounds {
            let (sent, round) = (width.now(), width.round());
            for others in (limit.min(sent)..sent).rev() {
                width.refused(Refusal::Ours, round, others);
                refused += 1;
            }
            for in_flight in (1..=limit.min(sent)).rev() {
                width.taken(in_flight, 1000);
                taken += 1;
            }
        }
        (taken, refused)
    }

    #[test]
    fn a_limit_is_found_kept_and_seldom_tried_again() {
        for limit in [1, 3, 10, 100, 700] {
            let mut width = Width::new(16, 4096);
            play(&mut width, limit, 12);
            assert!(width.now() <= limit + limit / 16 + 1, "{width:?}");
            assert!(width.now() * 2 >= limit, "{width:?}");
            let (taken, refused) = play(&mut width, limit, 200);
            assert!(taken > limit * 180, "{taken} of {}: {width:?}", limit * 200);
            assert!(refused * 20 < taken.max(160), "{refused} refused, {taken} taken");
        }
    }

    #[test]
    fn refusals_that_come_together_narrow_once() {
        let mut width = Width::new(64, 4096);
        let round = width.round();
        assert!(width.refused(Refusal::Ours, round, 63));
        assert_eq!(width.now(), 32);
        assert!(!width.refused(Refusal::Ours, round, 62));
        assert_eq!(width.now(), 32);
        // What was taken of them is all that may come next.
        assert!(!width.refused(Refusal::Ours, round, 5));
        assert_eq!(width.now(), 5);
        assert!(!width.refused(Refusal::Ours, round, 0));
        assert_eq!(width.now(), 1, "never less");
    }

    #[test]
    fn a_provider_that_takes_more_than_it_used_to_is_given_more() {
        let mut width = Width::new(16, 4096);
        play(&mut width, 10, 10);
        play(&mut width, 300, 150);
        assert!(width.now() >= 100, "{width:?}");
    }

    #[test]
    fn a_provider_that_takes_all_is_soon_given_all() {
        let mut width = Width::new(16, 300);
        play(&mut width, usize::MAX, 5);
        assert_eq!(width.now(), 300, "doubled each round, up to the most");
    }

    #[test]
    fn a_width_that_nobody_fills_does_not_grow() {
        let mut width = Width::new(16, 4096);
        for _ in 0..100 {
            width.taken(3, 0);
        }
        assert_eq!(width.now(), 16);
    }

    #[test]
    fn trouble_here_and_there_narrows_nothing_and_much_of_it_does() {
        let mut width = Width::new(16, 16);
        for number in 0..400 {
            match number % 20 {
                10 => drop(width.refused(Refusal::Theirs, width.round(), 15)),
                _ => width.taken(16, 1),
            }
        }
        assert_eq!(width.now(), 16, "one in twenty");
        for _ in 0..12 {
            width.refused(Refusal::Theirs, width.round(), 0);
        }
        assert_eq!(width.now(), 1, "{width:?}");
        play(&mut width, usize::MAX, 4);
        assert_eq!(width.now(), 16, "it is over as soon as it is over");
    }
}
