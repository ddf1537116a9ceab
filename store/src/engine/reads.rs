//! What lists and sums bind, and what is made of their rows.

use super::cells::{Bind, Cells, to_sql};
use super::codec::run_row;
use crate::filter::Filter;
use crate::row::RunRow;
use crate::selection::Selection;
use crate::spending::{By, Spending, SpendingQuery, date};
use crate::sql::{self, Ask};
use posse_protocol::{SCHEMA_VERSION, WorkerId};
use std::collections::HashSet;

/// Runs that are found by a part of their ids, at most.
pub(crate) const FOUND: i64 = 1_000;
/// Characters of an id's end by which runs are found.
const ENDING: usize = 4;
/// Deliveries in a list whose length nobody set.
pub(crate) const LIST: usize = 100;

/// The runs of a filter. `make` makes the statement of a text.
pub(crate) fn bind_selection<B: Bind>(make: impl FnOnce(&str) -> B, selection: Selection) -> B {
    let Selection { statement, texts, limit } = selection;
    let query = texts.into_iter().fold(make(&statement), |query, text| query.text(text));
    query.number(to_sql(limit))
}

/// The sums that `query` asks for.
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
    // Once for the calls that are settled, once for those that are not.
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

/// Days are stored as numbers, and told as dates.
pub(crate) fn name_days(by: By, sums: &mut [Spending]) {
    if by == By::Day {
        for sum in sums {
            sum.key = date(sum.key.parse().unwrap_or_default());
        }
    }
}

/// Runs that ended at `latest`, of which something is to be put away: for [`sql::leftovers`].
pub(crate) fn bind_leftovers<B: Bind>(query: B, latest: u64, limit: usize) -> B {
    query.number(to_sql(latest)).number(i64::from(SCHEMA_VERSION)).number(to_sql(limit as u64))
}

/// The last characters of `part`, by which runs are found, if it has as many.
pub(crate) fn ending(part: &str) -> Option<&str> {
    part.len().checked_sub(ENDING).and_then(|at| part.get(at..))
}

/// Runs found by their beginnings and their ends, as `part` says, the newest first.
pub(crate) fn found(part: &str, begin: Vec<RunRow>, end: Vec<RunRow>) -> Vec<RunRow> {
    let mut found = begin;
    found.extend(end.into_iter().filter(|row| row.id.to_string().ends_with(part)));
    found.sort_by_key(|row| std::cmp::Reverse(row.id));
    found.dedup_by_key(|row| row.id);
    found
}

/// True when runs are to be looked for that hold `part` near the ends of their ids.
pub(crate) fn is_a_piece(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The runs of `rows`, and where each stands, given which workers are alive.
pub(crate) fn as_they_stand<R: Cells>(rows: &[R], living: &HashSet<WorkerId>) -> Vec<RunRow> {
    let status = |mut row: RunRow| {
        row.status = row.status_given(row.work.owner.is_some_and(|owner| living.contains(&owner)));
        row
    };
    rows.iter().filter_map(run_row).map(status).collect()
}

/// An index that leads astray leads nobody in circles who asks for page after page.
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
