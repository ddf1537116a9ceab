//! Confinement of commands: turns the profile and network of a grant into a sandbox that the kernel enforces.
//!
//! The host describes what it wants ([`Confinement`]) and asks its launcher which [`Backend`] provides
//! it. The supervisor builds the sandbox around the command: with bubblewrap or with Landlock, each
//! with a filter of system calls. The file tools obey the same rules. Nothing here weakens a
//! confinement: if this machine cannot enforce it, that is an error.

mod aliases;
mod backend;
mod bubblewrap;
mod capabilities;
mod command_sandbox;
mod entry;
mod excluded;
mod file_rules;
mod filter;
mod folding;
mod git;
mod home;
mod home_links;
mod landlock;
mod lending;
mod limits;
mod mask;
mod mounts;
mod pinned;
mod placeholder;
mod program;
mod protected;
mod reasons;
mod repository;
mod secrets;
mod syscalls;
mod tracked;

pub use aliases::known_place;
pub use backend::{Backend, Unavailable};
pub use git::{Nested, nested_repositories, text_at};
pub use landlock::{keeps_moves, landlock_version};
pub use limits::{CommandLimits, Limit, usual_commands_at_once};
pub use placeholder::is_placeholder;
pub use protected::PROTECTED;
pub use repository::has_git;

pub(crate) use backend::Backends;
pub(crate) use bubblewrap::Bubblewrap;
pub(crate) use command_sandbox::{CommandSandbox, Link};
pub(crate) use entry::{MARKER as ENTER, StageEnd, main as enter};
pub(crate) use file_rules::FileRules;
pub(crate) use folding::folds_case;
pub(crate) use git::Repositories;
pub(crate) use home::missed;
pub(crate) use lending::LentMounts;
pub(crate) use limits::Watchdog;
pub(crate) use mask::{GIT_SETTINGS, NO_TIDYING};
pub(crate) use pinned::hindered;
pub(crate) use placeholder::{Placeholders, listed_names, marks_placeholder, refused_names};
pub(crate) use protected::{is_closed, may_be_held};
pub(crate) use reasons::reasons;
pub(crate) use repository::Repository;
pub(crate) use secrets::hidden;

use posse_protocol::{Grant, Network, Profile};
use std::path::PathBuf;

/// What a command may read, change and connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// What it may change.
    pub profile: Profile,
    /// What the file tools may change, if that differs: rules can restrict them to some paths.
    pub files: Option<Profile>,
    /// Which hosts it may talk to.
    pub network: Network,
    /// Absolute paths of folders besides the workspace that it may change, such as its scratch folder.
    pub writable: Vec<PathBuf>,
    /// The folder that the command sees as `/tmp` and `/var/tmp`, absolute. Files in it remain until the folder
    /// is removed. Without it, `/tmp` and `/var/tmp` are in memory, and vanish with the command.
    pub temporary: Option<PathBuf>,
    /// Absolute paths of folders that it may read even if the folders around them are hidden.
    pub readable: Vec<PathBuf>,
    /// Absolute paths of files and folders that it may not read.
    pub hidden: Vec<PathBuf>,
    /// Absolute paths of files and folders in the workspace that it may not change.
    pub fixed: Vec<PathBuf>,
    /// True if the command is the host's own and no agent wrote it. Repositories in the workspace are
    /// not inspected then.
    pub is_own: bool,
}

/// Returns true if this process runs as root, which can read more of the machine.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Confinement {
    /// The confinement for the commands of a run with this grant.
    pub fn of(grant: &Grant) -> Confinement {
        // Git needs these folders of the checkout that a worktree was made from.
        let apart = grant.worktree.iter().flat_map(|it| [&it.origin, &it.data]);
        let skills = grant.skills.iter().map(|skill| &skill.path);
        Confinement {
            profile: grant.profile(),
            files: Some(grant.files()),
            network: grant.network.clone(),
            readable: apart.chain(skills).map(PathBuf::from).collect(),
            ..Confinement::default()
        }
    }

    /// No confinement: for commands of the user, never for commands that a model wrote.
    pub fn none() -> Confinement {
        Confinement { profile: Profile::Full, network: Network::Open, ..Confinement::default() }
    }

    /// Commands can change only the workspace, and have no network.
    pub fn workspace_write() -> Confinement {
        Confinement { profile: Profile::WorkspaceWrite, ..Confinement::default() }
    }
}
