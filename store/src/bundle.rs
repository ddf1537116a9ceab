//! Bundles: the state of a run's checkout of a git repository, as git packs it. The owner of a run
//! replaces it with an append, and it is removed with the log.
//!
//! An engine stores a bundle as rows of text: a head, and parts of the data in base64. The parts are
//! staged before the append, each in a transaction of its own. The append stores the head, and only
//! then the bundle counts.

use crate::error::StoreError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posse_protocol::{Extra, RunId, Seq, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many bytes of the data one row has. In base64 they are 1 MiB.
const PART: usize = 768 << 10;

/// The state of a run's checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// What it contains.
    pub about: BundleAbout,
    /// The bundle as git writes it.
    pub data: Arc<[u8]>,
}

/// What a bundle contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleAbout {
    /// The commit with the state.
    pub tip: String,
    /// The commit that a repository must have to take the bundle.
    pub base: String,
    /// The branch in the bundle.
    pub branch: String,
    /// Why later changes are not in it, if there were any; they are only in the checkout.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lacks: String,
    /// Changes of subagents that are in it: the runs, and the last commit of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub merged: BTreeMap<RunId, String>,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A bundle without its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleHead {
    /// What it contains.
    pub about: BundleAbout,
    /// The length of the data.
    pub bytes: usize,
    /// The SHA-256 of the data, in hex.
    pub sha256: String,
}

/// A row of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BundleRow {
    pub(crate) part: u64,
    pub(crate) body: String,
    pub(crate) hash: String,
}

impl Bundle {
    /// The most bytes of a bundle that a store takes.
    pub const MOST: usize = 32 << 20;

    /// Returns the SHA-256 of the data, in hex.
    pub fn sha256(&self) -> String {
        hex(&Sha256::digest(&self.data))
    }

    /// Refuses a bundle that is too large.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.data.len() > Bundle::MOST {
            true => Err(StoreError::Misplaced("a bundle is larger than a store takes")),
            false => Ok(()),
        }
    }

    /// Returns the bundle without its data.
    pub fn head(&self) -> BundleHead {
        BundleHead { about: self.about.clone(), bytes: self.data.len(), sha256: self.sha256() }
    }

    /// Returns a row of the data, for `run`. The first part is 1.
    pub(crate) fn part(&self, run: RunId, part: u64) -> Option<BundleRow> {
        let index = usize::try_from(part).ok()?.checked_sub(1)?;
        let body = STANDARD.encode(self.data.chunks(PART).nth(index)?);
        Some(BundleRow { part, hash: seal(run, part, &body), body })
    }

    /// Reads the rows of `run`, in order, and checks them. There is no bundle without rows.
    pub(crate) fn read(run: RunId, rows: &[BundleRow]) -> Result<Option<Bundle>, StoreError> {
        let Some((first, parts)) = rows.split_first() else { return Ok(None) };
        let damaged = |reason: &str| {
            let reason = format!("its bundle: {reason}");
            StoreError::Damaged { run, seq: Seq::ZERO, reason }
        };
        for (row, part) in rows.iter().zip(0..) {
            if row.part != part || row.hash != seal(run, part, &row.body) {
                return Err(damaged(&format!("part {part} was changed or is missing")));
            }
        }
        let head: BundleHead = serde_json::from_str(&first.body)
            .map_err(|_| damaged("what it contains cannot be read"))?;
        let mut data = Vec::with_capacity(head.bytes.min(Bundle::MOST));
        for row in parts {
            let part = STANDARD.decode(&row.body);
            data.extend(part.map_err(|_| damaged("a part cannot be read"))?);
        }
        let bundle = Bundle { about: head.about, data: data.into() };
        if bundle.data.len() != head.bytes || bundle.sha256() != head.sha256 {
            return Err(damaged("its parts do not make the whole"));
        }
        Ok(Some(bundle))
    }
}

impl BundleHead {
    /// How many rows of data it has.
    pub(crate) fn parts(&self) -> u64 {
        self.bytes.div_ceil(PART) as u64
    }

    /// Returns its row, for `run`.
    pub(crate) fn row(&self, run: RunId) -> BundleRow {
        // A struct of texts and numbers can always be written.
        let body = serde_json::to_string(self).unwrap_or_default();
        BundleRow { part: 0, hash: seal(run, 0, &body), body }
    }
}

/// Returns the hash of a row: SHA-256 of the run, the number of the part and the body.
fn seal(run: RunId, part: u64, body: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(run.to_string());
    hash.update(part.to_be_bytes());
    hash.update(body);
    hex(&hash.finalize())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn rows(bundle: &Bundle, run: RunId) -> Vec<BundleRow> {
        let head = bundle.head();
        let parts = (1..).map_while(|part| bundle.part(run, part));
        let rows: Vec<BundleRow> = std::iter::once(head.row(run)).chain(parts).collect();
        assert_eq!(rows.len() as u64, 1 + head.parts());
        rows
    }

    fn bundle(bytes: usize) -> Bundle {
        let data: Vec<u8> = (0..bytes).map(|at| (at * 7 % 251) as u8).collect();
        let about = BundleAbout { tip: "t".to_owned(), ..BundleAbout::default() };
        Bundle { about, data: data.into() }
    }

    #[test]
    fn a_bundle_is_read_as_it_was_stored_whatever_its_length() {
        let run = RunId::new();
        for bytes in [0, 1, PART - 1, PART, PART + 1, 3 * PART + 7] {
            let bundle = bundle(bytes);
            let rows = rows(&bundle, run);
            assert_eq!(rows.len(), 1 + bytes.div_ceil(PART), "{bytes}");
            assert_eq!(Bundle::read(run, &rows).unwrap(), Some(bundle), "{bytes}");
        }
        assert_eq!(Bundle::read(run, &[]).unwrap(), None);
    }

    #[test]
    fn a_changed_a_missing_and_a_foreign_part_are_found() {
        let run = RunId::new();
        let rows = rows(&bundle(3 * PART), run);
        for at in 0..rows.len() {
            let mut changed = rows.clone();
            let first = changed[at].body.remove(0);
            changed[at].body.insert(0, if first == 'A' { 'B' } else { 'A' });
            assert!(Bundle::read(run, &changed).is_err(), "{at}");
            let mut missing = rows.clone();
            missing.remove(at);
            assert!(Bundle::read(run, &missing).is_err(), "{at}");
        }
        assert!(Bundle::read(RunId::new(), &rows).is_err(), "they are of another run");
    }
}
