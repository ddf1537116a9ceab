//! Creates or migrates the schema on a server.

use super::link::{Link, Replies, Trouble};
use super::message::{Message, Text};
use super::statements;
use crate::engine::{Bind, Cells};
use crate::sql::{COUNTS, SCHEMA, Schema};
use crate::{DatabaseStatus, StoreError};

/// Text is ordered by its bytes, as everywhere in Posse.
const TEXT: (&str, &str) = (" TEXT", " TEXT COLLATE \"C\"");

/// What only this engine needs: a common clock, a function that begins a transaction, shared
/// counters, and storage parameters. Functions do what every transaction does: the server plans
/// them once in a session, and planning is most of their cost. Rows of runs and workers are updated
/// often. So their pages keep room for the next version of a row, and vacuum removes dead versions
/// early. A step of a run changes no indexed column, so no index is written. The index of open
/// calls would be, so it is dropped.
const ENGINE: &str = "
    CREATE TABLE marks (name TEXT COLLATE \"C\" PRIMARY KEY NOT NULL, number BIGINT NOT NULL);
    INSERT INTO marks (name, number) VALUES ('freed', 0), ('schema', 0);
    CREATE TABLE commits (worker TEXT COLLATE \"C\" PRIMARY KEY NOT NULL, number BIGINT NOT NULL,
        at BIGINT NOT NULL);
    CREATE FUNCTION posse_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS
        'SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)';
    CREATE FUNCTION posse_begin(class INTEGER, worker TEXT) RETURNS BIGINT LANGUAGE plpgsql VOLATILE
        AS $$ BEGIN
            PERFORM pg_advisory_xact_lock_shared(class, CAST(posse_now() % 2147483648 AS INTEGER));
            RETURN (SELECT count(*) FROM workers WHERE id = worker);
        END $$;
    CREATE FUNCTION posse_lock(wanted TEXT[]) RETURNS SETOF runs LANGUAGE plpgsql VOLATILE
        AS $$ BEGIN
            RETURN QUERY SELECT * FROM runs WHERE id = ANY (ARRAY(
                WITH RECURSIVE above (id, account) AS (
                    SELECT runs.id, runs.account FROM runs WHERE runs.id = ANY (wanted)
                    UNION
                    SELECT runs.id, runs.account FROM above JOIN runs ON runs.id = above.account
                ) SELECT above.id FROM above
            )) ORDER BY id FOR UPDATE;
        END $$;
    DROP INDEX runs_calling;
    ALTER TABLE runs SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.02);
    ALTER TABLE workers SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0,
        autovacuum_vacuum_threshold = 200);
    ALTER TABLE commits SET (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.0,
        autovacuum_vacuum_threshold = 200);
    ALTER TABLE deliveries SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
    ALTER TABLE events SET (autovacuum_vacuum_insert_scale_factor = 0.05);
";

