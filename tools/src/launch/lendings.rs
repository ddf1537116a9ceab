//! Remembers, for each set of folders, whether commands of a root host could run as another user. If
//! that is impossible, later commands do not try again. If it worked once, later commands require it.

use super::command::Status;
use crate::confine::Walls;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How many entries are kept. Each run has folders of its own.
const MOST: usize = 1000;

/// The entries: why commands with these folders run as root, or `None` if they do not. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Lendings(Arc<Mutex<HashMap<Places, Option<String>>>>);

/// The folders that a host gives to a command. They determine the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Places(Vec<PathBuf>);

impl Lendings {
    /// Configures `walls` with the entry for their folders. Returns why the command will run as root,
    /// if known, and the key for the result of this command, if there is no entry yet.
    pub(super) fn recall(&self, walls: &mut Walls) -> (Option<String>, Option<Places>) {
        if !walls.lends {
            return (None, None);
        }
        let given = [&walls.workspace].into_iter().chain(&walls.writable).chain(&walls.temporary);
        let places = Places(given.chain(&walls.readable).cloned().collect());
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&places) {
            None => (None, Some(places)),
            Some(None) => {
                walls.must_lend = true;
                (None, None)
            }
            Some(Some(why)) => {
                walls.lends = false;
                (Some(why.clone()), None)
            }
        }
    }

    /// Stores the result of a command.
    pub(super) fn keep(&self, places: Places, status: &Status, why_root: Option<&str>) {
        // With any other status, the command may never have begun.
        if matches!(status, Status::Exited(_) | Status::Signalled(_)) {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(places, why_root.map(str::to_owned));
        }
    }
}
