//! Commands to run, and how they end.

use crate::confine::{Backend, Confinement, Limit, Unavailable};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

/// A program to run.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its path, or its name, which is looked up in PATH.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The folder it runs in: below the workspace, relative to it or absolute.
    pub cwd: PathBuf,
    /// Variables besides the launcher's environment. They override it.
    pub variables: Vec<(OsString, OsString)>,
    /// How long it may run before the supervisor asks all its processes to end.
    pub deadline: Duration,
    /// How many bytes of output to keep, half from the beginning and half from the end.
    pub output_cap: usize,
    /// How many bytes it may write to disks, if that is less than the limit for all commands.
    pub writable_bytes: Option<u64>,
    /// What it may read, change and connect to.
    pub confinement: Confinement,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Signalled(i32),
    /// It did not end before its deadline, and was killed.
    TimedOut,
    /// The call was cancelled, and the command was killed.
    Cancelled,
    /// It exceeded this limit, and was killed.
    OverLimit(Limit),
}

/// The result of a command. The command and all processes that it started have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub status: Status,
    /// Its standard output and error, in the order in which they arrived. A line marks where bytes are
    /// omitted, and says how many.
    pub output: String,
    /// How many bytes are omitted.
    pub left_out_bytes: u64,
    /// How many processes it left running. They were killed.
    pub leftovers: u32,
    /// How many processes could not be killed, because permission was missing or they hang in the kernel.
    pub survivors: u32,
    /// How many bytes all its processes wrote to disks.
    pub written_bytes: u64,
    /// Why it ran as root. Bubblewrap runs commands as another user if possible. `None` if it did not
    /// run as root, or if another user was never intended.
    pub why_root: Option<String>,
    /// The back end that confined it; `None` if it was not confined.
    pub confined_by: Option<Backend>,
    /// Files that it left in git repositories and that have been set aside, because git would have run
    /// or obeyed them outside the sandbox.
    pub set_aside: Vec<String>,
}

/// Why a command did not run, or why its result is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The folder in which it should run cannot be used.
    #[error("cannot run there: {reason}")]
    Folder {
        /// Why.
        reason: String,
    },
    /// The command is longer than the system allows.
    #[error("the command is too long for the system; put it into a script file and run that")]
    TooLong,
    /// No back end can confine it as required.
    #[error("not run: {0}")]
    Unavailable(#[from] Unavailable),
    /// The back end failed to confine it.
    #[error("not run, since it could not be confined: {reason}")]
    NotConfined {
        /// Why.
        reason: String,
    },
    /// The program could not be started.
    #[error("cannot start {program}: {reason}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
    /// This worker may have lost its claim of the run.
    #[error(
        "not run: this process stood still for too long, and another may have taken the run over; \
         call it again if it is still needed"
    )]
    Forsaken,
    /// The executable of the supervisor could not be started.
    #[error("cannot start {} to watch over the command; is it still there?", executable.display())]
    NoSupervisor {
        /// The executable.
        executable: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The supervisor was killed or stopped.
    #[error(
        "the process that watched over {program} was lost, probably killed; how {program} ended \
         is not known"
    )]
    Lost {
        /// The program.
        program: String,
    },
}

impl Command {
    pub(super) fn program_name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// Interprets `said`, which was written in place of the command's output.
    pub(super) fn not_confined(&self, reason: String, said: String) -> LaunchError {
        let reason = if reason.is_empty() { said.trim().to_owned() } else { reason };
        match reason.strip_prefix("bwrap: execvp ") {
            // Bubblewrap could not start the command. `/proc/self/fd/` is our own program, which
            // confines further.
            Some(reason) if !reason.starts_with("/proc/self/fd/") => {
                LaunchError::NotStarted { program: self.program_name(), reason: reason.to_owned() }
            }
            _ => LaunchError::NotConfined { reason },
        }
    }

    pub(super) fn not_started(&self, error: io::Error) -> LaunchError {
        match error.kind() {
            ErrorKind::ArgumentListTooLong => LaunchError::TooLong,
            _ => {
                LaunchError::NotStarted { program: self.program_name(), reason: error.to_string() }
            }
        }
    }
}
