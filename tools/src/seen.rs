//! Whether a run knows what a file holds: a hash of the content is compared, never the content.

use posse_agent::SeenFiles;
use posse_protocol::{Extra, SeenFile};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

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

/// The fact that a run knows `content` of `path`.
pub(crate) fn seen_file(path: String, content: &[u8]) -> SeenFile {
    SeenFile { path, hash: hash(content), extra: Extra::default() }
}

/// What a run that has `seen` these files knows of `path`, which now holds `content`.
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
