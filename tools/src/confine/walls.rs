//! Everything that a supervisor must know to confine a command: what was asked for, and where
//! things are on this machine.

use super::Backend;
use super::filter::Filter;
use super::{capabilities, landlock};
use posse_protocol::Profile;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// What stands between a command and the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Walls {
    pub backend: Backend,
    /// The program, where that is the back end.
    pub bubblewrap: PathBuf,
    /// Commands are to be another user than root, where that can be had.
    pub lends: bool,
    /// It can be had: earlier commands were. If it fails now, the command does not run.
    pub must_lend: bool,
    pub profile: Profile,
    pub link: Link,
    /// Canonical.
    pub workspace: PathBuf,
    /// Which folder that was when the run began: its device and its number there.
    pub identity: Option<(u64, u64)>,
    /// The data of the git repository that the workspace is a folder of, if they lie above it. They
    /// can be changed like those of a repository in the workspace.
    pub repository: Option<PathBuf>,
    /// The command is the host's own, and no agent has written it.
    pub is_own: bool,
    /// Where the host keeps what is no command's business.
    pub state: Option<PathBuf>,
    /// Folders beside it that can be changed.
    #[serde(with = "any_names")]
    pub writable: Vec<PathBuf>,
    /// The folder that holds what the command finds in the temporary folders of the machine.
    pub temporary: Option<PathBuf>,
    /// Folders that are shown also where what is around them is hidden.
    #[serde(with = "any_names")]
    pub readable: Vec<PathBuf>,
    /// What the host keeps to itself.
    #[serde(with = "any_names")]
    pub hidden: Vec<PathBuf>,
    /// What is in the workspace and can only be read.
    #[serde(with = "any_names")]
    pub fixed: Vec<PathBuf>,
    /// Home folders of the user. Little of them is shown: see `home.rs`.
    #[serde(with = "any_names")]
    pub homes: Vec<PathBuf>,
    /// Folders in which programs are looked for.
    #[serde(with = "any_names")]
    pub programs: Vec<PathBuf>,
    /// Where the environment says that toolchains are.
    #[serde(with = "any_names")]
    pub toolchains: Vec<PathBuf>,
    /// What else is shown of the home folders, as the user says.
    #[serde(with = "any_names")]
    pub shown: Vec<PathBuf>,
}

/// What a command is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Link {
    /// Nothing.
    None,
    /// A proxy that listens at this socket, and nothing else.
    Proxy(PathBuf),
    /// The machine's network.
    Open,
}

/// Writes paths as JSON. A path may hold bytes that are not UTF-8.
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

impl Walls {
    /// True for what lies in a folder that a command may change, or is one.
    pub(super) fn gives(&self, path: &Path) -> bool {
        let mut given = std::iter::once(&self.workspace).chain(&self.writable);
        given.any(|folder| path.starts_with(folder))
    }

    /// True when it is looked, before the command and after it, at what git would run in the folders
    /// that the command may change.
    pub(crate) fn are_looked_through(&self) -> bool {
        self.profile == Profile::WorkspaceWrite && !self.is_own
    }

    /// Confines this process for good, without bubblewrap. For a process without threads.
    pub(crate) fn close_around_this_process(&self) -> io::Result<()> {
        rustix::thread::set_no_new_privs(true)?;
        landlock::enforce(self)?;
        capabilities::drop_all()?;
        Filter::of(self).enforce()
    }
}
