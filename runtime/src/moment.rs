//! Ages and moments, in the forms that people and programs write.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::time::Duration;

/// Formats milliseconds since 1970 as RFC 3339, always with the same length.
pub fn timestamp(at: u64) -> String {
    let at = Timestamp::from_millisecond(at as i64);
    at.map_or_else(|_| String::new(), |at| format!("{at:.3}"))
}

/// Milliseconds since 1970, by the clock of this machine: for display, never for a decision.
pub fn now() -> u64 {
    Timestamp::now().as_millisecond().max(0) as u64
}

/// Parses an age, such as 30d, 2w, 12h or 90m. A unit is required.
///
/// # Errors
/// When it is not an age.
pub fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not an age: write it like 30d, 2w, 12h or 90m");
    let text = text.trim();
    if text.is_empty() || text.parse::<f64>().is_ok() {
        return Err(format!("`{text}` is not an age: add the unit, such as 30d, 2w or 12h"));
    }
    let days = |number: &str, factor: u64| {
        let days: u64 = number.parse().map_err(|_| wrong())?;
        let seconds = days.checked_mul(factor * 24 * 3_600).filter(|seconds| *seconds < 1 << 40);
        seconds.map(Duration::from_secs).ok_or_else(wrong)
    };
    match (text.strip_suffix('d'), text.strip_suffix('w')) {
        (Some(number), _) => days(number, 1),
        (_, Some(number)) => days(number, 7),
        _ => crate::limits::parse_duration(text).map(Duration::from_millis).map_err(|_| wrong()),
    }
}

/// Parses a moment, to milliseconds since 1970: an age, a day (its beginning) or a time, in the
/// local time zone unless it names one.
///
/// # Errors
/// When it is not a moment.
pub fn moment(text: &str) -> Result<u64, String> {
    moment_in(text, &TimeZone::system())
}

fn moment_in(text: &str, zone: &TimeZone) -> Result<u64, String> {
    let text = text.trim();
    let local = |at: DateTime| at.to_zoned(zone.clone()).map(|at| at.timestamp());
    let time = text.parse::<Timestamp>().or_else(|_| text.parse::<DateTime>().and_then(local));
    if let Ok(time) = time {
        return Ok(time.as_millisecond().max(0) as u64);
    }
    let wrong = |_| {
        format!(
            "`{text}` is not a valid time: write it like 7d, 12h, 2026-11-01 or 2026-11-01T08:00"
        )
    };
    let ago = age(text).map_err(wrong)?;
    Ok(now().saturating_sub(ago.as_millis() as u64))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_as_people_write_them() {
        let table = [("30d", 2_592_000), ("2w", 1_209_600), ("12h", 43_200), ("90m", 5_400)];
        for (text, seconds) in table {
            assert_eq!(age(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
        for wrong in ["", "d", "soon", "-3d", "9999999999999d", "18446744073709551615d"] {
            assert!(age(wrong).unwrap_err().contains("is not an age"), "{wrong}");
        }
        for bare in ["5", "30", "0", "1.5", " 7 ", ""] {
            let wrong = age(bare).unwrap_err();
            assert!(wrong.contains("add the unit, such as 30d, 2w or 12h"), "{bare}: {wrong}");
        }
    }

    #[test]
    fn moments_are_days_times_or_ages() {
        let east = TimeZone::fixed(jiff::tz::offset(2));
        let two_hours = 7_200_000;
        assert_eq!(moment_in("2026-11-01", &TimeZone::UTC).unwrap(), 1_793_491_200_000);
        assert_eq!(moment_in("2026-11-01", &east).unwrap(), 1_793_491_200_000 - two_hours);
        assert_eq!(moment_in("2026-11-01T08:00", &east).unwrap(), 1_793_520_000_000 - two_hours);
        assert_eq!(moment_in("2026-11-01T08:00:00Z", &east).unwrap(), 1_793_520_000_000);
        let (before, at, after) = (now(), moment("7d").unwrap(), now());
        assert!((before..=after).contains(&(at + 604_800_000)), "{before} {at} {after}");
        for wrong in ["2026-13-01", "7", ""] {
            assert!(moment(wrong).unwrap_err().contains("is not a valid time"), "{wrong}");
        }
    }
}
