//! The last stage before a command in a sandbox of bubblewrap: this executable once more. It gives up
//! writing except where the sandbox allows it, and then becomes the command.
//!
//! A read-only mount prevents writing to files, but not to a FIFO. Landlock prevents both. Landlock
//! forbids mounts, so it can be applied only when the sandbox exists, from inside. The stage runs
//! before any process of the command, and the command inherits nothing from it.

use super::landlock::{keeps_moves, write_only_below};
use crate::linux;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, exit};

/// The first argument that makes an executable this stage.
pub(crate) const MARKER: &str = "__posse-enter";

/// The exit code if the stage does not become the command. The supervisor relies on its message instead.
const FAILED: i32 = 126;

/// The first byte of the stage's message. `CONFINED` means that it is confined; an error number follows
/// if the command could not be started. `NOT_CONFINED` means that it is not; the reason follows.
const CONFINED: u8 = b'+';
const NOT_CONFINED: u8 = b'-';

/// The supervisor's side of the stage.
pub(super) struct Entry {
    /// The arguments of the stage, before the command and its own arguments.
    pub arguments: Vec<OsString>,
    /// The descriptors that the stage must inherit.
    pub inherited: Vec<OwnedFd>,
    heard: File,
}

/// How the stage ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StageEnd {
    /// It became the command.
    Became,
    /// The command could not be started, with this error number of the system.
    NotStarted(i32),
    /// It could not confine itself. The reason is empty if it did not even begin.
    NotConfined(String),
}

impl Entry {
    /// Prepares the stage, which will allow writing only in `writable`. `None` if the kernel does not
    /// support that.
    pub(super) fn prepare(writable: &[PathBuf]) -> io::Result<Option<Entry>> {
        if !keeps_moves() {
            return Ok(None);
        }
        // By handle: in the sandbox, its path may be hidden or lead to another file. The handle only
        // names the file, and the stage closes it.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let executable = rustix::fs::open(linux::OWN_EXECUTABLE, flags, Mode::empty())?;
        let mut paths = Vec::new();
        for path in writable {
            paths.extend(path.as_os_str().as_bytes());
            paths.push(0);
        }
        let rules = linux::in_memory(&paths)?;
        let (heard, says) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let number = |descriptor: &OwnedFd| descriptor.as_raw_fd().to_string().into();
        let program = linux::path_of_handle(&executable).into_os_string();
        let arguments = vec![program, MARKER.into(), number(&rules), number(&says)];
        let inherited = vec![executable, rules, says];
        Ok(Some(Entry { arguments, inherited, heard: heard.into() }))
    }

    /// Returns how the stage ended. Call it after the command has ended.
    pub(super) fn entered(&mut self) -> StageEnd {
        let mut said = Vec::new();
        // Returns an error if a process still has the other end open.
        let _ = self.heard.read_to_end(&mut said);
        let rest = |said: &[u8]| String::from_utf8_lossy(said).into_owned();
        match said.split_first() {
            Some((&CONFINED, [])) => StageEnd::Became,
            Some((&CONFINED, error)) => match rest(error).parse() {
                Ok(error) => StageEnd::NotStarted(error),
                Err(_) => StageEnd::NotConfined(String::new()),
            },
            Some((_, why)) => StageEnd::NotConfined(rest(why)),
            None => StageEnd::NotConfined(String::new()),
        }
    }
}

/// Runs the stage, with the arguments after its marker.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ! {
    let (Some(rules), Some(says), Some(program)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        exit(FAILED)
    };
    // Reopened, so that no program inherits it.
    let Ok(mut says) = File::options().write(true).open(inherited(&says)) else { exit(FAILED) };
    let confined = linux::keep_descriptors_private()
        .and_then(|()| std::fs::read(inherited(&rules)))
        .and_then(|rules| write_only_below(&paths(&rules)));
    if let Err(error) = confined {
        let _ = says.write_all(&[&[NOT_CONFINED], error.to_string().as_bytes()].concat());
        exit(FAILED);
    }
    if says.write_all(&[CONFINED]).is_err() {
        exit(FAILED);
    }
    #[expect(clippy::disallowed_methods, reason = "this process becomes the command")]
    let error = Command::new(program).args(arguments).exec();
    let _ = write!(says, "{}", error.raw_os_error().unwrap_or(libc::EINVAL));
    exit(FAILED)
}

/// The path of an inherited descriptor.
fn inherited(number: &OsStr) -> PathBuf {
    PathBuf::from("/proc/self/fd").join(number)
}

fn paths(rules: &[u8]) -> Vec<PathBuf> {
    let names = rules.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| OsString::from_vec(name.to_vec()).into()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &[u8], expected: StageEnd) {
        let (heard, says) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        File::from(says).write_all(said).unwrap();
        let heard = heard.into();
        let mut entry = Entry { arguments: Vec::new(), inherited: Vec::new(), heard };
        assert_eq!(entry.entered(), expected);
    }

    #[test]
    fn only_who_says_that_it_is_confined_is() {
        check(b"+", StageEnd::Became);
        check(b"+2", StageEnd::NotStarted(2));
        check(b"-no such call", StageEnd::NotConfined("no such call".to_owned()));
        check(b"", StageEnd::NotConfined(String::new()));
        check(b"+x", StageEnd::NotConfined(String::new()));
    }
}
