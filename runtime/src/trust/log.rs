//! The log of trust decisions: lines of JSON, each chained to the ones before it. A fold over the
//! log yields the folders that the user trusts now.

use super::FilesToTrust;
use crate::chain;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the hash chain.
const CHAIN: &str = "posse trust";
/// The largest log that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// The kind of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// The user trusts the folder with its content.
    Trusted,
    /// The user no longer trusts it.
    Removed,
}

/// A recorded decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Its position in the log, from 1.
    pub seq: u64,
    /// Its time in milliseconds since 1970.
    pub at: u64,
    /// The kind.
    pub act: Act,
    /// The folder.
    pub folder: PathBuf,
    /// The hash over the content of the folder. Empty for a removal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The hash of each file, for reporting changes later.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// The content, in words for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brought: Vec<String>,
    /// The hash that chains it to the records before it.
    #[serde(skip)]
    pub hash: String,
}

/// Why the log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be read or written.
    #[error("the log of trust at {path} cannot be used: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The content was changed by something other than Posse.
    #[error(
        "record {seq} of the log of trust at {path} {what}; until that file is mended, or removed \
             together with the file beside it that ends in `.head`, nothing is trusted"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first record that differs from what was written.
        seq: u64,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// The log at a path, which need not exist.
#[derive(Clone, Debug)]
pub struct TrustLog {
    path: PathBuf,
}

/// Where the log ended when it was last written: it shows when the end of the log is missing.
#[derive(Serialize, Deserialize)]
struct Head {
    seq: u64,
    hash: String,
}

