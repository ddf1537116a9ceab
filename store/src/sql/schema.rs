//! The schema: as migrations for databases of earlier versions, and as a whole for new databases,
//! which takes a third of the time. A test compares the two.

/// The migrations in order. Statements are split at `;`. Their result is [`WHOLE`].
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
    ALTER TABLE runs ADD COLUMN calling TEXT;
    ALTER TABLE runs ADD COLUMN calling_for TEXT NOT NULL DEFAULT 'turn';
    ALTER TABLE runs ADD COLUMN asks BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN abreast BIGINT;
    ALTER TABLE runs ADD COLUMN archive_after BIGINT;
    UPDATE runs SET calling = model WHERE reserved_input + reserved_output + reserved_cost > 0;
    UPDATE runs SET finished_at = updated_at WHERE outcome IS NOT NULL;
    DROP INDEX runs_ready;
    CREATE INDEX runs_ready ON runs (priority DESC, ready_at, id)
        WHERE runnable = 1 AND owner IS NULL AND paused = 0;
    CREATE INDEX runs_by_agent ON runs (agent, id);
    CREATE INDEX runs_by_label ON runs (label, id) WHERE label > '';
    CREATE INDEX runs_by_outcome ON runs (outcome, id) WHERE outcome IS NOT NULL;
    CREATE INDEX runs_ready_since ON runs (ready_at, id)
        WHERE runnable = 1 AND owner IS NULL AND paused = 0;
    CREATE INDEX runs_ready_by_root ON runs (root, priority DESC, ready_at, id)
        WHERE runnable = 1 AND owner IS NULL AND paused = 0;
    CREATE INDEX runs_gathering ON runs (gathered_at) WHERE gathered_at > 0;
    CREATE INDEX runs_to_put_away ON runs (finished_at) WHERE finished_at > 0 AND archived = 0;
    CREATE INDEX runs_to_put_away_early ON runs ((finished_at + archive_after))
        WHERE archive_after IS NOT NULL AND finished_at > 0 AND archived = 0;
    CREATE INDEX runs_to_erase ON runs (finished_at) WHERE archived = 1 AND erased = 0;
    CREATE INDEX runs_to_delete ON runs (finished_at)
        WHERE cleanup = 'delete' AND erased = 0 AND finished_at > 0;
    CREATE INDEX runs_open_in_tree ON runs (root, id) WHERE outcome IS NULL;
    CREATE INDEX runs_open_by_workspace ON runs (workspace, id) WHERE outcome IS NULL;
    CREATE INDEX runs_open_at_the_top ON runs (id) WHERE depth = 0 AND outcome IS NULL;
    CREATE INDEX runs_asking ON runs (id) WHERE asks > 0;
    CREATE INDEX runs_calling ON runs (id) WHERE calling IS NOT NULL;
    CREATE INDEX runs_by_ending ON runs (substr(id, 23));
    CREATE TABLE model_calls (
        run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, root TEXT NOT NULL,
        agent TEXT NOT NULL, model TEXT NOT NULL, label TEXT NOT NULL, purpose TEXT NOT NULL,
        ending TEXT NOT NULL, calls BIGINT NOT NULL, input_tokens BIGINT NOT NULL,
        cache_read_tokens BIGINT NOT NULL, cache_write_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL, reasoning_tokens BIGINT NOT NULL, cost BIGINT NOT NULL,
        PRIMARY KEY (run, seq)
    );
    CREATE INDEX model_calls_by_time ON model_calls (at);
    INSERT INTO model_calls SELECT id, 0, updated_at, root, agent, model, '', 'turn', 'earlier',
        turns, input_tokens, 0, 0, output_tokens, 0, cost
        FROM runs WHERE turns + input_tokens + output_tokens + cost > 0;
    CREATE TABLE deliveries (
        id TEXT PRIMARY KEY NOT NULL, run TEXT NOT NULL, seq BIGINT NOT NULL, hook TEXT NOT NULL,
        kind TEXT NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL, attempts BIGINT NOT NULL,
        due_at BIGINT NOT NULL, created_at BIGINT NOT NULL, note TEXT NOT NULL
    );
    CREATE INDEX deliveries_due ON deliveries (hook, due_at) WHERE state = 'due';
    CREATE INDEX deliveries_by_time ON deliveries (created_at);
    CREATE INDEX deliveries_by_state ON deliveries (state, created_at);
    CREATE INDEX deliveries_by_run ON deliveries (run)
