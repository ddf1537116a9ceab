//! The repositories below the folders of a run, for the file tools. They are the ones that the supervisor of a
//! command finds: what these name in the workspace is closed to both.

use super::named::Checkout;
use super::of_found;
use super::tree::Root;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
    pub(in super::super) fn below(&self, roots: &[(PathBuf, bool)]) -> Arc<[Checkout]> {
        let commands = self.commands.load(Ordering::Acquire);
        let mut last = self.last.lock();
        // The user and other runs may add repositories, too.
        let is_current =
            |it: &&Search| it.commands == commands && it.began.elapsed() < it.took * USED;
        if let Some(search) = last.as_ref().filter(is_current) {
            return search.checkouts.clone();
        }
        let began = Instant::now();
        let roots = roots.iter().filter_map(|(path, is_data)| Root::open(path, *is_data).ok());
        let checkouts: Arc<[Checkout]> =
            roots.flat_map(|root| of_found(&root, &root.search())).collect();
        let search = Search { checkouts, commands, began, took: began.elapsed() };
        last.insert(search).checkouts.clone()
    }
}