impl TrustLog {
    /// Returns the log at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        TrustLog { path: path.into() }
    }

    /// Returns all decisions, oldest first, after checking them.
    ///
    /// # Errors
    /// When the log cannot be read, or a record differs from what was written; the error names the
    /// first such record.
    pub fn decisions(&self) -> Result<Vec<Decision>, TrustError> {
        let mut text = String::new();
        match File::open(&self.path) {
            Ok(file) => {
                let read = file.take(MOST_BYTES).read_to_string(&mut text);
                read.map_err(|error| self.unusable(&error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.unusable(&error)),
        }
        Ok(self.check(&text)?.0)
    }

    /// Returns the trusted folders, and the decision about each.
    ///
    /// # Errors
    /// As [`TrustLog::decisions`].
    pub fn trusted(&self) -> Result<BTreeMap<PathBuf, Decision>, TrustError> {
        let mut trusted = BTreeMap::new();
        for decision in self.decisions()? {
            match decision.act {
                Act::Trusted => trusted.insert(decision.folder.clone(), decision),
                Act::Removed => trusted.remove(&decision.folder),
            };
        }
        Ok(trusted)
    }

    /// Returns the decision to trust `folder`, if it still applies.
    pub(super) fn decision_of(&self, folder: &Path) -> Result<Option<Decision>, TrustError> {
        Ok(self.trusted()?.remove(folder))
    }

    /// Records that the user trusts the files of `brought`. `told` is the text that the user saw.
    ///
    /// # Errors
    /// As [`TrustLog::record`].
    pub fn trust(&self, brought: &FilesToTrust, told: &[String]) -> Result<Decision, TrustError> {
        let FilesToTrust { folder, digest, digests, .. } = brought;
        self.write(Act::Trusted, folder, digest, digests.clone(), told)
    }

    /// Records that the user accepts the definitions of the server `key`: their hashes by name, and the hash of its
    /// program.
    pub(crate) fn accept(
        &self,
        key: &Path,
        program: &str,
        tools: BTreeMap<String, String>,
    ) -> Result<Decision, TrustError> {
        self.write(Act::Trusted, key, program, tools, &[])
    }

    /// Records a decision about `folder`, a canonical path.
    ///
    /// # Errors
    /// When the log cannot be written, or is damaged: then nothing is written.
    pub fn record(
        &self,
        act: Act,
        folder: &Path,
        digest: &str,
        brought: &[String],
    ) -> Result<Decision, TrustError> {
        self.write(act, folder, digest, BTreeMap::new(), brought)
    }

    fn write(
        &self,
        act: Act,
        folder: &Path,
        digest: &str,
        files: BTreeMap<String, String>,
        brought: &[String],
    ) -> Result<Decision, TrustError> {
        let cannot = |error: io::Error| self.unusable(&error);
        let parent = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(cannot)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&self.path).map_err(cannot)?;
        file.lock().map_err(cannot)?;
        let mut text = String::new();
        (&file).take(MOST_BYTES).read_to_string(&mut text).map_err(cannot)?;
        let (known, end) = self.check(&text)?;
        let before = known.last().map_or_else(|| chain::seed(CHAIN), |last| last.hash.clone());
        let mut decision = Decision {
            seq: known.len() as u64 + 1,
            at: now(),
            act,
            folder: folder.to_owned(),
            digest: digest.to_owned(),
            files,
            brought: brought.to_vec(),
            hash: String::new(),
        };
        let body = serde_json::to_string(&decision).map_err(|error| cannot(error.into()))?;
        let (line, hash) = chain::seal(&before, &body);
        // Remove the incomplete line of a process that died while it wrote.
        file.set_len(end).map_err(cannot)?;
        file.seek(SeekFrom::Start(end)).map_err(cannot)?;
        file.write_all(format!("{line}\n").as_bytes()).map_err(cannot)?;
        file.sync_all().map_err(cannot)?;
        decision.hash = hash;
        self.write_head(&Head { seq: decision.seq, hash: decision.hash.clone() })
            .map_err(cannot)?;
        Ok(decision)
    }

    /// Returns the decisions in `text`, and where the last complete line ends.
    fn check(&self, text: &str) -> Result<(Vec<Decision>, u64), TrustError> {
        let damaged = |seq: u64, what: &'static str| TrustError::Damaged {
            path: self.path.clone(),
            seq,
            what,
        };
        let mut decisions: Vec<Decision> = Vec::new();
        let mut before = chain::seed(CHAIN);
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            let Some(whole) = line.strip_suffix('\n') else { break };
            let seq = decisions.len() as u64 + 1;
            let opened = chain::open(&before, whole);
            let (body, hash) = opened.ok_or_else(|| damaged(seq, chain::fault(whole, seq)))?;
            let read = serde_json::from_str::<Decision>(body).ok().filter(|it| it.seq == seq);
            let mut decision = read.ok_or_else(|| damaged(seq, "was changed"))?;
            decision.hash = hash.to_owned();
            before = hash.to_owned();
            decisions.push(decision);
            end += line.len() as u64;
        }
        if let Some(head) = self.head()? {
            match decisions.get((head.seq as usize).wrapping_sub(1)) {
                Some(decision) if decision.hash == head.hash => {}
                Some(_) => return Err(damaged(head.seq, "was changed")),
                None => return Err(damaged(decisions.len() as u64 + 1, "is missing")),
            }
        }
        Ok((decisions, end))
    }

    fn head_path(&self) -> PathBuf {
        self.path.with_extension("head")
    }

    fn head(&self) -> Result<Option<Head>, TrustError> {
        match std::fs::read_to_string(self.head_path()) {
            Ok(text) => match serde_json::from_str(&text) {
                Ok(head) => Ok(Some(head)),
                Err(error) => Err(self.unusable(&error.into())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable(&error)),
        }
    }

    fn write_head(&self, head: &Head) -> io::Result<()> {
        let aside = self.path.with_extension("head.new");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(&serde_json::to_vec(head)?)?;
        file.sync_all()?;
        std::fs::rename(aside, self.head_path())
    }

    fn unusable(&self, error: &io::Error) -> TrustError {
        TrustError::Unusable { path: self.path.clone(), reason: error.to_string() }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn three(root: &Path) -> (TrustLog, PathBuf) {
        let path = root.join("state/trust.jsonl");
        let log = TrustLog::at(&path);
        for name in ["/a", "/b", "/c"] {
            log.record(Act::Trusted, Path::new(name), "d", &["agent x".to_owned()]).unwrap();
        }
        (log, path)
    }

    #[test]
    fn whom_one_trusts_is_what_the_log_says_last() {
        let root = tempfile::tempdir().unwrap();
        let (log, path) = three(root.path());
        log.record(Act::Removed, Path::new("/b"), "", &[]).unwrap();
        log.record(Act::Trusted, Path::new("/a"), "e", &[]).unwrap();
        let trusted = log.trusted().unwrap();
        let shown: Vec<(&str, &str)> = trusted
            .iter()
            .map(|(folder, decision)| (folder.to_str().unwrap(), decision.digest.as_str()))
            .collect();
        assert_eq!(shown, [("/a", "e"), ("/c", "d")]);
        for path in [&path, &log.head_path()] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let folder = std::fs::metadata(path.parent().unwrap()).unwrap();
        assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn the_first_record_is_named_that_was_changed_left_out_or_moved() {
        let root = tempfile::tempdir().unwrap();
        let (log, path) = three(root.path());
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let check = |lines: &[&str], says: &str| {
            std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>())
                .unwrap();
            let error = log.decisions().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
            assert!(log.record(Act::Removed, Path::new("/a"), "", &[]).is_err());
        };
        let changed = lines[1].replace("/b", "/x");
        check(&[lines[0], &changed, lines[2]], "record 2 of the log of trust");
        check(&[lines[0], lines[2]], "record 2 of the log");
        check(&[lines[1], lines[0], lines[2]], "record 1 of the log");
        check(&[lines[0], lines[1]], "record 3 of the log");
        check(&[], "record 1 of the log");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(log.decisions().unwrap().len(), 3);
    }

    #[test]
    fn a_line_that_was_never_finished_is_written_anew() {
        let root = tempfile::tempdir().unwrap();
        let (log, path) = three(root.path());
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"entry\":{\"seq\":4,").unwrap();
        assert_eq!(log.decisions().unwrap().len(), 3);
        log.record(Act::Removed, Path::new("/a"), "", &[]).unwrap();
        assert_eq!(log.decisions().unwrap().len(), 4);
    }
}
