//! Whether a run knows the content of a file. Compares hashes, never the content.

use posse_agent::SeenFiles;
use posse_protocol::{Extra, SeenFile};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// How a run's knowledge of a file compares with the current content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// The run has seen exactly this content.
    Current,
    /// The content differs from what the run saw.
    Stale,
    /// The run has never read the file.
    None,
}

/// Records that a run knows `content` of `path`.
pub(crate) fn seen_file(path: String, content: &[u8]) -> SeenFile {
    SeenFile { path, hash: hash(content), extra: Extra::default() }
}

/// Compares the files that a run has `seen` with `content`, which `path` holds now.
pub(crate) fn compare(seen: &SeenFiles, path: &str, content: &[u8]) -> Knowledge {
    match seen.hash_of(path) {
        None => Knowledge::None,
        Some(known) if known == hash(content) => Knowledge::Current,
        Some(_) => Knowledge::Stale,
    }
}

fn hash(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
