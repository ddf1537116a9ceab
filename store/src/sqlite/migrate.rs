//! Opens a database: checks the versions of the engine and of the schema, and migrates.

use super::header::APPLICATION;
use super::{BUSY_CODE, PATIENCE, engine_code, engine_error};
use crate::StoreError;
use crate::sql::{MIGRATIONS, WHOLE};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
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

/// Opens the connection of the writer and migrates the schema.
pub(super) async fn open(
    options: &SqliteConnectOptions,
    path: &str,
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
    if versions.get::<i64, _>(1) == MIGRATIONS.len() as i64 {
        return Ok(Connected { connection, data_version });
    }
    // Another process may migrate too, so read the version again under the lock.
    let mut change = connection.begin_with("BEGIN IMMEDIATE").await.map_err(engine)?;
    let found = schema_version(&mut change).await.map_err(engine)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::NewerDatabase { path: path.to_owned(), found, known });
    }
    // A new database gets the whole schema at once, an old one each migration.
    let steps = match found {
        ..=0 => vec![(known, WHOLE)],
        _ => (found + 1..).zip(MIGRATIONS.iter().copied().skip(found as usize)).collect(),
    };
    for (version, step) in steps {
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
