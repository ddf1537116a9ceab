//! Patience: whether and when the loop retries a failed model call.
//!
//! Pure. Runs that fail together must not retry together, so the waits are spread. The spread depends
//! on the id of the run and not on chance, so that the same log gives the same wait.

use crate::ModelError;
use posse_protocol::RunId;
use std::time::Duration;

/// How often and how long a run retries model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The most retries between two replies.
    pub retries: u32,
    /// The wait before the first retry. It doubles with each retry.
    pub first_wait: Duration,
    /// The longest wait before one retry.
    pub longest_wait: Duration,
    /// The longest total wait between two replies. If the vendor asks for more, the run gives up.
    pub total_wait: Duration,
    /// Whether the loop really waits.
    pub waits: Waits,
}

/// What the loop does about the waits before retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// It waits.
    Kept,
    /// It decides on the waits and counts them, but does not wait: there is no vendor to spare.
    Skipped,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            retries: 8,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
            total_wait: Duration::from_secs(600),
            waits: Waits::Kept,
        }
    }
}

/// The retries since the last reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryState {
    pub(crate) run: RunId,
    pub(crate) retries: u32,
    pub(crate) waited: Duration,
}

/// The most retries after a reply that makes no sense or stops coming: each may cost money, and the
/// next one is likely to be the same.
const COSTLY_RETRIES: u32 = 2;

impl Patience {
    /// How long to wait before the retry of a call that failed with `error`; `None` if it is not retried.
    pub(crate) fn wait_after(&self, error: &ModelError, trouble: RetryState) -> Option<Duration> {
        if trouble.retries >= self.retries_after(error) {
            return None;
        }
        let asked = match error {
            ModelError::RetryAfter { after, .. } | ModelError::Overloaded { after, .. } => *after,
            _ => None,
        };
        let doubled = self.first_wait.saturating_mul(1 << trouble.retries.min(20));
        let own = doubled.min(self.longest_wait);
        let share = share(trouble);
        // Wait between half and all of our own wait, or a little more than the vendor asked for. A
        // vendor that asks for very short waits would otherwise use up all retries at once.
        let spread = own.mul_f64(0.5 + share / 2.0);
        let wait = match asked {
            Some(asked) => (asked + own.min(asked / 4).mul_f64(share)).max(spread),
            None => spread,
        };
        (trouble.waited + wait <= self.total_wait).then_some(wait)
    }
}

impl Patience {
    /// An explanation for the case that only the vendor's wish prevents a retry: it asks for a longer
    /// wait than the settings allow.
    pub(crate) fn too_long(&self, error: &ModelError, trouble: RetryState) -> Option<String> {
        let (ModelError::RetryAfter { after, .. } | ModelError::Overloaded { after, .. }) = error
        else {
            return None;
        };
        let asked = after.filter(|_| trouble.retries < self.retries_after(error))?;
        self.wait_after(error, trouble).is_none().then(|| {
            let (asked, all) = (span(asked), span(self.total_wait));
            format!(
                "; it asks to wait {asked}, and `total_wait_s` under [patience] in the settings allows \
                 {all} in all: allow more there, or go on later"
            )
        })
    }

    /// The most retries of a call that failed with `error`.
    pub(crate) fn retries_after(&self, error: &ModelError) -> u32 {
        match error {
            ModelError::RetryAfter { .. }
            | ModelError::Overloaded { .. }
            | ModelError::Unreachable { .. }
            | ModelError::Cut { .. } => self.retries,
            ModelError::Stalled { .. } | ModelError::Malformed { .. } => {
                self.retries.min(COSTLY_RETRIES)
            }
            ModelError::Rejected { .. }
            | ModelError::NotRunning { .. }
            | ModelError::Unauthorised { .. }
            | ModelError::ContextOverflow { .. }
            | ModelError::Cancelled
            | ModelError::NotSent => 0,
        }
    }
}

/// A duration for people to read.
fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3_600)),
    }
}

/// A number from 0 to 1 that differs from run to run and from retry to retry.
fn share(trouble: RetryState) -> f64 {
    let seed = trouble.run.as_u128() ^ u128::from(trouble.retries) << 64;
    // The finaliser of SplitMix64: every bit of the seed affects every bit of the number.
    let mut mixed = (seed as u64) ^ (seed >> 64) as u64;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overloaded(after: Option<u64>) -> ModelError {
        let after = after.map(Duration::from_secs);
        ModelError::Overloaded { model: "m".to_owned(), after, reason: "busy".to_owned() }
    }

    fn trouble(run: u128, retries: u32, waited: u64) -> RetryState {
        RetryState { run: RunId::from_u128(run), retries, waited: Duration::from_secs(waited) }
    }

    #[test]
    fn waits_double_are_spread_and_end() {
        let patience = Patience::default();
        for retries in 0..8 {
            let own = Duration::from_millis(500 << retries).min(Duration::from_secs(60));
            let wait = patience.wait_after(&overloaded(None), trouble(1, retries, 0));
            assert!(wait.is_some_and(|wait| wait >= own / 2 && wait <= own), "{retries}: {wait:?}");
        }
        assert_eq!(patience.wait_after(&overloaded(None), trouble(1, 8, 0)), None);
        let waits = (0..100).map(|run| patience.wait_after(&overloaded(None), trouble(run, 3, 0)));
        let distinct: std::collections::HashSet<_> = waits.collect();
        assert!(distinct.len() > 90, "{}", distinct.len());
    }

    #[test]
    fn the_provider_s_wish_is_kept_within_what_may_be_waited() {
        let patience = Patience::default();
        let wait = patience.wait_after(&overloaded(Some(20)), trouble(1, 0, 0));
        let wanted = Duration::from_secs(20);
        assert!(wait.is_some_and(|wait| wait >= wanted && wait <= wanted * 5 / 4), "{wait:?}");
        assert_eq!(patience.wait_after(&overloaded(Some(601)), trouble(1, 0, 0)), None);
        assert_eq!(patience.wait_after(&overloaded(Some(20)), trouble(1, 1, 590)), None);
        let again = patience.wait_after(&overloaded(Some(1)), trouble(1, 6, 0));
        assert!(again.is_some_and(|wait| wait >= Duration::from_secs(16)), "{again:?}");
    }

    #[test]
    fn what_trying_again_cannot_mend_is_not_tried_again() {
        let (model, reason) = ("m".to_owned(), "no".to_owned());
        let rejected = ModelError::Rejected { model, reason };
        assert_eq!(Patience::default().wait_after(&rejected, trouble(1, 0, 0)), None);
        let garbled = ModelError::Malformed { model: "m".to_owned(), reason: "?".to_owned() };
        assert!(Patience::default().wait_after(&garbled, trouble(1, 1, 0)).is_some());
        assert_eq!(Patience::default().wait_after(&garbled, trouble(1, 2, 0)), None);
    }
}
