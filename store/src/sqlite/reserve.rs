//! Space kept back on the disk, so that a full one does not keep a run from being stopped.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(super) struct SpaceReserve {
    file: PathBuf,
    bytes: u64,
}

impl SpaceReserve {
    pub(super) fn new(database: &Path, bytes: u64) -> Self {
        let mut file = database.as_os_str().to_owned();
        file.push("-reserve");
        SpaceReserve { file: PathBuf::from(file), bytes }
    }

    /// Takes the space, unless it is taken already. False when the disk is too full for that.
    pub(super) fn take(&self) -> bool {
        // Looked at first: to try would take what others need to stop their runs.
        self.is_filled() || (self.has_room() && self.fill().is_ok())
    }

    fn fill(&self) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&self.file)?;
        // Written, not only allocated: some file systems promise space they do not have.
        let block = vec![0u8; 64 << 10];
        let mut left = self.bytes;
        while left > 0 {
            let take = left.min(block.len() as u64);
            if let Err(error) = file.write_all(&block[..take as usize]) {
                let _ = std::fs::remove_file(&self.file);
                return Err(error);
            }
            left -= take;
        }
        Ok(())
    }

    fn is_filled(&self) -> bool {
        std::fs::metadata(&self.file).is_ok_and(|data| data.len() >= self.bytes)
    }

    /// Gives the space to whoever writes next.
    pub(super) fn release(&self) {
        let _ = std::fs::remove_file(&self.file);
    }

    /// True when there is room for the reserve, if it has been used, and as much again for
    /// ordinary work beside it.
    pub(super) fn has_room(&self) -> bool {
        let Some(folder) = self.file.parent() else { return true };
        let needed = if self.is_filled() { self.bytes } else { self.bytes.saturating_mul(2) };
        rustix::fs::statvfs(folder).is_ok_and(|space| space.f_bavail * space.f_frsize >= needed)
    }
}
