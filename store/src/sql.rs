//! Every statement, once. Portable between SQLite and PostgreSQL: `$n` placeholders, TEXT and
//! BIGINT, no booleans, no JSON operators, no generated keys. A test prepares each of them.

/// Columns of `runs`, in the order in which rows are written and read.
pub(crate) const RUN_COLUMNS: &str = "id, agent, model, title, workspace, session, key, \
    created_at, updated_at, last_seq, last_hash, version, epoch, owner, runnable, ready_at, \
    outcome, note, archived, turns, tool_calls, input_tokens, output_tokens, cost, \
    reserved_input, reserved_output, reserved_cost, damaged, parent, root, depth, stopping, awaits, \
    label, priority, background, expects, gathers, gathered_at, paused, finished_at, cleanup, \
    erased, account, budget, drawn";

/// Those that never change.
const CONSTANT: [&str; 13] = [
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
];

/// How many columns `RUN_COLUMNS` has.
pub(crate) const RUN_WIDTH: usize = 46;

/// Columns of `events`.
const EVENT_COLUMNS: &str = "run, seq, at, version, body, hash";
pub(crate) const EVENT_WIDTH: usize = 6;

/// The schema, one migration an entry; statements are split at `;`.
pub(crate) const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
        title TEXT NOT NULL, workspace TEXT NOT NULL, session BIGINT NOT NULL, key TEXT,
        created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, last_seq BIGINT NOT NULL,
        last_hash TEXT NOT NULL, version BIGINT NOT NULL, epoch BIGINT NOT NULL, owner TEXT,
        runnable BIGINT NOT NULL, ready_at BIGINT NOT NULL, outcome TEXT,
        note TEXT NOT NULL, archived BIGINT NOT NULL, turns BIGINT NOT NULL,
        tool_calls BIGINT NOT NULL, input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        cost BIGINT NOT NULL, reserved_input BIGINT NOT NULL, reserved_output BIGINT NOT NULL,
        reserved_cost BIGINT NOT NULL, damaged TEXT
    );
    CREATE UNIQUE INDEX runs_by_key ON runs (key) WHERE key IS NOT NULL;
    CREATE INDEX runs_ready ON runs (ready_at, id) WHERE runnable = 1 AND owner IS NULL;
    CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
    CREATE INDEX runs_unfinished ON runs (id) WHERE outcome IS NULL;
    CREATE INDEX runs_by_workspace ON runs (workspace, id);
    CREATE TABLE events (
        run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, version BIGINT NOT NULL,
        body TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (run, seq)
    );
    CREATE TABLE workers (
        id TEXT PRIMARY KEY NOT NULL, boot TEXT NOT NULL, lease_until BIGINT NOT NULL
    )
",
    "
    ALTER TABLE runs ADD COLUMN parent TEXT;
    ALTER TABLE runs ADD COLUMN root TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN depth BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN stopping BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN awaits BIGINT NOT NULL DEFAULT 0;
    UPDATE runs SET root = id;
    UPDATE runs SET stopping = 1 WHERE outcome IS NULL AND session = 0 AND EXISTS (
        SELECT run FROM events WHERE events.run = runs.id
        AND events.body LIKE '{\"type\":\"cancel_requested\"%'
    );
    CREATE INDEX runs_by_root ON runs (root, id);
    CREATE INDEX runs_by_parent ON runs (parent, id) WHERE parent IS NOT NULL;
    CREATE INDEX runs_at_the_top ON runs (id) WHERE depth = 0
",
    "
    ALTER TABLE runs ADD COLUMN label TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN priority BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN background BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN expects BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN gathers BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN gathered_at BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN paused BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN finished_at BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN cleanup TEXT NOT NULL DEFAULT 'keep';
    ALTER TABLE runs ADD COLUMN erased BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN account TEXT;
    ALTER TABLE runs ADD COLUMN budget TEXT;
    ALTER TABLE runs ADD COLUMN drawn TEXT;
    UPDATE runs SET finished_at = updated_at WHERE outcome IS NOT NULL;
    DROP INDEX runs_ready;
    CREATE INDEX runs_ready ON runs (priority DESC, ready_at, id)
        WHERE runnable = 1 AND owner IS NULL AND paused = 0;
    CREATE INDEX runs_gathering ON runs (gathered_at) WHERE gathered_at > 0;
    CREATE INDEX runs_to_put_away ON runs (finished_at) WHERE finished_at > 0 AND archived = 0;
    CREATE TABLE model_calls (
        run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, root TEXT NOT NULL,
        agent TEXT NOT NULL, model TEXT NOT NULL, label TEXT NOT NULL, purpose TEXT NOT NULL,
        ending TEXT NOT NULL, input_tokens BIGINT NOT NULL, cache_read_tokens BIGINT NOT NULL,
        cache_write_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        reasoning_tokens BIGINT NOT NULL, cost BIGINT NOT NULL, PRIMARY KEY (run, seq)
    );
    CREATE INDEX model_calls_by_root ON model_calls (root, run);
    CREATE INDEX model_calls_by_time ON model_calls (at);
    CREATE TABLE deliveries (
        id TEXT PRIMARY KEY NOT NULL, run TEXT NOT NULL, seq BIGINT NOT NULL, hook TEXT NOT NULL,
        state TEXT NOT NULL, attempts BIGINT NOT NULL, due_at BIGINT NOT NULL,
        created_at BIGINT NOT NULL, note TEXT NOT NULL
    );
    CREATE INDEX deliveries_due ON deliveries (due_at) WHERE state = 'due'