",
    "
    ALTER TABLE runs ADD COLUMN uncertain_input BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN uncertain_output BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN uncertain_cost BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN cut_calls BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE model_calls ADD COLUMN uncertain_input BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE model_calls ADD COLUMN uncertain_output BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE model_calls ADD COLUMN uncertain_cost BIGINT NOT NULL DEFAULT 0;
    UPDATE model_calls SET uncertain_input = input_tokens, uncertain_output = output_tokens,
        uncertain_cost = cost WHERE ending IN ('failed', 'unanswered');
    UPDATE runs SET
        uncertain_input = (SELECT SUM(uncertain_input) FROM model_calls WHERE run = runs.id),
        uncertain_output = (SELECT SUM(uncertain_output) FROM model_calls WHERE run = runs.id),
        uncertain_cost = (SELECT SUM(uncertain_cost) FROM model_calls WHERE run = runs.id),
        cut_calls = (SELECT COUNT(*) FROM model_calls WHERE run = runs.id
            AND uncertain_input + uncertain_output + uncertain_cost > 0)
        WHERE id IN (SELECT run FROM model_calls
            WHERE uncertain_input + uncertain_output + uncertain_cost > 0)
",
    "
    ALTER TABLE runs ADD COLUMN deaths BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE runs ADD COLUMN calls_at_death BIGINT NOT NULL DEFAULT 0
",
    "
    ALTER TABLE deliveries ADD COLUMN seal TEXT NOT NULL DEFAULT ''
",
    "
    ALTER TABLE runs ADD COLUMN host TEXT NOT NULL DEFAULT '';
    ALTER TABLE runs ADD COLUMN needs TEXT NOT NULL DEFAULT '';
    ALTER TABLE workers ADD COLUMN about TEXT NOT NULL DEFAULT ''
",
];

