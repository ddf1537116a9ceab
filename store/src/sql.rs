//! All statements. They are portable between SQLite and PostgreSQL: `$n` placeholders, TEXT and
//! BIGINT, no booleans, no JSON operators, no generated keys, and a type for each value in a list
//! of rows. A test prepares each of them.
//!
//! Text is ordered by its bytes. SQLite does this by default; on PostgreSQL each TEXT column of the
//! schema is `COLLATE "C"`. Each text is a single statement. Only SQLite joins several into one
//! (`sqlite::text`).

mod kinds;
mod leftovers;
mod schema;
mod spending;
pub(crate) mod stage;

pub(crate) use kinds::{Kind, of_calls, of_events, of_runs};
pub(crate) use leftovers::leftovers;
#[cfg(test)]
pub(crate) use schema::later;
pub(crate) use schema::{SCHEMA, Schema};
pub(crate) use spending::{Ask, spending};

use crate::DeliveryFilter;
use crate::row::Columns;
use crate::spending::COLUMNS;
use posse_protocol::WorkerId;

/// Columns of `runs`, in the order in which rows are written and read.
pub(crate) const RUN_COLUMNS: &str = "id, agent, model, title, workspace, session, key, \
    created_at, updated_at, last_seq, last_hash, version, epoch, owner, runnable, ready_at, \
    outcome, note, archived, turns, tool_calls, input_tokens, output_tokens, cost, \
    reserved_input, reserved_output, reserved_cost, damaged, parent, root, depth, stopping, awaits, \
    label, priority, background, expects, gathers, gathered_at, paused, finished_at, cleanup, \
    erased, account, budget, drawn, calling, calling_for, asks, abreast, archive_after, \
    uncertain_input, uncertain_output, uncertain_cost, cut_calls, deaths, calls_at_death, host, needs";

/// Counts all runs, and those that have not ended.
pub(crate) const COUNTS: &str = "SELECT (SELECT COUNT(*) FROM runs), \
    (SELECT COUNT(*) FROM runs WHERE outcome IS NULL)";

/// Columns that never change.
const CONSTANT: [&str; 17] = [
    "id",
    "workspace",
    "session",
    "key",
    "created_at",
    "parent",
    "root",
    "depth",
    "label",
    "priority",
    "cleanup",
    "account",
    "budget",
    "abreast",
    "archive_after",
    "host",
    "needs",
];

/// Columns that change with every step. Each is in at most one index, because an engine writes an
/// index again when a statement sets one of its columns, changed or not.
const MOVING: [&str; 14] = [
    "updated_at",
    "last_seq",
    "last_hash",
    "turns",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "cost",
    "reserved_input",
    "reserved_output",
    "reserved_cost",
    "drawn",
    "calling",
    "calling_for",
];

/// The number of columns in `RUN_COLUMNS`.
#[cfg(test)]
const RUN_WIDTH: usize = 59;

/// The columns of a run that waits for a slot.
const QUEUED_COLUMNS: &str = "id, root, parent, agent, model, workspace, priority, ready_at, abreast, deaths, \
     tool_calls, calls_at_death, stopping";

/// The run has something to do, and no owner.
const READY: &str = "runnable = 1 AND owner IS NULL AND paused = 0";

/// Columns of `events`.
const EVENT_COLUMNS: &str = "run, seq, at, version, body, hash";
#[cfg(test)]
const EVENT_WIDTH: usize = 6;

/// Columns of `model_calls`.
const CALL_COLUMNS: &str = "run, seq, at, root, agent, model, label, purpose, ending, \
    input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost, \
    uncertain_input, uncertain_output, uncertain_cost";
#[cfg(test)]
const CALL_WIDTH: usize = 18;

pub(crate) const WORKERS: &str = "SELECT id, boot, lease_until, about FROM workers";
pub(crate) const WORKER_SAVE: &str = "INSERT INTO workers (id, boot, lease_until, about) \
    VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, \
    lease_until = excluded.lease_until, about = excluded.about";
pub(crate) const WORKER_DELETE: &str = "DELETE FROM workers WHERE id = $1";
/// Queues runs without a known worker again, at their old place.
pub(crate) const DISOWN: &str = "UPDATE runs SET owner = NULL \
    WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM workers)";
