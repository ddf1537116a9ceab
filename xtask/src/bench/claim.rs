//! Claims what is unfinished in a database, as a runtime does that starts after a crash.

use super::Result;
use super::line::say;
use posse::store::{Claims, Options, SqliteStore, Wanted};
use std::path::PathBuf;
use std::time::Instant;

/// Claims unfinished runs
#[derive(clap::Args)]
pub struct Claim {
    /// The database
    #[arg(long)]
    db: PathBuf,
    /// How many there are
    #[arg(long)]
    runs: usize,
}

/// Runs that a runtime claims at once.
const LIMIT: usize = 256;

impl Claim {
    pub async fn run(self) -> Result<()> {
        let began = Instant::now();
        let store = SqliteStore::open(Options::new(&self.db)).await?;
        let mut claimed = 0;
        while claimed < self.runs {
            let wanted = Wanted { limit: LIMIT, runs: Vec::new(), workspace: None };
            let count = store.claim(&wanted).await?.len();
            if count == 0 {
                return Err(format!("only {claimed} of {} runs were claimed", self.runs).into());
            }
            claimed += count;
        }
        say(&serde_json::to_string(&began.elapsed().as_secs_f64())?);
        // Not closed: the next one finds the database as this one found it.
        std::process::exit(0);
    }
}