/// The statements that create all tables and indexes.
pub(crate) const WHOLE: &str = "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
        title TEXT NOT NULL, workspace TEXT NOT NULL, session BIGINT NOT NULL, key TEXT,
        created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, last_seq BIGINT NOT NULL,
        last_hash TEXT NOT NULL, version BIGINT NOT NULL, epoch BIGINT NOT NULL, owner TEXT,
        runnable BIGINT NOT NULL, ready_at BIGINT NOT NULL, outcome TEXT, note TEXT NOT NULL,
        archived BIGINT NOT NULL, turns BIGINT NOT NULL, tool_calls BIGINT NOT NULL,
        input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL, cost BIGINT NOT NULL,
        reserved_input BIGINT NOT NULL, reserved_output BIGINT NOT NULL,
        reserved_cost BIGINT NOT NULL, damaged TEXT, parent TEXT, root TEXT NOT NULL DEFAULT '',
        depth BIGINT NOT NULL DEFAULT 0, stopping BIGINT NOT NULL DEFAULT 0,
        awaits BIGINT NOT NULL DEFAULT 0, label TEXT NOT NULL DEFAULT '',
        priority BIGINT NOT NULL DEFAULT 0, background BIGINT NOT NULL DEFAULT 0,
        expects BIGINT NOT NULL DEFAULT 0, gathers BIGINT NOT NULL DEFAULT 0,
        gathered_at BIGINT NOT NULL DEFAULT 0, paused BIGINT NOT NULL DEFAULT 0,
        finished_at BIGINT NOT NULL DEFAULT 0, cleanup TEXT NOT NULL DEFAULT 'keep',
        erased BIGINT NOT NULL DEFAULT 0, account TEXT, budget TEXT, drawn TEXT, calling TEXT,
        calling_for TEXT NOT NULL DEFAULT 'turn', asks BIGINT NOT NULL DEFAULT 0,
        abreast BIGINT, archive_after BIGINT, uncertain_input BIGINT NOT NULL DEFAULT 0,
        uncertain_output BIGINT NOT NULL DEFAULT 0, uncertain_cost BIGINT NOT NULL DEFAULT 0,
        cut_calls BIGINT NOT NULL DEFAULT 0, deaths BIGINT NOT NULL DEFAULT 0,
        calls_at_death BIGINT NOT NULL DEFAULT 0, host TEXT NOT NULL DEFAULT '',
        needs TEXT NOT NULL DEFAULT ''
    );
    CREATE UNIQUE INDEX runs_by_key ON runs (key) WHERE key IS NOT NULL;
    CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
    CREATE INDEX runs_unfinished ON runs (id) WHERE outcome IS NULL;
    CREATE INDEX runs_by_workspace ON runs (workspace, id);
    CREATE TABLE events (
        run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, version BIGINT NOT NULL,
        body TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (run, seq)
    );
    CREATE TABLE workers (
        id TEXT PRIMARY KEY NOT NULL, boot TEXT NOT NULL, lease_until BIGINT NOT NULL,
        about TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX runs_by_root ON runs (root, id);
    CREATE INDEX runs_by_parent ON runs (parent, id) WHERE parent IS NOT NULL;
    CREATE INDEX runs_at_the_top ON runs (id) WHERE depth = 0;
    CREATE INDEX runs_ready ON runs (priority DESC, ready_at, id)
        WHERE runnable = 1 AND owner IS NULL AND paused = 0;
    CREATE INDEX runs_by_agent ON runs (agent, id);
    CREATE INDEX runs_by_label ON runs (label, id) WHERE label > '';
    CREATE INDEX runs_by_outcome ON runs (outcome, id) WHERE outcome IS NOT NULL;
    CREATE INDEX runs_ready_since ON runs (ready_at, id)
        WHERE runnable = 1 AND owner IS NULL AND paused = 0;
    CREATE INDEX runs_ready_by_root ON runs (root, priority DESC, ready_at, id)
        WHERE runnable = 1 AND owner IS NULL AND paused = 0;
    CREATE INDEX runs_gathering ON runs (gathered_at) WHERE gathered_at > 0;
    CREATE INDEX runs_to_put_away ON runs (finished_at) WHERE finished_at > 0 AND archived = 0;
    CREATE INDEX runs_to_put_away_early ON runs ((finished_at + archive_after))
        WHERE archive_after IS NOT NULL AND finished_at > 0 AND archived = 0;
    CREATE INDEX runs_to_erase ON runs (finished_at) WHERE archived = 1 AND erased = 0;
    CREATE INDEX runs_to_delete ON runs (finished_at)
        WHERE cleanup = 'delete' AND erased = 0 AND finished_at > 0;
    CREATE INDEX runs_open_in_tree ON runs (root, id) WHERE outcome IS NULL;
    CREATE INDEX runs_open_by_workspace ON runs (workspace, id) WHERE outcome IS NULL;
    CREATE INDEX runs_open_at_the_top ON runs (id) WHERE depth = 0 AND outcome IS NULL;
    CREATE INDEX runs_asking ON runs (id) WHERE asks > 0;
    CREATE INDEX runs_calling ON runs (id) WHERE calling IS NOT NULL;
    CREATE INDEX runs_by_ending ON runs (substr(id, 23));
    CREATE TABLE model_calls (
        run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, root TEXT NOT NULL,
        agent TEXT NOT NULL, model TEXT NOT NULL, label TEXT NOT NULL, purpose TEXT NOT NULL,
        ending TEXT NOT NULL, calls BIGINT NOT NULL, input_tokens BIGINT NOT NULL,
        cache_read_tokens BIGINT NOT NULL, cache_write_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL, reasoning_tokens BIGINT NOT NULL, cost BIGINT NOT NULL,
        uncertain_input BIGINT NOT NULL DEFAULT 0, uncertain_output BIGINT NOT NULL DEFAULT 0,
        uncertain_cost BIGINT NOT NULL DEFAULT 0,
        PRIMARY KEY (run, seq)
    );
    CREATE INDEX model_calls_by_time ON model_calls (at);
    CREATE TABLE deliveries (
        id TEXT PRIMARY KEY NOT NULL, run TEXT NOT NULL, seq BIGINT NOT NULL,
        hook TEXT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL,
        attempts BIGINT NOT NULL, due_at BIGINT NOT NULL, created_at BIGINT NOT NULL,
        note TEXT NOT NULL, seal TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX deliveries_due ON deliveries (hook, due_at) WHERE state = 'due';
    CREATE INDEX deliveries_by_time ON deliveries (created_at);
    CREATE INDEX deliveries_by_state ON deliveries (state, created_at);
    CREATE INDEX deliveries_by_run ON deliveries (run);
";

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use sqlx::sqlite::SqliteConnection;
    use sqlx::{AssertSqlSafe, Connection, Row};

    /// Returns the definition of all objects that `statements` create, without white space.
    async fn made_by(statements: &str) -> Vec<String> {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let made = AssertSqlSafe(statements.to_owned());
        sqlx::raw_sql(made).execute(&mut connection).await.unwrap();
        let all = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name";
        let rows = sqlx::query(all).fetch_all(&mut connection).await.unwrap();
        rows.iter().map(|row| row.get::<String, _>(0).replace([' ', '\n'], "")).collect()
    }

    #[tokio::test]
    async fn a_new_database_is_what_migrations_make_of_an_old_one() {
        assert_eq!(made_by(WHOLE).await, made_by(&MIGRATIONS.join(";")).await);
    }
}
