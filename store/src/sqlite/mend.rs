//! Mending a database: rows, indices and the ledger made anew from the logs, or a backup put in its
//! place. The new file is written beside the old one and renamed, and a copy of the old one is kept.
//! Refuses while anybody has the database open.

mod rows;

use super::header;
use super::migrate;
use super::presence::{Company, company};
use super::wal::{self, beside};
use super::{Options, connect_options, engine_error};
use crate::StoreError;
use crate::engine::to_sql;
use crate::sql::{MENDED_TABLES, MIGRATIONS, WHOLE};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteLockingMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What became of a database that was mended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// A copy of the database as it was, with its write-ahead log beside it, if there was one.
    pub kept: Option<PathBuf>,
    /// Runs whose rows or model calls were made anew from their logs.
    pub runs: u64,
    /// Runs whose logs are damaged: they are kept as they are.
    pub damaged: u64,
    /// Events, model calls and deliveries that could not be read, and are not in it any more.
    pub lost: u64,
    /// What was stored last is not in it: whoever goes on with its runs may repeat what they did.
    pub forgets: bool,
}

/// How long others may take to let go of the database.
const PATIENCE: Duration = Duration::from_secs(2);
/// Statements that may fail while the readable part of a table is looked for.
const ATTEMPTS: u32 = 20_000;

/// Makes the database of `options` anew from its logs.
///
/// # Errors
/// When somebody has it open, it is none of ours, or too little of it can be read.
pub async fn rebuild(options: &Options) -> Result<Mended, StoreError> {
    let bench = Bench::of(options)?;
    header::inspect(&bench.path, &bench.name)?;
    let lost = super::lost(&bench.options).map_err(|error| bench.unusable(error))?;
    let kept = bench.keep()?;
    // One of an earlier version is brought up to date first.
    let connected = migrate::open(&connect_options(&bench.options), &bench.name).await?;
    connected.connection.close().await.map_err(|error| bench.engine(error))?;
    let (mended, both) = bench.copy_over().await?;
    bench.swap()?;
    // It has held everyone off until now.
    let _ = both.close().await;
    Ok(Mended { kept: Some(kept), forgets: lost.is_some(), ..mended })
}

