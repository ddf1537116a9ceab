//! What to run, and how it ended.

use crate::confine::{Backend, Confinement, Limit, Unavailable};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

/// A program to run.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its name, looked up in PATH, or its path.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The folder it runs in: below the workspace, relative to it or absolute.
    pub cwd: PathBuf,
    /// Variables that it gets beside the launcher's environment, or in their place.
    pub variables: Vec<(OsString, OsString)>,
    /// How long it may run before all its processes are told to end.
    pub deadline: Duration,
    /// Bytes of output to keep, half from the beginning and half from the end.
    pub output_cap: usize,
    /// What it may write to disks, in bytes, if that is less than any command may.
    pub writable_bytes: Option<u64>,
    /// How far it reaches.
    pub confinement: Confinement,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It did not end within its deadline, and was killed.
    TimedOut,
    /// The call was cancelled, and it was killed.
    Cancelled,
    /// It used more than it may, and was killed.
    OverLimit(Limit),
}

/// A command that has ended, and with it all it had started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How.
    pub status: Status,
    /// What it wrote to its standard output and error, as it came. Where something was left
    /// out, a line says how much.
    pub output: String,
    /// Bytes that were left out.
    pub left_out_bytes: u64,
    /// Processes that it left running, and that were killed.
    pub leftovers: u32,
    /// Processes that could not be killed, for lack of permission or stuck in the kernel.
    pub survivors: u32,
    /// Bytes that all its processes have written to disks.
    pub written_bytes: u64,
    /// Why it was root. Where bubblewrap confines it, it is another user if that can be had; nothing is
    /// said where it was not to be.
    pub why_root: Option<String>,
    /// What confined it; nothing when it was not confined.
    pub confined_by: Option<Backend>,
    /// What it left in repositories of git that git would have run or obeyed outside of any
    /// confinement, and that has been set aside.
    pub set_aside: Vec<String>,
}

/// Why a command did not run, or how it ended is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The folder it was to run in cannot be used.
    #[error("cannot run there: {reason}")]
    Folder {
        /// Why.
        reason: String,
    },
    /// The command is longer than the system takes.
    #[error("the command is too long for the system; put it into a script file and run that")]
    TooLong,
    /// It cannot be confined as it must be.
    #[error("not run: {0}")]
    Unavailable(#[from] Unavailable),
    /// What was to confine it failed.
    #[error("not run, since it could not be confined: {reason}")]
    NotConfined {
        /// Why.
        reason: String,
    },
    /// The program could not be started.
    #[error("cannot start {program}: {reason}")]
    NotStarted {
        /// Which.
        program: String,
        /// Why.
        reason: String,
    },
    /// The run may be another process's by now.
    #[error(
        "not run: this process stood still for too long, and another may have taken the run over; \
         call it again if it is still needed"
    )]
    Forsaken,
    /// The executable that is to watch over it could not be started.
    #[error("cannot start {} to watch over the command; is it still there?", executable.display())]
    NoSupervisor {
        /// Which.
        executable: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process that watched over it was killed or stopped.
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

    /// What `said` means that was written in place of the command's output.
    pub(super) fn not_confined(&self, reason: String, said: String) -> LaunchError {
        let reason = if reason.is_empty() { said.trim().to_owned() } else { reason };
        match reason.strip_prefix("bwrap: execvp ") {
            // But for the program that was to confine it further.
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
