//! Agents, skills and guidance files by workspace: for a runtime whose runs work in many folders,
//! each with its own.

use crate::agents::LiveCatalog;
use crate::guidance::GuidanceSources;
use crate::skills::LiveSkills;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most folders to remember. Beyond it, all of them are read again.
const FOLDERS: usize = 256;

/// The agents, skills and guidance files for runs in one folder.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The agents.
    pub agents: LiveCatalog,
    /// The skills.
    pub skills: LiveSkills,
    /// Where the guidance files are.
    pub guidance: GuidanceSources,
}

/// Finds the agents and skills for a folder. It is cheap to clone; clones share one cache.
#[derive(Clone)]
pub struct ByFolder {
    find: Arc<dyn Fn(&Path) -> Surroundings + Send + Sync>,
    known: Arc<Mutex<HashMap<PathBuf, Surroundings>>>,
}

impl ByFolder {
    /// Calls `find` once for each folder. The returned catalogs follow their files by themselves.
    pub fn new(find: impl Fn(&Path) -> Surroundings + Send + Sync + 'static) -> Self {
        ByFolder { find: Arc::new(find), known: Arc::default() }
    }

    pub(crate) fn at(&self, folder: &Path, settle: impl FnOnce(&Surroundings)) -> Surroundings {
        let mut known = self.known.lock();
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
        let known = self.known.lock();
        f.debug_tuple("ByFolder").field(&known.keys()).finish()
    }
}
