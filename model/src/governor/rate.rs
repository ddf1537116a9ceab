//! How much may be sent in which time: the user's limits for a minute, and what the provider says
//! is left. Pure; the caller provides the time.

use crate::http::Limit;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// At most so much in any minute.
#[derive(Debug)]
pub(super) struct Cap {
    most: u64,
    sum: u64,
    /// What was spent within the last minute, the oldest first.
    spent: VecDeque<(Instant, u64)>,
}

impl Cap {
    pub(super) fn new(most: u64) -> Self {
        Cap { most: most.max(1), sum: 0, spent: VecDeque::new() }
    }

    /// When `amount` may be spent; `None` for now. An amount above the limit counts as the limit;
    /// else it could never be spent.
    pub(super) fn free_at(&mut self, amount: u64, now: Instant) -> Option<Instant> {
        while let Some((at, old)) = self.spent.front().copied()
            && at + MINUTE <= now
        {
            self.sum -= old;
            self.spent.pop_front();
        }
        let amount = amount.min(self.most);
        let mut sum = self.sum;
        let mut spent = self.spent.iter();
        let mut free_at = None;
        while sum + amount > self.most
            && let Some((at, old)) = spent.next()
        {
            sum -= old;
            free_at = Some(*at + MINUTE);
        }
        free_at
    }

    pub(super) fn spend(&mut self, amount: u64, now: Instant) {
        if amount > 0 {
            self.sum += amount;
            self.spent.push_back((now, amount));
        }
    }
}

/// What a provider says is left of one of its limits. It grows steadily up to the limit. If the
/// provider does not say the limit, it comes back all at once.
#[derive(Debug)]
pub(super) struct Left {
    level: f64,
    whole: Option<f64>,
    /// What comes back in a second.
    rate: f64,
    told_at: Instant,
    at: Instant,
    full_at: Instant,
}

impl Left {
    /// What `limit` says at `now`, while `open` of it is sent and not answered yet. `None` when it
    /// does not say enough.
    pub(super) fn told(limit: &Limit, open: u64, now: Instant) -> Option<Self> {
        let fills_in = Duration::from_millis(limit.resets_in_ms.filter(|it| *it > 0)?);
        let missing = limit.whole.map(|whole| whole.saturating_sub(limit.left) as f64);
        Some(Left {
            level: limit.left as f64 - open as f64,
            whole: limit.whole.map(|whole| whole as f64),
            rate: missing.map_or(0.0, |missing| missing / fills_in.as_secs_f64()),
            told_at: now,
            at: now,
            full_at: now.checked_add(fills_in)?,
        })
    }

    /// Whether the answer to a call that began at `sent` replaces this: it is newer, or it leaves
    /// less. Answers overtake each other.
    pub(super) fn gives_way_to(&mut self, newer: &Left, sent: Instant, now: Instant) -> bool {
        self.fill(now);
        sent >= self.told_at || newer.level < self.level
    }

    /// When `amount` is there; `None` for now.
    pub(super) fn free_at(&mut self, amount: u64, now: Instant) -> Option<Instant> {
        self.fill(now);
        let amount = self.whole.map_or(amount as f64, |whole| whole.min(amount as f64));
        if now >= self.full_at || self.level >= amount {
            return None;
        }
        if self.rate <= 0.0 {
            return Some(self.full_at);
        }
        let wait = Duration::try_from_secs_f64((amount - self.level) / self.rate);
        // A little late is better than a little early, which is refused.
        let wait = wait.unwrap_or(MINUTE).saturating_add(Duration::from_millis(1));
        Some(now.checked_add(wait).unwrap_or(self.full_at))
    }

    pub(super) fn spend(&mut self, amount: u64, now: Instant) {
        self.fill(now);
        self.level -= amount as f64;
        if self.rate > 0.0 {
            let fills_in = Duration::try_from_secs_f64(amount as f64 / self.rate).ok();
            let later = fills_in.and_then(|fills_in| self.full_at.checked_add(fills_in));
            self.full_at = later.unwrap_or(self.full_at);
        }
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.level += passed * self.rate;
        if let Some(whole) = self.whole {
            self.level = self.level.min(whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn no_minute_has_more_than_the_user_allows() {
        let begin = Instant::now();
        let (mut cap, mut now, mut sent) = (Cap::new(30), begin, Vec::new());
        for _ in 0..100 {
            if let Some(at) = cap.free_at(1, now) {
                assert!(at > now);
                now = at;
            }
            cap.spend(1, now);
            sent.push(now);
            now += Duration::from_millis(700);
        }
        for (index, at) in sent.iter().enumerate() {
            let within = sent[index..].iter().filter(|later| **later < *at + MINUTE).count();
            assert!(within <= 30, "{within} from {:?} on", *at - begin);
        }
        assert!(now - begin < 4 * MINUTE, "and no less: {:?}", now - begin);
        let mut small = Cap::new(10);
        assert_eq!(small.free_at(5000, now), None, "what is more than the whole goes alone");
        small.spend(5000, now);
        assert_eq!(small.free_at(1, now), Some(now + MINUTE));
    }

    #[test]
    fn what_is_left_fills_up_steadily_when_the_whole_is_known() {
        let now = Instant::now();
        let limit = Limit { left: 2, whole: Some(62), resets_in_ms: Some(60_000) };
        let mut left = Left::told(&limit, 0, now).unwrap();
        for _ in 0..2 {
            assert_eq!(left.free_at(1, now), None);
            left.spend(1, now);
        }
        let next = left.free_at(1, now).unwrap();
        assert!(next > now + SECOND && next < now + SECOND * 11 / 10, "{:?}", next - now);
        assert_eq!(left.free_at(1, next), None);
    }

    #[test]
    fn what_is_left_comes_back_at_once_when_the_whole_is_not_known() {
        let now = Instant::now();
        let limit = Limit { left: 3, whole: None, resets_in_ms: Some(5_000) };
        let mut left = Left::told(&limit, 2, now).unwrap();
        assert_eq!(left.free_at(1, now), None);
        left.spend(1, now);
        assert_eq!(left.free_at(1, now), Some(now + 5 * SECOND), "two are on their way");
        assert_eq!(left.free_at(1, now + 5 * SECOND), None);
        let past = Limit { left: 0, whole: Some(9), resets_in_ms: Some(0) };
        assert!(Left::told(&past, 0, now).is_none(), "it is full again by now");
    }

    #[test]
    fn no_number_of_a_provider_is_too_large() {
        let now = Instant::now();
        for resets_in_ms in [1, 86_400_000, 1 << 60, u64::MAX] {
            for (left, whole) in [(1_000_000, 1_000_001), (0, u64::MAX), (u64::MAX, u64::MAX)] {
                let limit = Limit { left, whole: Some(whole), resets_in_ms: Some(resets_in_ms) };
                let Some(mut told) = Left::told(&limit, 0, now) else { continue };
                for amount in [1, 20_000, u64::MAX] {
                    told.free_at(amount, now);
                    told.spend(amount, now);
                    told.free_at(amount, now + SECOND);
                }
            }
        }
    }

    #[test]
    fn an_answer_that_was_overtaken_gives_nothing_back() {
        let now = Instant::now();
        let limit = |left| Limit { left, whole: None, resets_in_ms: Some(60_000) };
        let mut left = Left::told(&limit(0), 0, now + SECOND).unwrap();
        let late = now + 2 * SECOND;
        let old = Left::told(&limit(40), 0, late).unwrap();
        assert!(!left.gives_way_to(&old, now, late));
        let newer = Left::told(&limit(40), 0, late).unwrap();
        assert!(left.gives_way_to(&newer, late, late));
    }
}
