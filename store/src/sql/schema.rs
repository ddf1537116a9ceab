//! The schema: the tables of the first release, and a migration for each later change.

use crate::StoreError;

/// A schema, and how databases of earlier releases get it.
///
/// A migration must be additive, because workers of the version before go on while it runs and
/// afterwards: they insert rows without the new columns, so these have a default.
pub(crate) struct Schema {
    /// The version that `tables` creates. Only development versions had earlier ones.
    pub(crate) first: i64,
    /// The statements that create all tables and indexes, split at `;`.
    pub(crate) tables: &'static str,
    /// The statements of each migration, in order. Each makes the next version.
    pub(crate) migrations: &'static [&'static str],
}

/// The schema of this version.
///
/// Until the first release, change `TABLES` and raise `first` by one: no database in use has an
/// earlier schema, and those of development versions are refused with a message that says so.
/// After it, never touch them again: add a migration for every change, which also raises the version.
/// The form of events has a version of its own, [`posse_protocol::SCHEMA_VERSION`].
pub(crate) const SCHEMA: Schema = Schema { first: 11, tables: TABLES, migrations: &[] };

impl Schema {
    /// Returns the version after all migrations.
    pub(crate) fn version(&self) -> i64 {
        self.first + self.migrations.len() as i64
    }

    /// Returns the groups of statements that give a database of the version `found` this schema. 0
    /// means that it has no tables.
    pub(crate) fn steps(&self, found: i64) -> Vec<&'static str> {
        let done = usize::try_from(found - self.first).unwrap_or(0);
        let tables = (found == 0).then_some(self.tables);
        tables.into_iter().chain(self.migrations.iter().copied().skip(done)).collect()
    }

    /// Returns the statements that create all of it.
    pub(crate) fn whole(&self) -> String {
        self.steps(0).join(";")
    }

    /// Fails for the database `path` if its schema, of the version `found`, cannot become this one.
    pub(crate) fn check(&self, found: i64, path: &str) -> Result<(), StoreError> {
        let (path, first, known) = (path.to_owned(), self.first, self.version());
        match found {
            0 => Ok(()),
            found if found > known => Err(StoreError::NewerDatabase { path, found, known }),
            found if found < first => Err(StoreError::UnreleasedDatabase { path, found, first }),
            _ => Ok(()),
        }
    }
}

const TABLES: &str = "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL, title TEXT NOT NULL,
        workspace TEXT NOT NULL, session BIGINT NOT NULL, key TEXT, created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL, last_seq BIGINT NOT NULL, last_hash TEXT NOT NULL,
        version BIGINT NOT NULL, epoch BIGINT NOT NULL, owner TEXT, runnable BIGINT NOT NULL,
        ready_at BIGINT NOT NULL, outcome TEXT, note TEXT NOT NULL, archived BIGINT NOT NULL,
        turns BIGINT NOT NULL, tool_calls BIGINT NOT NULL, input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL, cost BIGINT NOT NULL, reserved_input BIGINT NOT NULL,
        reserved_output BIGINT NOT NULL, reserved_cost BIGINT NOT NULL, damaged TEXT, parent TEXT,
        root TEXT NOT NULL, depth BIGINT NOT NULL, stopping BIGINT NOT NULL, awaits BIGINT NOT NULL,
        label TEXT NOT NULL, priority BIGINT NOT NULL, background BIGINT NOT NULL,
        expects BIGINT NOT NULL, gathers BIGINT NOT NULL, gathered_at BIGINT NOT NULL,
        paused BIGINT NOT NULL, finished_at BIGINT NOT NULL, cleanup TEXT NOT NULL,
        erased BIGINT NOT NULL, account TEXT, budget TEXT, drawn TEXT, calling TEXT,
        calling_for TEXT NOT NULL, asks BIGINT NOT NULL, abreast BIGINT, archive_after BIGINT,
        uncertain_input BIGINT NOT NULL, uncertain_output BIGINT NOT NULL,
        uncertain_cost BIGINT NOT NULL, cut_calls BIGINT NOT NULL, deaths BIGINT NOT NULL,
        calls_at_death BIGINT NOT NULL, host TEXT NOT NULL, needs TEXT NOT NULL
    );
    CREATE UNIQUE INDEX runs_by_key ON runs (key) WHERE key IS NOT NULL;
    CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
    CREATE INDEX runs_unfinished ON runs (id) WHERE outcome IS NULL;
    CREATE INDEX runs_by_workspace ON runs (workspace, id);
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
    CREATE TABLE events (
        run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, version BIGINT NOT NULL,
        body TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (run, seq)
    );
    CREATE TABLE model_calls (
        run TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, root TEXT NOT NULL,
        agent TEXT NOT NULL, model TEXT NOT NULL, label TEXT NOT NULL, purpose TEXT NOT NULL,
        ending TEXT NOT NULL, input_tokens BIGINT NOT NULL, cache_read_tokens BIGINT NOT NULL,
        cache_write_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        reasoning_tokens BIGINT NOT NULL, cost BIGINT NOT NULL, uncertain_input BIGINT NOT NULL,
        uncertain_output BIGINT NOT NULL, uncertain_cost BIGINT NOT NULL, PRIMARY KEY (run, seq)
    );
    CREATE INDEX model_calls_by_time ON model_calls (at);
    CREATE TABLE deliveries (
        id TEXT PRIMARY KEY NOT NULL, run TEXT NOT NULL, seq BIGINT NOT NULL, hook TEXT NOT NULL,
        kind TEXT NOT NULL, data TEXT NOT NULL, state TEXT NOT NULL, attempts BIGINT NOT NULL,
        due_at BIGINT NOT NULL, created_at BIGINT NOT NULL, note TEXT NOT NULL, seal TEXT NOT NULL
    );
    CREATE INDEX deliveries_due ON deliveries (hook, due_at) WHERE state = 'due';
    CREATE INDEX deliveries_by_time ON deliveries (created_at);
    CREATE INDEX deliveries_by_state ON deliveries (state, created_at);
    CREATE INDEX deliveries_by_run ON deliveries (run);
    CREATE TABLE workers (
        id TEXT PRIMARY KEY NOT NULL, boot TEXT NOT NULL, lease_until BIGINT NOT NULL,
        about TEXT NOT NULL
    );
    CREATE TABLE bundles (
        run TEXT NOT NULL, data TEXT NOT NULL, expires BIGINT, body TEXT NOT NULL,
        hash TEXT NOT NULL, PRIMARY KEY (run, data)
    );
    CREATE UNIQUE INDEX bundles_that_count ON bundles (run) WHERE expires IS NULL;
    CREATE INDEX bundles_to_remove ON bundles (expires) WHERE expires IS NOT NULL;
    CREATE TABLE bundle_parts (
        run TEXT NOT NULL, data TEXT NOT NULL, part BIGINT NOT NULL, body TEXT NOT NULL,
        hash TEXT NOT NULL, PRIMARY KEY (run, data, part)
    );
    CREATE TABLE hidden_logs (
        run TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, expires BIGINT NOT NULL,
        seq BIGINT NOT NULL, hash TEXT NOT NULL
    );
    CREATE INDEX hidden_logs_to_remove ON hidden_logs (expires)
