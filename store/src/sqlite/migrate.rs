//! Opening a database: the engine's version, the schema's version, and the way up to it.

use super::header::APPLICATION;
use super::{BUSY_CODE, PATIENCE, engine_code, engine_error};
use crate::StoreError;
use crate::sql::{MIGRATIONS, WHOLE};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use std::time::{Duration, Instant};

/// The oldest SQLite whose write-ahead log is known to be sound for several processes.
const OLDEST_ENGINE: (u32, u32, u32) = (3, 51, 3);

const VERSIONS: &str = "SELECT sqlite_version(), user_version, data_version \
                        FROM pragma_user_version, pragma_data_version";

/// The writer's connection. What others have written when this was told is in it.
pub(super) struct Connected {
    pub(super) connection: SqliteConnection,
    /// The engine's number for that, which is another one after they have written more.
    pub(super) data_version: i64,
}

/// Opens the writer's connection and brings the schema up to date.
pub(super) async fn open(
    options: &SqliteConnectOptions,
    path: &str,
) -> Result<Connected, StoreError> {
    let engine = |error| engine_error(error, path);
    let mut connection = connect(options).await.map_err(engine)?;
    // At once: each question goes to the engine's thread and back.
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
    // Another process may be doing the same: the version is read again under the lock.
    let mut change = connection.begin_with("BEGIN IMMEDIATE").await.map_err(engine)?;
    let found = schema_version(&mut change).await.map_err(engine)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::NewerDatabase { path: path.to_owned(), found, known });
    }
    // A new database is made at once, an old one step by step.
    let steps = match found {
        ..=0 => vec![(known, WHOLE)],
        _ => (found + 1..).zip(MIGRATIONS.iter().copied().skip(found as usize)).collect(),
    };
    for (version, step) in steps {
        // In one message: each goes to the engine's thread and back.
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

/// Connects. Two that switch a new file to the write-ahead log at the same time do not wait for
/// each other in the engine; so they do here.
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
