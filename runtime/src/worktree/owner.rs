//! Which owner of a run has its checkout on this machine.
//!
//! The epochs of the owners of a run have no gaps. So the next owner on this machine knows that no other machine had
//! the run in between, and that nothing in the checkout is older than what the store has.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// What an owner adds when it leaves the checkout and the store has all of it.
const STORED: &str = "stored";

/// The file that says so, which is locked while its owner has the checkout.
#[derive(Debug)]
pub(super) struct Owner {
    file: File,
    epoch: u64,
}

/// The owner before.
pub(super) struct Former {
    /// The store has all that is in the checkout.
    pub(super) has_stored_all: bool,
}

impl Owner {
    /// Returns the former owner if it had the run right before `epoch`, or in it, and has ended. After a restart of
    /// the machine there is none: files may have been lost that were not written to the disk.
    pub(super) fn former(mark: &Path, epoch: u64) -> Option<Former> {
        let file = File::open(mark).ok()?;
        // A process that is only paused goes on later, and changes files then.
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let text = std::fs::read_to_string(mark).ok()?;
        let mut words = text.split_whitespace();
        let before: u64 = words.next()?.parse().ok()?;
        let is_next = before == epoch || before.checked_add(1) == Some(epoch);
        let is_same_boot = words.next() == Some(boot()?.trim());
        let has_stored_all = words.next() == Some(STORED);
        (is_next && is_same_boot).then_some(Former { has_stored_all })
    }

    /// Notes that the owner with this epoch has the checkout now.
    pub(super) fn enter(mark: &Path, epoch: u64) -> io::Result<Owner> {
        // A former owner may still have the old file open.
        match std::fs::remove_file(mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut owner = Owner { file: File::create_new(mark)?, epoch };
        flock(&owner.file, FlockOperation::NonBlockingLockExclusive)?;
        owner.write("")?;
        Ok(owner)
    }

    /// Leaves the checkout to the next owner.
    pub(super) fn leave(mut self, has_stored_all: bool) {
        if has_stored_all {
            // If this fails, the next owner stores the state once more.
            let _ = self.write(STORED);
        }
    }

    fn write(&mut self, more: &str) -> io::Result<()> {
        let Some(boot) = boot() else { return Ok(()) };
        self.file.seek(SeekFrom::Start(0))?;
        self.file.set_len(0)?;
        writeln!(self.file, "{} {} {more}", self.epoch, boot.trim())
    }
}

/// Identifies the time since the machine was started.
fn boot() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_next_owner_finds_the_former_one_and_only_when_that_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let stored = |epoch| Owner::former(&mark, epoch).map(|former| former.has_stored_all);
        assert_eq!(stored(1), None);
        let first = Owner::enter(&mark, 4).unwrap();
        assert_eq!(stored(5), None, "it is still here");
        drop(first);
        assert_eq!(
            [stored(3), stored(4), stored(5), stored(6)],
            [None, Some(false), Some(false), None]
        );
        Owner::enter(&mark, 5).unwrap().leave(true);
        assert_eq!(stored(6), Some(true));
        // A former owner that goes on late does not speak for the new one.
        let late = Owner::enter(&mark, 6).unwrap();
        drop(Owner::enter(&mark, 7).unwrap());
        late.leave(true);
        assert_eq!(stored(8), Some(false));
        std::fs::write(&mark, "7 another-boot stored\n").unwrap();
        assert_eq!(stored(8), None);
    }
}
