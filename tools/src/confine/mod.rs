//! What a command can reach: a grant's profile and network, made into walls that the kernel keeps.
//!
//! The host says what is wanted ([`Confinement`]) and asks its launcher which [`Backend`] gives it.
//! The supervisor builds the walls around the command: a box of bubblewrap's, or Landlock, and a
//! filter of system calls with either. The file tools obey the same rules.
//! Nothing here weakens what was asked for: what cannot be had is an error.

mod backend;
mod bubblewrap;
mod capabilities;
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
mod repository;
mod secrets;
mod syscalls;
mod tracked;
mod walls;

pub use backend::{Backend, Unavailable};
pub use git::{Nested, nested_repositories};
pub use landlock::{keeps_moves, landlock_version};
pub use limits::{CommandLimits, Limit, usual_commands_at_once};
pub use placeholder::is_placeholder;
pub use protected::PROTECTED;
pub use repository::has_git;

pub(crate) use backend::Backends;
pub(crate) use bubblewrap::Bubblewrap;
pub(crate) use entry::{Entered, MARKER as ENTER, main as enter};
pub(crate) use file_rules::FileRules;
pub(crate) use folding::folds_case;
pub(crate) use git::Repositories;
pub(crate) use home::missed;
pub(crate) use lending::Lent;
pub(crate) use limits::Watchdog;
pub(crate) use mask::{GIT_SETTINGS, NO_TIDYING};
pub(crate) use pinned::hindered;
pub(crate) use placeholder::{Placeholders, listed_names, marks_placeholder, refused_names};
pub(crate) use protected::{is_closed, may_be_held};
pub(crate) use repository::Repository;
pub(crate) use secrets::hidden;
pub(crate) use walls::{Link, Walls};

use posse_protocol::{Grant, Network, Profile};
use std::path::PathBuf;

/// How far a command reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// What it may change.
    pub profile: Profile,
    /// What the file tools may change, if that is not the same: rules can keep them to some paths.
    pub files: Option<Profile>,
    /// Whom it may talk to.
    pub network: Network,
    /// Folders beside the workspace that it may change, absolute: its scratch folder.
    pub writable: Vec<PathBuf>,
    /// The folder that holds what it finds in `/tmp` and `/var/tmp`, absolute. Nothing of it is lost
    /// before the folder is removed. Without one they are in memory, and gone with the command.
    pub temporary: Option<PathBuf>,
    /// Folders that it may read, absolute, also where what is around them is hidden.
    pub readable: Vec<PathBuf>,
    /// Files and folders that it may not read, absolute.
    pub hidden: Vec<PathBuf>,
    /// Files and folders of the workspace that it may not change, absolute.
    pub fixed: Vec<PathBuf>,
    /// It is the host's own, and no agent has written it: repositories in the workspace are not looked
    /// at.
    pub is_own: bool,
}

/// True when this process is root's, to whom more of the machine is readable.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Confinement {
    /// How far the commands of a run with this grant reach.
    pub fn of(grant: &Grant) -> Confinement {
        // What git needs of the checkout that a worktree was made from.
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

    /// No confinement: for what the user runs, never for what a model says.
    pub fn none() -> Confinement {
        Confinement { profile: Profile::Full, network: Network::Open, ..Confinement::default() }
    }

    /// The workspace can be changed, nothing else; there is no network.
    pub fn workspace_write() -> Confinement {
        Confinement { profile: Profile::WorkspaceWrite, ..Confinement::default() }
    }
}
