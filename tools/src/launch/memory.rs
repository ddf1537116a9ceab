//! A file with the results of trials of back ends, valid until the machine reboots. With it, a process
//! that only needs to know whether there is a shell does not repeat the trial.
//!
//! The file holds only back ends that work, and only for exactly the same surroundings. A wrong entry
//! is no security hole: a command that cannot be confined does not run, and the file is deleted.

use crate::confine::{Backend, is_root};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(super) struct Memory(PathBuf);

/// Everything on which the result of a trial depends.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrialKey {
    boot: String,
    user: u32,
    /// Whether commands run as a user other than root.
    lends: bool,
    /// Whether `no_new_privs` is set. A setuid bubblewrap does not work then.
    no_new_rights: bool,
    /// The namespaces of users and of mounts.
    namespaces: Vec<PathBuf>,
    /// The program of the back end, if it has one.
    program: Option<Identity>,
}

/// Identifies one version of a file. It differs after the file is changed or replaced.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl TrialKey {
    /// The surroundings of this process, for a trial with `program`. `None` if they cannot be read.
    pub(super) fn of(program: Option<&Path>) -> Option<Self> {
        let namespace = |name: &str| fs::read_link(Path::new("/proc/self/ns").join(name)).ok();
        Some(TrialKey {
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?,
            user: rustix::process::geteuid().as_raw(),
            lends: is_root(),
            no_new_rights: rustix::thread::no_new_privs().ok()?,
            namespaces: vec![namespace("user")?, namespace("mnt")?],
            program: match program {
                Some(path) => Some(Identity::of(path)?),
                None => None,
            },
        })
    }
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        Some(Identity {
            path: path.to_owned(),
            device: data.dev(),
            inode: data.ino(),
            bytes: data.len(),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }
}

type Findings = BTreeMap<String, TrialKey>;

impl Memory {
    /// The folder of the file.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.0.parent().map(Path::to_owned)
    }

    pub(super) fn in_file(path: PathBuf) -> Self {
        Memory(path)
    }

    /// Whether `backend` has worked in these surroundings.
    pub(super) fn knows(&self, backend: Backend, surroundings: &TrialKey) -> bool {
        self.read().get(backend.as_str()) == Some(surroundings)
    }

    /// Stores that `backend` works. If that fails, the next process repeats the trial.
    pub(super) fn keep(&self, backend: Backend, surroundings: TrialKey) {
        let mut findings = self.read();
        findings.insert(backend.as_str().to_owned(), surroundings);
        let _ = self.write(&findings);
    }

    /// Deletes all entries: a back end that should work did not.
    pub(super) fn forget(&self) {
        let _ = fs::remove_file(&self.0);
    }

    fn read(&self) -> Findings {
        let text = fs::read(&self.0).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write(&self, findings: &Findings) -> io::Result<()> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // Replaced in one step: another process may be reading the file.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(findings)?)?;
        file.persist(&self.0)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(program: &Path) -> TrialKey {
        TrialKey::of(Some(program)).expect("a machine with /proc")
    }

    #[test]
    fn what_worked_is_known_until_its_surroundings_change() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bwrap");
        fs::write(&program, "one").unwrap();
        let memory = Memory::in_file(folder.path().join("state/posse/sandbox.json"));
        assert!(!memory.knows(Backend::Bubblewrap, &here(&program)));
        memory.keep(Backend::Bubblewrap, here(&program));
        assert!(memory.knows(Backend::Bubblewrap, &here(&program)));
        assert!(!memory.knows(Backend::Landlock, &here(&program)));
        memory.keep(Backend::Landlock, here(&program));
        assert!(memory.knows(Backend::Bubblewrap, &here(&program)));
        let before_a_boot = TrialKey { boot: "another".to_owned(), ..here(&program) };
        assert!(!memory.knows(Backend::Bubblewrap, &before_a_boot));
        fs::write(&program, "another").unwrap();
        assert!(!memory.knows(Backend::Bubblewrap, &here(&program)));
        assert!(TrialKey::of(Some(Path::new("/no/such/program"))).is_none());
    }

    #[test]
    fn what_cannot_be_read_or_was_forgotten_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bwrap");
        fs::write(&program, "one").unwrap();
        let file = folder.path().join("sandbox.json");
        let memory = Memory::in_file(file.clone());
        memory.keep(Backend::Bubblewrap, here(&program));
        memory.forget();
        assert!(!memory.knows(Backend::Bubblewrap, &here(&program)));
        fs::write(&file, "{\"bubblewrap\": tr").unwrap();
        assert!(!memory.knows(Backend::Bubblewrap, &here(&program)));
        memory.keep(Backend::Bubblewrap, here(&program));
        assert!(memory.knows(Backend::Bubblewrap, &here(&program)));
    }
}
