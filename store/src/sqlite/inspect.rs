//! Checks that no log can make: whether indexes match their rows, whether the schema is that of
//! this version, and whether deliveries are unchanged. Reads the whole database.

use super::deliveries;
use super::engine_error;
use super::reader::Reader;
use crate::sql::{self, SCHEMA};
use crate::{Delivery, DeliveryFilter, Flaw, StoreError};
use posse_protocol::RunId;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{AssertSqlSafe, Connection, Row};
use std::collections::{BTreeMap, BTreeSet};

/// The most problems that the engine reports.
const MOST: u32 = 20;

impl Reader {
    /// Returns damage to the file outside of the logs.
    pub(super) async fn flaws(&self) -> Result<Vec<Flaw>, StoreError> {
        let looks = [
            schema(self.pool()).await,
            integrity(self.pool()).await,
            changed_deliveries(self.pool()).await,
            stray_bundles(self.pool()).await,
        ];
        let mut flaws = Vec::new();
        for look in looks {
            match look.map_err(|error| engine_error(error, self.path())) {
                Ok(found) => flaws.extend(found),
                // A check that cannot finish says nothing about the other checks.
                Err(error @ StoreError::Corrupt { .. }) => flaws.push(of_file(error.to_string())),
                Err(error) => return Err(error),
            }
        }
        Ok(flaws)
    }
}

fn of_file(reason: String) -> Flaw {
    Flaw { run: None, reason }
}

/// Returns errors of pages, and of indexes that do not match their rows, by the engine.
async fn integrity(pool: &SqlitePool) -> Result<Vec<Flaw>, sqlx::Error> {
    let check = AssertSqlSafe(format!("PRAGMA integrity_check({MOST})"));
    let lines = sqlx::query(check).fetch_all(pool).await?;
    let lines = lines.iter().map(|line| line.try_get::<String, _>(0));
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    let wrong = lines.iter().flat_map(|line| line.lines()).filter(|line| {
        // `ok` means no error, and `***` begins a heading.
        *line != "ok" && !line.starts_with("***")
    });
    let told = wrong.map(|line| of_file(format!("the file does not hold together: {line}")));
    Ok(told.collect())
}

type Made = BTreeMap<String, String>;

/// Returns tables, indexes and other objects that differ from those of this version.
async fn schema(pool: &SqlitePool) -> Result<Vec<Flaw>, sqlx::Error> {
    let mut memory = SqliteConnection::connect("sqlite::memory:").await?;
    sqlx::raw_sql(AssertSqlSafe(SCHEMA.whole())).execute(&mut memory).await?;
    let expected = made(&mut memory).await?;
    memory.close().await?;
    let mut connection = pool.acquire().await?;
    let found = made(&mut connection).await?;
    let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let wrong = names.into_iter().filter_map(|name| {
        let what = match (expected.get(name), found.get(name)) {
            (Some(one), Some(other)) if one == other => return None,
            (Some(_), Some(_)) => "is another one",
            (Some(_), None) => "is missing",
            _ => "was added",
        };
        Some(of_file(format!("the schema was changed: {name} {what}")))
    });
    Ok(wrong.collect())
}

/// Returns the objects of a schema by kind and name, without white space and without those that the
/// engine creates itself.
async fn made(connection: &mut SqliteConnection) -> Result<Made, sqlx::Error> {
    let all =
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let rows = sqlx::query(all).fetch_all(connection).await?;
    let one = |row: &sqlx::sqlite::SqliteRow| -> Result<(String, String), sqlx::Error> {
        let (kind, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let text: Option<String> = row.try_get(2)?;
        Ok((format!("{kind} {name}"), text.unwrap_or_default().replace([' ', '\n'], "")))
    };
    rows.iter().map(one).collect()
}

/// Returns changed deliveries, and deliveries about runs that do not exist.
async fn changed_deliveries(pool: &SqlitePool) -> Result<Vec<Flaw>, sqlx::Error> {
    let all = deliveries::list(pool, &DeliveryFilter::default(), usize::MAX).await?;
    let told = |it: Delivery, reason: &str| Flaw {
        run: Some(it.run).filter(|run| *run != RunId::from_u128(0)),
        reason: format!("the delivery {} to the webhook `{}`: {reason}", it.id, it.hook),
    };
    let changed = all.into_iter().filter_map(|mut it| {
        let reason = it.damaged.take()?;
        Some(told(it, &reason))
    });
    let mut flaws: Vec<Flaw> = changed.collect();
    let lost = deliveries::of_nobody(pool).await?.into_iter().filter(|it| it.damaged.is_none());
    flaws.extend(lost.map(|it| told(it, "the run that it tells of is not there")));
    Ok(flaws)
}

/// Returns bundles of runs that do not exist or have no log.
async fn stray_bundles(pool: &SqlitePool) -> Result<Vec<Flaw>, sqlx::Error> {
    let runs =
        sqlx::query_scalar::<_, String>(sql::stage::BUNDLES_OF_NOBODY).fetch_all(pool).await?;
    Ok(runs.iter().map(|run| Flaw::of_bundle(run)).collect())
}
