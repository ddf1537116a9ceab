//! Which owner of a run has its checkout on this machine.
//!
//! A file beside the checkout is locked while a process makes, uses or removes the checkout. The epochs of the owners of
//! a run have no gaps. So the next owner on this machine knows that no other machine had the run in between, and that
//! nothing in the checkout is older than what the store has.

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What an owner adds when it leaves the checkout and the store has all of it.
const STORED: &str = "stored";

/// What an owner adds while the store lacks finished changes.
const LACKS: &str = "lacks";

/// The right to use the checkout of a run, until it is dropped.
#[derive(Debug)]
pub(super) struct Owner {
    file: File,
    mark: PathBuf,
}

/// The owner before.
pub(super) struct Former {
    /// The store has all that is in the checkout.
    pub(super) has_stored_all: bool,
}

impl Owner {
    /// Returns the right, or `None` while another process has it. That process may only be paused, and would go on
    /// with the same files later.
    pub(super) fn claim(mark: &Path) -> io::Result<Option<Owner>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(mark)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        // The owner before may have removed the file meanwhile.
        let is_there =
            mark.metadata().is_ok_and(|it| file.metadata().is_ok_and(|own| it.ino() == own.ino()));
        Ok(is_there.then(|| Owner { file, mark: mark.to_owned() }))
    }

    /// Returns the former owner if it had the run right before `epoch`, or in it. After a restart of the machine there
    /// is none: files may have been lost that were not written to the disk.
    pub(super) fn former(&mut self, epoch: u64) -> Option<Former> {
        let text = self.text()?;
        let mut words = text.split_whitespace();
        let before: u64 = words.next()?.parse().ok()?;
        let is_next = before == epoch || before.checked_add(1) == Some(epoch);
        let is_same_boot = words.next() == Some(boot()?.trim());
        let has_stored_all = words.next() == Some(STORED);
        (is_next && is_same_boot).then_some(Former { has_stored_all })
    }

    /// Notes that the checkout is not complete.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// Notes that the owner with this epoch has the complete checkout.
    pub(super) fn enter(&mut self, epoch: u64) -> io::Result<()> {
        self.write(epoch, "")
    }

    /// Notes whether the store lacks finished changes of this epoch.
    pub(super) fn note(&mut self, epoch: u64, is_lacking: bool) -> io::Result<()> {
        self.write(epoch, if is_lacking { LACKS } else { "" })
    }

    /// True when the last owner knew that the store lacks finished changes. Then they are only in the checkout.
    pub(super) fn is_lacking(&mut self) -> bool {
        self.text().is_some_and(|text| text.split_whitespace().nth(2) == Some(LACKS))
    }

    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0)).ok()?;
        (&self.file).take(LONGEST).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Leaves the checkout of this epoch to the next owner.
    pub(super) fn leave(mut self, epoch: u64, has_stored_all: bool) {
        if has_stored_all {
            // If this fails, the next owner stores the state once more.
            let _ = self.write(epoch, STORED);
        }
    }

    /// Gives up the right after the checkout was removed.
    pub(super) fn remove(self) {
        // A file that stays says of a checkout that is gone who had it.
        let _ = std::fs::remove_file(&self.mark);
    }

    fn write(&mut self, epoch: u64, more: &str) -> io::Result<()> {
        let Some(boot) = boot() else { return Ok(()) };
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        writeln!(self.file, "{epoch} {} {more}", boot.trim())
    }
}

/// The most bytes of the file that are read.
const LONGEST: u64 = 1_000;

/// Identifies the time since the machine was started.
fn boot() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_next_owner_finds_the_former_one_and_only_when_that_has_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let claim = || Owner::claim(&mark).unwrap();
        let stored = |epoch| claim()?.former(epoch).map(|former| former.has_stored_all);
        assert_eq!(stored(1), None);
        let mut first = claim().unwrap();
        first.enter(4).unwrap();
        assert!(claim().is_none(), "it is still here");
        drop(first);
        let known = [stored(3), stored(4), stored(5), stored(6)];
        assert_eq!(known, [None, Some(false), Some(false), None]);
        claim().unwrap().leave(5, true);
        assert_eq!(stored(6), Some(true));
        let mut lacking = claim().unwrap();
        lacking.note(6, true).unwrap();
        assert!(lacking.is_lacking() && lacking.former(7).is_some_and(|it| !it.has_stored_all));
        lacking.note(6, false).unwrap();
        assert!(!lacking.is_lacking());
        drop(lacking);
        // It dies while it makes the checkout anew.
        claim().unwrap().begin().unwrap();
        assert_eq!(stored(6), None);
        std::fs::write(&mark, "7 another-boot stored\n").unwrap();
        assert_eq!(stored(8), None);
        claim().unwrap().remove();
        assert!(!mark.exists());
    }
}
