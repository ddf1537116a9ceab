//! The requests of a run, byte for byte, for a raw client to send.

use super::Result;
use super::load::{config, spec};
use super::serve::{FILES, Scene, script};
use posse::Runtime;
use posse_testkit::FakeModel;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder to work in, and the requests of one run in it.
pub struct Requests {
    folder: tempfile::TempDir,
}

/// Lines of each file that is read.
const LINES: usize = 40;

impl Requests {
    /// Makes the files, executes one run, and keeps what it sent.
    pub async fn record() -> Result<Self> {
        let requests = Requests { folder: tempfile::tempdir()? };
        std::fs::create_dir(requests.bodies())?;
        fill(&requests.workspace())?;
        let fake = FakeModel::start(script(Scene::Reads, Duration::ZERO, None)).await?;
        let database = requests.folder.path().join("recorded.db");
        let runtime = Runtime::open(config(&database, &fake.url(), 1)).await?;
        let run = runtime.start(spec(&requests.workspace())?).await?;
        run.outcome().await?;
        runtime.shutdown().await;
        for (index, request) in fake.requests().iter().enumerate() {
            std::fs::write(requests.bodies().join(index.to_string()), &request.raw)?;
        }
        fake.shutdown().await;
        Ok(requests)
    }

    /// Where runs work, with the files they read.
    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Where the bodies are, named `0`, `1` and so on.
    pub fn bodies(&self) -> PathBuf {
        self.folder.path().join("bodies")
    }
}

/// Makes the folder `workspace` with the files that are read.
pub fn fill(workspace: &Path) -> Result<()> {
    std::fs::create_dir(workspace)?;
    for name in FILES {
        let line = format!("A line of {name} that says about as much as a line of code does.\n");
        std::fs::write(workspace.join(name), line.repeat(LINES))?;
    }
    Ok(())
}

/// The bodies in `folder`.
pub fn bodies(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let paths = (0..=FILES.len()).map(|index| folder.join(index.to_string()));
    Ok(paths.map(std::fs::read).collect::<std::io::Result<_>>()?)
}
