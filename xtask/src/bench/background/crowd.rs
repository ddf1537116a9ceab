//! Sessions that start many children in the background, while lists are read. If it is killed and
//! started again, it continues.

use super::tally::{Tally, tally};
use super::{LEAD, SLOTS, Size};
use crate::bench::cluster::Place;
use crate::bench::load::{SETTLED, config, spec};
use crate::bench::meter::{Cost, peak_kib};
use crate::bench::part::ready;
use crate::bench::recording::Recording;
use crate::bench::server::Server;
use crate::bench::{Part, Result};
use posse::protocol::CancelScope;
use posse::store::{Filter, Kin, Unfinished};
use posse::{RunId, RunRow, RunSpec, Runtime};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Executes sessions and their children in the background.
#[derive(Serialize, Deserialize)]
pub struct Crowd {
    url: String,
    database: PathBuf,
    /// The folder with the files.
    workspace: PathBuf,
    size: Size,
    /// How many children are cancelled.
    cancels: usize,
    /// Runs that this process executes at a time.
    slots: usize,
    /// Where the runs are stored, if not in the file.
    place: Option<Place>,
}

/// What a crowd came to.
#[derive(Serialize, Deserialize)]
pub struct Grown {
    pub cost: Cost,
    pub tally: Tally,
    /// Seconds that each list took meanwhile.
    pub lists: Vec<f64>,
    /// The most memory that was resident, in KiB.
    pub peak_kib: f64,
}

/// How often lists are read, and a child cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// A crowd with its database in `folder`, as a part.
pub fn part(
    recording: &Recording,
    server: &Server,
    folder: &TempDir,
    size: Size,
    cancels: usize,
) -> Part {
    Part::Crowd(crowd(recording, server, folder, size, cancels))
}

/// A crowd with its database on a server, as a part. Other processes execute most of it, if there are
/// more.
pub fn part_on(
    recording: &Recording,
    server: &Server,
    folder: &TempDir,
    size: Size,
    slots: usize,
    place: Place,
) -> Part {
    let place = Some(place);
    Part::Crowd(Crowd { slots, place, ..crowd(recording, server, folder, size, 0) })
}

fn crowd(
    recording: &Recording,
    server: &Server,
    folder: &TempDir,
    size: Size,
    cancels: usize,
) -> Crowd {
    let (url, database) = (server.url.clone(), folder.path().join("runs.db"));
    let workspace = recording.workspace.path().to_owned();
    Crowd { url, database, workspace, size, cancels, slots: SLOTS, place: None }
}

impl Crowd {
    pub async fn run(self) -> Result<Grown> {
        let mut config = config(&self.database, &self.url, self.slots);
        Place::set(self.place.as_ref(), &mut config);
        config.launcher = Some(posse::launch::Launcher::through("/proc/self/exe".as_ref()));
        let runtime = Runtime::open(config).await?;
        tokio::time::sleep(SETTLED).await;
        let meter = ready().await?;
        let mut sessions = Vec::new();
        for number in 0..self.size.sessions {
            let key = Some(format!("session {number}"));
            let spec = RunSpec { key, ..spec(LEAD, &self.workspace)? };
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
            looked = read_lists(&runtime, &ids, &mut lists, self.cancels) => looked?,
        }
        let cost = meter.read();
        let tally = tally(&runtime, &ids).await?;
        runtime.shutdown().await;
        let peak_kib = peak_kib(std::process::id())?;
        Ok(Grown { cost, tally, lists, peak_kib })
    }
}

/// Reads lists until this is dropped, and cancels so many of the children.
async fn read_lists(
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

/// Children that this process cancelled before it was killed and started again.
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
