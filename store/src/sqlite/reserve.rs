//! Space kept back on the disk, so that a full one does not keep a run from being stopped.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(super) struct SpaceReserve {
    file: PathBuf,
    bytes: u64,
    database: PathBuf,
    /// The write-ahead log.
    log: PathBuf,
}

/// What it would take to end the state of a full disk by cutting the write-ahead log off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shrinking {
    /// There would not be enough room, or what the log holds does not fit into the file.
    Useless,
    /// The space that is free.
    Free,
    /// The space that is kept back besides.
    Reserve,
}

impl SpaceReserve {
    pub(super) fn new(database: &Path, bytes: u64) -> Self {
        let beside = |ending| {
            let mut path = database.as_os_str().to_owned();
            path.push(ending);
            PathBuf::from(path)
        };
        let (file, log) = (beside("-reserve"), beside("-wal"));
        SpaceReserve { file, bytes, database: database.to_owned(), log }
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
        self.free() >= self.needed()
    }

    /// Takes the space again that was given up for the write-ahead log, whether or not there is room
    /// for ordinary work beside it.
    pub(super) fn restore(&self) {
        if !self.is_filled() && self.free() >= self.bytes {
            // What cannot be had now is tried for again when there is room.
            let _ = self.fill();
        }
    }

    /// Whether there would be room if the write-ahead log were brought into the file, which then has
    /// `whole` bytes, and cut off.
    pub(super) fn shrinking(&self, whole: u64) -> Shrinking {
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        let growth = whole.saturating_sub(length(&self.database));
        let (free, log) = (self.free(), length(&self.log));
        let held = if self.is_filled() { self.bytes } else { 0 };
        let gained = free.saturating_add(log).saturating_sub(growth) >= self.needed();
        match () {
            () if !gained || growth > free.saturating_add(held) => Shrinking::Useless,
            () if growth > free => Shrinking::Reserve,
            () => Shrinking::Free,
        }
    }

    fn needed(&self) -> u64 {
        if self.is_filled() { self.bytes } else { self.bytes.saturating_mul(2) }
    }

    /// Free bytes of the disk.
    fn free(&self) -> u64 {
        let Some(folder) = self.file.parent() else { return u64::MAX };
        rustix::fs::statvfs(folder).map_or(0, |space| space.f_bavail * space.f_frsize)
    }
}
