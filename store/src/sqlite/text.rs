//! Statements as SQLite takes them best.
//!
//! To SQLite `$1` is a *name*, and the driver looks up the name of every parameter by a scan: a
//! statement of many rows would cost the square of its parameters. A bare `?` has no name.

use std::sync::Arc;

/// `sql` with `?` in place of `$1`, `$2`…, which stand in their order.
pub(super) fn bare(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        out.push('?');
        rest = rest[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out.push_str(rest);
    out
}

/// The texts of one statement for 1, 2, 4… rows, each made once.
pub(super) struct RowTexts {
    make: fn(usize) -> String,
    by_power: Vec<Option<Arc<str>>>,
}

impl RowTexts {
    pub(super) fn new(make: fn(usize) -> String) -> Self {
        RowTexts { make, by_power: Vec::new() }
    }

    /// The text for `rows` rows, a power of two.
    pub(super) fn get(&mut self, rows: usize) -> Arc<str> {
        let power = rows.trailing_zeros() as usize;
        if self.by_power.len() <= power {
            self.by_power.resize(power + 1, None);
        }
        self.by_power[power].get_or_insert_with(|| bare(&(self.make)(rows)).into()).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql;

    #[test]
    fn placeholders_become_bare_and_stay_in_order() {
        assert_eq!(bare("a = $1 AND b IN ($2, $13) LIMIT $14"), "a = ? AND b IN (?, ?) LIMIT ?");
        for text in [sql::insert_events(4), sql::save_runs(2), sql::runs_by_id(3)] {
            let numbers: Vec<usize> = text
                .split('$')
                .skip(1)
                .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>())
                .map(|digits| digits.parse().unwrap_or_default())
                .collect();
            assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "{text}");
            assert_eq!(bare(&text).matches('?').count(), numbers.len());
        }
    }

    #[test]
    fn each_text_is_made_once() {
        let mut texts = RowTexts::new(sql::insert_events);
        assert!(Arc::ptr_eq(&texts.get(8), &texts.get(8)));
        assert_ne!(texts.get(8), texts.get(1));
    }
}
