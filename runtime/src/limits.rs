//! Arithmetic on limits, and how people write durations and sizes.

use posse_protocol::{Extra, Limits};

/// The maximum number of levels of runs below a root.
pub(crate) const DEEPEST: u32 = 8;

/// An explicit request for no time limit. This differs from a call that sets no limit.
pub(crate) const WITHOUT_LIMIT: u64 = u64::MAX;

/// The longest time in settings, in minutes: a hundred years.
pub(crate) const LONGEST_MINUTES: u64 = 100 * 366 * 24 * 60;

/// The stricter value of each limit.
pub(crate) fn stricter(one: Limits, other: &Limits) -> Limits {
    one.stricter(other)
}

/// The values of `change`, else those of `limits`.
pub(crate) fn replaced(change: &Limits, limits: &Limits) -> Limits {
    Limits {
        turns: change.turns.or(limits.turns),
        tool_calls: change.tool_calls.or(limits.tool_calls),
        input_tokens: change.input_tokens.or(limits.input_tokens),
        output_tokens: change.output_tokens.or(limits.output_tokens),
        cost: change.cost.or(limits.cost),
        wall_ms: change.wall_ms.or(limits.wall_ms),
        written_bytes: change.written_bytes.or(limits.written_bytes),
        extra: limits.extra.clone(),
    }
}

/// The values of `change`, as far as they are stricter than `limits`, or than `general` where
/// `limits` sets nothing.
pub(crate) fn narrowed(change: &Limits, limits: &Limits, general: &Limits) -> Limits {
    let in_force = replaced(limits, general);
    // Only the changed values. The others stay unset, so that `general` can still change them.
    replaced(&only(&stricter(change.clone(), &in_force), change), limits)
}

/// The values of `limits` that are also set in `set`.
fn only(limits: &Limits, set: &Limits) -> Limits {
    Limits {
        turns: set.turns.and(limits.turns),
        tool_calls: set.tool_calls.and(limits.tool_calls),
        input_tokens: set.input_tokens.and(limits.input_tokens),
        output_tokens: set.output_tokens.and(limits.output_tokens),
        cost: set.cost.and(limits.cost),
        wall_ms: set.wall_ms.and(limits.wall_ms),
        written_bytes: set.written_bytes.and(limits.written_bytes),
        extra: Extra::default(),
    }
}

/// Parses a duration like `90s`, `10m`, `2h`, `500ms`, or a number of seconds, to milliseconds.
///
/// # Errors
/// When it is none of these, or 0.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a duration: write it like 90s, 10m, 2h or 500ms");
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..number_end].parse().map_err(|_| wrong())?;
    let factor = match &text[number_end..] {
        "ms" => 1.0,
        "" | "s" => 1e3,
        "m" | "min" => 60e3,
        "h" => 3600e3,
        _ => return Err(wrong()),
    };
    let milliseconds = number * factor;
    if number == 0.0 {
        return Err(format!("`{text}` is no time at all: give more than 0, such as 90s"));
    }
    if milliseconds < 1.0 || !milliseconds.is_finite() || milliseconds > 1e15 {
        return Err(wrong());
    }
    Ok(milliseconds as u64)
}

/// A short form of a duration.
pub fn show_duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{:.1}s", ms as f64 / 1000.0),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{}h{}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Parses a size like `20GiB`, `500MB`, `64KiB`, or a number of bytes.
///
/// # Errors
/// When it is none of these, or 0.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size: write it like 20GiB, 500MB or 64KiB");
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..number_end].parse().map_err(|_| wrong())?;
    let factor = match text[number_end..].trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1_048_576.0,
        "g" | "gib" => 1_073_741_824.0,
        "t" | "tib" => 1_099_511_627_776.0,
        _ => return Err(wrong()),
    };
    let bytes = number * factor;
    if bytes < 1.0 || !bytes.is_finite() || bytes > 1e18 {
        return Err(wrong());
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in [
            ("20GiB", 20 << 30),
            ("500MB", 500_000_000),
            ("1.5k", 1_536),
            ("4 mib", 4 << 20),
            ("9", 9),
        ] {
            assert_eq!(parse_size(text), Ok(expected), "{text}");
        }
        for text in ["", "GiB", "-1MB", "3 parsecs", "0", "1e99"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_change_can_only_narrow() {
        let limits = |turns, tool_calls| Limits { turns, tool_calls, ..Limits::default() };
        let general = limits(Some(10), Some(10));
        let check = |change: Limits, own: Limits, expected: Limits| {
            assert_eq!(narrowed(&change, &own, &general), expected);
        };
        check(limits(Some(50), None), limits(None, None), limits(Some(10), None));
        check(limits(Some(5), None), limits(None, Some(90)), limits(Some(5), Some(90)));
        check(limits(Some(50), Some(3)), limits(Some(20), None), limits(Some(20), Some(3)));
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, expected) in
            [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("500ms", 500), ("1.5", 1_500)]
        {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
        for text in ["", "s", "-1s", "10 parsecs", "0", "1e99h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