/// The owners of runs that were asked to stop and have something to do.
pub(crate) const TO_STOP: &str = "SELECT DISTINCT owner FROM runs \
    WHERE outcome IS NULL AND stopping = 1 AND runnable = 1 AND damaged IS NULL";
/// Counts a death for all runs of an owner. The count starts again for runs with more tool calls
/// since their last death than the first value. Binds: that number, the owner.
pub(crate) const DIED: &str = "UPDATE runs SET \
    deaths = CASE WHEN tool_calls - calls_at_death > $1 THEN 1 ELSE deaths + 1 END, \
    calls_at_death = tool_calls WHERE owner = $2";
pub(crate) const MARK_DAMAGED: &str = "UPDATE runs SET damaged = $1 WHERE id = $2";
pub(crate) const EVENTS_FROM: &str = "SELECT seq, at, version, body, hash FROM events \
    WHERE run = $1 AND seq >= $2 ORDER BY seq LIMIT $3";
pub(crate) const TAIL: &str = "SELECT last_seq, last_hash, version, damaged, erased FROM runs \
    WHERE id = $1";
/// When the newest run was last appended to.
pub(crate) const NEWEST: &str = "SELECT updated_at FROM runs ORDER BY id DESC LIMIT 1";
pub(crate) const ERASE: &str = "DELETE FROM events WHERE run = $1";

pub(crate) const ORPHANS: &str = "SELECT DISTINCT run FROM events \
    WHERE NOT EXISTS (SELECT id FROM runs WHERE runs.id = events.run) \
    AND NOT EXISTS (SELECT run FROM hidden_logs WHERE hidden_logs.run = events.run) ORDER BY run";

/// Runs in the ledger that have no row and no events. `ORPHANS` finds runs with events.
pub(crate) const STRANGERS: &str = "SELECT DISTINCT run FROM model_calls \
    WHERE NOT EXISTS (SELECT id FROM runs WHERE runs.id = model_calls.run) \
    AND NOT EXISTS (SELECT seq FROM events WHERE events.run = model_calls.run) ORDER BY run";

/// Columns of `deliveries`, in the order in which rows are written and read.
macro_rules! delivery_columns {
    () => {
        "id, run, seq, hook, kind, data, state, attempts, due_at, created_at, note, seal"
    };
}
/// Ignores a delivery that is stored already.
pub(crate) const DELIVERY_INSERT: &str = concat!(
    "INSERT INTO deliveries (",
    delivery_columns!(),
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO NOTHING"
);
/// Binds: hook, now, limit.
pub(crate) const DELIVERIES_DUE: &str = concat!(
    "SELECT ",
    delivery_columns!(),
    " FROM deliveries WHERE state = 'due' AND hook = $1 AND due_at <= $2 \
     ORDER BY due_at, id LIMIT $3"
);
/// Binds: state, attempts, due_at, note, data, seal, id.
pub(crate) const DELIVERY_CHANGE: &str = "UPDATE deliveries SET state = $1, attempts = $2, \
    due_at = $3, note = $4, data = $5, seal = $6 WHERE id = $7";
/// Marks a changed delivery as dead. Any of its columns may have changed, so it is found by its id
/// or by its event and webhook. The seal stays invalid. Binds: note, id, run, seq, hook.
pub(crate) const DELIVERY_CONDEMN: &str = "UPDATE deliveries SET state = 'dead', note = $1 \
    WHERE id = $2 OR (run = $3 AND seq = $4 AND hook = $5)";
/// Deliveries about runs without a row.
pub(crate) const DELIVERIES_OF_NOBODY: &str = concat!(
    "SELECT ",
    delivery_columns!(),
    " FROM deliveries WHERE NOT EXISTS (SELECT id FROM runs WHERE runs.id = deliveries.run) \
     ORDER BY created_at, id"
);
pub(crate) const DELIVERY_NEXT: &str =
    "SELECT MIN(due_at) FROM deliveries WHERE state = 'due' AND hook = $1";

