//! Repairs a database: rebuilds rows, indexes and the ledger from the logs, or restores a backup.
//! It writes a new file next to the old one and renames it. It keeps a copy of the old one. It
//! fails while a process has the database open.

mod rows;

use super::header;
use super::migrate;
use super::ownership;
use super::presence::{OpenProcesses, company};
use super::wal::{self, beside};
use super::{Options, connect_options, engine_error};
use crate::StoreError;
use crate::engine::to_sql;
use crate::sql::{MENDED_TABLES, SCHEMA};
use rustix::fs::OFlags;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteLockingMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// A copy of the old database, next to its write-ahead log, if there was one.
    pub kept: Option<PathBuf>,
    /// Runs whose rows or model calls were rebuilt from their logs.
    pub runs: u64,
    /// Runs with damaged logs, which were copied unchanged.
    pub damaged: u64,
    /// Events, model calls and deliveries that could not be read and are lost.
    pub lost: u64,
    /// True if the last commits are missing. Runs that continue may repeat what they did.
    pub forgets: bool,
}

/// How long to wait for other processes to release the database.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most statements that may fail during the search for readable rows of a table.
const ATTEMPTS: u32 = 20_000;

/// Rebuilds the database of `options` from its logs.
///
/// # Errors
/// When a process has it open, it is not a Posse database, or too little of it can be read.
pub async fn rebuild(options: &Options) -> Result<Mended, StoreError> {
    let bench = RepairFiles::of(options)?;
    header::inspect(&bench.path, &bench.name)?;
    let lost = super::lost(&bench.options).map_err(|error| bench.unusable(error))?;
    let kept = bench.keep()?;
    // Migrate a database of an earlier version first.
    let connected = migrate::open(&connect_options(&bench.options), &bench.name, &SCHEMA).await?;
    connected.connection.close().await.map_err(|error| bench.engine(error))?;
    let (mended, both) = bench.copy_over().await?;
    bench.swap()?;
    // This connection has kept other processes away until now.
    let _ = both.close().await;
    Ok(Mended { kept: Some(kept), forgets: lost.is_some(), ..mended })
}

/// Replaces the database of `options` by a copy of `backup`.
///
/// # Errors
/// When a process has it open, or the backup is damaged or not a Posse database.
pub async fn restore(options: &Options, backup: &Path) -> Result<Mended, StoreError> {
    let bench = RepairFiles::of(options)?;
    let name = backup.display().to_string();
    let refused = |reason: String| StoreError::Unusable { path: name.clone(), reason };
    if backup.metadata().map_err(|error| refused(error.to_string()))?.len() == 0 {
        return Err(refused("it is empty".to_owned()));
    }
    let mut files = Backup::open(backup).map_err(refused)?;
    header::inspect(backup, &name)?;
    bench.clear().map_err(|error| bench.unusable(error))?;
    files.copy_to(&bench.new).map_err(|error| refused(error.to_string()))?;
    bench.check_new(&name).await?;
    let kept = bench.path.exists().then(|| bench.keep()).transpose()?;
    // No process can have a file open that is not a valid Posse database.
    let is_ours = bench.path.exists() && header::inspect(&bench.path, &bench.name).is_ok();
    let old = match is_ours.then_some(bench.seize()) {
        None => None,
        Some(old) => match old.await {
            Err(error @ StoreError::Unusable { .. }) => return Err(error),
            old => old.ok(),
        },
    };
    bench.swap()?;
    if let Some(old) = old {
        let _ = old.close().await;
    }
    Ok(Mended { kept, forgets: true, ..Mended::default() })
}

/// The open files of a backup. Nobody can replace them once they are open.
struct Backup {
    database: File,
    log: Option<File>,
}

impl Backup {
    /// Opens the backup. Refuses a write-ahead log that is not from who made the backup: it would decide what is
    /// restored.
    fn open(path: &Path) -> Result<Self, String> {
        use std::os::unix::fs::OpenOptionsExt;
        let told = |error: io::Error| error.to_string();
        let database = File::open(path).map_err(told)?;
        let log = beside(path, "-wal");
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let opened = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(&log);
        let made = database.metadata().map_err(told)?;
        let is_from = |log: &File| -> io::Result<bool> {
            let found = log.metadata()?;
            let own = rustix::process::geteuid().as_raw();
            Ok(found.is_file()
                && found.nlink() <= made.nlink()
                && (found.uid() == made.uid() || found.uid() == own))
        };
        let log = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Backup { database, log: None });
            }
            Ok(file) if is_from(&file).map_err(told)? => {
                return Ok(Backup { database, log: Some(file) });
            }
            _ => log.display(),
        };
        Err(format!(
            "the log beside it, {log}, is not a file of the user who made the backup; if it does not belong to the \
             backup, copy the backup without it to a folder of your own, and restore that copy"
        ))
    }

    /// Copies the files.
    fn copy_to(&mut self, path: &Path) -> io::Result<()> {
        copy(&mut self.database, path)?;
        match &mut self.log {
            Some(log) => copy(log, &beside(path, "-wal")),
            None => Ok(()),
        }
    }
}

