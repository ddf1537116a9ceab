//! Databases on read-only media, which can only be read.

use super::calendar::Calendar;
use super::files::DatabaseFiles;
use super::presence::Presence;
use super::reader::Reader;
use super::wal::beside;
use super::{Options, SqliteStore, header};
use crate::StoreError;
use crate::sql::SCHEMA;
use sqlx::sqlite::SqliteConnectOptions;
use std::io::ErrorKind;
use std::sync::Arc;

/// Opens a database on read-only media.
pub(super) async fn open(options: Options, path: String) -> Result<SqliteStore, StoreError> {
    let unusable = |reason: String| StoreError::Unusable { path: path.clone(), reason };
    let file = options.path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            unusable("there is none, and none can be made: its folder is read-only".to_owned())
        }
        _ => unusable(error.to_string()),
    })?;
    let place = DatabaseFiles::of(&file).map_err(|error| unusable(error.to_string()))?;
    let (found, known) = (header::inspect(&file, &path)?, SCHEMA.version());
    if found < known {
        return Err(unusable(format!(
            "it is on read-only media and of an earlier version (schema {found}, this one knows \
             {known}); copy it to where it can be brought up to date"
        )));
    }
    let log = beside(&file, "-wal");
    let has_log = log.metadata().is_ok_and(|log| log.len() > 0);
    // Readers of a log need the shared index, which they cannot create here.
    if has_log && !beside(&file, "-shm").exists() {
        return Err(unusable(format!(
            "it is on read-only media and was not closed: {} holds what is not in it yet; copy both \
             to where they can be written",
            log.display()
        )));
    }
    let connect = SqliteConnectOptions::new().filename(&file).read_only(true);
    // Without a log, nothing can change during a read.
    let connect = connect.immutable(!has_log).pragma("temp_store", "memory").foreign_keys(false);
    let why = unusable("it is on read-only media".to_owned());
    let presence = Presence::unannounced(&file, options.clock.clone(), options.lease);
    let calendar = Calendar::new(&file, options.clock);
    let reader =
        |requests| Reader::of_media(connect, path.clone(), Arc::new(presence), calendar, requests);
    Ok(SqliteStore::to_read(reader, why, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_nothing_can_be_made_it_is_said_so() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let path = folder.path().join("not/here.db");
        let Err(error) = open(Options::new(path), "here.db".to_owned()).await else {
            panic!("opened")
        };
        assert!(error.to_string().contains("is read-only"), "{error}");
    }
}
