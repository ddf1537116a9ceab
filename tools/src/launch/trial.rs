//! Computes the sandbox for a confinement on this machine. Also finds out whether a back end can build
//! it, by running a command that does nothing.

use super::memory::{Memory, TrialKey};
use super::supervisor::{Ending, Order, Report};
use super::{LONGEST_TRIAL, LaunchError, Launcher, MARKER};
use crate::confine::{
    Backend, CommandLimits, CommandSandbox, Confinement, Link, Repository, hidden, hindered,
    is_closed, is_root, missed, reasons,
};
use crate::workspace::Workspace;
use posse_protocol::{Network, Profile};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// The program bubblewrap. It runs outside any sandbox, so it is searched only where systems install programs.
const BUBBLEWRAP: &str = "bwrap";

/// Where systems install programs. Agents may be able to write to other folders in PATH, such as those
/// of an activated environment.
pub const SYSTEM_FOLDERS: [&str; 5] = [
    "/usr/bin",
    "/usr/local/bin",
    "/bin",
    "/run/current-system/sw/bin",
    "/nix/var/nix/profiles/default/bin",
];

/// Returns the path of the program `name`, if the system has installed it.
pub fn system_program(name: &str) -> Option<PathBuf> {
    let mut all = SYSTEM_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    all.find(|path| path.exists())
}

/// Files that exist in containers.
const CONTAINERS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// Kernel settings, and the value with which each of them denies namespaces to ordinary users.
const FORBIDDING: [(&str, &str); 3] = [
    ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
    ("/proc/sys/user/max_user_namespaces", "0"),
];

/// Variables that name the folder of a toolchain, and the parts of it that commands need. An empty list
/// means the whole folder.
const TOOLCHAINS: [(&str, &[&str]); 23] = [
    ("RUSTUP_HOME", &[]),
    ("CARGO_HOME", &["bin", "registry", "git", "config.toml", "env"]),
    ("JAVA_HOME", &[]),
    ("JDK_HOME", &[]),
    ("GRADLE_HOME", &[]),
    ("GRADLE_USER_HOME", &["caches", "jdks", "native", "wrapper"]),
    ("MAVEN_HOME", &[]),
    ("M2_HOME", &[]),
    ("SDKMAN_DIR", &[]),
    ("ANDROID_HOME", &[]),
    ("GOROOT", &[]),
    ("GOPATH", &["bin", "pkg"]),
    ("VIRTUAL_ENV", &[]),
    ("CONDA_PREFIX", &[]),
    ("PYENV_ROOT", &[]),
    ("RBENV_ROOT", &[]),
    ("GEM_HOME", &[]),
    ("NVM_DIR", &[]),
    ("VOLTA_HOME", &[]),
    ("PNPM_HOME", &[]),
    ("BUN_INSTALL", &["bin", "install"]),
    ("DOTNET_ROOT", &[]),
    ("NIX_PROFILES", &[]),
];

/// Folders of which a command sees little or nothing.
const HIDDEN: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/home", "/root"];

impl Launcher {
    /// Returns the sandbox around a command, or `None` if it is not confined.
    pub(super) fn sandbox(
        &self,
        workspace: &Workspace,
        confinement: &Confinement,
    ) -> Result<Option<CommandSandbox>, LaunchError> {
        let backend = self.backend(confinement)?;
        if backend == Backend::None {
            return Ok(None);
        }
        let identity = require_in_place(workspace)?;
        let mut sandbox = self.walls_of(backend, confinement);
        sandbox.workspace = workspace.path().to_owned();
        if sandbox.profile == Profile::WorkspaceWrite
            && is_closed(&sandbox.workspace, &sandbox.homes)
        {
            sandbox.profile = Profile::ReadOnly;
        }
        sandbox.identity = Some(identity);
        show_repository(&mut sandbox);
        // The command must not be able to write the program that confines it.
        if sandbox.bubblewrap.starts_with(workspace.path()) {
            let reason = format!("{} is in the workspace", sandbox.bubblewrap.display());
            return Err(LaunchError::NotConfined { reason });
        }
        Ok(Some(sandbox))
    }

    fn walls_of(&self, backend: Backend, confinement: &Confinement) -> CommandSandbox {
        let link = if confinement.network == Network::Open { Link::Open } else { Link::None };
        CommandSandbox {
            backend,
            bubblewrap: self.bubblewrap().unwrap_or_default(),
            lends: is_root() && self.0.why_root.get().is_none(),
            must_lend: false,
            profile: confinement.profile,
            link,
            workspace: PathBuf::from("/"),
            identity: None,
            is_own: confinement.is_own,
            state: self.0.memory.as_ref().and_then(Memory::folder),
            repository: None,
            writable: confinement.writable.clone(),
            temporary: confinement.temporary.clone(),
            readable: confinement.readable.iter().cloned().chain(self.programs()).collect(),
            hidden: self.0.hidden.iter().chain(&confinement.hidden).cloned().collect(),
            fixed: confinement.fixed.clone(),
            homes: self.homes(),
            programs: self.paths_in("PATH").collect(),
            toolchains: self.toolchains().collect(),
            shown: self.0.shown.clone(),
        }
    }

