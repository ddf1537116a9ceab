//! From opening the store to having claimed all unfinished runs, with many and with very many finished
//! runs beside them.

use super::fill::Fill;
use crate::bench::harness::Effort;
use crate::bench::line::{Line, Samples, note, seconds};
use crate::bench::part::{Process, ready};
use crate::bench::{Part, Result};
use posse::store::{Claims, Options, SqliteStore, Wanted};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Runs that were at work when the process died.
const UNFINISHED: usize = 10_000;
/// Runs that a runtime claims at once.
const LIMIT: usize = 256;

/// Claims unfinished runs, as a runtime does that starts after a crash.
#[derive(Serialize, Deserialize)]
pub struct Claim {
    database: PathBuf,
}

impl Claim {
    pub async fn run(self) -> Result<f64> {
        let meter = ready().await?;
        let store = SqliteStore::open(Options::new(&self.database)).await?;
        let mut claimed = 0;
        while claimed < UNFINISHED {
            let wanted = Wanted { limit: LIMIT, ..Wanted::default() };
            match store.claim(&wanted).await?.len() {
                0 => return Err(format!("only {claimed} of {UNFINISHED} runs were claimed").into()),
                count => claimed += count,
            }
        }
        let took = meter.read().wall;
        // The next part finds the database as this one found it.
        std::mem::forget(store);
        Ok(took)
    }
}

pub fn measure(effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let some = fill(folder.path(), 100_000)?;
    if effort.quick {
        let took = Samples::new(effort.rounds(|| claim(&some))?);
        Line::new("recovery: 10,000 of 110,000", took.shown(seconds)).print();
        return Ok(());
    }
    let many = fill(folder.path(), 1_000_000)?;
    let rounds = effort.rounds(|| {
        let few = claim(&some)?;
        Ok((claim(&many)?, few))
    })?;
    let line = Line::compared("recovery: 10,000 of 1,010,000", &rounds, seconds);
    line.at_most(1.25, "raw").against("of 110,000").print();
    Ok(())
}

fn fill(folder: &Path, finished: usize) -> Result<PathBuf> {
    let database = folder.join(format!("{finished}.db"));
    // First the finished runs, and the store is closed; then the others, and it is left open.
    for (finished, unfinished) in [(finished, 0), (0, UNFINISHED)] {
        let database = database.clone();
        Process::report::<()>(&Part::Fill(Fill { database, finished, unfinished }))?;
    }
    let size = std::fs::metadata(&database)?.len() >> 20;
    note(&format!("a database with {finished} finished runs: {size} MiB"));
    Ok(database)
}

fn claim(database: &Path) -> Result<f64> {
    Process::report(&Part::Claim(Claim { database: database.to_owned() }))
}
