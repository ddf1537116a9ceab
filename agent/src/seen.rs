//! The files that a run has read or written, with a hash of each file's content: part of the fold.
//!
//! A tool compares these hashes with the present content, so that an agent changes no content that
//! it has not seen. The list follows from the log, so it survives waits, crashes and forks.

use posse_protocol::{Extra, SeenFile};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files that a run has read or written, according to its log. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenFiles {
    /// Hashes by path, at the time of the last reply.
    before: Arc<BTreeMap<String, String>>,
    /// The files that the calls of the last reply have read or written, the latest last.
    now: Vec<SeenFile>,
}

impl SeenFiles {
    /// The hash of the content of `path` that the run last saw.
    pub fn hash_of(&self, path: &str) -> Option<&str> {
        let now = self.now.iter().rev().find(|file| file.path == path);
        now.map(|file| &file.hash).or_else(|| self.before.get(path)).map(String::as_str)
    }

    /// Adds files that a call has read or written.
    pub fn note(&mut self, files: &[SeenFile]) {
        self.now.extend_from_slice(files);
    }

    /// Moves the files of the last reply's calls to `before`, because a new reply has come.
    pub(crate) fn settle(&mut self) {
        if !self.now.is_empty() {
            let now = self.now.drain(..).map(|file| (file.path, file.hash));
            Arc::make_mut(&mut self.before).extend(now);
        }
    }

    /// The files seen before the last reply.
    pub(crate) fn without_last_reply(&self) -> SeenFiles {
        SeenFiles { before: self.before.clone(), now: Vec::new() }
    }

    /// The files, each once, sorted by path.
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
