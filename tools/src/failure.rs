//! What goes wrong: for the host ([`ToolError`]) and for the model ([`Failure`], [`PathError`]).

use posse_agent::Answer;
use posse_protocol::ToolOutput;
use std::io;
use std::path::PathBuf;

/// Why tools could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The workspace cannot be opened.
    #[error("cannot open the workspace {}: it must be a folder that can be read", path.display())]
    Workspace {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What the model is told when a call could not do what was asked.
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

/// Turns a result into what the loop records.
pub(crate) fn answer(result: Result<ToolOutput, Failure>) -> Answer {
    result.unwrap_or_else(|failure| ToolOutput::error(failure.0)).into()
}

/// Why a path of the model cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    #[error("the path is empty; give one inside the workspace {workspace}")]
    Empty { workspace: String },
    #[error("{path} is outside the workspace {workspace}; use a path inside it")]
    Outside { path: String, workspace: String },
    #[error("{path} leads outside the workspace (through .. or a link); use a path inside it")]
    Escapes { path: String },
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
    #[error("no permission to use {path}; ask for it to be changed or work without it")]
    Denied { path: String },
    #[error("cannot use {path}: {source}")]
    Io { path: String, source: io::Error },
}

fn hint(near: &[String]) -> String {
    match near {
        [] => "; use Glob or List to find it".to_owned(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}