/// Puts a copy of `backup` in the place of the database of `options`.
///
/// # Errors
/// When somebody has it open, or the backup is damaged or none of ours.
pub async fn restore(options: &Options, backup: &Path) -> Result<Mended, StoreError> {
    let bench = Bench::of(options)?;
    let name = backup.display().to_string();
    let refused = |reason: String| StoreError::Unusable { path: name.clone(), reason };
    if backup.metadata().map_err(|error| refused(error.to_string()))?.len() == 0 {
        return Err(refused("it is empty".to_owned()));
    }
    header::inspect(backup, &name)?;
    bench.clear().map_err(|error| bench.unusable(error))?;
    for ending in ["", "-wal"] {
        let from = beside(backup, ending);
        if ending.is_empty() || from.exists() {
            let copied = copy(&from, &beside(&bench.new, ending));
            copied.map_err(|error| refused(error.to_string()))?;
        }
    }
    bench.check_new(&name).await?;
    let kept = bench.path.exists().then(|| bench.keep()).transpose()?;
    // What is no database of ours, or not any more, is held by nobody.
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

/// The files that are worked on.
struct Bench {
    options: Options,
    path: PathBuf,
    name: String,
    /// The new database, until it is at its place.
    new: PathBuf,
}

impl Bench {
    fn of(options: &Options) -> Result<Self, StoreError> {
        let name = options.path.display().to_string();
        let path = options.path.canonicalize().unwrap_or_else(|_| options.path.clone());
        if company(&path, "") == Company::Living {
            let reason = "a process has it open; end that process first";
            return Err(StoreError::Unusable { path: name, reason: reason.to_owned() });
        }
        let new = beside(&path, "-new");
        Ok(Bench { options: Options { path: path.clone(), ..options.clone() }, path, name, new })
    }

    fn unusable(&self, error: io::Error) -> StoreError {
        StoreError::Unusable { path: self.name.clone(), reason: error.to_string() }
    }

    fn engine(&self, error: sqlx::Error) -> StoreError {
        engine_error(error, &self.name)
    }

    /// Copies the database and its write-ahead log, byte for byte, to a name that is free.
    fn keep(&self) -> Result<PathBuf, StoreError> {
        let free = |number: u32| {
            let path = beside(&self.path, &format!("-before-{number}"));
            (!path.exists()).then_some(path)
        };
        let kept = (1..).find_map(free).unwrap_or_else(|| beside(&self.path, "-before"));
        let copies = || -> io::Result<()> {
            let log = beside(&self.path, "-wal");
            if log.exists() {
                copy(&log, &beside(&kept, "-wal"))?;
            }
            copy(&self.path, &kept)
        };
        copies().map_err(|error| self.unusable(error))?;
        Ok(kept)
    }

    /// Takes the database for this process alone, with all of its log in the file.
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

    /// Removes what an earlier attempt has left.
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

    /// Refuses a new file that does not hold together, and brings all of it into one file.
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

    /// Puts the new file in the place of the old one. Whoever dies in the middle leaves one or the other.
    fn swap(&self) -> Result<(), StoreError> {
        let swapped = || -> io::Result<()> {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&self.new, PermissionsExt::from_mode(0o600))?;
            File::open(&self.new)?.sync_all()?;
            // Nothing stands in them that is not in the file, or in the copy that is kept.
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

    /// Writes the new file: every row of the old one that can be read, and what follows from the logs.
    /// The connection has both open, the old one for itself alone.
    async fn copy_over(&self) -> Result<(Mended, SqliteConnection), StoreError> {
        self.clear().map_err(|error| self.unusable(error))?;
        let written = async {
            let mut both = self.open_new(true).await?;
            let made = format!(
                "{WHOLE}; PRAGMA user_version = {}; PRAGMA application_id = {}",
                MIGRATIONS.len(),
                header::APPLICATION
            );
            sqlx::raw_sql(AssertSqlSafe(made)).execute(&mut both).await?;
            let file = self.path.display().to_string();
            sqlx::query("ATTACH ? AS old").bind(file).execute(&mut both).await?;
            // Nobody sees the new file before it is on the disk and at its place.
            let seize = "PRAGMA old.locking_mode = EXCLUSIVE; PRAGMA old.wal_checkpoint(TRUNCATE); \
                         PRAGMA main.synchronous = OFF";
            sqlx::raw_sql(seize).execute(&mut both).await?;
            let mut mended = Mended::default();
            for (table, columns) in MENDED_TABLES {
                let unread = copy_table(&mut both, table, columns).await?;
                // A run whose row cannot be read is made again from its log.
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

/// Copies the rows of a table that can be read; returns how many there are that cannot. Without the old
/// indices, which may lead astray, and without a transaction around it: what the engine cannot read
/// ends that.
async fn copy_table(
    new: &mut SqliteConnection,
    table: &str,
    columns: &str,
) -> Result<u64, sqlx::Error> {
    let statement = format!(
        "INSERT INTO {table} ({columns}) SELECT {columns} FROM old.{table} NOT INDEXED \
         WHERE rowid BETWEEN ? AND ?"
    );
    // What the index of its key says is enough to know where the table ends: beyond, the engine looks at
    // its last page again and again, which may be the one that it cannot read.
    let end = format!("SELECT MAX(rowid) FROM old.{table} INDEXED BY sqlite_autoindex_{table}_1");
    let end = sqlx::query_scalar::<_, Option<i64>>(AssertSqlSafe(end)).fetch_one(&mut *new).await;
    let end = end.ok().flatten().unwrap_or(i64::MAX);
    let (mut unread, mut attempts) = (0, 0);
    // First all at once, as it is mostly.
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
        // 11: the engine cannot read it. 19: it holds what no row of the table can.
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

/// Copies a file, for its owner only, and has it on the disk.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut source = File::open(from)?;
    let mut options = std::fs::OpenOptions::new();
    let mut target = options.write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut source, &mut target)?;
    target.sync_all()
}

/// The most that a column holds.
fn most() -> i64 {
    to_sql(u64::MAX)
}
