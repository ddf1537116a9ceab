//! Problems in a definition of an agent or a skill, with their severity and place.

use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The definition cannot be used.
    Error,
    /// The definition can be used, but a part of it has no effect.
    Warning,
    /// The text is valid, but Posse does not support it yet.
    NotInForce,
    /// Posse interpreted the text in a way that the author should know.
    Note,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::NotInForce => "not yet in force",
            Level::Note => "note",
        })
    }
}

/// A problem in a definition, for its author.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file or folder; `None` for a definition from the command line or from code.
    pub path: Option<PathBuf>,
    /// The line, from 1, if known.
    pub line: Option<u32>,
    /// The character in that line, from 1.
    pub column: Option<u32>,
    /// The severity.
    pub level: Level,
    /// The agent, if its name is known.
    pub agent: Option<String>,
    /// The problem, and what to do about it.
    pub reason: String,
}

impl Problem {
    /// A problem of a whole file or folder.
    pub(crate) fn of_file(path: &Path, level: Level, reason: String) -> Self {
        Problem {
            path: Some(path.to_owned()),
            line: None,
            column: None,
            level,
            agent: None,
            reason,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, &self.agent) {
            (Some(path), _) => path.display().fmt(f)?,
            (None, Some(agent)) => write!(f, "agent `{agent}`")?,
            (None, None) => f.write_str("agents")?,
        }
        for number in self.line.iter().chain(&self.column) {
            write!(f, ":{number}")?;
        }
        write!(f, ": {}: {}", self.level, self.reason)
    }
}

/// A place in a text: line and character, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Position {
    /// An unknown place.
    pub(crate) const UNKNOWN: Position = Position { line: 0, column: 0 };
}

/// A problem that is not yet assigned to a file and an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) place: Position,
    pub(crate) level: Level,
    pub(crate) reason: String,
}

impl Finding {
    /// Makes a problem in the file at `path`, of the agent `agent`.
    pub(crate) fn problem(&self, path: Option<&Path>, agent: Option<&str>) -> Problem {
        let known = |number: u32| Some(number).filter(|number| *number > 0);
        Problem {
            path: path.map(Path::to_owned),
            line: known(self.place.line),
            column: known(self.place.column),
            level: self.level,
            agent: agent.map(str::to_owned),
            reason: self.reason.clone(),
        }
    }
}

/// The findings so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Findings(pub(crate) Vec<Finding>);

impl Findings {
    pub(crate) fn error(&mut self, place: Position, reason: impl Into<String>) {
        self.push(place, Level::Error, reason);
    }

    pub(crate) fn warning(&mut self, place: Position, reason: impl Into<String>) {
        self.push(place, Level::Warning, reason);
    }

    pub(crate) fn not_in_force(&mut self, place: Position, reason: impl Into<String>) {
        self.push(place, Level::NotInForce, reason);
    }

    pub(crate) fn note(&mut self, place: Position, reason: impl Into<String>) {
        self.push(place, Level::Note, reason);
    }

    /// The first error, if there is one.
    pub(crate) fn first_error(&self) -> Option<&Finding> {
        self.0.iter().find(|finding| finding.level == Level::Error)
    }

    fn push(&mut self, place: Position, level: Level, reason: impl Into<String>) {
        self.0.push(Finding { place, level, reason: reason.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_where_how_bad_and_what() {
        let finding = Finding {
            place: Position { line: 3, column: 8 },
            level: Level::Warning,
            reason: "there is no tool `Raed`".to_owned(),
        };
        let problem = finding.problem(Some(Path::new("a/b.md")), Some("b"));
        assert_eq!(problem.to_string(), "a/b.md:3:8: warning: there is no tool `Raed`");
        let nowhere = Finding { place: Position::UNKNOWN, level: Level::Error, ..finding };
        let shown = nowhere.problem(None, Some("b")).to_string();
        assert_eq!(shown, "agent `b`: error: there is no tool `Raed`");
    }
}
