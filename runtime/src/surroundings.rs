//! Agents and skills by the folder that a run works in: for a runtime whose runs work in many, each
//! with agents and skills of its own.

use crate::agents::LiveCatalog;
use crate::skills::LiveSkills;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Folders that are remembered. Beyond that all are looked at anew.
const FOLDERS: usize = 256;

/// What stands around runs in one folder.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The agents there are.
    pub agents: LiveCatalog,
    /// The skills there are.
    pub skills: LiveSkills,
}

/// Finds what stands around runs by their folder. Cheap to clone; clones share what they know.
#[derive(Clone)]
pub struct ByFolder {
    find: Arc<dyn Fn(&Path) -> Surroundings + Send + Sync>,
    known: Arc<Mutex<HashMap<PathBuf, Surroundings>>>,
}

impl ByFolder {
    /// Asks `find` once for each folder. What it returns follows its files by itself.
    pub fn new(find: impl Fn(&Path) -> Surroundings + Send + Sync + 'static) -> Self {
        ByFolder { find: Arc::new(find), known: Arc::default() }
    }

    pub(crate) fn at(&self, folder: &Path, settle: impl FnOnce(&Surroundings)) -> Surroundings {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(folder) {
            return found.clone();
        }
        if known.len() >= FOLDERS {
            known.clear();
        }
        let found = (self.find)(folder);
        settle(&found);
        known.insert(folder.to_owned(), found.clone());
        found
    }
}

impl fmt::Debug for ByFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("ByFolder").field(&known.keys()).finish()
    }
}
