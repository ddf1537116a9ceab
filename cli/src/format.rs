//! Formats numbers, times and durations.

pub use posse::config::show_duration as duration;
pub use posse::moment::{now, timestamp};

/// The source of a decision, without the article that the log has.
pub fn decider(by: &str) -> &str {
    by.strip_prefix("the ").unwrap_or(by)
}

/// How long ago, in one short word.
pub fn ago(at: u64) -> String {
    match now().saturating_sub(at) / 1000 {
        seconds @ 0..60 => format!("{seconds}s ago"),
        seconds @ 60..3600 => format!("{}m ago", seconds / 60),
        seconds @ 3600..86400 => format!("{}h ago", seconds / 3600),
        seconds => format!("{}d ago", seconds / 86400),
    }
}

/// A duration in whole seconds, for a running clock.
pub fn seconds(duration: std::time::Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => self::duration(seconds * 1000),
    }
}

/// A number of things, such as `1 turn` or `2 turns`.
pub fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Writes a number of bytes: `512 bytes`, `3.4 MB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")];
    match UNITS.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", bytes as f64 / *size as f64),
        None => count(bytes, "byte"),
    }
}

/// A position, such as `1st` or `12th`.
pub fn ordinal(place: u64) -> String {
    let ending = match (place % 10, place % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{place}{ending}")
}

/// A number of tokens in one short word.
pub fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn places_are_written_as_people_say_them() {
        let written = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].map(ordinal);
        let said = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"];
        assert_eq!(written, said);
    }
}
