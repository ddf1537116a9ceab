//! The values that lists and sums bind, and the conversion of their rows.

use super::cells::{Bind, Cells, to_sql};
use super::codec::run_row;
use crate::filter::Filter;
use crate::row::RunRow;
use crate::selection::Selection;
use crate::spending::{By, Spending, SpendingQuery, date};
use crate::sql::{self, Ask};
use posse_protocol::{SCHEMA_VERSION, WorkerId};
use std::collections::HashSet;

/// The most runs that a search by a part of the id returns.
pub(crate) const FOUND: i64 = 1_000;
/// How many characters at the end of an id the index covers.
const ENDING: usize = 4;
/// The default length of a list of deliveries.
pub(crate) const LIST: usize = 100;

/// Binds the selection of a filter. `make` creates the statement from its text.
pub(crate) fn bind_selection<B: Bind>(make: impl FnOnce(&str) -> B, selection: Selection) -> B {
    let Selection { statement, texts, limit } = selection;
    let query = texts.into_iter().fold(make(&statement), |query, text| query.text(text));
    query.number(to_sql(limit))
}

/// Binds the sums of `query`.
pub(crate) fn bind_spending<B: Bind>(make: impl FnOnce(&str) -> B, query: &SpendingQuery) -> B {
    let SpendingQuery { by, tree, workspace, since, until, limit } = query;
    let ask = Ask {
        by: *by,
        tree: tree.is_some(),
        workspace: workspace.is_some(),
        since: since.is_some(),
        until: until.is_some(),
    };
    let mut statement = make(&sql::spending(ask));
    if let Some(tree) = tree {
        statement = statement.text(tree.to_string());
    }
    // Once for settled calls, once for open calls.
    for _ in 0..2 {
        if let Some(workspace) = workspace {
            statement = statement.text(workspace.clone());
        }
        for time in [since, until].into_iter().flatten() {
            statement = statement.number(to_sql(*time));
        }
    }
    let limit = if *limit == 0 { usize::MAX } else { *limit };
    statement.number(to_sql(limit as u64))
}

/// Converts the stored numbers of days to dates.
pub(crate) fn name_days(by: By, sums: &mut [Spending]) {
    if by == By::Day {
        for sum in sums {
            sum.key = date(sum.key.parse().unwrap_or_default());
        }
    }
}

/// Binds [`sql::leftovers`], for runs that ended (or became due) at `latest` or earlier.
pub(crate) fn bind_leftovers<B: Bind>(query: B, latest: u64, limit: usize) -> B {
    query.number(to_sql(latest)).number(i64::from(SCHEMA_VERSION)).number(to_sql(limit as u64))
}

/// Returns the last characters of `part`, which the index covers, if it is long enough.
pub(crate) fn ending(part: &str) -> Option<&str> {
    part.len().checked_sub(ENDING).and_then(|at| part.get(at..))
}

/// Merges runs found by the beginning and by the end of their ids, newest first.
pub(crate) fn found(part: &str, begin: Vec<RunRow>, end: Vec<RunRow>) -> Vec<RunRow> {
    let mut found = begin;
    found.extend(end.into_iter().filter(|row| row.id.to_string().ends_with(part)));
    found.sort_by_key(|row| std::cmp::Reverse(row.id));
    found.dedup_by_key(|row| row.id);
    found
}

/// Returns true if `part` may occur inside an id.
pub(crate) fn is_a_piece(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Decodes runs and sets their status, given the living workers.
pub(crate) fn as_they_stand<R: Cells>(rows: &[R], living: &HashSet<WorkerId>) -> Vec<RunRow> {
    let status = |mut row: RunRow| {
        row.status = row.status_given(row.work.owner.is_some_and(|owner| living.contains(&owner)));
        row
    };
    rows.iter().filter_map(run_row).map(status).collect()
}

/// Removes rows that do not follow the one before. So a damaged index cannot make a client that
/// reads page after page go in circles.
pub(crate) fn follow(rows: &mut Vec<RunRow>, filter: &Filter) {
    let mut last = filter.after.or(filter.before);
    rows.retain(|row| {
        let follows = match (filter.after, last) {
            (_, None) => true,
            (Some(_), Some(last)) => row.id > last,
            (None, Some(last)) => row.id < last,
        };
        last = if follows { Some(row.id) } else { last };
        follows
    });
}
