//! The hash that ties each event to all before it in its run.

use posse_protocol::{RunId, Seq};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// What stands before the first event: the run's own id, so that logs cannot be swapped.
pub(crate) fn seed(run: RunId) -> String {
    hex(&Sha256::digest(run.to_string().as_bytes()))
}

/// The hash of an event, given the hash before it.
pub(crate) fn link(before: &str, seq: Seq, at: u64, version: u32, body: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(before.as_bytes());
    digest.update(seq.0.to_be_bytes());
    digest.update(at.to_be_bytes());
    digest.update(version.to_be_bytes());
    digest.update(body.as_bytes());
    hex(&digest.finalize())
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}
