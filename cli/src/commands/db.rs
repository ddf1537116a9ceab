//! `posse db`: the database as a whole. It shows, migrates and verifies it, or copies its runs to another one.

use super::{Common, runs};
use crate::args::{DbVerb, RunsVerb};
use crate::clean::clean_line;
use crate::contact::Lines;
use crate::database::Database;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use posse::store::{
    Binding, DatabaseStatus, Options, PostgresStore, SqliteStore, Store, StoreError, Transfer,
    transfer,
};
use posse::{Error, OpenStore};
use serde_json::json;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many runs are copied at least between two lines of progress in a file.
const TOLD: u64 = 1_000;
/// How often the progress on a terminal is redrawn at most.
const REDRAWN: Duration = Duration::from_millis(200);

pub async fn run(common: Common, verb: DbVerb) -> Result<Code, Failure> {
    match verb {
        DbVerb::Status => show(&common, &status(&common.database()?).await?, None),
        DbVerb::Migrate => migrate(&common).await,
        DbVerb::Verify => runs::run(common, RunsVerb::Verify { run: None }).await,
        DbVerb::Copy { from, to } => copy(&common, &from, &to).await,
    }
}

async fn migrate(common: &Common) -> Result<Code, Failure> {
    let database = common.database()?;
    let before = match &database {
        Database::File(path) if !path.exists() => 0,
        _ => status(&database).await?.schema,
    };
    open(&database).await?.close().await;
    show(common, &status(&database).await?, Some(before))
}

/// Looks at the database, without changing it.
async fn status(database: &Database) -> Result<DatabaseStatus, Failure> {
    check_exists(database)?;
    let status = match database {
        Database::File(path) => SqliteStore::status(path).await,
        Database::Server(server) => PostgresStore::status(&server.options).await,
    };
    status.map_err(|error| Failure::from(Error::Store(error)))
}

/// Shows the database, and the version of its schema `before` a migration.
fn show(common: &Common, now: &DatabaseStatus, before: Option<i64>) -> Result<Code, Failure> {
    let database = common.database()?;
    if common.global.json {
        let mut shown = json!(now);
        shown["database"] = json!(database.to_string());
        if let Some(before) = before {
            shown["before"] = json!(before);
        }
        print::json_pretty(&shown)?;
        return Ok(Code::Done);
    }
    let DatabaseStatus { engine, schema, oldest, known, bytes, runs, unfinished } = now;
    let version = match (before, schema) {
        (Some(0), schema) => format!("{schema}, just created"),
        (Some(before), schema) if before < *schema => format!("{schema}, migrated from {before}"),
        (_, 0) => "none yet: the first run creates it, or `posse db migrate`".to_owned(),
        (_, schema) if schema > known => {
            format!("{schema}, newer than the {known} of this program; use a newer Posse")
        }
        (_, schema) if schema < oldest => {
            format!("{schema}, of a development version; only the Posse that made it can use it")
        }
        (_, schema) if schema < known => {
            format!(
                "{schema}, older than the {known} of this program; `posse db migrate` updates it"
            )
        }
        (_, schema) => format!("{schema}, up to date"),
    };
    let runs = format!("{}, {unfinished} not ended", format::count(*runs, "run"));
    let lines = [
        ("database", database.to_string()),
        ("engine", engine.clone()),
        ("schema", version),
        ("size", format::bytes(*bytes)),
        ("holds", runs),
    ];
    for (name, value) in lines {
        print::line(format!("{name:9} {value}"))?;
    }
    Ok(Code::Done)
}

/// Fails for a file that does not exist.
fn check_exists(database: &Database) -> Result<(), Failure> {
    match database {
        Database::File(path) if !path.exists() => {
            let message = format!("the database {} does not exist", path.display());
            Err(Failure { code: Code::Store, message, hint: None })
        }
        _ => Ok(()),
    }
}

async fn copy(common: &Common, from: &Path, to: &Path) -> Result<Code, Failure> {
    // Each tells of its own server.
    let other = Common { lines: Lines::default(), ..common.clone() };
    let (from, to) = (common.database_at(from)?, other.database_at(to)?);
    check_exists(&from)?;
    if from.to_string() == to.to_string() {
        return Err(Failure::usage("both names mean the same database")
            .hint("name the database to copy from, then the one to copy to"));
    }
    let source = open(&from).await?;
    let target = match open(&to).await {
        Ok(target) => target,
        Err(failure) => {
            source.close().await;
            return Err(failure);
        }
    };
    let quiet = common.global.quiet || common.global.json;
    let host = common.environment.host(&common.user_config()?);
    let binding = match &to {
        Database::File(_) => Binding::From(host),
        Database::Server(_) => Binding::To(host),
    };
    let mut progress = Progress::new();
    let copied = transfer(&*source, &*target, &binding, |done| {
        if !quiet {
            progress.tell(done);
        }
    });
    let copied = copied.await;
    progress.clear();
    target.close().await;
    source.close().await;
    tell(common, &from, &to, &copied.map_err(Error::Store)?)
}