",
];

pub(crate) const WORKERS: &str = "SELECT id, boot, lease_until FROM workers";
pub(crate) const WORKER_SAVE: &str = "INSERT INTO workers (id, boot, lease_until) \
    VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, \
    lease_until = excluded.lease_until";
pub(crate) const WORKER_DELETE: &str = "DELETE FROM workers WHERE id = $1";
/// What belongs to no known worker is queued again, in its old order.
pub(crate) const DISOWN: &str = "UPDATE runs SET owner = NULL \
    WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM workers)";
pub(crate) const MARK_DAMAGED: &str = "UPDATE runs SET damaged = $2 WHERE id = $1";
pub(crate) const EVENTS_FROM: &str = "SELECT seq, at, version, body, hash FROM events \
    WHERE run = $1 AND seq >= $2 ORDER BY seq LIMIT $3";
pub(crate) const TAIL: &str = "SELECT last_seq, last_hash, version, damaged FROM runs \
    WHERE id = $1";

pub(crate) const ORPHANS: &str = "SELECT DISTINCT run FROM events \
    WHERE NOT EXISTS (SELECT id FROM runs WHERE runs.id = events.run) ORDER BY run";

/// `count` placeholders in parentheses, from `$first` on.
fn placeholders(first: usize, count: usize) -> String {
    let list: Vec<String> = (first..first + count).map(|index| format!("${index}")).collect();
    format!("({})", list.join(", "))
}

fn rows_of(width: usize, count: usize) -> String {
    let rows: Vec<String> = (0..count).map(|row| placeholders(row * width + 1, width)).collect();
    rows.join(", ")
}

/// `count` rows, of which those that begin with NULL do not count: a few statements serve any
/// number of rows.
fn given_rows(width: usize, count: usize) -> String {
    let rows = rows_of(width, count);
    format!("SELECT * FROM (VALUES {rows}) AS given WHERE given.column1 IS NOT NULL")
}

/// Inserts up to `count` events.
pub(crate) fn insert_events(count: usize) -> String {
    format!("INSERT INTO events ({EVENT_COLUMNS}) {}", given_rows(EVENT_WIDTH, count))
}

/// Writes up to `count` rows of runs, new or known.
pub(crate) fn save_runs(count: usize) -> String {
    let updates: Vec<String> = RUN_COLUMNS
        .split(", ")
        .map(str::trim)
        .filter(|column| !CONSTANT.contains(column))
        .map(|column| format!("{column} = excluded.{column}"))
        .collect();
    format!(
        "INSERT INTO runs ({RUN_COLUMNS}) {} ON CONFLICT (id) DO UPDATE SET {}",
        given_rows(RUN_WIDTH, count),
        updates.join(", ")
    )
}

/// Reads `count` runs by id.
pub(crate) fn runs_by_id(count: usize) -> String {
    format!("SELECT {RUN_COLUMNS} FROM runs WHERE id IN {}", placeholders(1, count))
}

/// Where the logs of `count` runs end.
pub(crate) fn tails(count: usize) -> String {
    format!("SELECT id, last_seq FROM runs WHERE id IN {}", placeholders(1, count))
}

/// Finds runs by `count` keys.
pub(crate) fn runs_by_key(count: usize) -> String {
    format!("SELECT key, id FROM runs WHERE key IN {}", placeholders(1, count))
}

/// What of a [`crate::Filter`] or [`crate::Wanted`] is set.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shape {
    pub(crate) ids: usize,
    pub(crate) workspace: bool,
    pub(crate) kin: Option<Family>,
    pub(crate) unfinished: bool,
    pub(crate) gathering: bool,
    pub(crate) before: bool,
}

