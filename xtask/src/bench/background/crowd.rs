//! Sessions that start many children in the background, and somebody who looks on meanwhile. Killed
//! and started again, it goes on.

use super::recording::{Recording, lead};
use super::told::{Tally, tally};
use super::{SLOTS, Size};
use crate::bench::Result;
use crate::bench::line::say;
use crate::bench::load::{SETTLED, config};
use crate::bench::meter::{Cost, Meter, peak_kib};
use crate::bench::process::{Process, next_order};
use posse::protocol::CancelScope;
use posse::store::{Filter, Kin, Unfinished};
use posse::{RunId, RunRow, RunSpec, Runtime, RuntimeConfig};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Executes sessions and their children in the background
#[derive(clap::Args)]
pub struct Crowd {
    /// The base URL
    #[arg(long)]
    url: String,
    /// The database
    #[arg(long)]
    db: PathBuf,
    /// The folder with the files
    #[arg(long)]
    workspace: PathBuf,
    /// How many sessions
    #[arg(long)]
    sessions: usize,
    /// How many children each starts
    #[arg(long)]
    children: usize,
    /// How many children are cancelled
    #[arg(long, default_value_t = 0)]
    cancels: usize,
}

/// What a crowd came to.
#[derive(Serialize, Deserialize)]
pub struct Grown {
    pub cost: Cost,
    pub tally: Tally,
    /// Seconds that lists took meanwhile.
    pub lists: Vec<f64>,
    /// The most memory that was resident, in KiB.
    pub peak_kib: f64,
}

/// How often somebody looks at a list, or cancels somebody.
const LOOK: Duration = Duration::from_millis(50);

impl Crowd {
    pub async fn run(self) -> Result<()> {
        let launcher = Some(posse::launch::Launcher::through("/proc/self/exe".as_ref()));
        let config = config(&self.db, &self.url, SLOTS);
        let runtime = Runtime::open({
            let mut config: RuntimeConfig = config;
            config.launcher = launcher;
            config
        })
        .await?;
        tokio::time::sleep(SETTLED).await;
        say("\"ready\"");
        next_order().await?;
        let meter = Meter::start();
        let mut sessions = Vec::new();
        for number in 0..self.sessions {
            let key = Some(format!("session {number}"));
            let spec = RunSpec { key, ..lead(&self.workspace)? };
            sessions.push(runtime.start(spec).await?);
        }
        let ids: Vec<RunId> = sessions.iter().map(|session| session.id()).collect();
        let mut lists = Vec::new();
        let ends = async {
            for session in &sessions {
                let outcome = session.outcome().await?;
                if !outcome.is_completed() {
                    return Err(format!("session {}: {outcome}", session.id()).into());
                }
            }
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        };
        tokio::select! {
            ended = ends => ended?,
            looked = look_on(&runtime, &ids, &mut lists, self.cancels) => looked?,
        }
        let cost = meter.read();
        let tally = tally(&runtime, &ids).await?;
        runtime.shutdown().await;
        let peak_kib = peak_kib(std::process::id())?;
        say(&serde_json::to_string(&Grown { cost, tally, lists, peak_kib })?);
        Ok(())
    }
}

/// Looks at lists until this is dropped, and cancels so many of the children.
async fn look_on(
    runtime: &Runtime,
    sessions: &[RunId],
    lists: &mut Vec<f64>,
    cancels: usize,
) -> Result<()> {
    let mut cancelled = if cancels > 0 { stopped(runtime, sessions).await? } else { 0 };
    for session in sessions.iter().cycle() {
        tokio::time::sleep(LOOK).await;
        let newest = Filter { limit: 100, ..Filter::default() };
        let of_one = Filter { kin: Kin::ChildrenOf(*session), limit: 100, ..Filter::default() };
        for filter in [newest, of_one] {
            let began = Instant::now();
            runtime.list(&filter).await?;
            lists.push(began.elapsed().as_secs_f64());
        }
        if cancelled < cancels {
            let (kin, unfinished) = (Kin::ChildrenOf(*session), Unfinished::Only);
            let open = Filter { kin, unfinished, limit: 1, ..Filter::default() };
            for child in runtime.list(&open).await? {
                // One that has just ended cannot be cancelled any more.
                let told = runtime.cancel(child.id, "the benchmark", CancelScope::Run).await;
                cancelled += usize::from(told.is_ok() && !child.state.stopping);
            }
        }
    }
    Ok(())
}

/// Children that were cancelled before: a process that is started again goes on.
async fn stopped(runtime: &Runtime, sessions: &[RunId]) -> Result<usize> {
    let mut count = 0;
    for session in sessions {
        let all = Filter { kin: Kin::ChildrenOf(*session), limit: 100_000, ..Filter::default() };
        let is_stopped =
            |row: &&RunRow| row.state.stopping || row.state.outcome.as_deref() == Some("cancelled");
        count += runtime.list(&all).await?.iter().filter(is_stopped).count();
    }
    Ok(count)
}

/// A runtime with its database in `folder`. It says when it is ready to go; what it finds unfinished
/// it goes on with before.
pub fn client(
    recording: &Recording,
    size: Size,
    url: &str,
    folder: &tempfile::TempDir,
    cancels: usize,
) -> Result<Process> {
    let mut arguments = vec![
        "crowd".to_owned(),
        format!("--url={url}"),
        format!("--db={}", folder.path().join("runs.db").display()),
        format!("--workspace={}", recording.workspace().display()),
        format!("--cancels={cancels}"),
    ];
    arguments.extend(size.arguments());
    Process::part(&arguments)
}