/// The progress of a copy on standard error: a line that is redrawn on a terminal, else a line from
/// time to time.
struct Progress {
    is_live: bool,
    told: u64,
    drawn_at: Option<Instant>,
}

impl Progress {
    fn new() -> Self {
        Progress { is_live: std::io::stderr().is_terminal(), told: 0, drawn_at: None }
    }

    fn tell(&mut self, done: &Transfer) {
        let Transfer { copied, events, present, .. } = done;
        let runs = format::count(*copied, "run");
        if !self.is_live {
            if *copied >= self.told + TOLD {
                self.told = *copied;
                print::note(format!("{runs} copied"));
            }
        } else if self.drawn_at.is_none_or(|at| at.elapsed() >= REDRAWN) {
            self.drawn_at = Some(Instant::now());
            let events = format::count(*events, "event");
            print::note_piece(&format!(
                "\r{runs} with {events} copied, {present} there already\x1b[K"
            ));
        }
    }

    /// Removes the line.
    fn clear(&self) {
        if self.drawn_at.is_some() {
            print::note_piece("\r\x1b[K");
        }
    }
}

async fn open(database: &Database) -> Result<Arc<dyn Store>, Failure> {
    let opened = match database {
        Database::File(path) => SqliteStore::open(Options::new(path))
            .await
            .map(|store| Arc::new(store) as Arc<dyn Store>),
        Database::Server(server) => server.options.open(None).await,
    };
    opened.map_err(|error| Failure::from(Error::Store(error)))
}

fn tell(common: &Common, from: &Database, to: &Database, done: &Transfer) -> Result<Code, Failure> {
    let code = if done.left.is_empty() { Code::Done } else { Code::Failed };
    let Transfer { copied, events, unfinished, present, left } = done;
    if common.global.json {
        let left: Vec<_> =
            left.iter().map(|(run, error)| json!({"run": run, "reason": reason(error)})).collect();
        print::json_pretty(&json!({
            "from": from.to_string(), "to": to.to_string(), "copied": copied, "events": events,
            "unfinished": unfinished, "present": present, "left": left,
        }))?;
        return Ok(code);
    }
    let was = match present {
        0 => String::new(),
        present => format!("; {} there already", format::count(*present, "run")),
    };
    let (runs, events) = (format::count(*copied, "run"), format::count(*events, "event"));
    print::line(format!("copied {runs} with {events} to {to}, all hashes verified{was}"))?;
    if *unfinished > 0 {
        print::note(format!(
            "{} not ended: let workers execute them in one of the databases only",
            if *unfinished == 1 {
                "1 of them has".to_owned()
            } else {
                format!("{unfinished} of them have")
            }
        ));
    }
    for (run, error) in left {
        print::note(format!("not copied: {run}: {}", reason(error)));
        if let StoreError::Damaged { .. } = error {
            print::note(format!("  `posse --db {from} runs verify {run}` checks it again"));
        }
    }
    if !left.is_empty() {
        print::note("a run is copied together with all runs of its tree, or not at all");
    }
    if left.iter().any(|(_, error)| matches!(error, StoreError::Damaged { .. })) {
        print::note(match from {
            Database::File(path) => format!(
                "`posse --db {} doctor --rebuild` saves what can be read of damaged runs; then copy \
                 again",
                path.display()
            ),
            Database::Server(_) => {
                "to copy damaged runs, restore them from a backup of the server first".to_owned()
            }
        });
    }
    Ok(code)
}

/// Why a run was left.
fn reason(error: &StoreError) -> String {
    match error {
        StoreError::NotOwner(_) => {
            "a worker executes it; wait for its end or stop it, then copy again".to_owned()
        }
        StoreError::Exists(_) => {
            "it has another log there: it went on after it was copied".to_owned()
        }
        StoreError::Damaged { reason, .. } => format!("it is damaged: {}", clean_line(reason, 400)),
        other => other.to_string(),
    }
}
