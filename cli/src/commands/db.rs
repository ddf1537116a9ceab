//! `posse db` copies the runs of one database to another.

use super::Common;
use crate::args::DbVerb;
use crate::database::Database;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use posse::store::{Binding, Options, SqliteStore, Store, StoreError, Transfer, transfer};
use posse::{Error, OpenStore};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// How many runs are copied between two lines of progress.
const TOLD: u64 = 1_000;

pub async fn run(common: &Common, verb: DbVerb) -> Result<Code, Failure> {
    match verb {
        DbVerb::Copy { from, to } => copy(common, &from, &to).await,
    }
}

async fn copy(common: &Common, from: &Path, to: &Path) -> Result<Code, Failure> {
    let (from, to) = (common.database_at(from)?, common.database_at(to)?);
    if let Database::File(path) = &from
        && !path.exists()
    {
        let message = format!("the database {} does not exist", path.display());
        return Err(Failure { code: Code::Store, message, hint: None });
    }
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
    let copied = transfer(&*source, &*target, &binding, |done| {
        if !quiet && done.copied > 0 && done.copied % TOLD == 0 {
            print::note(format!("{} copied", format::count(done.copied, "run")));
        }
    });
    let copied = copied.await;
    target.close().await;
    source.close().await;
    tell(common, &from, &to, &copied.map_err(Error::Store)?)
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
    let Transfer { copied, events, present, left } = done;
    if common.global.json {
        let left: Vec<_> =
            left.iter().map(|(run, error)| json!({"run": run, "reason": reason(error)})).collect();
        print::json_pretty(&json!({
            "from": from.to_string(), "to": to.to_string(), "copied": copied, "events": events,
            "present": present, "left": left,
        }))?;
        return Ok(code);
    }
    let was = match present {
        0 => String::new(),
        present => format!("; {} there already", format::count(*present, "run")),
    };
    let (runs, events) = (format::count(*copied, "run"), format::count(*events, "event"));
    print::line(format!("copied {runs} with {events} to {to}, all hashes verified{was}"))?;
    for (run, error) in left {
        print::note(format!("not copied: {run}: {}", reason(error)));
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
        other => other.to_string(),
    }
}
