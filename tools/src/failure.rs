//! Errors: for the host ([`ToolError`]) and for the model ([`Failure`], [`PathError`]).

use posse_agent::Answer;
use posse_protocol::ToolOutput;
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why tools could not be created, or one of their folders could not be removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The workspace cannot be opened.
    #[error("cannot open the workspace {}: it must be a folder that can be read", path.display())]
    Workspace {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path cannot be that of a scratch folder.
    #[error("{} cannot be a scratch folder: give a path that ends in a name", path.display())]
    ScratchPath {
        /// The path.
        path: PathBuf,
    },
    /// A scratch folder could not be removed completely.
    #[error(
        "cannot remove the scratch folder {}: {source}; remove the rest by hand", path.display()
    )]
    ScratchRemoval {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The message to the model if a call failed.
#[derive(Debug)]
pub(crate) struct Failure(pub String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Failure(text.into())
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        Failure(error.to_string())
    }
}

/// Converts a result into an answer, which the run records.
pub(crate) fn answer(result: Result<ToolOutput, Failure>) -> Answer {
    result.unwrap_or_else(|failure| ToolOutput::error(failure.0)).into()
}

/// Why a path from the model cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    #[error("the path is empty; give one inside of {bounds}")]
    Empty { bounds: String },
    #[error("{path} is outside of {bounds}; use a path inside")]
    Outside { path: String, bounds: String },
    #[error("{path} leads (through .. or a link) outside of {bounds}; use a path inside")]
    Escapes { path: String, bounds: String },
    #[error("{path} does not exist{}", hint(near))]
    Missing { path: String, near: Vec<String> },
    #[error("{path} is a folder, not a file; use List to see what is in it")]
    Folder { path: String },
    #[error("{path} is a file, not a folder; use Read to see what is in it")]
    NotFolder { path: String },
    #[error("{path} is {kind}; only regular files can be read and written")]
    Special { path: String, kind: &'static str },
    #[error("{path} is a link to something that does not exist; remove the link first")]
    DanglingLink { path: String },
    #[error("{path} can only be read; write a copy inside of the working folder")]
    ReadOnly { path: String },
    #[error("{path} may not be used so: {reason}")]
    Rule { path: String, reason: String },
    #[error("no permission to use {path}; ask for it to be changed or work without it")]
    Denied { path: String },
    #[error("cannot use {path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("cannot use the scratch folder {}: {source}; ask the user to fix that, or do without it", path.display())]
    Scratch { path: PathBuf, source: io::Error },
}

/// Converts `source` into an error for the path `shown`.
pub(crate) fn explain(shown: String, source: io::Error, bounds: &Bounds<'_>) -> PathError {
    let path = shown;
    match source.kind() {
        ErrorKind::NotFound => PathError::Missing { path, near: Vec::new() },
        ErrorKind::IsADirectory => PathError::Folder { path },
        ErrorKind::NotADirectory => PathError::NotFolder { path },
        // cap-std creates this error itself if a path would leave the folder.
        ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
            PathError::Escapes { path, bounds: bounds.all() }
        }
        ErrorKind::PermissionDenied => PathError::Denied { path },
        _ if source.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            PathError::Special { path, kind: "a socket" }
        }
        _ => PathError::Io { path, source },
    }
}

/// The folders in which the paths of a run must stay.
pub(crate) struct Bounds<'a> {
    pub workspace: &'a Path,
    pub scratch: Option<&'a Path>,
}

impl Bounds<'_> {
    /// All folders, for a path that is outside each of them.
    pub(crate) fn all(&self) -> String {
        self.joined("and")
    }

    /// Any folder, for a path that must be inside one of them.
    pub(crate) fn any(&self) -> String {
        self.joined("or")
    }

    fn joined(&self, word: &str) -> String {
        let workspace = self.workspace.display();
        match self.scratch.map(Path::display) {
            Some(scratch) => {
                format!("the working folder {workspace} {word} of the scratch folder {scratch}")
            }
            None => format!("the working folder {workspace}"),
        }
    }
}

fn hint(near: &[String]) -> String {
    match near {
        [] => "; use Glob or List to find it".to_owned(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}
