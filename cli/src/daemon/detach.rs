//! Starts this program again as a process that outlives the terminal.

use super::address::Address;
use crate::database::Database;
use crate::environment::Environment;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The size at which the next start rotates the log.
const LARGE: u64 = 1 << 20;

/// Starts the daemon. It inherits only the environment of this process, which holds the keys. Its
/// output goes to its log. It leaves the session by itself.
pub fn start(address: &Address, environment: &Environment) -> io::Result<Child> {
    posse::launch::keep_descriptors_private()?;
    put_aside(&address.log);
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&address.log)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the program itself, which is to outlive this process: no command of an agent"
    )]
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["daemon", "start", "--foreground", "--detached"])
        .current_dir("/")
        // The secrets are no longer in the environment of this process.
        .envs(environment.secret_variables());
    match &address.database {
        Database::File(path) => command.arg("--db").arg(path),
        // The address may contain a password, which other users would see in the arguments.
        Database::Server(server) => command.env("POSSE_DB", &server.options.url),
    };
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

/// Leaves the session, and with it the terminal.
pub fn leave_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// The length of a log.
pub fn end_of(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |found| found.len())
}

/// The content of a log after `from`; for a large one, only the end.
pub fn said_since(log: &Path, from: u64) -> String {
    const MOST: u64 = 4 << 10;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let from = from.max(file.metadata()?.len().saturating_sub(MOST));
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).trim().to_owned()
}

/// Renames a large log, which replaces the one before it.
fn put_aside(log: &Path) {
    if end_of(log) > LARGE {
        // If this fails, the log is only longer than it should be.
        let _ = std::fs::rename(log, log.with_extension("log.old"));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_large_log_is_put_aside_and_the_end_of_one_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("x.log");
        assert_eq!((end_of(&log), said_since(&log, 0)), (0, String::new()));
        std::fs::write(&log, "before\nafter\n").unwrap();
        put_aside(&log);
        assert_eq!(said_since(&log, 7), "after");
        std::fs::write(&log, vec![b'x'; LARGE as usize + 1]).unwrap();
        assert_eq!(said_since(&log, 0).len(), 4 << 10);
        put_aside(&log);
        assert!(!log.exists() && folder.path().join("x.log.old").exists());
    }
}