/// Lists deliveries, newest first. Binds: id, run, state, limit.
pub(crate) fn deliveries(filter: &DeliveryFilter) -> String {
    let set = [
        ("id", filter.id.is_some()),
        ("run", filter.run.is_some()),
        ("state", filter.state.is_some()),
    ];
    let columns = set.into_iter().filter(|(_, is_set)| *is_set).enumerate();
    let conditions: Vec<String> =
        columns.map(|(index, (column, _))| format!("{column} = ${}", index + 1)).collect();
    let next = conditions.len() + 1;
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let columns = delivery_columns!();
    format!("SELECT {columns} FROM deliveries{filter} ORDER BY created_at DESC, id LIMIT ${next}")
}

/// The tables that a rebuild of a database copies, with their columns.
pub(crate) const MENDED_TABLES: [(&str, &str); 7] = [
    ("events", EVENT_COLUMNS),
    ("model_calls", CALL_COLUMNS),
    ("deliveries", delivery_columns!()),
    ("bundles", stage::BUNDLE_COLUMNS),
    ("bundle_parts", stage::PART_COLUMNS),
    ("hidden_logs", stage::HIDDEN_COLUMNS),
    ("runs", RUN_COLUMNS),
];

/// Returns `count` placeholders in parentheses, beginning with `$first`.
pub(crate) fn placeholders(first: usize, count: usize) -> String {
    let list: Vec<String> = (first..first + count).map(|index| format!("${index}")).collect();
    format!("({})", list.join(", "))
}

/// Returns `count` rows of values of these kinds. Only the first row needs casts.
fn rows_of(kinds: &[Kind], count: usize) -> String {
    let typed = kinds.iter().zip(1..);
    let typed: Vec<String> =
        typed.map(|(kind, index)| format!("CAST(${index} AS {})", kind.name())).collect();
    let first = format!("({})", typed.join(", "));
    let width = kinds.len();
    let others = (1..count).map(|row| placeholders(row * width + 1, width));
    std::iter::once(first).chain(others).collect::<Vec<_>>().join(", ")
}

/// Selects `count` rows without those that begin with NULL, so that a few statements serve any
/// number of rows.
fn given_rows(kinds: &[Kind], count: usize) -> String {
    let rows = rows_of(kinds, count);
    format!("SELECT * FROM (VALUES {rows}) AS given WHERE given.column1 IS NOT NULL")
}

/// Inserts up to `count` events.
pub(crate) fn insert_events(count: usize) -> String {
    format!("INSERT INTO events ({EVENT_COLUMNS}) {}", given_rows(of_events(), count))
}

/// Inserts up to `count` model calls.
pub(crate) fn insert_calls(count: usize) -> String {
    format!("INSERT INTO model_calls ({CALL_COLUMNS}) {}", given_rows(of_calls(), count))
}

/// Selects the model calls of a run, each column as text. Binds: run.
pub(crate) fn calls_of_a_run() -> String {
    let columns = COLUMNS.map(|column| format!("CAST({column} AS TEXT)")).join(", ");
    format!("SELECT {columns} FROM model_calls WHERE run = $1 ORDER BY seq")
}

/// Writes up to `count` rows of runs. They may be new if all columns are written.
pub(crate) fn save_runs(count: usize, columns: Columns) -> String {
    match columns {
        Columns::All => put_runs(count),
        Columns::Moving => move_runs(count),
    }
}

/// The columns that can change, with their indexes.
fn changing() -> impl Iterator<Item = (usize, &'static str)> {
    let columns = (1..).zip(RUN_COLUMNS.split(", ").map(str::trim));
    columns.filter(|(_, column)| !CONSTANT.contains(column))
}

fn put_runs(count: usize) -> String {
    let updates: Vec<String> =
        changing().map(|(_, column)| format!("{column} = excluded.{column}")).collect();
    format!("{} ON CONFLICT (id) DO UPDATE SET {}", insert_runs(count), updates.join(", "))
}

/// Inserts up to `count` runs, none of which may exist. When several processes write, this must not
/// overwrite a run of another one.
pub(crate) fn insert_runs(count: usize) -> String {
    format!("INSERT INTO runs ({RUN_COLUMNS}) {}", given_rows(of_runs(Columns::All), count))
}

