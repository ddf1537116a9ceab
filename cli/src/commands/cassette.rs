//! `--record` and `--replay`: the cassette of a command, and the messages about it.

use crate::args::CassetteOptions;
use crate::environment::Environment;
use crate::exit::{Code, Failure};
use crate::format;
use crate::screen::Screen;
use posse::model::{Cassette, CassetteError, Places, Recording, Replay};
use std::path::Path;
use std::sync::Arc;

/// The cassette of a command, if it has one.
pub struct CommandCassette {
    cassette: Option<Cassette>,
    /// A message to show before all others.
    remark: Option<String>,
}

impl CommandCassette {
    /// Opens the cassette that `options` name, for work in `folder`.
    pub fn open(
        options: &CassetteOptions,
        folder: &Path,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let places = Places { workspace: folder.to_owned(), home: environment.home_folder.clone() };
        let (mut cassette, mut remark) = (None, None);
        if let Some(path) = &options.record {
            let recording = Recording::create(path, places).map_err(|e| unusable(e, path))?;
            let inside = path.canonicalize().is_ok_and(|path| path.starts_with(folder));
            remark = inside.then(|| {
                let path = path.display();
                format!(
                    "{path} is in the folder the agent works in, which sees it grow; keep it \
                     elsewhere if it is to be replayed elsewhere"
                )
            });
            cassette = Some(Cassette::Recording(Arc::new(recording)));
        } else if let Some(path) = &options.replay {
            let replay = Replay::open(path, places).map_err(|e| unusable(e, path))?;
            remark = replay.is_cut().then(|| {
                let path = path.display();
                format!("the last line of {path} is incomplete and left out: the recording was cut off there")
            });
            cassette = Some(Cassette::Replay(Arc::new(replay)));
        }
        Ok(CommandCassette { cassette, remark })
    }

    /// The cassette through which models are called.
    pub fn cassette(&self) -> Option<Cassette> {
        self.cassette.clone()
    }

    /// True when there is a cassette. It holds one run or session, and no leftover runs of others.
    pub fn is_used(&self) -> bool {
        self.cassette.is_some()
    }

    /// Shows the message, if there is one.
    pub fn announce(&mut self, screen: &mut Screen) {
        if let Some(remark) = self.remark.take() {
            screen.remark(&remark);
        }
    }

    /// Fails if the replay differs from its recording.
    pub fn check(&self) -> Result<(), Failure> {
        let replay = self.cassette.as_ref().and_then(Cassette::replay);
        match replay.and_then(|replay| Some((replay.path(), replay.difference()?))) {
            None => Ok(()),
            Some((path, difference)) => {
                let path = path.display();
                let message = format!("the replay of {path} has failed: {difference}");
                Err(Failure { code: Code::Failed, message, hint: None }.hint(again(&path)))
            }
        }
    }

    /// Shows what happened to the cassette. Fails if `result` is an error, or if the cassette has a problem.
    pub fn close(
        &self,
        result: Result<Code, Failure>,
        screen: &mut Screen,
    ) -> Result<Code, Failure> {
        let code = result?;
        self.check()?;
        match &self.cassette {
            Some(Cassette::Recording(recording)) => {
                let path = recording.path();
                let count = recording.finish().map_err(|error| {
                    let message = format!("{error}; what follows is not in it");
                    Failure::internal(message).hint("the run itself is kept")
                })?;
                let path = path.display();
                screen.remark(&match count {
                    0 => format!("nothing is recorded in {path}: no request was made"),
                    count => format!("{} recorded in {path}", format::count(count, "request")),
                });
            }
            Some(Cassette::Replay(replay)) => {
                let unused = replay.unused();
                if unused > 0 {
                    let (requests, path) =
                        (format::count(unused as u64, "recorded request"), replay.path().display());
                    screen.remark(&format!("not made: {requests} of {path}"));
                }
            }
            None => {}
        }
        Ok(code)
    }
}

/// Advice for a cassette that no longer matches.
fn again(path: &dyn std::fmt::Display) -> String {
    format!(
        "if the change is meant, record again: the same command with --record {path}, and a key"
    )
}

fn unusable(error: CassetteError, path: &Path) -> Failure {
    let hint = match error {
        CassetteError::Taken { .. } | CassetteError::NotOne { .. } => {
            "name another file; `--record FILE` writes a new recording".to_owned()
        }
        CassetteError::Unusable { .. } => "check the path and its permissions".to_owned(),
        _ => again(&path.display()),
    };
    Failure::usage(error.to_string()).hint(hint)
}
