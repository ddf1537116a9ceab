//! Whether commands of root's can be another user, by the folders that they get: as it was found by those that
//! ran. Where it can never be had, nobody tries again; where it was had, it must be had.

use super::command::Status;
use crate::confine::Walls;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How many are kept: each run has folders of its own.
const MOST: usize = 1000;

/// What is known. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Lendings(Arc<Mutex<HashMap<Places, Option<String>>>>);

/// What a host gives to a command. The rest follows from what is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Places(Vec<PathBuf>);

impl Lendings {
    /// Has `walls` go by what is known. Returns why the command will be root, if that is known, and the places by
    /// which to keep what comes of it, if it is not.
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

    /// Keeps what came of a command.
    pub(super) fn keep(&self, places: Places, status: &Status, why_root: Option<&str>) {
        // Others may never have begun.
        if matches!(status, Status::Exited(_) | Status::Signalled(_)) {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(places, why_root.map(str::to_owned));
        }
    }
}
