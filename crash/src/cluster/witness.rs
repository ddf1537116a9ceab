//! A witness in the server: triggers that note who wrote each event and who owned its run then, and
//! each change of an owner. They share no code with the store.

use super::owners::{Taken, Write};
use posse_testkit::postgres::Node;
use serde_json::Value;
use std::io;

/// The database of a cycle.
pub(super) const DATABASE: &str = "postgres";

/// The events of a transaction are inserted before the rows of their runs change, so the trigger
/// sees the owner that the transaction found.
const WITNESS: &str = r#"
CREATE SCHEMA witness;
CREATE TABLE witness.writes (number BIGSERIAL PRIMARY KEY, run TEXT, seq BIGINT, kind TEXT, by TEXT,
    known BOOLEAN, owner TEXT);
CREATE FUNCTION witness.write() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE it RECORD;
    BEGIN
        SELECT owner INTO it FROM posse.runs WHERE id = NEW.run;
        INSERT INTO witness.writes (run, seq, kind, by, known, owner) VALUES (NEW.run, NEW.seq,
            substring(NEW.body FROM '^\{"type":"([a-z_]+)"'), current_setting('application_name'),
            FOUND, it.owner);
        RETURN NULL;
    END $$;
CREATE TRIGGER witness AFTER INSERT ON posse.events
    FOR EACH ROW EXECUTE FUNCTION witness.write();
CREATE TABLE witness.changes (run TEXT, seq BIGINT);
CREATE FUNCTION witness.change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO witness.changes VALUES (OLD.run, OLD.seq);
        RETURN NULL;
    END $$;
CREATE TRIGGER witness_change AFTER UPDATE OR DELETE ON posse.events
    FOR EACH ROW EXECUTE FUNCTION witness.change();
CREATE TABLE witness.taken (number BIGSERIAL PRIMARY KEY, run TEXT, by TEXT, was TEXT, becomes TEXT,
    epoch_was BIGINT, epoch_becomes BIGINT, lives BOOLEAN);
CREATE FUNCTION witness.take() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO witness.taken (run, by, was, becomes, epoch_was, epoch_becomes, lives) VALUES (
            OLD.id, current_setting('application_name'), OLD.owner, NEW.owner, OLD.epoch, NEW.epoch,
            EXISTS (SELECT 1 FROM posse.workers
                WHERE id = OLD.owner AND lease_until >= posse.posse_now()));
        RETURN NULL;
    END $$;
CREATE TRIGGER witness AFTER UPDATE ON posse.runs FOR EACH ROW
    WHEN (OLD.owner IS DISTINCT FROM NEW.owner OR OLD.epoch <> NEW.epoch)
    EXECUTE FUNCTION witness.take();
"#;

const WRITES: &str = "SELECT json_build_object('run', run, 'seq', seq, 'kind', kind, 'by', by, \
    'known', known, 'owner', owner) FROM witness.writes ORDER BY number";
const TAKEN: &str = "SELECT json_build_object('run', run, 'by', by, 'was', was, 'becomes', becomes, \
    'epoch_was', epoch_was, 'epoch_becomes', epoch_becomes, 'lives', lives) \
    FROM witness.taken ORDER BY number";

/// Installs the witness in a server with tables.
pub(super) async fn install(node: &Node) -> io::Result<()> {
    node.sql(DATABASE, WITNESS).await.map(|_| ())
}

/// What the witness has seen.
pub(super) struct Seen {
    pub(super) writes: Vec<Write>,
    pub(super) taken: Vec<Taken>,
    /// Events that were changed or deleted.
    pub(super) changed: usize,
}

/// Asks the witness.
pub(super) async fn ask(node: &Node) -> io::Result<Seen> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = |value: &Value| value.as_str().map(str::to_owned);
    let writes = rows(node, WRITES).await?;
    let write = |row: &Value| Write {
        run: text(&row["run"]),
        seq: row["seq"].as_u64().unwrap_or_default(),
        kind: text(&row["kind"]),
        by: text(&row["by"]),
        is_new: row["known"] != true,
        owner: name(&row["owner"]),
    };
    let taken = rows(node, TAKEN).await?;
    let change = |row: &Value| Taken {
        run: text(&row["run"]),
        by: text(&row["by"]),
        was: name(&row["was"]),
        becomes: name(&row["becomes"]),
        epochs: (
            row["epoch_was"].as_i64().unwrap_or_default(),
            row["epoch_becomes"].as_i64().unwrap_or_default(),
        ),
        lives: row["lives"] == true,
    };
    let changed = node.sql(DATABASE, "SELECT count(*) FROM witness.changes").await?;
    Ok(Seen {
        writes: writes.iter().map(write).collect(),
        taken: taken.iter().map(change).collect(),
        changed: changed.parse().unwrap_or(usize::MAX),
    })
}

/// The rows of a statement, one JSON each.
pub(super) async fn rows(node: &Node, statement: &str) -> io::Result<Vec<Value>> {
    let text = node.sql(DATABASE, statement).await?;
    text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
}