    /// Returns a path in the user's home folder that `text`, the output of a command, mentions and that
    /// the command could not see.
    pub(crate) fn missed(
        &self,
        text: &str,
        workspace: &Workspace,
        confinement: &Confinement,
    ) -> Option<String> {
        let mut sandbox = self.walls_of(self.backend(confinement).ok()?, confinement);
        sandbox.workspace = workspace.path().to_owned();
        show_repository(&mut sandbox);
        missed(text, &sandbox).filter(|_| sandbox.backend != Backend::None)
    }

    /// A folder of the workspace whose names no command changes, and the link in it that is why, if `text`,
    /// the output of a command, may be about it.
    pub(crate) fn hindered(
        &self,
        text: &str,
        workspace: &Workspace,
        confinement: &Confinement,
    ) -> Option<(PathBuf, PathBuf)> {
        let mut sandbox = self.walls_of(self.backend(confinement).ok()?, confinement);
        sandbox.workspace = workspace.path().to_owned();
        hindered(text, &sandbox).filter(|_| sandbox.backend != Backend::None)
    }

    /// The files that `text`, the output of a command, complains about, and why it could not change them.
    pub(crate) fn reasons(
        &self,
        text: &str,
        workspace: &Workspace,
        confinement: &Confinement,
    ) -> Vec<(PathBuf, String)> {
        let Ok(backend) = self.backend(confinement) else { return Vec::new() };
        let mut sandbox = self.walls_of(backend, confinement);
        sandbox.workspace = workspace.path().to_owned();
        match sandbox.backend {
            Backend::None => Vec::new(),
            _ => reasons(text, &sandbox),
        }
    }

    /// The absolute paths in a variable. An empty path would mean the current folder.
    fn paths_in(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        let paths = std::env::split_paths(self.variable(name).unwrap_or_default());
        paths.filter(|path| path.is_absolute()).collect::<Vec<_>>().into_iter()
    }

    /// Where the environment says that toolchains are.
    fn toolchains(&self) -> impl Iterator<Item = PathBuf> {
        TOOLCHAINS.iter().flat_map(|&(name, parts)| {
            self.paths_in(name).flat_map(move |folder| match parts {
                [] => vec![folder],
                parts => parts.iter().map(|part| folder.join(part)).collect(),
            })
        })
    }

    /// The user's home folders, and the paths that the host hides.
    pub(crate) fn secrets(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        (self.homes(), self.0.hidden.clone())
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.0.environment.iter().find(|(it, _)| *it == name).map(|(_, value)| value)
    }

    /// Folders in PATH that would otherwise be hidden. Links are not resolved here: the code that shows
    /// a folder checks where a link leads.
    fn programs(&self) -> impl Iterator<Item = PathBuf> {
        let is_hidden = |path: &PathBuf| HIDDEN.iter().any(|hidden| path.starts_with(hidden));
        self.paths_in("PATH").filter(is_hidden)
    }

    /// The canonical path of bubblewrap.
    fn bubblewrap(&self) -> Option<PathBuf> {
        system_program(BUBBLEWRAP).and_then(|path| path.canonicalize().ok())
    }

    /// The user's home folders, as the environment and the system name them.
    pub fn homes(&self) -> Vec<PathBuf> {
        let named = self.variable("HOME").map(PathBuf::from);
        let mut homes: Vec<PathBuf> = named.into_iter().chain(home_of_user()).collect();
        homes = homes.iter().filter_map(|home| home.canonicalize().ok()).collect();
        homes.retain(|home| home.parent().is_some());
        homes.dedup();
        homes
    }

    /// Returns true if an earlier process has found that `backend` works.
    pub(super) fn is_remembered(&self, backend: Backend) -> bool {
        let Some(memory) = &self.0.memory else { return false };
        let bubblewrap = self.bubblewrap().filter(|_| backend == Backend::Bubblewrap);
        let surroundings = TrialKey::of(bubblewrap.as_deref());
        surroundings.is_some_and(|surroundings| memory.knows(backend, &surroundings))
    }

    /// Returns true if bubblewrap is installed and nothing indicates that it fails here. Containers
    /// often forbid what it needs, and some systems forbid it to ordinary users.
    pub(super) fn is_likely(&self) -> bool {
        let says = |file: &str, value: &str| {
            std::fs::read_to_string(file).is_ok_and(|text| text.trim() == value)
        };
        let forbidden = CONTAINERS.iter().any(|file| Path::new(file).exists())
            || FORBIDDING.iter().any(|(file, value)| says(file, value));
        self.bubblewrap().is_some() && !forbidden
    }

