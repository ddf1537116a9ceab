//! The errors of a runtime.

use posse_protocol::{AgentName, RunId, near};
use posse_store::StoreError;
use serde::Serialize;

/// Why the runtime refused a request. An error inside a run is the outcome of the run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No agent has this name.
    #[error(
        "there is no agent `{name}`; {}",
        near::suggestion(name.as_str(), known.iter().map(String::as_str), "")
    )]
    UnknownAgent {
        /// The requested name.
        name: AgentName,
        /// The names of the existing agents.
        known: Vec<String>,
    },
    /// The definition of this agent cannot be used.
    #[error("agent `{name}` cannot be used: {problem}")]
    UnusableAgent {
        /// Its name.
        name: AgentName,
        /// Where and why.
        problem: String,
    },
    /// An agent of this name was added before.
    #[error("there is an agent `{name}` already; the first stays")]
    AlreadyExists {
        /// Its name.
        name: AgentName,
    },
    /// The request itself is wrong.
    #[error("{0}")]
    InvalidInput(String),
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] posse_model::ResolveError),
    /// The folder cannot be a workspace.
    #[error("cannot work in {path}: {reason}")]
    Workspace {
        /// Which folder.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The git repository of a run cannot be used.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// No run matches the typed text.
    #[error("{0}")]
    NoRun(String),
    /// More than one run matches the typed text.
    #[error("{0}")]
    Ambiguous(String),
    /// The request does not fit the state of the run.
    #[error("run {} {reason}", run.short())]
    NotNow {
        /// Which run.
        run: RunId,
        /// The state of the run, in words.
        reason: String,
    },
    /// The store failed or refused.
    #[error(transparent)]
    Store(StoreError),
    /// The runtime is shutting down.
    #[error("the runtime is shutting down")]
    ShuttingDown,
}

/// Why the git repository of a run cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// This machine cannot reach the repository now. Another one may.
    #[error("{0}")]
    Away(String),
    /// Another process on this machine works in the checkout of the run.
    #[error("{0}")]
    InUse(String),
    /// The repository has no such commit, branch or tag.
    #[error("{0}")]
    Missing(String),
    /// Something is wrong on this machine.
    #[error("{0}")]
    Local(String),
}

/// The kind of an error, for programs. Kinds may be added; none changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no agent of this name.
    UnknownAgent,
    /// The definition of the agent cannot be used.
    UnusableAgent,
    /// An agent of this name exists already.
    AlreadyExists,
    /// The request itself is wrong.
    InvalidInput,
    /// The model cannot be used.
    Model,
    /// The folder cannot be a workspace.
    Workspace,
    /// The git repository of a run cannot be used.
    Repository,
    /// There is no such run.
    UnknownRun,
    /// More than one run matches.
    AmbiguousRun,
    /// The request does not fit the state of the run.
    WrongState,
    /// The store failed or refused.
    Store,
    /// The runtime is shutting down.
    ShuttingDown,
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::UnknownAgent { .. } => ErrorKind::UnknownAgent,
            Error::UnusableAgent { .. } => ErrorKind::UnusableAgent,
            Error::AlreadyExists { .. } => ErrorKind::AlreadyExists,
            Error::InvalidInput(_) => ErrorKind::InvalidInput,
            Error::Model(_) => ErrorKind::Model,
            Error::Workspace { .. } => ErrorKind::Workspace,
            Error::Repository(_) => ErrorKind::Repository,
            Error::NoRun(_) | Error::Store(StoreError::NotFound(_)) => ErrorKind::UnknownRun,
            Error::Ambiguous(_) => ErrorKind::AmbiguousRun,
            Error::NotNow { .. } => ErrorKind::WrongState,
            Error::Store(_) => ErrorKind::Store,
            Error::ShuttingDown => ErrorKind::ShuttingDown,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Finished(run) => Error::NotNow { run, reason: "has ended".to_owned() },
            StoreError::Unfinished(run) => {
                Error::NotNow { run, reason: "has not ended".to_owned() }
            }
            StoreError::Archived(run) => Error::NotNow { run, reason: "is archived".to_owned() },
            StoreError::Paused(run) => {
                let reason = "is paused: it starts nothing until it is resumed".to_owned();
                Error::NotNow { run, reason }
            }
            StoreError::Closed => Error::ShuttingDown,
            other => Error::Store(other),
        }
    }
}

/// `text` for a message: in one line, without control characters, and not too long.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(LONGEST).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_has_no_control_characters() {
        assert_eq!(quoted("a\u{1b}[2J\nb"), "`a\\u{1b}[2J\\nb`");
        assert!(quoted(&"x".repeat(100)).ends_with("…`"));
    }
}
