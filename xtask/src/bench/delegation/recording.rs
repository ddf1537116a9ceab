//! The requests of a tree of runs, byte for byte, for a raw client to send.

use crate::bench::Result;
use crate::bench::load::config;
use crate::bench::requests::fill;
use crate::bench::serve::{FILES, LEAD, Scene, script_of_tree};
use posse::{RunSpec, Runtime};
use posse_testkit::{FakeModel, When};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder to work in, and the requests of one tree of runs in it.
pub struct Recording {
    folder: tempfile::TempDir,
    pub children: usize,
}

/// Files with the two requests of the main agent. Those of a child are named by their number.
pub const FIRST: &str = "first";
pub const LAST: &str = "last";

impl Recording {
    /// Makes the files, executes a main agent with `children`, and keeps what it sent and what one
    /// of the children sent.
    pub async fn of_tree(children: usize) -> Result<Self> {
        let recording = Recording { folder: tempfile::tempdir()?, children };
        std::fs::create_dir(recording.bodies())?;
        fill(&recording.workspace())?;
        let script = script_of_tree(Scene::Reads, children, Duration::ZERO, None);
        let fake = FakeModel::start(script).await?;
        let database = recording.folder.path().join("recorded.db");
        let runtime = Runtime::open(config(&database, &fake.url(), children + 1)).await?;
        let run = runtime.start(lead(&recording.workspace())?).await?;
        let outcome = run.outcome().await?;
        runtime.shutdown().await;
        if !outcome.is_completed() {
            return Err(format!("the run to be recorded ended otherwise: {outcome}").into());
        }
        let led = When::any().first_user_contains(LEAD);
        let mut sent: [Option<Vec<u8>>; FILES.len() + 3] = Default::default();
        for request in fake.requests() {
            let turn = request.turn();
            let place = if request.fits(&led) { FILES.len() + 1 + turn } else { turn };
            sent.get_mut(place).ok_or("a request too many")?.get_or_insert(request.raw);
        }
        fake.shutdown().await;
        let named = (0..=FILES.len()).map(|turn| turn.to_string());
        let named = named.chain([FIRST, LAST].map(str::to_owned));
        for (name, body) in named.zip(sent) {
            std::fs::write(recording.bodies().join(name), body.ok_or("a request is missing")?)?;
        }
        Ok(recording)
    }

    /// Where runs work, with the files they read.
    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Where the bodies are.
    pub fn bodies(&self) -> PathBuf {
        self.folder.path().join("bodies")
    }

    /// Requests of the whole tree.
    pub fn requests(&self) -> usize {
        requests(self.children)
    }
}

/// Requests of a main agent with so many children.
pub fn requests(children: usize) -> usize {
    2 + children * (FILES.len() + 1)
}

/// A main agent in `workspace`.
pub fn lead(workspace: &Path) -> Result<RunSpec> {
    Ok(RunSpec::new("general-purpose".parse()?, LEAD, workspace))
}