/// The files of a repair.
struct RepairFiles {
    options: Options,
    path: PathBuf,
    name: String,
    /// The new database, until it is renamed.
    new: PathBuf,
}

impl RepairFiles {
    fn of(options: &Options) -> Result<Self, StoreError> {
        let name = options.path.display().to_string();
        let path = options.path.canonicalize().unwrap_or_else(|_| options.path.clone());
        // What others have made would become this user's.
        ownership::check(&options.path)?;
        ownership::check(&path)?;
        if company(&path, "") == OpenProcesses::Living {
            let reason = "a process has it open; end that process first";
            return Err(StoreError::Unusable { path: name, reason: reason.to_owned() });
        }
        let new = beside(&path, "-new");
        Ok(RepairFiles {
            options: Options { path: path.clone(), ..options.clone() },
            path,
            name,
            new,
        })
    }

    fn unusable(&self, error: io::Error) -> StoreError {
        StoreError::Unusable { path: self.name.clone(), reason: error.to_string() }
    }

    fn engine(&self, error: sqlx::Error) -> StoreError {
        engine_error(error, &self.name)
    }

    /// Copies the database and its write-ahead log to an unused name.
    fn keep(&self) -> Result<PathBuf, StoreError> {
        let free = |number: u32| {
            let path = beside(&self.path, &format!("-before-{number}"));
            (!path.exists()).then_some(path)
        };
        let kept = (1..).find_map(free).unwrap_or_else(|| beside(&self.path, "-before"));
        let copies = || -> io::Result<()> {
            let log = beside(&self.path, "-wal");
            if log.exists() {
                copy(&mut File::open(&log)?, &beside(&kept, "-wal"))?;
            }
            copy(&mut File::open(&self.path)?, &kept)
        };
        copies().map_err(|error| self.unusable(error))?;
        Ok(kept)
    }

