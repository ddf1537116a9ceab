//! Hostile probes: each really tries what a confined command must not be able to do.
//!
//! They run in the executable of the host, started again within the confinement. So a host with
//! probes must call [`init`] first in `main`. If an effect is visible outside, only that counts
//! (`scene.rs`); otherwise the answer of the kernel counts.

mod attempt;
mod files;
mod inside;
mod kernel;
mod network;
mod scene;

pub use inside::init;

use inside::{MARKER, Said};
use posse_protocol::Profile;
use posse_tools::confine::{Backend, Confinement, Unavailable};
use posse_tools::launch::{Command, LaunchError, Launcher};
use posse_tools::{ToolError, Workspace};
use scene::Scene;
use serde::Serialize;
use std::io;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long all probes may take together.
const DEADLINE: Duration = Duration::from_secs(60);

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// It was prevented.
    Denied,
    /// It had an effect that is not visible outside of the confinement: on its own memory.
    Private,
    /// It had an effect that was undone when the command ended.
    Undone,
    /// It succeeded.
    Succeeded,
    /// There was nothing to try it on: no folder of the user's that commands could only read.
    Untried,
}

/// One probe and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// What was tried.
    pub name: &'static str,
    /// What became of it.
    pub held: Held,
}

/// All probes within one confinement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Probed {
    /// What they were confined by.
    pub backend: Backend,
    /// What they were granted.
    pub profile: Profile,
    /// Each of them.
    pub probes: Vec<Probe>,
}

impl Probed {
    /// Those that succeeded.
    pub fn succeeded(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().filter(|probe| probe.held == Held::Succeeded)
    }
}

/// Why probes could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// There is no such confinement here.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// They could not be started.
    #[error("the probes could not be started: {0}")]
    Launch(#[from] LaunchError),
    /// What they were to attack could not be set up.
    #[error("what the probes are to attack cannot be set up: {0}")]
    Scene(#[from] io::Error),
    /// The folder they were to work in could not be opened.
    #[error(transparent)]
    Folder(#[from] ToolError),
    /// They said nothing.
    #[error("the probes did not report: {0}")]
    Silent(String),
}

/// Makes all probes within the confinement that this launcher gives the profile.
///
/// # Errors
/// When there is no such confinement, or the probes cannot be made.
pub async fn probe(launcher: &Launcher, profile: Profile) -> Result<Probed, ProbeError> {
    let scene = Scene::set_up(&launcher.homes())?;
    let mut confinement = Confinement { profile, ..Confinement::default() };
    let executable = std::path::Path::new(launcher.executable()).canonicalize()?;
    let beside = executable.parent().map(ToOwned::to_owned);
    confinement.readable = beside.into_iter().chain(scene.outside()).collect();
    let launcher = launcher.clone().hiding([scene.secret()]).at_home_in(&scene.home());
    let backend = launcher.backend(&confinement)?;
    let workspace = Workspace::open(&scene.workspace())?;
    let command = Command {
        program: executable.into(),
        args: vec![MARKER.into(), scene.describe().into()],
        cwd: ".".into(),
        variables: Vec::new(),
        deadline: DEADLINE,
        output_cap: 1 << 20,
        writable_bytes: None,
        confinement,
    };
    let finished = launcher.run(&workspace, &command, &CancellationToken::new(), &|_| {}).await?;
    let said = Said::read(&finished.output);
    let mut probes = Vec::new();
    for attempt in attempt::all(profile) {
        let claimed = said.succeeded(attempt.name);
        let Some(claimed) = claimed else {
            return Err(ProbeError::Silent(format!("{}: {}", attempt.name, finished.output)));
        };
        // The effect outside counts, not the claim of the probe.
        let is_seen_outside = [attempt::Seen::Outside, attempt::Seen::Left].contains(&attempt.seen);
        let seen = is_seen_outside && scene.shows(attempt.name);
        let held = match (claimed, attempt.seen) {
            _ if seen => Held::Succeeded,
            _ if scene.lacks(attempt.name) => Held::Untried,
            (true, attempt::Seen::ByAnswer) => Held::Succeeded,
            (true, attempt::Seen::Left) => Held::Undone,
            (true, _) => Held::Private,
            (false, _) => Held::Denied,
        };
        probes.push(Probe { name: attempt.name, held });
    }
    Ok(Probed { backend, profile, probes })
}