/// What of [`crate::Kin`] is asked for.
#[derive(Clone, Copy)]
pub(crate) enum Family {
    Roots,
    Children,
    Tree,
}

/// Lists runs, the newest first. Binds: ids, workspace, kin, before, limit.
pub(crate) fn list(shape: Shape) -> String {
    let mut next = 1;
    let mut conditions = Vec::new();
    if shape.ids > 0 {
        conditions.push(format!("id IN {}", placeholders(next, shape.ids)));
        next += shape.ids;
    }
    if shape.workspace {
        conditions.push(format!("workspace = ${next}"));
        next += 1;
    }
    match shape.kin {
        None => {}
        Some(Family::Roots) => conditions.push("depth = 0".to_owned()),
        Some(family) => {
            let column = if matches!(family, Family::Tree) { "root" } else { "parent" };
            conditions.push(format!("{column} = ${next}"));
            next += 1;
        }
    }
    if shape.before {
        conditions.push(format!("id < ${next}"));
        next += 1;
    }
    if shape.unfinished {
        conditions.push("outcome IS NULL".to_owned());
    }
    if shape.gathering {
        conditions.push("gathered_at > 0".to_owned());
    }
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    format!("SELECT {RUN_COLUMNS} FROM runs{filter} ORDER BY id DESC LIMIT ${next}")
}

/// Selects runs to claim, the longest waiting first. Binds: version, ids, workspace, limit.
pub(crate) fn claimable(shape: Shape) -> String {
    let mut next = 2;
    let mut filter = String::new();
    if shape.ids > 0 {
        filter.push_str(&format!(" AND id IN {}", placeholders(next, shape.ids)));
        next += shape.ids;
    }
    if shape.workspace {
        filter.push_str(&format!(" AND workspace = ${next}"));
        next += 1;
    }
    format!(
        "SELECT {RUN_COLUMNS} FROM runs WHERE runnable = 1 AND owner IS NULL AND paused = 0 \
         AND version <= $1 AND damaged IS NULL{filter} \
         ORDER BY priority DESC, ready_at, id LIMIT ${next}"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use sqlx::{AssertSqlSafe, Connection, Executor, SqlSafeStr, SqliteConnection};

    /// Every statement a store runs, apart from the engine's own pragmas and transactions.
    fn all() -> Vec<String> {
        let fixed =
            [WORKERS, WORKER_SAVE, WORKER_DELETE, DISOWN, MARK_DAMAGED, EVENTS_FROM, TAIL, ORPHANS];
        let mut all: Vec<String> = fixed.map(str::to_owned).to_vec();
        for count in [1, 2, 64] {
            all.extend(
                [insert_events, save_runs, runs_by_id, tails, runs_by_key].map(|it| it(count)),
            );
        }
        for bits in 0..128usize {
            let is_set = |bit: usize| bits & (1 << bit) != 0;
            let ids = (bits & 1) + 63 * (bits >> 4 & 1);
            let kin = [None, Some(Family::Roots), Some(Family::Children), Some(Family::Tree)];
            let kin = kin[bits >> 5];
            let (workspace, unfinished, before) = (is_set(1), is_set(2), is_set(3));
            let shape = Shape { ids, workspace, kin, unfinished, before, gathering: is_set(0) };
            all.extend([list(shape), claimable(shape)]);
        }
        all
    }

    #[tokio::test]
    async fn every_statement_prepares() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        for statement in MIGRATIONS.iter().flat_map(|migration| migration.split(';')) {
            connection.execute(AssertSqlSafe(statement.to_owned())).await.unwrap();
        }
        for statement in all() {
            let text = AssertSqlSafe(statement.clone()).into_sql_str();
            let prepared = connection.prepare(text).await;
            assert!(prepared.is_ok(), "{statement}: {:?}", prepared.err());
        }
    }

    #[test]
    fn every_statement_is_portable() {
        let migrations = MIGRATIONS.iter().map(|migration| (*migration).to_owned());
        for statement in all().into_iter().chain(migrations) {
            let upper = statement.to_uppercase();
            let unportable = ["?", "->", "AUTOINCREMENT", "BOOLEAN", "INTEGER", "ROWID", "PRAGMA"];
            for word in unportable {
                assert!(!upper.contains(word), "`{word}` in {statement}");
            }
        }
    }

    #[test]
    fn the_columns_are_counted() {
        assert_eq!(RUN_COLUMNS.split(", ").count(), RUN_WIDTH);
        assert_eq!(EVENT_COLUMNS.split(", ").count(), EVENT_WIDTH);
    }
}
