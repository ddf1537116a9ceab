//! Remembers, for each set of folders, whether commands of a root host could run as another user. If
//! that is impossible, later commands do not try again. If it worked once, later commands require it.

use super::command::Status;
use crate::confine::CommandSandbox;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// How many entries are kept. Each run has folders of its own.
const MOST: usize = 1000;

/// The entries: why commands with these folders run as root, or `None` if they do not. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct RootReasons(Arc<Mutex<HashMap<Places, Option<String>>>>);

/// The folders that a host gives to a command. They determine the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Places(Vec<PathBuf>);

impl RootReasons {
    /// Configures `sandbox` with the entry for its folders. Returns why the command will run as root,
    /// if known, and the key for the result of this command, if there is no entry yet.
    pub(super) fn recall(&self, sandbox: &mut CommandSandbox) -> (Option<String>, Option<Places>) {
        if !sandbox.lends {
            return (None, None);
        }
        let given =
            [&sandbox.workspace].into_iter().chain(&sandbox.writable).chain(&sandbox.temporary);
        let places = Places(given.chain(&sandbox.readable).cloned().collect());
        match self.0.lock().get(&places) {
            None => (None, Some(places)),
            Some(None) => {
                sandbox.must_lend = true;
                (None, None)
            }
            Some(Some(why)) => {
                sandbox.lends = false;
                (Some(why.clone()), None)
            }
        }
    }

    /// Stores the result of a command.
    pub(super) fn keep(&self, places: Places, status: &Status, why_root: Option<&str>) {
        // With any other status, the command may never have begun.
        if matches!(status, Status::Exited(_) | Status::Signalled(_)) {
            let mut known = self.0.lock();
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(places, why_root.map(str::to_owned));
        }
    }
}
