//! Opens a database: checks the versions of the engine and of the schema, and migrates.

use super::header::APPLICATION;
use super::{BUSY_CODE, PATIENCE, engine_code, engine_error};
use crate::sql::{COUNTS, SCHEMA, Schema};
use crate::{DatabaseStatus, StoreError};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use std::path::Path;
use std::time::{Duration, Instant};

/// The oldest SQLite whose write-ahead log is known to be correct with several processes.
const OLDEST_ENGINE: (u32, u32, u32) = (3, 51, 3);

const VERSIONS: &str = "SELECT sqlite_version(), user_version, data_version \
                        FROM pragma_user_version, pragma_data_version";

/// The connection of the writer.
pub(super) struct Connected {
    pub(super) connection: SqliteConnection,
    /// The `data_version` of the connection, which changes when another process commits.
    pub(super) data_version: i64,
}

/// Opens the connection of the writer, and gives the database this `schema`.
pub(super) async fn open(
    options: &SqliteConnectOptions,
    path: &str,
    schema: &Schema,
) -> Result<Connected, StoreError> {
    let engine = |error| engine_error(error, path);
    let mut connection = connect(options).await.map_err(engine)?;
    // One query, because each goes to the thread of the engine and back.
    let versions = sqlx::query(VERSIONS).fetch_one(&mut connection).await.map_err(engine)?;
    let version: String = versions.get(0);
    if parse_version(&version) < OLDEST_ENGINE {
        return Err(StoreError::Unusable {
            path: path.to_owned(),
            reason: format!("SQLite {version} is too old; at least 3.51.3 is needed"),
        });
    }
    let data_version = versions.get(2);
    if versions.get::<i64, _>(1) == schema.version() {
        return Ok(Connected { connection, data_version });
    }
    // Another process may migrate too, so read the version again under the lock.
    let mut change = connection.begin_with("BEGIN IMMEDIATE").await.map_err(engine)?;
    let found = schema_version(&mut change).await.map_err(engine)?;
    schema.check(found, path)?;
    let version = schema.version();
    for step in schema.steps(found) {
        // One message, because each goes to the thread of the engine and back.
        let step = format!(
            "{step}; PRAGMA user_version = {version}; PRAGMA application_id = {APPLICATION}"
        );
        sqlx::raw_sql(AssertSqlSafe(step)).execute(&mut *change).await.map_err(engine)?;
        fail::fail_point!("store.migrate.step");
    }
    change.commit().await.map_err(engine)?;
    fail::fail_point!("store.migrate.after");
    Ok(Connected { connection, data_version })
}

/// Returns facts about the database file at `path`, whose schema has the version `schema`.
pub(super) async fn status(path: &Path, schema: i64) -> Result<DatabaseStatus, StoreError> {
    let shown = path.display().to_string();
    let engine = |error| engine_error(error, &shown);
    let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(PATIENCE);
    let mut connection = connect(&options).await.map_err(engine)?;
    let version = sqlx::query_scalar::<_, String>("SELECT sqlite_version()");
    let version = version.fetch_one(&mut connection).await.map_err(engine)?;
    let mut status = DatabaseStatus {
        engine: format!("SQLite {version}"),
        schema,
        oldest: SCHEMA.first,
        known: SCHEMA.version(),
        ..DatabaseStatus::default()
    };
    if schema > 0 {
        let counts = sqlx::query(COUNTS).fetch_one(&mut connection).await.map_err(engine)?;
        (status.runs, status.unfinished) =
            (counts.get::<i64, _>(0) as u64, counts.get::<i64, _>(1) as u64);
    }
    connection.close().await.map_err(engine)?;
    for suffix in ["", "-wal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        status.bytes += std::fs::metadata(file).map_or(0, |it| it.len());
    }
    Ok(status)
}

/// Connects. If two processes switch a new file to WAL mode at once, the engine does not wait, so
/// this function does.
async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match options.connect().await {
            Err(error) if engine_code(&error) & 0xff == BUSY_CODE && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            connected => return connected,
        }
    }
}

async fn schema_version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    Ok(sqlx::query("PRAGMA user_version").fetch_one(connection).await?.get(0))
}

fn parse_version(text: &str) -> (u32, u32, u32) {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
