//! Everything that a supervisor must know to confine a command: the confinement, and the paths on this machine.

use super::Backend;
use super::filter::Filter;
use super::{capabilities, landlock};
use posse_protocol::Profile;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The sandbox of a command: what separates it from the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandSandbox {
    pub backend: Backend,
    /// The path of bubblewrap, if that is the back end.
    pub bubblewrap: PathBuf,
    /// True if the command should run as a user other than root, if possible.
    pub lends: bool,
    /// True if that worked for earlier commands. If it fails now, the command does not run.
    pub must_lend: bool,
    pub profile: Profile,
    pub link: Link,
    /// Canonical.
    pub workspace: PathBuf,
    /// The device and inode of that folder when the run began.
    pub identity: Option<(u64, u64)>,
    /// The data of the git repository around the workspace, if it is above the workspace. A command can
    /// change it like that of a repository in the workspace.
    pub repository: Option<PathBuf>,
    /// True if the command is the host's own and no agent wrote it.
    pub is_own: bool,
    /// The folder in which the host keeps its own state, apart from commands.
    pub state: Option<PathBuf>,
    /// Folders besides the workspace that can be changed.
    #[serde(with = "any_names")]
    pub writable: Vec<PathBuf>,
    /// The folder that the command sees as the machine's temporary folders.
    pub temporary: Option<PathBuf>,
    /// Folders that are shown even if the folders around them are hidden.
    #[serde(with = "any_names")]
    pub readable: Vec<PathBuf>,
    /// Paths that the host hides.
    #[serde(with = "any_names")]
    pub hidden: Vec<PathBuf>,
    /// Paths in the workspace that can only be read.
    #[serde(with = "any_names")]
    pub fixed: Vec<PathBuf>,
    /// The user's home folders. Little of them is visible: see `home.rs`.
    #[serde(with = "any_names")]
    pub homes: Vec<PathBuf>,
    /// Folders that are searched for programs.
    #[serde(with = "any_names")]
    pub programs: Vec<PathBuf>,
    /// Where the environment says that toolchains are.
    #[serde(with = "any_names")]
    pub toolchains: Vec<PathBuf>,
    /// More paths in the home folders that the user shows.
    #[serde(with = "any_names")]
    pub shown: Vec<PathBuf>,
}

/// The network of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Link {
    /// No network.
    None,
    /// Only a proxy, which listens at this socket.
    Proxy(PathBuf),
    /// The machine's network.
    Open,
}

/// Converts paths to JSON. A path may contain bytes that are not UTF-8.
mod any_names {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::path::PathBuf;

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        paths.iter().map(|path| path.as_os_str()).collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let names = Vec::<OsString>::deserialize(from)?;
        Ok(names.into_iter().map(PathBuf::from).collect())
    }
}

impl CommandSandbox {
    /// Returns true if a command may change `path`: it is in one of its writable folders, or is one.
    pub(super) fn gives(&self, path: &Path) -> bool {
        let mut given = std::iter::once(&self.workspace).chain(&self.writable);
        given.any(|folder| path.starts_with(folder))
    }

    /// Returns true if the supervisor inspects the writable folders before and after the command, for
    /// files that git would run.
    pub(crate) fn are_looked_through(&self) -> bool {
        self.profile == Profile::WorkspaceWrite && !self.is_own
    }

    /// Confines this process permanently, without bubblewrap. The process must have no threads.
    pub(crate) fn close_around_this_process(&self) -> io::Result<()> {
        rustix::thread::set_no_new_privs(true)?;
        landlock::enforce(self)?;
        capabilities::drop_all()?;
        Filter::of(self).enforce()
    }
}
