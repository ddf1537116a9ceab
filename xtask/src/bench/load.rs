//! Runtimes that are measured; and many runs at once, each of which reads three files, one a turn, and
//! answers.

use super::Result;
use super::meter::Cost;
use super::part::ready;
use super::server::FOLLOW;
use posse::store::{Filter, Kin};
use posse::{Keys, Pacing, RunSpec, Runtime, RuntimeConfig};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// How long a new runtime takes at most to look for runs that others left. New runs wait for that,
/// which is part of another figure.
pub const SETTLED: Duration = Duration::from_millis(300);

/// A runtime on `database` whose model is at `url`.
pub fn config(database: &Path, url: &str, max_concurrent: usize) -> RuntimeConfig {
    let keys = Keys::default().with("ANTHROPIC_API_KEY", "any").with("ANTHROPIC_BASE_URL", url);
    let mut config = RuntimeConfig::new(database, keys);
    config.models.model = Some("anthropic/claude-sonnet-4-5".to_owned());
    config.scheduling.max_concurrent = max_concurrent;
    // The server takes all requests, and these figures are not about how Posse finds that out.
    config.models.pacing = Pacing::Adaptive { first_width: max_concurrent };
    config.scheduling.shutdown_after = Duration::from_secs(5);
    config
}

/// Such a runtime in a new folder, when it has settled.
pub async fn open(url: &str, max_concurrent: usize) -> Result<(Runtime, TempDir)> {
    open_with(url, max_concurrent, |_| ()).await
}

/// The same, with a changed configuration.
pub async fn open_with(
    url: &str,
    max_concurrent: usize,
    change: impl FnOnce(&mut RuntimeConfig),
) -> Result<(Runtime, TempDir)> {
    let folder = tempfile::tempdir()?;
    let mut config = config(&folder.path().join("runs.db"), url, max_concurrent);
    change(&mut config);
    let runtime = Runtime::open(config).await?;
    tokio::time::sleep(SETTLED).await;
    Ok((runtime, folder))
}

/// A run in `workspace`.
pub fn spec(prompt: &str, workspace: &Path) -> Result<RunSpec> {
    Ok(RunSpec::new("general-purpose".parse()?, prompt, workspace))
}

/// How many runs have completed, as the store has it.
pub async fn completed(runtime: &Runtime, kin: Kin) -> Result<usize> {
    let outcome = Some("completed".to_owned());
    let filter = Filter { kin, outcome, limit: 1_000_000, ..Filter::default() };
    Ok(runtime.list(&filter).await?.len())
}

/// Executes many runs at once.
#[derive(Serialize, Deserialize)]
pub struct Load {
    pub url: String,
    /// The folder with the files.
    pub workspace: PathBuf,
    pub runs: usize,
}

/// What many runs came to.
#[derive(Serialize, Deserialize)]
pub struct Loaded {
    pub cost: Cost,
    /// Runs whose `outcome()` was a completion.
    pub completed: usize,
    /// Runs that the store says are completed.
    pub stored: usize,
}

impl Load {
    pub async fn run(self) -> Result<Loaded> {
        let (runtime, _folder) = open(&self.url, self.runs).await?;
        let spec = spec(FOLLOW, &self.workspace)?;
        let meter = ready().await?;
        let mut tasks = JoinSet::new();
        for _ in 0..self.runs {
            let (runtime, spec) = (runtime.clone(), spec.clone());
            tasks.spawn(async move { runtime.start(spec).await?.outcome().await });
        }
        let mut ended = 0;
        while let Some(done) = tasks.join_next().await {
            match done?? {
                outcome if outcome.is_completed() => ended += 1,
                other => return Err(format!("a run ended otherwise: {other}").into()),
            }
        }
        let cost = meter.read();
        let stored = completed(&runtime, Kin::All).await?;
        runtime.shutdown().await;
        Ok(Loaded { cost, completed: ended, stored })
    }
}
