//! What a run knows of the files it read or wrote: a fingerprint each, never the content.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Fingerprints of what a run last read or wrote, by the path that the model has for it.
#[derive(Default)]
pub(crate) struct Seen {
    /// Keyed anew for each run, so that no content can be made to collide on purpose.
    hasher: RandomState,
    files: Mutex<HashMap<PathBuf, Fingerprint>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    size: usize,
    hash: u64,
}

/// How what a run knows of a file compares with what is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// The run has seen exactly this content.
    Current,
    /// The content is another than the run saw.
    Stale,
    /// The run never read the file.
    None,
}

impl Seen {
    /// Notes that the run knows `content` of `path`.
    pub(crate) fn remember(&self, path: &Path, content: &[u8]) {
        let fingerprint = self.fingerprint(content);
        let mut files = self.lock();
        match files.get_mut(path) {
            Some(known) => *known = fingerprint,
            None => {
                files.insert(path.to_owned(), fingerprint);
            }
        }
    }

    /// What the run knows of `path`, which now holds `content`.
    pub(crate) fn compare(&self, path: &Path, content: &[u8]) -> Knowledge {
        let known = self.lock().get(path).copied();
        match known {
            None => Knowledge::None,
            Some(known) if known == self.fingerprint(content) => Knowledge::Current,
            Some(_) => Knowledge::Stale,
        }
    }

    fn fingerprint(&self, content: &[u8]) -> Fingerprint {
        Fingerprint { size: content.len(), hash: self.hasher.hash_one(content) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Fingerprint>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
