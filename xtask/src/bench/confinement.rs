//! What confinement adds to the start of a command: `true`, started in each way in turn, against a
//! bare start of it.

use super::Result;
use super::line::{Line, seconds};
use posse::confine::{Backend, Confinement as Reach};
use posse::launch::{Command, Launcher, Status, allowed_environment};
use posse::protocol::Profile;
use posse_tools::Workspace;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Measures what confinement adds to the start of a command
#[derive(clap::Args)]
pub struct Confinement {
    /// How often each is started
    #[arg(long, default_value_t = 100)]
    times: usize,
}

/// A way to start a command.
struct Way {
    name: &'static str,
    backends: &'static [Backend],
    profile: Profile,
}

const BUBBLEWRAP: &[Backend] = &[Backend::Bubblewrap];
const WAYS: [Way; 4] = [
    Way { name: "supervised, not confined", backends: &[], profile: Profile::Full },
    Way { name: "landlock, read-only", backends: &[Backend::Landlock], profile: Profile::ReadOnly },
    Way { name: "bubblewrap, read-only", backends: BUBBLEWRAP, profile: Profile::ReadOnly },
    Way {
        name: "bubblewrap, workspace-write",
        backends: BUBBLEWRAP,
        profile: Profile::WorkspaceWrite,
    },
];

impl Confinement {
    pub async fn measure(self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let workspace = Workspace::open(folder.path())?;
        let launcher = Launcher::through("/proc/self/exe".as_ref())
            .with_environment(allowed_environment(std::env::vars_os(), &[]));
        let mut rounds: Vec<Vec<(f64, f64)>> = WAYS.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.times {
            let bare = bare()?;
            for (way, rounds) in WAYS.iter().zip(&mut rounds) {
                let launcher = launcher.clone().with_backends(way.backends);
                if let Some(took) = start(&launcher, &workspace, way.profile).await? {
                    rounds.push((took, bare));
                }
            }
        }
        for (way, rounds) in WAYS.iter().zip(&rounds) {
            if rounds.is_empty() {
                Line::new(way.name, "not available").print();
                continue;
            }
            Line::compared(way.name, rounds, seconds).against("bare").print();
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "this is what the launcher is compared with")]
fn bare() -> Result<f64> {
    let began = Instant::now();
    std::process::Command::new("true").status()?;
    Ok(began.elapsed().as_secs_f64())
}

/// Seconds that it took, or nothing if this machine cannot confine so.
async fn start(
    launcher: &Launcher,
    workspace: &Arc<Workspace>,
    profile: Profile,
) -> Result<Option<f64>> {
    let confinement = match profile {
        Profile::Full => Reach::none(),
        _ => Reach { profile, ..Reach::default() },
    };
    // The launcher tries this once, which is not part of the figure.
    if launcher.backend(&confinement).is_err() {
        return Ok(None);
    }
    let command = Command {
        program: "true".into(),
        args: Vec::new(),
        cwd: ".".into(),
        variables: Vec::new(),
        deadline: Duration::from_secs(60),
        output_cap: 1000,
        writable_bytes: None,
        confinement,
    };
    let began = Instant::now();
    let never = CancellationToken::new();
    let finished = launcher.run(workspace, &command, &never, &|_| {}).await?;
    let took = began.elapsed().as_secs_f64();
    match finished.status {
        Status::Exited(0) => Ok(Some(took)),
        other => Err(format!("`true` ended so: {other:?}").into()),
    }
}
