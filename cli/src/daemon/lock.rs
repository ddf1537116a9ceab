//! The lock that makes a daemon the only one of its database, and the description of the daemon in
//! it. The kernel releases the lock when the process dies, in whatever way.

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Opens no link: a lock is a file of its own.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();
/// The most bytes of a notice.
const LARGEST: u64 = 64 << 10;
/// How long a process that only checks the lock may hold it.
const A_LOOK: Duration = Duration::from_millis(500);

/// The description of a daemon in its lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Its process id.
    pub pid: u32,
    /// Its socket.
    pub socket: PathBuf,
    /// Its log; `None` if it writes to a terminal or a service manager.
    pub log: Option<PathBuf>,
    /// Its version.
    pub version: String,
}

/// The holder of a lock.
#[derive(Debug, PartialEq, Eq)]
pub enum Holder {
    /// No process.
    Nobody,
    /// A daemon that is starting and has not written its notice.
    Starting,
    /// This daemon.
    Daemon(Notice),
}

/// The lock, held until this is dropped or the process ends.
pub struct Lock(File);

impl Lock {
    /// Takes the lock of the file at `path`; `None` if another process holds it.
    pub fn take(path: &Path) -> io::Result<Option<Lock>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let file = file.custom_flags(NO_LINK).open(path)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                // Another process may hold the lock only to check it.
                Err(TryLockError::WouldBlock) if began.elapsed() < A_LOOK => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        // The old content belongs to a daemon that is gone.
        file.set_len(0)?;
        Ok(Some(Lock(file)))
    }

    /// Writes the notice of the holder.
    pub fn tell(&mut self, notice: &Notice) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(&serde_json::to_vec(notice)?)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Keep the file, because another process may wait for its lock. An old notice does no harm.
        let _ = self.0.set_len(0);
    }
}

/// The holder of the lock of the file at `path`.
pub fn holder(path: &Path) -> io::Result<Holder> {
    let opened = OpenOptions::new().read(true).custom_flags(NO_LINK).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holder::Nobody),
        file => file?,
    };
    match file.try_lock_shared() {
        Ok(()) => return Ok(Holder::Nobody),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut text = String::new();
    Read::by_ref(&mut file).take(LARGEST).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text).map_or(Holder::Starting, Holder::Daemon))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_and_tells_who_it_is_until_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db-daemon");
        assert_eq!(holder(&path).unwrap(), Holder::Nobody);
        let mut lock = Lock::take(&path).unwrap().unwrap();
        assert_eq!(holder(&path).unwrap(), Holder::Starting);
        let socket = PathBuf::from("/run/x.sock");
        let notice = Notice { pid: 7, socket, log: None, version: "1".to_owned() };
        lock.tell(&notice).unwrap();
        assert_eq!(holder(&path).unwrap(), Holder::Daemon(notice));
        assert!(Lock::take(&path).unwrap().is_none());
        drop(lock);
        assert_eq!(holder(&path).unwrap(), Holder::Nobody);
        assert!(Lock::take(&path).unwrap().is_some());
    }

    #[test]
    fn a_link_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, path) = (folder.path().join("kept"), folder.path().join("x.db-daemon"));
        std::fs::write(&kept, "kept").unwrap();
        std::os::unix::fs::symlink(&kept, &path).unwrap();
        assert!(Lock::take(&path).is_err() && holder(&path).is_err());
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept");
    }
}