    /// Checks whether a back end works: uses the stored result, or makes a trial and stores its result.
    pub(super) fn recall_or_try(&self, backend: Backend) -> Result<(), String> {
        let Some(memory) = &self.0.memory else { return self.trial(backend) };
        let bubblewrap = self.bubblewrap().filter(|_| backend == Backend::Bubblewrap);
        let surroundings = TrialKey::of(bubblewrap.as_deref());
        let Some(surroundings) = surroundings else { return self.trial(backend) };
        if memory.knows(backend, &surroundings) {
            return Ok(());
        }
        let found = self.trial(backend);
        // A result with commands as root is not stored: the next process must find out, too.
        if found.is_ok() && self.0.why_root.get().is_none() {
            memory.keep(backend, surroundings);
        }
        found
    }

    /// Tries a back end. For a root host, commands should run as another user. If only that fails, they
    /// run as root.
    pub(super) fn trial(&self, backend: Backend) -> Result<(), String> {
        let found = self.run_behind(backend);
        let (Err(reason), Backend::Bubblewrap, true) = (&found, backend, is_root()) else {
            return found;
        };
        if self.0.why_root.set(reason.clone()).is_err() {
            return found;
        }
        self.run_behind(backend)
    }

    /// Runs `true` in the sandbox of a back end.
    fn run_behind(&self, backend: Backend) -> Result<(), String> {
        if backend == Backend::Bubblewrap && self.bubblewrap().is_none() {
            return Err("bubblewrap is not installed (Debian's package bubblewrap)".to_owned());
        }
        let confinement = Confinement { profile: Profile::ReadOnly, ..Confinement::default() };
        let order = Order {
            deadline: LONGEST_TRIAL,
            grace: Duration::ZERO,
            program: "true".into(),
            args: Vec::new(),
            sandbox: Some(self.walls_of(backend, &confinement)),
            limits: CommandLimits::usual(),
            pipes: None,
        };
        match self.ask(&order) {
            Ok((Ending::Exited(0), _)) => Ok(()),
            Ok((Ending::NotConfined { reason }, said)) => {
                let why = if reason.is_empty() { said.trim() } else { &reason };
                Err(format!("{backend} does not work: {why}"))
            }
            Ok((Ending::NotStarted { error }, _)) => {
                let error = std::io::Error::from_raw_os_error(error);
                Err(format!("{backend} does not work: {error}"))
            }
            Ok((ending, said)) => {
                Err(format!("{backend} does not work: `true` ended so: {ending:?} {}", said.trim()))
            }
            Err(error) => Err(format!("{backend} cannot be tried: {error}")),
        }
    }

    /// Sends an order to a new supervisor, and waits for its report.
    fn ask(&self, order: &Order) -> std::io::Result<(Ending, String)> {
        #[expect(clippy::disallowed_methods, reason = "this is the launcher")]
        let mut process = std::process::Command::new(&self.0.executable);
        process.arg(MARKER).env_clear().envs(self.0.environment.iter()).current_dir("/");
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = process.spawn()?;
        // Held until the supervisor has reported: dropping it would end the command.
        let mut lifeline = process.stdin.take();
        if let Some(lifeline) = &mut lifeline {
            lifeline.write_all(&order.encode()?)?;
        }
        let mut report = Vec::new();
        if let Some(stdout) = &mut process.stdout {
            stdout.read_to_end(&mut report)?;
        }
        drop(lifeline);
        let said = process.wait_with_output()?.stderr;
        let report: Report = serde_json::from_slice(&report)?;
        Ok((report.ending, String::from_utf8_lossy(&said).into_owned()))
    }
}

/// Refuses a workspace that is no longer at its path, because the sandbox is built from that path.
fn require_in_place(workspace: &Workspace) -> Result<(u64, u64), LaunchError> {
    let moved = || LaunchError::Folder {
        reason: format!("{} was moved or replaced since the run began", workspace.path().display()),
    };
    let there = workspace.path().metadata().map_err(|_| moved())?;
    let open = rustix::fs::fstat(workspace.dir()).map_err(|_| moved())?;
    let identity = (open.st_dev, open.st_ino);
    match (there.dev(), there.ino()) == identity {
        true => Ok(identity),
        false => Err(moved()),
    }
}

/// The home folder of this user in `/etc/passwd`.
fn home_of_user() -> Option<PathBuf> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let own = rustix::process::geteuid().as_raw().to_string();
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&own))?;
    line.split(':').nth(5).map(Path::new).map(Path::to_owned)
}
/// Shows the command the git repository that contains the workspace.
fn show_repository(sandbox: &mut CommandSandbox) {
    let Repository { top, data, elsewhere } = Repository::of(&sandbox.workspace, &sandbox.homes);
    // A file `.git` may name any path. So it must not reveal a hidden one.
    let secret = if elsewhere.is_empty() { Vec::new() } else { hidden(sandbox) };
    let is_hidden = |path: &PathBuf| secret.iter().any(|it| path.starts_with(it));
    sandbox.readable.extend(top);
    sandbox.readable.extend(elsewhere.into_iter().filter(|path| !is_hidden(path)));
    sandbox.repository = data;
}
