//! Reserved disk space, so that runs can be stopped when the disk is full.

use rustix::fs::OFlags;
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

/// Whether a truncation of the write-ahead log can end the state of a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shrinking {
    /// No: it frees too little space, or the content of the log does not fit into the file.
    Useless,
    /// Yes, with the free space.
    Free,
    /// Yes, if the reserve is released first.
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

    /// Reserves the space, unless it is reserved already. Returns false if the disk is too full.
    pub(super) fn take(&self) -> bool {
        // Check first: trying would take space that other processes need to stop their runs.
        self.is_filled() || (self.has_room() && self.fill().is_ok())
    }

    fn fill(&self) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            // A link could name a file elsewhere.
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&self.file)?;
        // Write the bytes: some file systems allocate space that they do not have.
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

    /// Releases the space for the next writes.
    pub(super) fn release(&self) {
        let _ = std::fs::remove_file(&self.file);
    }

    /// Returns true if there is room for the reserve, unless it is filled, and for as much again.
    pub(super) fn has_room(&self) -> bool {
        self.free() >= self.needed()
    }

    /// Reserves the space again that was released to truncate the log, even if nothing else fits.
    pub(super) fn restore(&self) {
        if !self.is_filled() && self.free() >= self.bytes {
            // If this fails, the writer tries again when there is room.
            let _ = self.fill();
        }
    }

    /// Returns whether there would be room if the write-ahead log were moved into the file, which
    /// then has `whole` bytes, and truncated.
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

    /// Returns the free bytes of the disk.
    fn free(&self) -> u64 {
        let Some(folder) = self.file.parent() else { return u64::MAX };
        rustix::fs::statvfs(folder).map_or(0, |space| space.f_bavail * space.f_frsize)
    }
}