/// Writes all changeable columns of up to `count` existing runs.
pub(crate) fn change_runs(count: usize) -> String {
    let updates: Vec<String> =
        changing().map(|(index, column)| format!("{column} = given.column{index}")).collect();
    format!(
        "UPDATE runs SET {} FROM (VALUES {}) AS given WHERE runs.id = given.column1",
        updates.join(", "),
        rows_of(of_runs(Columns::All), count)
    )
}

/// Updates instead of upserting: an upsert would first compute the entries of every index.
fn move_runs(count: usize) -> String {
    let updates = MOVING.iter().enumerate();
    let updates: Vec<String> =
        updates.map(|(index, column)| format!("{column} = given.column{}", index + 2)).collect();
    // A NULL id matches no run.
    format!(
        "UPDATE runs SET {} FROM (VALUES {}) AS given WHERE runs.id = given.column1",
        updates.join(", "),
        rows_of(of_runs(Columns::Moving), count)
    )
}

/// Reads `count` runs by id.
pub(crate) fn runs_by_id(count: usize) -> String {
    format!("SELECT {RUN_COLUMNS} FROM runs WHERE id IN {}", placeholders(1, count))
}

/// Selects the last positions of `count` logs.
pub(crate) fn tails(count: usize) -> String {
    format!("SELECT id, last_seq FROM runs WHERE id IN {}", placeholders(1, count))
}

/// Finds runs by `count` keys.
pub(crate) fn runs_by_key(count: usize) -> String {
    format!("SELECT key, id FROM runs WHERE key IN {}", placeholders(1, count))
}

/// The fields of a [`crate::Wanted`] that are set.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shape {
    pub(crate) ids: usize,
    pub(crate) workspace: bool,
    pub(crate) only_to_stop: bool,
    /// Also select runs of this owner.
    pub(crate) again: Option<WorkerId>,
}

/// Selects runs to claim that fulfil `condition`, by priority and then by time. Binds: version, ids,
/// workspace, limit.
pub(crate) fn claimable(shape: Shape, condition: &str) -> String {
    let mut next = 2;
    let mut filter = condition.to_owned();
    if shape.ids > 0 {
        filter.push_str(&format!(" AND id IN {}", placeholders(next, shape.ids)));
        next += shape.ids;
    }
    if shape.workspace {
        filter.push_str(&format!(" AND workspace = ${next}"));
        next += 1;
    }
    if shape.only_to_stop {
        filter.push_str(" AND stopping = 1");
    }
    let free = match shape.again {
        None => READY.to_owned(),
        Some(worker) => {
            format!("runnable = 1 AND (owner IS NULL OR owner = '{worker}') AND paused = 0")
        }
    };
    format!(
        "SELECT {RUN_COLUMNS} FROM runs WHERE {free} AND version <= $1 AND damaged IS NULL{filter} \
         ORDER BY priority DESC, ready_at, id LIMIT ${next}"
    )
}

/// Finds runs by the beginning of their ids. Binds: the lowest id, the highest, limit.
pub(crate) fn runs_by_beginning() -> String {
    format!("SELECT {RUN_COLUMNS} FROM runs WHERE id >= $1 AND id <= $2 ORDER BY id DESC LIMIT $3")
}

/// Finds runs by the last four characters of their ids. Binds: these, limit.
pub(crate) fn runs_by_ending() -> String {
    format!("SELECT {RUN_COLUMNS} FROM runs WHERE substr(id, 23) = $1 ORDER BY id DESC LIMIT $2")
}

/// Finds runs by a part of the last eight characters of their ids. Reads every run. Binds: a
/// pattern, limit.
pub(crate) fn runs_by_piece() -> String {
    format!("SELECT {RUN_COLUMNS} FROM runs WHERE substr(id, 19) LIKE $1 ORDER BY id DESC LIMIT $2")
}

/// The number of values of each kind in [`queue_ahead`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Passed {
    pub(crate) workspace: bool,
    pub(crate) agents: usize,
    pub(crate) models: usize,
    pub(crate) parents: usize,
}

