//! A command in a box of bubblewrap's: namespaces of its own for users, processes, the network and
//! all else, mounts as in `mounts.rs`, no capabilities, and the filter.

use super::filter::Filter;
use super::mounts;
use super::walls::{Link, Walls};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::Deserialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the program is told by descriptors rather than by arguments, which everybody could read.
pub(crate) struct Bubblewrap {
    /// Kept open until it has started.
    inherited: Vec<OwnedFd>,
    arguments: Vec<OsString>,
    status: File,
}

/// What the program says about its box.
pub(crate) struct Said {
    /// The one that buries the others in the box; it is bubblewrap's own.
    pub first_process: Option<i32>,
    /// The command has run to its end: if it has not, what the program wrote says why.
    pub ran: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Document {
    child_pid: Option<i32>,
    exit_code: Option<i32>,
}

impl Bubblewrap {
    /// Prepares a box, in which the command will work in `folder`.
    pub(crate) fn prepare(walls: &Walls, folder: &Path) -> io::Result<Bubblewrap> {
        let (status, says) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Its own end is written to when there is something to say, which always fits.
        let filter = in_memory(&Filter::of(walls).bytes())?;
        let mut options = options(walls, folder);
        let mut option = |name: &str, descriptor: &OwnedFd| {
            options.extend([name.into(), descriptor.as_raw_fd().to_string().into()]);
        };
        option("--seccomp", &filter);
        option("--json-status-fd", &says);
        let mut text = Vec::new();
        for option in &options {
            text.extend(option.as_bytes());
            text.push(0);
        }
        let options = in_memory(&text)?;
        let arguments = vec!["--args".into(), options.as_raw_fd().to_string().into(), "--".into()];
        let inherited = vec![filter, says, options];
        Ok(Bubblewrap { inherited, arguments, status: status.into() })
    }

    /// What stands before the command and its arguments.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Hands the descriptors on. For the process that is about to become the program.
    pub(crate) fn hand_on(&self) -> io::Result<()> {
        for descriptor in &self.inherited {
            fcntl_setfd(descriptor.as_fd(), FdFlags::empty())?;
        }
        Ok(())
    }

    /// Closes what the program has for itself now.
    pub(crate) fn started(&mut self) {
        self.inherited.clear();
    }

    /// What the program has said up to now.
    pub(crate) fn said(&mut self) -> Said {
        let mut text = Vec::new();
        // Ends with an error where nothing more was said.
        let _ = self.status.read_to_end(&mut text);
        let mut said = Said { first_process: None, ran: false };
        for document in serde_json::Deserializer::from_slice(&text).into_iter::<Document>() {
            let Ok(document) = document else { break };
            said.first_process = said.first_process.or(document.child_pid);
            said.ran |= document.exit_code.is_some();
        }
        said
    }
}

fn options(walls: &Walls, folder: &Path) -> Vec<OsString> {
    let mut options: Vec<OsString> = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    .map(OsString::from)
    .to_vec();
    if walls.link == Link::None {
        options.push("--unshare-net".into());
    }
    options.extend(mounts::arguments(walls));
    if walls.writable.is_empty() {
        options.extend(["--setenv", "TMPDIR", "/tmp"].map(OsString::from));
    }
    options.extend(["--chdir".into(), folder.into()]);
    options
}

/// A file that is nowhere, with this content.
fn in_memory(content: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("posse", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}
