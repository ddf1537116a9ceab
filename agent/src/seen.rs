//! The files that a run has read or written, and a hash of what each held: part of the fold.
//!
//! A tool compares this with what a file holds now, so that no change is based on content that the
//! agent never saw. Because it follows from the log, it survives waiting, a crash and a fork.

use posse_protocol::{Extra, SeenFile};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files that a run has read or written, as its log tells. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenFiles {
    /// Hashes by path, as they were when the last reply came.
    before: Arc<BTreeMap<String, String>>,
    /// What the calls of the last reply have seen, the latest last.
    now: Vec<SeenFile>,
}

impl SeenFiles {
    /// The hash of what the run last knew `path` to hold.
    pub fn hash_of(&self, path: &str) -> Option<&str> {
        let now = self.now.iter().rev().find(|file| file.path == path);
        now.map(|file| &file.hash).or_else(|| self.before.get(path)).map(String::as_str)
    }

    /// Adds what a call has seen.
    pub fn note(&mut self, files: &[SeenFile]) {
        self.now.extend_from_slice(files);
    }

    /// The calls so far belong to a reply that has been followed by another.
    pub(crate) fn settle(&mut self) {
        if !self.now.is_empty() {
            let now = self.now.drain(..).map(|file| (file.path, file.hash));
            Arc::make_mut(&mut self.before).extend(now);
        }
    }

    /// What was seen before the last reply.
    pub(crate) fn without_last_reply(&self) -> SeenFiles {
        SeenFiles { before: self.before.clone(), now: Vec::new() }
    }

    /// The files, each once, in the order of their paths.
    pub(crate) fn list(mut self) -> Vec<SeenFile> {
        self.settle();
        let file = |(path, hash): (&String, &String)| SeenFile {
            path: path.clone(),
            hash: hash.clone(),
            extra: Extra::default(),
        };
        self.before.iter().map(file).collect()
    }
}