/// Gives the database the tables of `schema`, in the namespace `name`.
pub(super) async fn prepare(
    link: &mut Link,
    name: &str,
    schema: &Schema,
) -> Result<(), StoreError> {
    let known = schema.version();
    let found = looking(link, async |link| version(link, name).await).await?;
    schema.check(found, link.place().as_str())?;
    if found == known {
        return Ok(());
    }
    // Another process may migrate too, so read the version again under the lock.
    let mut begin = Message::default();
    begin.say("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
    begin.say(OWN_FUNCTIONS);
    begin.say(&statements::migrating());
    send(link, begin).await?;
    let found = version(link, name).await?;
    let is_there =
        Text::new("SELECT oid FROM pg_namespace WHERE nspname = $1").text(name.to_owned());
    let mut change = Message::default();
    let is_there = change.add(is_there);
    let replies = send(link, change).await?;
    let is_there = !replies.rows(is_there).is_empty();
    let mut change = Message::default();
    let is_refused = schema.check(found, link.place().as_str()).err();
    if is_refused.is_some() || found == known {
        change.say("ROLLBACK");
        send(link, change).await?;
        return is_refused.map_or(Ok(()), Err);
    }
    if !is_there {
        // It fails if another role has just made one, which was not looked at.
        change.say(&format!("CREATE SCHEMA \"{name}\""));
        send(link, std::mem::take(&mut change)).await?;
        // Default privileges may let others create objects in it.
        check_owners(link, name).await?;
    }
    change.say(&format!("SET LOCAL search_path = \"{name}\""));
    for step in schema.steps(found) {
        change.say(&step.replace(TEXT.0, TEXT.1));
    }
    if found == 0 {
        change.say(ENGINE);
    }
    change.add(Text::new("UPDATE marks SET number = $1 WHERE name = 'schema'").number(known));
    change.say("COMMIT");
    send(link, change).await?;
    Ok(())
}

/// Makes the server take functions and operators from its own catalog. Another role may have made ones that fit better
/// in a schema that it searches for this role.
const OWN_FUNCTIONS: &str = "SET LOCAL search_path = pg_catalog";

/// Asks the server in a transaction that changes nothing and takes only the server's own functions.
async fn looking<T>(
    link: &mut Link,
    ask: impl AsyncFnOnce(&mut Link) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut begin = Message::default();
    begin.say("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY");
    begin.say(OWN_FUNCTIONS);
    send(link, begin).await?;
    let found = ask(link).await;
    let mut end = Message::default();
    end.say("ROLLBACK");
    let ended = send(link, end).await;
    let found = found?;
    ended?;
    Ok(found)
}

/// What lies in the schema `$1`, what belongs to that, and what that needs, also in several steps: functions of triggers
/// and defaults, operators, types and their checks, tables that inherit. With each, the owner, unless it is the role that
/// made the cluster. Publications, and who made an extension, decide about no code.
const OWNERS: &str = "
    WITH RECURSIVE needed (class, object) AS (
        SELECT CAST(CAST('pg_namespace' AS regclass) AS oid), oid FROM pg_namespace WHERE nspname = $1
        UNION
        SELECT following.class, following.object FROM needed, LATERAL (
            SELECT refclassid, refobjid FROM pg_depend
                WHERE classid = needed.class AND objid = needed.object AND deptype <> 'e'
                AND refclassid <> CAST('pg_namespace' AS regclass)
            UNION ALL
            SELECT classid, objid FROM pg_depend
                WHERE refclassid = needed.class AND refobjid = needed.object
                AND (deptype NOT IN ('n', 'e', 'x')
                    OR deptype = 'n' AND refclassid = CAST('pg_namespace' AS regclass))
            UNION ALL
            SELECT CAST(CAST('pg_class' AS regclass) AS oid), inhrelid FROM pg_inherits
                WHERE inhparent = needed.object AND needed.class = CAST('pg_class' AS regclass)
        ) AS following (class, object)
        WHERE CAST(CAST(following.class AS regclass) AS text) NOT IN ('pg_default_acl',
            'pg_extension', 'pg_publication', 'pg_publication_namespace', 'pg_publication_rel')
    )
    SELECT refobjid, pg_describe_object(class, object, 0) FROM needed JOIN pg_shdepend
        ON classid = class AND objid = object AND objsubid = 0 AND deptype = 'o'
        AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Who may create objects in the schema `$1`.
const CREATORS: &str = "
    SELECT grantee, NULL FROM pg_namespace, aclexplode(nspacl)
        WHERE nspname = $1 AND privilege_type = 'CREATE'";

/// Fails if another role could decide what Posse executes: it owns the schema `name`, something in it or something that
/// is needed there, or may create something in it. Trusted are the role of this session, the owner of the database, and
/// superusers. A role that this one is a member of is not: others may be members of it too, or may have made this one a
/// member.
async fn check_owners(link: &mut Link, name: &str) -> Result<(), StoreError> {
    let mut look = Message::default();
    let mut foreign = |of: &str| {
        let query = format!(
            "SELECT CASE WHEN owner = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(owner) END, COALESCE(what, '') \
             FROM ({of}) AS found (owner, what) WHERE pg_get_userbyid(owner) <> current_user \
             AND owner <> (SELECT datdba FROM pg_database WHERE datname = current_database()) \
             AND owner NOT IN (SELECT oid FROM pg_roles WHERE rolname = 'pg_database_owner') \
             AND NOT EXISTS (SELECT 1 FROM pg_roles WHERE oid = owner AND rolsuper) LIMIT 1"
        );
        look.add(Text::new(&query).text(name.to_owned()))
    };
    let found = [foreign(OWNERS), foreign(CREATORS)];
    let replies = send(link, look).await?;
    let row = found.into_iter().find_map(|at| replies.rows(at).first());
    let Some(row) = row else { return Ok(()) };
    let text = |column| row.text(column).map_err(|_| unread(link));
    let (role, what) = (text(0)?, text(1)?);
    let member = format!(
        "if you are a member of that role, take it with `?options[role]={role}` in the address"
    );
    let why = match (role.as_str(), what.as_str()) {
        ("PUBLIC", _) => format!(
            "every role may create objects in the schema {name}, and could so decide what Posse executes; \
             `REVOKE CREATE ON SCHEMA {name} FROM PUBLIC` ends that"
        ),
        (_, "") => format!(
            "the role {role} may create objects in the schema {name}, and could so decide what Posse executes; \
             `REVOKE CREATE ON SCHEMA {name} FROM {role}` ends that; or, {member}"
        ),
        _ => format!(
            "the role {role} owns {what}, and could so decide what Posse executes in the schema {name}; {member}"
        ),
    };
    let other = "or name another `schema` in `[postgres]`";
    Err(link.place().unusable(format!("{why}; {other}")))
}

/// Returns facts about the tables of `schema`, and leaves them as they are.
pub(super) async fn status(link: &mut Link, schema: &str) -> Result<DatabaseStatus, StoreError> {
    let mut status = looking(link, async |link| size(link, schema).await).await?;
    if status.schema > 0 {
        let mut count = Message::default();
        count.say("BEGIN READ ONLY");
        count.say(&format!("SET LOCAL search_path = \"{schema}\""));
        let counts = count.say(COUNTS);
        count.say("COMMIT");
        let replies = send(link, count).await?;
        let number = |column: usize| {
            let row = replies.rows(counts).first();
            row.and_then(|row| row.integer(column).ok()).ok_or_else(|| unread(link))
        };
        (status.runs, status.unfinished) = (number(0)? as u64, number(1)? as u64);
    }
    Ok(status)
}

fn unread(link: &Link) -> StoreError {
    link.place().unusable("its size cannot be read")
}

/// Returns what the catalog says about the tables of `schema`.
async fn size(link: &mut Link, schema: &str) -> Result<DatabaseStatus, StoreError> {
    let found = version(link, schema).await?;
    let mut look = Message::default();
    let engine = look.say("SELECT current_setting('server_version')");
    let bytes = look.add(
        Text::new(
            "SELECT CAST(COALESCE(SUM(pg_total_relation_size(pg_class.oid)), 0) AS BIGINT) \
             FROM pg_class JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace \
             WHERE pg_namespace.nspname = $1 AND pg_class.relkind = 'r'",
        )
        .text(schema.to_owned()),
    );
    let replies = send(link, look).await?;
    let row = |at: usize| replies.rows(at).first().ok_or_else(|| unread(link));
    let version = row(engine)?.text(0).map_err(|_| unread(link))?;
    Ok(DatabaseStatus {
        engine: format!("PostgreSQL {version}"),
        schema: found,
        oldest: SCHEMA.first,
        known: SCHEMA.version(),
        bytes: row(bytes)?.integer(0).map_err(|_| unread(link))? as u64,
        ..DatabaseStatus::default()
    })
}

/// Returns the version of the tables, or 0 if there are none. Refuses tables that another role decides about, and a
/// database that cannot store every text.
async fn version(link: &mut Link, schema: &str) -> Result<i64, StoreError> {
    check_owners(link, schema).await?;
    let mut look = Message::default();
    // Query the catalog tables, because a session may cache outdated names.
    let there = Text::new(
        "SELECT pg_class.relname FROM pg_class \
         JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace \
         WHERE pg_namespace.nspname = $1 AND pg_class.relname = 'marks'",
    );
    let there = look.add(there.text(schema.to_owned()));
    let encoding = look.say("SELECT current_setting('server_encoding')");
    let replies = send(link, look).await?;
    let encoding = replies.rows(encoding).first().and_then(|row| row.text(0).ok());
    match encoding.as_deref() {
        Some("UTF8") => {}
        other => {
            let other = other.unwrap_or("unknown");
            let reason = format!(
                "its encoding is {other}, which does not have all characters; create it with ENCODING 'UTF8'"
            );
            return Err(link.place().unusable(reason));
        }
    }
    if replies.rows(there).is_empty() {
        return Ok(0);
    }
    let mut read = Message::default();
    let number = read.say(&format!("SELECT number FROM \"{schema}\".marks WHERE name = 'schema'"));
    let replies = send(link, read).await?;
    let number = replies.rows(number).first().and_then(|row| row.integer(0).ok());
    number.ok_or_else(|| link.place().unusable("what version its schema is cannot be read"))
}

async fn send(link: &mut Link, message: Message) -> Result<Replies, StoreError> {
    link.send(message).await.map_err(|trouble| match trouble {
        Trouble::Refused(error) => error,
        Trouble::Lost(reason) | Trouble::Again(reason) => link.place().unusable(reason),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
