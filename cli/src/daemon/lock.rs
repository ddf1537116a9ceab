//! The lock that makes a daemon the only one of its database, and what it tells others. The kernel
//! drops it when the process dies, however it does.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The largest notice that is read.
const LARGEST: u64 = 64 << 10;
/// How long whoever only looks may hold a lock.
const A_LOOK: Duration = Duration::from_millis(500);

/// What the holder of a lock tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Its process.
    pub pid: u32,
    /// Where it listens.
    pub socket: PathBuf,
    /// Where it writes what happens; nothing when that is a terminal or a service manager.
    pub log: Option<PathBuf>,
    /// Its version.
    pub version: String,
}

/// Who holds a lock.
#[derive(Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    Nobody,
    /// Somebody who has not said who it is: it starts.
    Starting,
    /// This one.
    Daemon(Notice),
}

/// The lock, held until this is dropped or the process ends.
pub struct Lock(File);

impl Lock {
    /// Takes the lock of the file at `path`; nothing when another process holds it.
    pub fn take(path: &Path) -> io::Result<Option<Lock>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let file = file.open(path)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                // Somebody may just be looking who holds it.
                Err(TryLockError::WouldBlock) if began.elapsed() < A_LOOK => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        // What stands there is of one that is gone.
        file.set_len(0)?;
        Ok(Some(Lock(file)))
    }

    /// Says who holds it.
    pub fn tell(&mut self, notice: &Notice) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(&serde_json::to_vec(notice)?)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file stays: another may wait for its lock. What it says would be found out anyway.
        let _ = self.0.set_len(0);
    }
}

/// Who holds the lock of the file at `path`.
pub fn holder(path: &Path) -> io::Result<Holder> {
    let mut file = match File::open(path) {
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
}
