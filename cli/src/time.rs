//! Ages and moments, as people type them.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::time::Duration;

/// How long ago, such as 30d, 2w, 12h or 90m.
pub fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no age: write it like 30d, 2w, 12h or 90m");
    let text = text.trim();
    let days = |number: &str, factor: u64| {
        let days: u64 = number.parse().map_err(|_| wrong())?;
        let seconds = days.checked_mul(factor * 24 * 3_600).filter(|seconds| *seconds < 1 << 40);
        seconds.map(Duration::from_secs).ok_or_else(wrong)
    };
    match (text.strip_suffix('d'), text.strip_suffix('w')) {
        (Some(number), _) => days(number, 1),
        (_, Some(number)) => days(number, 7),
        _ => posse::config::parse_duration(text).map(Duration::from_millis).map_err(|_| wrong()),
    }
}

/// The same for what is removed by its age: a number without a unit may mean anything.
pub fn age_with_unit(text: &str) -> Result<Duration, String> {
    match is_bare(text) {
        true => Err(format!("`{text}` is no age: say the unit, such as 30d, 2w or 12h")),
        false => age(text),
    }
}

/// True for a number without a unit, and for nothing.
pub fn is_bare(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.parse::<f64>().is_ok()
}

/// A moment, in milliseconds since 1970: an age, a day (its beginning, UTC) or a time.
pub fn moment(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok();
    let time = text.parse::<Timestamp>().ok().or_else(|| day().map(|day| day.timestamp()));
    if let Some(time) = time {
        return Ok(time.as_millisecond().max(0) as u64);
    }
    let wrong = |_| {
        format!("`{text}` is no time: write it like 7d, 12h, 2026-11-01 or 2026-11-01T08:00:00Z")
    };
    let ago = age(text).map_err(wrong)?;
    Ok(crate::view::now().saturating_sub(ago.as_millis() as u64))
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
            assert!(age(wrong).unwrap_err().contains("is no age"), "{wrong}");
        }
    }

    #[test]
    fn what_removes_wants_a_unit() {
        assert_eq!(age_with_unit("12h").unwrap(), age("12h").unwrap());
        for bare in ["5", "30", "0", "1.5", " 7 ", ""] {
            let wrong = age_with_unit(bare).unwrap_err();
            assert!(wrong.contains("say the unit, such as 30d, 2w or 12h"), "{bare}: {wrong}");
        }
        assert!(age_with_unit("old").unwrap_err().contains("is no age"));
    }

    #[test]
    fn moments_are_days_times_or_ages() {
        assert_eq!(moment("2026-11-01").unwrap(), 1_793_491_200_000);
        assert_eq!(moment("2026-11-01T08:00:00Z").unwrap(), 1_793_520_000_000);
        let week = crate::view::now() - moment("7d").unwrap();
        assert!((604_800_000..604_860_000).contains(&week), "{week}");
        assert!(moment("2026-13-01").unwrap_err().contains("is no time"));
    }
}