    /// Takes exclusive access to the database, and moves its whole log into the file.
    async fn seize(&self) -> Result<SqliteConnection, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(&self.path)
            .create_if_missing(false)
            .locking_mode(SqliteLockingMode::Exclusive)
            .busy_timeout(PATIENCE);
        let seized = async {
            let mut old = options.connect().await?;
            let seize = "BEGIN IMMEDIATE; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)";
            sqlx::raw_sql(seize).execute(&mut old).await?;
            Ok(old)
        };
        seized.await.map_err(|error| self.engine(error))
    }

    /// Removes the files of an earlier attempt.
    fn clear(&self) -> io::Result<()> {
        for ending in ["", "-wal", "-shm", "-journal"] {
            match std::fs::remove_file(beside(&self.new, ending)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn open_new(&self, is_new: bool) -> Result<SqliteConnection, sqlx::Error> {
        let options = SqliteConnectOptions::new().filename(&self.new).create_if_missing(is_new);
        options.busy_timeout(PATIENCE).connect().await
    }

    /// Fails if the new file is damaged. Otherwise moves its log into the file.
    async fn check_new(&self, name: &str) -> Result<(), StoreError> {
        let checked = async {
            let mut new = self.open_new(false).await?;
            let line: String =
                sqlx::query("PRAGMA integrity_check(1)").fetch_one(&mut new).await?.try_get(0)?;
            sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut new).await?;
            new.close().await?;
            Ok(line)
        };
        let line = checked.await.map_err(|error| engine_error(error, name))?;
        if line == "ok" {
            return Ok(());
        }
        let _ = self.clear();
        Err(StoreError::Corrupt { path: name.to_owned(), reason: line })
    }

    /// Replaces the old file by the new one. A crash in between leaves one of the two.
    fn swap(&self) -> Result<(), StoreError> {
        let swapped = || -> io::Result<()> {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&self.new, PermissionsExt::from_mode(0o600))?;
            File::open(&self.new)?.sync_all()?;
            // All their content is in the file, or in the copy.
            for ending in ["-wal", "-shm"] {
                match std::fs::remove_file(beside(&self.path, ending)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            std::fs::rename(&self.new, &self.path)?;
            match std::fs::remove_file(wal::note_of(&self.path)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            match self.path.parent() {
                Some(folder) => File::open(folder)?.sync_all(),
                None => Ok(()),
            }
        };
        swapped().map_err(|error| self.unusable(error))
    }

    /// Writes the new file: all readable rows of the old one, and what the logs imply. The returned
    /// connection has both files open, the old one exclusively.
    async fn copy_over(&self) -> Result<(Mended, SqliteConnection), StoreError> {
        self.clear().map_err(|error| self.unusable(error))?;
        let written = async {
            let mut both = self.open_new(true).await?;
            let made = format!(
                "{}; PRAGMA user_version = {}; PRAGMA application_id = {}",
                SCHEMA.whole(),
                SCHEMA.version(),
                header::APPLICATION
            );
            sqlx::raw_sql(AssertSqlSafe(made)).execute(&mut both).await?;
            let file = self.path.display().to_string();
            sqlx::query("ATTACH ? AS old").bind(file).execute(&mut both).await?;
            // No process sees the new file before it is synced and renamed.
            let seize = "PRAGMA old.locking_mode = EXCLUSIVE; PRAGMA old.wal_checkpoint(TRUNCATE); \
                         PRAGMA main.synchronous = OFF";
            sqlx::raw_sql(seize).execute(&mut both).await?;
            let mut mended = Mended::default();
            for (table, columns) in MENDED_TABLES {
                let unread = copy_table(&mut both, table, columns).await?;
                // A run whose row cannot be read is rebuilt from its log.
                mended.lost += if table == "runs" { 0 } else { unread };
            }
            sqlx::raw_sql("BEGIN").execute(&mut both).await?;
            rows::mend(&mut both, &mut mended).await?;
            sqlx::raw_sql("COMMIT").execute(&mut both).await?;
            let check = sqlx::query("PRAGMA main.integrity_check(1)").fetch_one(&mut both).await?;
            Ok((mended, both, check.try_get::<String, _>(0)?))
        };
        match written.await.map_err(|error| self.engine(error))? {
            (mended, both, check) if check == "ok" => Ok((mended, both)),
            (_, _, reason) => Err(StoreError::Corrupt { path: self.name.clone(), reason }),
        }
    }
}

/// Copies the readable rows of a table, and returns the number of unreadable ones. It does not use
/// the old indexes, which may be wrong, nor a transaction, because an unreadable page would end it.
async fn copy_table(
    new: &mut SqliteConnection,
    table: &str,
    columns: &str,
) -> Result<u64, sqlx::Error> {
    let statement = format!(
        "INSERT INTO {table} ({columns}) SELECT {columns} FROM old.{table} NOT INDEXED \
         WHERE rowid BETWEEN ? AND ?"
    );
    // The index of the primary key tells where the table ends. Without an end, the engine would
    // read the last page again and again, which may be the unreadable one.
    let end = format!("SELECT MAX(rowid) FROM old.{table} INDEXED BY sqlite_autoindex_{table}_1");
    let end = sqlx::query_scalar::<_, Option<i64>>(AssertSqlSafe(end)).fetch_one(&mut *new).await;
    let end = end.ok().flatten().unwrap_or(i64::MAX);
    let (mut unread, mut attempts) = (0, 0);
    // Usually one statement can copy all rows.
    let mut ranges = vec![(1, end), (i64::MIN, i64::MAX)];
    let mut is_whole = true;
    while let Some((first, last)) = ranges.pop() {
        let query = sqlx::query(AssertSqlSafe(statement.clone())).bind(first).bind(last);
        let error = match query.execute(&mut *new).await {
            Ok(_) if is_whole => return Ok(0),
            Ok(_) => continue,
            Err(error) => error,
        };
        attempts += 1;
        // 11: the engine cannot read the row. 19: the row violates a constraint of the table.
        if !matches!(super::engine_code(&error) & 0xff, 11 | 19) || attempts > ATTEMPTS {
            return Err(error);
        }
        if std::mem::take(&mut is_whole) {
            continue;
        }
        if first >= last {
            unread += 1;
            continue;
        }
        let middle = first + (last - first) / 2;
        ranges.extend([(middle + 1, last), (first, middle)]);
    }
    Ok(unread)
}

/// Copies a file, readable by its owner only, and syncs it.
fn copy(source: &mut File, to: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let mut target = options.write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(source, &mut target)?;
    target.sync_all()
}

/// The largest value of a column.
fn most() -> i64 {
    to_sql(u64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_backup_that_come_or_change_later_are_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for with_log in [false, true] {
            std::fs::write(place("backup"), "database").unwrap();
            if with_log {
                std::fs::write(place("backup-wal"), "log").unwrap();
            }
            let mut backup = Backup::open(&place("backup")).unwrap();
            for name in ["backup", "backup-wal"] {
                std::fs::write(place("later"), "later").unwrap();
                std::fs::rename(place("later"), place(name)).unwrap();
            }
            backup.copy_to(&place("new")).unwrap();
            assert_eq!(std::fs::read(place("new")).unwrap(), b"database");
            let log = std::fs::read(place("new-wal")).ok();
            assert_eq!(log, with_log.then(|| b"log".to_vec()));
            for name in ["new", "new-wal", "backup-wal"] {
                let _ = std::fs::remove_file(place(name));
            }
        }
    }
}
