//! The repositories below the folders of a run, for the file tools. They are the ones that the supervisor of a
//! command finds: what these name in the workspace is closed to both.

use super::named::Checkout;
use super::of_found;
use super::tree::Root;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The most characters of a path that are shown.
const SHOWN: usize = 300;

/// How many times as long as a search took its result is used. So searches take a tenth of the time at most.
const USED: u32 = 10;

/// Finds these repositories, and remembers them for a while.
#[derive(Default)]
pub(in super::super) struct NestedCheckouts {
    /// The number of commands that have ended.
    commands: Arc<AtomicU64>,
    last: Mutex<Option<Search>>,
}

/// The result of a search.
struct Search {
    checkouts: Arc<[Checkout]>,
    commands: u64,
    began: Instant,
    took: Duration,
}

impl NestedCheckouts {
    /// Searches again when this number of ended commands has changed.
    pub(in super::super) fn renewed_after(commands: Arc<AtomicU64>) -> NestedCheckouts {
        NestedCheckouts { commands, last: Mutex::default() }
    }

    /// The repositories in these folders, each of which may consist only of a repository's data. Folders that do
    /// not exist have none.
    ///
    /// # Errors
    /// Says which folder could not be searched: there may be a repository in it.
    pub(in super::super) fn below(
        &self,
        roots: &[(PathBuf, bool)],
    ) -> Result<Arc<[Checkout]>, String> {
        let commands = self.commands.load(Ordering::Acquire);
        let mut last = self.last.lock();
        // The user and other runs may add repositories, too.
        let is_current =
            |it: &&Search| it.commands == commands && it.began.elapsed() < it.took * USED;
        if let Some(search) = last.as_ref().filter(is_current) {
            return Ok(search.checkouts.clone());
        }
        let began = Instant::now();
        let mut checkouts = Vec::new();
        for (path, is_data) in roots {
            let root = match Root::open(path, *is_data) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                root => root.map_err(|error| cannot_search(path, &error.to_string()))?,
            };
            let found = root.search();
            if let Some((folder, error)) = found.unseen.first() {
                return Err(cannot_search(&path.join(folder), &error.to_string()));
            }
            if let Some(folder) = found.too_deep.first() {
                return Err(cannot_search(&path.join(folder), "it is too deep"));
            }
            checkouts.extend(of_found(&root, &found));
        }
        let checkouts = checkouts.into();
        let search = Search { checkouts, commands, began, took: began.elapsed() };
        Ok(last.insert(search).checkouts.clone())
    }
}

fn cannot_search(folder: &Path, why: &str) -> String {
    let folder: String = folder.display().to_string().chars().take(SHOWN).collect();
    format!("{folder} cannot be searched for git repositories: {why}")
}
