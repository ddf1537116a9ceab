//! The limits of the server: requests at a time, and requests in a span of time. It refuses more as
//! a provider does, and headers say what is left.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The limits of a server; none by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capacity {
    /// Requests under way.
    pub(crate) at_once: Option<usize>,
    /// Requests in any one of these spans, which follow each other.
    pub(crate) per_span: Option<(u64, Duration)>,
    /// The `retry-after` for too many requests at once.
    pub(crate) retry_after: Option<Duration>,
}

/// Accepts or refuses requests.
#[derive(Debug)]
pub(crate) struct Turnstile {
    capacity: Capacity,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    under_way: usize,
    /// When the present span began, and the requests in it.
    span: Option<(Instant, u64)>,
}

/// An accepted request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    turnstile: Arc<Turnstile>,
    pub(crate) quota: Option<Quota>,
}

/// A refused request.
#[derive(Debug)]
pub(crate) struct Full {
    /// When to come back.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) quota: Option<Quota>,
}

/// What is left of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) whole: u64,
    pub(crate) left: u64,
    pub(crate) resets_in: Duration,
}

impl Turnstile {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Turnstile { capacity, inside: Mutex::new(Inside { under_way: 0, span: None }) }
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Result<Seat, Full> {
        let mut inside = self.inside.lock();
        let now = Instant::now();
        let mut quota = self.quota(&mut inside, now);
        if let Some(spent) = quota.filter(|quota| quota.left == 0) {
            return Err(Full { retry_after: Some(spent.resets_in), quota });
        }
        if self.capacity.at_once.is_some_and(|most| inside.under_way >= most) {
            return Err(Full { retry_after: self.capacity.retry_after, quota });
        }
        inside.under_way += 1;
        if let (Some((_, used)), Some(quota)) = (&mut inside.span, &mut quota) {
            *used += 1;
            quota.left -= 1;
        }
        Ok(Seat { turnstile: self.clone(), quota })
    }

    /// What is left of the present span, which may be a new one.
    fn quota(&self, inside: &mut Inside, now: Instant) -> Option<Quota> {
        let (whole, length) = self.capacity.per_span?;
        let (began, used) = match inside.span {
            Some((began, used)) if now < began + length => (began, used),
            _ => (now, 0),
        };
        inside.span = Some((began, used));
        Some(Quota { whole, left: whole - used, resets_in: began + length - now })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let inside = &self.turnstile.inside;
        inside.lock().under_way -= 1;
    }
}

impl Quota {
    /// The date and time of its end, as RFC 3339 has it.
    pub(crate) fn resets_at(&self) -> String {
        date_in(self.resets_in)
    }
}

/// The date and time after this duration, in the form of RFC 3339.
fn date_in(wait: Duration) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + wait;
    let (seconds, milliseconds) = (since.as_secs(), since.subsec_millis());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last day; eras have 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hours, minutes, seconds) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}Z")
}
