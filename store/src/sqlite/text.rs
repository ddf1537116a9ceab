//! Adapts statements to SQLite.
//!
//! To SQLite, `$1` is a *name*, and the driver finds the name of every parameter by a scan. The
//! time for many rows would grow with the square of the parameters. A bare `?` has no name.

use crate::row::Columns;
use crate::sql;
use std::collections::HashMap;
use std::sync::Arc;

/// Replaces `$1`, `$2`…, which must be in order, by `?`.
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

/// The statements that are sent to the engine at once. Each round trip goes to another thread and
/// back, so one prepared text contains several statements. Hardly any other engine than SQLite
/// allows that.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Message {
    /// Room for events.
    pub(super) events: usize,
    /// Room for model calls.
    pub(super) calls: usize,
    /// Room for rows of runs.
    pub(super) runs: usize,
    /// The columns of these rows.
    pub(super) columns: Columns,
    /// What follows.
    pub(super) then: Then,
}

/// What follows the rows in a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Then {
    Commit,
    GoOn,
}

/// The texts of messages, each built once.
#[derive(Default)]
pub(super) struct Texts(HashMap<Message, Arc<str>>);

impl Texts {
    pub(super) fn get(&mut self, message: Message) -> Arc<str> {
        let make = || {
            let statements = [
                (message.events > 0).then(|| bare(&sql::insert_events(message.events))),
                (message.calls > 0).then(|| bare(&sql::insert_calls(message.calls))),
                (message.runs > 0).then(|| bare(&sql::save_runs(message.runs, message.columns))),
                (message.then == Then::Commit).then(|| "COMMIT".to_owned()),
            ];
            let statements: Vec<String> = statements.into_iter().flatten().collect();
            statements.join("; ").into()
        };
        self.0.entry(message).or_insert_with(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_bare_and_stay_in_order() {
        assert_eq!(bare("a = $1 AND b IN ($2, $13) LIMIT $14"), "a = ? AND b IN (?, ?) LIMIT ?");
        let saved = sql::save_runs(2, Columns::All);
        let moved = sql::save_runs(2, Columns::Moving);
        for text in [sql::insert_events(4), saved, moved, sql::runs_by_id(3)] {
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
        let mut texts = Texts::default();
        let columns = Columns::Moving;
        let mut text =
            |events, then| texts.get(Message { events, calls: 0, runs: 1, columns, then });
        assert!(Arc::ptr_eq(&text(4, Then::Commit), &text(4, Then::Commit)));
        assert_ne!(text(4, Then::Commit), text(4, Then::GoOn));
        assert!(text(4, Then::Commit).ends_with("; COMMIT"));
    }
}