";

/// The schema of a later release, for tests.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod later {
    use super::{SCHEMA, Schema};
    use crate::{Append, Guard, Ownership, Reserve, Store, Wanted};
    use posse_protocol::{RunId, Seq};
    use serde_json::json;

    /// Two migrations, each of several kinds of statements.
    const ADDED: [&str; 2] = [
        "ALTER TABLE runs ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'; \
         CREATE INDEX runs_by_mood ON runs (mood, id); \
         UPDATE runs SET mood = 'glad' WHERE title = 'hello'",
        "ALTER TABLE workers ADD COLUMN room BIGINT NOT NULL DEFAULT 0; \
         CREATE TABLE rooms (id TEXT PRIMARY KEY NOT NULL)",
    ];

    /// The schema with two more migrations.
    pub(crate) fn schema() -> Schema {
        with(&ADDED)
    }

    /// The schema with two more migrations, of which the second fails.
    pub(crate) fn broken() -> Schema {
        with(&[ADDED[0], "ALTER TABLE missing ADD COLUMN mood TEXT"])
    }

    fn with(added: &[&'static str]) -> Schema {
        let all = [SCHEMA.migrations, added].concat();
        Schema { migrations: Box::leak(all.into_boxed_slice()), ..SCHEMA }
    }

    /// Creates a run, claims it, does a step and reads its log.
    pub(crate) async fn work(store: &dyn Store) -> RunId {
        let event = |body| serde_json::from_value(body).unwrap();
        let started = event(json!({
            "type": "run_started", "agent": {"name": "tester"}, "model": "test/model",
            "grant": {"tools": [], "workspace": "/w", "budget": {"cost": 5_000}},
        }));
        let message = event(json!({
            "type": "message_received", "from": "user",
            "message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]},
        }));
        let (run, reserve) = (RunId::new(), Reserve::Leave);
        let guard = Guard::Create(Ownership::Queued);
        let events = [started, message].into();
        store
            .append(vec![Append { run, events, guard, reserve, outbox: vec![], bundle: None }])
            .await
            .unwrap();
        let wanted = Wanted { runs: vec![run], limit: 1, ..Wanted::default() };
        let claimed = store.claim(&wanted).await.unwrap().remove(0);
        let called = json!({"type": "model_called", "purpose": "turn",
            "reserved": {"input_tokens": 1, "output_tokens": 1, "cost": 1}});
        let epoch = claimed.row.work.epoch;
        let guard = Guard::Owner { epoch, last: None, then: Ownership::Mine };
        let events = [event(called)].into();
        store
            .append(vec![Append { run, events, guard, reserve, outbox: vec![], bundle: None }])
            .await
            .unwrap();
        store.renew().await.unwrap();
        assert_eq!(store.read(run, Seq::ZERO, 9).await.unwrap().len(), 3);
        run
    }
}
