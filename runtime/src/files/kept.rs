//! A cache of values made from files. An entry is valid until its file changes.

use super::Stamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The value of each file.
pub(crate) struct Kept<T>(HashMap<PathBuf, (Stamp, Arc<T>)>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept(HashMap::new())
    }
}

impl<T> Kept<T> {
    /// Starts a pass over all files at `began`. It drops the entries that it does not use.
    pub(crate) fn renew(&mut self, began: SystemTime) -> Renewal<'_, T> {
        let before = std::mem::take(&mut self.0);
        Renewal { kept: self, before, began }
    }
}

/// One pass over all files.
pub(crate) struct Renewal<'k, T> {
    kept: &'k mut Kept<T>,
    before: HashMap<PathBuf, (Stamp, Arc<T>)>,
    began: SystemTime,
}

impl<T> Renewal<'_, T> {
    /// The cached value of the file at `path`, or a new one by `make` if the file has changed.
    pub(crate) fn get(&mut self, path: &Path, stamp: Stamp, make: impl FnOnce() -> T) -> Arc<T> {
        let known = self.before.remove(path).filter(|(known, _)| *known == stamp);
        let made = known.map_or_else(|| Arc::new(make()), |(_, made)| made);
        if stamp.is_settled(self.began) {
            self.kept.0.insert(path.to_owned(), (stamp, made.clone()));
        }
        made
    }
}
