//! The requests of runs, byte for byte, for a raw client to send.

use super::load::{completed, open, spec};
use super::raw::Raw;
use super::server::{FILES, Pace, Play};
use super::{Part, Result};
use bytes::Bytes;
use posse::store::Kin;
use posse_testkit::{FakeModel, Gate, When};
use std::path::Path;
use tempfile::TempDir;

/// A folder to work in, and the requests of a run there.
pub struct Recording {
    /// Where runs work, with the files they read.
    pub workspace: TempDir,
    bodies: TempDir,
}

/// Slots for a main agent and as many children as a benchmark records.
const SLOTS: usize = 1_001;
/// Lines of each file that is read.
const LINES: usize = 40;

impl Recording {
    /// Executes a run, and keeps its requests, or those of one of its children. Those of a main
    /// agent that waits for its children are kept beside.
    pub async fn of(play: Play) -> Result<Self> {
        let recording = Recording { workspace: workspace()?, bodies: tempfile::tempdir()? };
        let fake = FakeModel::start(play.script(Pace::AtOnce, &Gate::new())).await?;
        let (runtime, _folder) = open(&fake.url(), SLOTS).await?;
        let run = runtime.start(spec(play.prompt(), recording.workspace.path())?).await?;
        run.outcome().await?;
        if completed(&runtime, Kin::Roots).await? != 1 {
            return Err("the run to be recorded did not complete".into());
        }
        runtime.shutdown().await;
        let lead = When::any().first_user_contains(play.prompt());
        for request in fake.requests() {
            let name = match (play, request.fits(&lead)) {
                (Play::Crowd(_), true) => continue,
                (Play::Tree(_), true) => format!("lead-{}", request.turn()),
                _ => request.turn().to_string(),
            };
            std::fs::write(recording.bodies.path().join(name), &request.raw)?;
        }
        fake.shutdown().await;
        Ok(recording)
    }

    /// A raw client that makes the requests of so many runs, some of them `abreast`.
    pub fn raw(&self, url: String, runs: usize, abreast: usize) -> Part {
        Part::Raw(Raw { url, bodies: self.bodies.path().to_owned(), runs, abreast })
    }
}

/// The bodies of requests.
pub struct Bodies {
    /// Those of one run, turn after turn.
    pub run: Vec<Bytes>,
    /// The first and the last one of a main agent.
    pub lead: Option<(Bytes, Bytes)>,
}

impl Bodies {
    /// Those in `folder`.
    pub fn read(folder: &Path) -> Self {
        let read = |name: String| std::fs::read(folder.join(name)).ok().map(Bytes::from);
        let run = (0..).map_while(|turn| read(turn.to_string())).collect();
        Bodies { run, lead: read("lead-0".to_owned()).zip(read("lead-1".to_owned())) }
    }
}

/// A new folder with the files that are read.
pub fn workspace() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for name in FILES {
        let line = format!("A line of {name} that says about as much as a line of code does.\n");
        std::fs::write(folder.path().join(name), line.repeat(LINES))?;
    }
    Ok(folder)
}
