//! When to retry a delivery that failed.

use ring::rand::{SecureRandom, SystemRandom};
use std::time::Duration;

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

/// The default waits between attempts: ten attempts over three days, as Standard Webhooks suggests.
pub const SCHEDULE: [Duration; 9] = [
    Duration::from_secs(5),
    minutes(5),
    minutes(30),
    minutes(2 * 60),
    minutes(5 * 60),
    minutes(10 * 60),
    minutes(14 * 60),
    minutes(20 * 60),
    minutes(24 * 60),
];

/// The longest wait that a receiver can ask for.
const LONGEST: Duration = minutes(24 * 60);

/// Returns the wait after this attempt, counted from 1; `None` after the last. It is never shorter
/// than the receiver asks for. `chance`, from 0 to 1, spreads the wait over the upper half of its
/// slot, so that deliveries that failed together are not repeated together.
pub(super) fn wait(
    schedule: &[Duration],
    attempts: u32,
    asked: Option<Duration>,
    chance: f64,
) -> Option<Duration> {
    let slot = *schedule.get(usize::try_from(attempts).ok()?.checked_sub(1)?)?;
    let spread = slot.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
    Some(spread.max(asked.unwrap_or_default().min(LONGEST)))
}

/// Returns the wait in `Retry-After`: seconds, or a date relative to `now`, in seconds since 1970.
pub(super) fn retry_after(value: &str, now: u64) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = match jiff::fmt::rfc2822::parse(value) {
        Ok(date) => date.timestamp().as_second(),
        // Some servers mean "never" by the last days of the year 9999, which are out of range.
        Err(_) if value.split_whitespace().nth(3) == Some("9999") => i64::MAX,
        Err(_) => return None,
    };
    Some(Duration::from_secs(u64::try_from(until).unwrap_or_default().saturating_sub(now)))
}

/// Returns a random number from 0 to 1.
pub(super) fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness the waits are not spread; nothing else depends on it.
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_are_spread_and_end() {
        assert_eq!(wait(&SCHEDULE, 1, None, 1.0), Some(Duration::from_secs(5)));
        assert_eq!(wait(&SCHEDULE, 1, None, 0.0), Some(Duration::from_millis(2_500)));
        assert_eq!(wait(&SCHEDULE, 2, None, 0.5), Some(Duration::from_secs(225)));
        assert_eq!(wait(&SCHEDULE, 9, None, 1.0), Some(minutes(24 * 60)));
        assert_eq!(wait(&SCHEDULE, 10, None, 1.0), None);
        assert_eq!(wait(&[], 1, None, 1.0), None);
        assert!(SCHEDULE.is_sorted());
        let whole: Duration = SCHEDULE.iter().sum();
        assert!(whole > minutes(3 * 24 * 60), "{whole:?}");
    }

    #[test]
    fn a_receiver_can_ask_for_more_time_and_not_for_less() {
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(wait(&SCHEDULE, 1, asked(60), 1.0), asked(60));
        assert_eq!(wait(&SCHEDULE, 1, asked(1), 1.0), asked(5));
        assert_eq!(wait(&SCHEDULE, 1, asked(u64::MAX), 1.0), Some(LONGEST));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after(" 120 ", 0), Some(Duration::from_secs(120)));
        let date = "Thu, 01 Jan 1970 00:02:00 GMT";
        assert_eq!(retry_after(date, 20), Some(Duration::from_secs(100)));
        assert_eq!(retry_after(date, 500), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", 0), None);
        let never = retry_after("Fri, 31 Dec 9999 23:59:59 GMT", 500);
        assert_eq!(wait(&SCHEDULE, 1, never, 1.0), Some(LONGEST));
    }

    #[test]
    fn chance_is_within_its_bounds_and_not_always_the_same() {
        let some: Vec<f64> = (0..16).map(|_| chance()).collect();
        assert!(some.iter().all(|it| (0.0..=1.0).contains(it)), "{some:?}");
        assert!(some.iter().any(|it| *it != some[0]), "{some:?}");
    }
}
