//! Many runs at once: each reads three files, one a turn, and answers.

use super::Result;
use super::line::say;
use super::meter::{Cost, Meter};
use super::process::next_order;
use super::serve::FOLLOW;
use posse::store::Filter;
use posse::{Keys, Outcome, Pacing, RunSpec, Runtime, RuntimeConfig};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinSet;

/// Executes many runs at once
#[derive(clap::Args)]
pub struct Load {
    /// The base URL
    #[arg(long)]
    url: String,
    /// The database
    #[arg(long)]
    db: PathBuf,
    /// The folder with the files
    #[arg(long)]
    workspace: PathBuf,
    /// How many at once
    #[arg(long)]
    runs: usize,
}

/// By then a runtime has looked for runs that others left. New ones wait for that, which is part
/// of another figure.
pub const SETTLED: Duration = Duration::from_millis(300);

/// What many runs came to.
#[derive(Serialize, Deserialize)]
pub struct Loaded {
    pub cost: Cost,
    /// Runs whose `outcome()` was a completion.
    pub completed: usize,
    /// Runs that the store says are completed.
    pub stored: usize,
}

/// A runtime on `database` whose model is at `url`.
pub fn config(database: &Path, url: &str, max_concurrent: usize) -> RuntimeConfig {
    let keys = Keys::default().with("ANTHROPIC_API_KEY", "any").with("ANTHROPIC_BASE_URL", url);
    {
        let mut config: RuntimeConfig = RuntimeConfig::new(database, keys);
        config.models.model = Some("anthropic/claude-sonnet-4-5".to_owned());
        config.scheduling.max_concurrent = max_concurrent;
        // The server takes all, and these figures are about everything but finding that out.
        config.models.pacing = Pacing::Adaptive { first_width: max_concurrent };
        config.scheduling.shutdown_after = Duration::from_secs(5);
        config
    }
}

/// A run in `workspace`.
pub fn spec(workspace: &Path) -> Result<RunSpec> {
    Ok(RunSpec::new("general-purpose".parse()?, FOLLOW, workspace))
}

impl Load {
    pub async fn run(self) -> Result<()> {
        let runtime = Runtime::open(config(&self.db, &self.url, self.runs)).await?;
        let spec = spec(&self.workspace)?;
        tokio::time::sleep(SETTLED).await;
        say("\"ready\"");
        next_order().await?;
        let meter = Meter::start();
        let mut tasks = JoinSet::new();
        for _ in 0..self.runs {
            let (runtime, spec) = (runtime.clone(), spec.clone());
            tasks.spawn(async move { runtime.start(spec).await?.outcome().await });
        }
        let mut completed = 0;
        while let Some(done) = tasks.join_next().await {
            match done?? {
                Outcome::Completed { .. } => completed += 1,
                other => return Err(format!("a run ended otherwise: {other}").into()),
            }
        }
        let cost = meter.read();
        let all = Filter { limit: self.runs + 1, ..Filter::default() };
        let rows = runtime.list(&all).await?;
        let ended = rows.iter().filter(|row| row.state.outcome.as_deref() == Some("completed"));
        let stored = ended.count();
        runtime.shutdown().await;
        say(&serde_json::to_string(&Loaded { cost, completed, stored })?);
        Ok(())
    }
}
