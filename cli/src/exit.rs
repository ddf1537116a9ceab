//! Exit codes and failures.

use crate::offline::WITHOUT_KEY;
use posse::Outcome;
use std::process::ExitCode;

/// Exit codes. Documented in the help of `posse` and in docs/reference/exit-codes.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Done; for a run: completed.
    Done = 0,
    /// The run failed, or the command could not do its work.
    Failed = 1,
    /// The command line or a settings file is wrong.
    Usage = 2,
    /// The run was cancelled.
    Cancelled = 3,
    /// The run timed out.
    TimedOut = 4,
    /// The run stopped at another limit.
    Limit = 5,
    /// The database cannot be used, is damaged, or the disk is full.
    Store = 6,
    /// A budget had nothing left for the run.
    Budget = 7,
    /// A signal interrupted the command. The run can be resumed.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        ExitCode::from(code as u8)
    }
}

impl Code {
    /// The exit code for an outcome.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed { .. } => Code::Done,
            Outcome::Failed { .. } => Code::Failed,
            Outcome::Cancelled { .. } => Code::Cancelled,
            Outcome::TimedOut { .. } => Code::TimedOut,
            Outcome::Stopped { .. } => Code::Limit,
            Outcome::OutOfBudget { .. } => Code::Budget,
        }
    }
}

/// The failure of a command: what went wrong, and what to do next.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: Code,
    /// What went wrong.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

/// Error texts of the system, and their plain forms.
const PLAIN: [(&str, &str); 5] = [
    ("No such file or directory (os error 2)", "there is no such file or folder"),
    ("Permission denied (os error 13)", "you have no permission"),
    ("File exists (os error 17)", "it exists already"),
    ("Not a directory (os error 20)", "a part of the path is not a folder"),
    ("Is a directory (os error 21)", "it is a folder, not a file"),
];

/// `message` in plain words, without the numbers of system errors, and not longer than a screen can show.
pub fn plain(message: &str) -> String {
    let mut text = message.to_owned();
    for (theirs, ours) in PLAIN {
        text = text.replace(theirs, ours);
    }
    while let Some(at) = text.find(" (os error ") {
        let Some(end) = text[at..].find(')') else { break };
        text.replace_range(at..=at + end, "");
    }
    // A server decides how long its own errors are.
    if let Some((cut, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// The most characters of an error that are shown.
const LONGEST: usize = 4_000;

/// Advice for a damaged database.
pub const MEND: &str = "`posse doctor --rebuild` saves what can be read; `posse doctor --restore FILE` \
replaces the database with a backup";

impl Failure {
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { code: Code::Usage, message: message.into(), hint: None }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Failure { code: Code::Failed, message: message.into(), hint: None }
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Failure { hint: Some(hint.into()), ..self }
    }
}

impl From<posse::Error> for Failure {
    fn from(error: posse::Error) -> Self {
        use posse::Error;
        let message = error.to_string();
        match error {
            Error::Model(
                posse::ResolveError::MissingKey { .. } | posse::ResolveError::NoneUsable { .. },
            ) => Failure::usage(message).hint(WITHOUT_KEY),
            Error::UnknownAgent { .. } => {
                Failure::usage(message).hint("`posse agents list` lists all agents")
            }
            Error::UnusableAgent { .. } => {
                Failure::usage(message).hint("`posse agents check` says what is wrong with it")
            }
            Error::NoRun(_) => {
                Failure::usage(message).hint("`posse runs list` shows the runs there are")
            }
            Error::Model(
                posse::ResolveError::UnknownModel { .. }
                | posse::ResolveError::UnknownVendor { .. },
            ) => Failure::usage(message).hint("`posse models` lists all models and vendors"),
            Error::AlreadyExists { .. }
            | Error::InvalidInput(_)
            | Error::Model(_)
            | Error::Workspace { .. }
            | Error::Repository(posse::RepositoryError::Missing(_))
            | Error::Ambiguous(_) => Failure::usage(message),
            Error::Store(posse::store::StoreError::NotFound(_)) => {
                Failure::usage(message).hint("`posse runs list` shows the runs there are")
            }
            Error::Store(posse::store::StoreError::Unusable { .. }) => {
                Failure { code: Code::Store, message, hint: None }
                    .hint("--db names another database; `posse config` shows which one is used")
            }
            Error::Store(posse::store::StoreError::Erased(run)) => Failure::internal(message)
                .hint(format!("`posse cost --run {}` shows what the run cost", run.short())),
            Error::Store(
                posse::store::StoreError::Corrupt { .. }
                | posse::store::StoreError::CommitsLost { .. },
            ) => Failure { code: Code::Store, message, hint: None }.hint(MEND),
            Error::Store(_) => Failure { code: Code::Store, message, hint: None },
            _ => Failure::internal(message),
        }
    }
}

impl From<posse::ResolveError> for Failure {
    fn from(error: posse::ResolveError) -> Self {
        posse::Error::Model(error).into()
    }
}

impl From<posse::webhooks::HookError> for Failure {
    fn from(error: posse::webhooks::HookError) -> Self {
        Failure::usage(error.to_string())
    }
}

impl From<posse::config::ConfigError> for Failure {
    fn from(error: posse::config::ConfigError) -> Self {
        Failure::usage(error.to_string())
    }
}
