//! Queries of the queue: how many runs they return, and the values that they bind.

use super::cells::{Bind, to_sql};
use crate::queue::{Passed, Queued};
use crate::sql;
use posse_protocol::{RunId, SCHEMA_VERSION};
use std::collections::{HashMap, HashSet};

/// The most runs that a query returns, without those of every root.
pub(crate) const MOST: usize = 1_024;
/// The most roots in `queue_by_root`.
const ROOTS: u32 = 256;
/// The most runs of each of these roots.
const EACH: u32 = 64;

/// The numbers of rows in a statement. There are few, so that few statements are prepared. Empty
/// rows cost little.
const ROOMS: [usize; 5] = [1, 4, 16, 64, 256];

/// Returns how many of `left` rows the next statement takes, and how many it has room for.
pub(crate) fn room_for(left: usize) -> (usize, usize) {
    let most = ROOMS[ROOMS.len() - 1];
    let room = ROOMS.into_iter().find(|room| *room >= left).unwrap_or(most);
    (left.min(room), if left == 0 { 0 } else { room })
}

/// Binds [`sql::queue_ahead`]. `make` creates the statement from its text.
pub(crate) fn bind_ahead<B: Bind>(
    make: impl FnOnce(&str) -> B,
    workspace: Option<&str>,
    passed: &Passed,
    condition: &str,
) -> B {
    let room = |count: usize| room_for(count).1;
    let (agents, models, parents) = (&passed.agents, &passed.models, &passed.parents);
    let shape = sql::Passed {
        workspace: workspace.is_some(),
        agents: room(agents.len()),
        models: room(models.len()),
        parents: room(parents.len()),
    };
    let mut ahead = make(&sql::queue_ahead(shape, condition)).number(i64::from(SCHEMA_VERSION));
    if let Some(workspace) = workspace {
        ahead = ahead.text(workspace.to_owned());
    }
    let parents: Vec<String> = parents.iter().map(RunId::to_string).collect();
    let lists = [(agents, shape.agents), (models, shape.models), (&parents, shape.parents)];
    for (texts, room) in lists {
        // No agent, model or parent has an empty name. Names beyond the room are ignored.
        let filled = texts.iter().cloned().chain(std::iter::repeat(String::new()));
        for text in filled.take(room) {
            ahead = ahead.text(text);
        }
    }
    ahead.number(to_sql(MOST as u64))
}

/// Binds [`sql::queue_by_root`].
pub(crate) fn bind_of_each_root<B: Bind>(
    make: impl FnOnce(&str) -> B,
    by: sql::ByRoot,
    workspace: Option<&str>,
    condition: &str,
) -> B {
    let shape = sql::Passed { workspace: workspace.is_some(), ..sql::Passed::default() };
    let mut of_each = make(&sql::queue_by_root(by, shape, condition))
        .number(i64::from(ROOTS))
        .number(i64::from(SCHEMA_VERSION));
    if let Some(workspace) = workspace {
        of_each = of_each.text(workspace.to_owned());
    }
    of_each.number(i64::from(EACH))
}

/// Returns the roots with as many runs as the query returns of each root. They may have more.
pub(crate) fn cut(runs: &[Queued]) -> HashSet<RunId> {
    let mut counts: HashMap<RunId, u32> = HashMap::new();
    for run in runs {
        *counts.entry(run.root).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count >= EACH).map(|(root, _)| root).collect()
}

/// Binds ids to `room` placeholders.
pub(crate) fn bind_ids<B: Bind>(mut query: B, ids: &[RunId], room: usize) -> B {
    for id in ids {
        query = query.text(id.to_string());
    }
    for _ in ids.len()..room {
        query = query.text(None::<String>);
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_every_row() {
        for left in 0..2_000 {
            let (taken, room) = room_for(left);
            assert!(taken <= room && taken <= left && (taken > 0 || left == 0), "{left}");
            assert!(taken == left || taken == 256, "{left}");
        }
    }
}