/// Selects the first runs of the queue that fulfil `condition`. Binds: version, workspace, agents, models and parents to
/// leave out, limit.
pub(crate) fn queue_ahead(passed: Passed, condition: &str) -> String {
    let mut next = 2;
    let mut filter = condition.to_owned();
    if passed.workspace {
        filter.push_str(" AND workspace = $2");
        next += 1;
    }
    let mut pass = |column: &str, count: usize, or: &str| {
        if count > 0 {
            let list = placeholders(next, count);
            filter.push_str(&format!(" AND ({or}{column} NOT IN {list})"));
            next += count;
        }
    };
    pass("agent", passed.agents, "");
    pass("model", passed.models, "");
    pass("parent", passed.parents, "parent IS NULL OR ");
    format!(
        "SELECT {QUEUED_COLUMNS} FROM runs \
         WHERE {READY} AND version <= $1 AND damaged IS NULL{filter} \
         ORDER BY priority DESC, ready_at, id LIMIT ${next}"
    )
}

/// How a statement finds the runs of each root.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByRoot {
    /// With a condition about the id. PostgreSQL would check it for every run.
    Condition,
    /// With a lateral join, which SQLite does not have.
    LateralJoin,
}

/// Selects the first waiting runs of every root that fulfil `condition`. It steps from root to root in the index, so its
/// time grows with the number of roots, not with the number of waiting runs. Binds: the most roots,
/// version, workspace, the most runs of each root.
pub(crate) fn queue_by_root(by: ByRoot, passed: Passed, condition: &str) -> String {
    let (filter, limit) = if passed.workspace { (" AND workspace = $3", "$4") } else { ("", "$3") };
    let columns = |table: &str| {
        let columns = QUEUED_COLUMNS.split(", ").map(|column| format!("{table}.{column}"));
        columns.collect::<Vec<_>>().join(", ")
    };
    let of_root = |columns: &str| {
        format!(
            "SELECT {columns} FROM runs AS lined WHERE lined.root = roots.root AND {READY} \
             AND version <= $2 AND damaged IS NULL{condition}{filter} \
             ORDER BY priority DESC, ready_at, id LIMIT {limit}"
        )
    };
    let select = match by {
        ByRoot::Condition => {
            let (columns, ids) = (columns("runs"), of_root("id"));
            format!("SELECT {columns} FROM roots, runs WHERE runs.id IN ( {ids} )")
        }
        ByRoot::LateralJoin => {
            let (columns, runs) = (columns("runs"), of_root(QUEUED_COLUMNS));
            format!("SELECT {columns} FROM roots CROSS JOIN LATERAL ( {runs} ) AS runs")
        }
    };
    format!(
        "WITH RECURSIVE roots (root, number) AS ( \
             SELECT MIN(root), 1 FROM runs WHERE {READY} \
             UNION ALL \
             SELECT (SELECT MIN(runs.root) FROM runs WHERE {READY} AND runs.root > roots.root), \
                 number + 1 \
             FROM roots WHERE roots.root IS NOT NULL AND number < $1 \
         ) \
         {select}"
    )
}

/// Since when the latest run of the queue waits.
pub(crate) fn queue_until() -> String {
    format!("SELECT MAX(ready_at) FROM runs WHERE {READY}")
}

/// Selects runs that wait since a given time or later and fulfil `condition`. Binds: version, time,
/// limit.
pub(crate) fn queue_since(condition: &str) -> String {
    format!(
        "SELECT {QUEUED_COLUMNS} FROM runs WHERE {READY} AND version <= $1 AND damaged IS NULL \
         AND ready_at >= $2{condition} ORDER BY ready_at, id LIMIT $3"
    )
}

/// Selects those of `count` runs that wait and fulfil `condition`. Binds: version, ids.
pub(crate) fn queue_of(count: usize, condition: &str) -> String {
    format!(
        "SELECT {QUEUED_COLUMNS} FROM runs WHERE {READY} AND version <= $1 AND damaged IS NULL \
         AND id IN {}{condition}",
        placeholders(2, count)
    )
}

/// Selects the places of `count` runs in the queue, beginning with 1.
pub(crate) fn places(count: usize) -> String {
    format!(
        "SELECT id, place FROM ( \
             SELECT id, ROW_NUMBER() OVER (ORDER BY priority DESC, ready_at, id) AS place \
             FROM runs WHERE {READY} \
         ) AS lined WHERE id IN {}",
        placeholders(1, count)
    )
}

#[cfg(test)]
mod tests;
