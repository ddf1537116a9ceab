//! The requests of one child, byte for byte, for a raw client to send.

use super::Size;
use super::serve::{LEAD, script};
use crate::bench::Result;
use crate::bench::load::config;
use crate::bench::requests::fill;
use posse::{RunSpec, Runtime};
use posse_testkit::{FakeModel, When};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder to work in, and the requests of a child in it.
pub struct Recording {
    folder: tempfile::TempDir,
}

/// Requests of a child.
pub const OF_CHILD: usize = 2;

impl Recording {
    /// Makes the files, executes a session with one child, and keeps what that sent.
    pub async fn of_child() -> Result<Self> {
        let recording = Recording { folder: tempfile::tempdir()? };
        std::fs::create_dir(recording.bodies())?;
        fill(&recording.workspace())?;
        let one = Size { sessions: 1, children: 1 };
        let fake = FakeModel::start(script(one, Duration::ZERO, false)).await?;
        let database = recording.folder.path().join("recorded.db");
        let runtime = Runtime::open(config(&database, &fake.url(), 2)).await?;
        let run = runtime.start(lead(&recording.workspace())?).await?;
        let outcome = run.outcome().await?;
        runtime.shutdown().await;
        if !outcome.is_completed() {
            return Err(format!("the run to be recorded ended otherwise: {outcome}").into());
        }
        let led = When::any().first_user_contains(LEAD);
        let requests = fake.requests();
        let of_child = requests.iter().filter(|request| !request.fits(&led));
        let mut sent = 0;
        for request in of_child {
            std::fs::write(recording.bodies().join(request.turn().to_string()), &request.raw)?;
            sent += 1;
        }
        fake.shutdown().await;
        match sent {
            OF_CHILD => Ok(recording),
            sent => Err(format!("a child made {sent} requests instead of {OF_CHILD}").into()),
        }
    }

    /// Where runs work, with the files they read.
    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Where the bodies are.
    pub fn bodies(&self) -> PathBuf {
        self.folder.path().join("bodies")
    }
}

/// A session in `workspace`, which ends when it has heard of all its children.
pub fn lead(workspace: &Path) -> Result<RunSpec> {
    Ok(RunSpec::new("general-purpose".parse()?, LEAD, workspace))
}
