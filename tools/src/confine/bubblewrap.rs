//! A sandbox of bubblewrap around a command. It has its own namespaces for users, processes, the network and
//! everything else, the mounts of `mounts.rs`, no capabilities, and the filter of system calls.

use super::command_sandbox::{CommandSandbox, Link};
use super::entry::{Entry, StageEnd};
use super::filter::Filter;
use super::lending::{Lender, LentMounts, give_away, is_for_good};
use super::mounts::{self, Identity, Layout, folder_handle, identity_below};
use crate::linux;
use posse_protocol::Profile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::Deserialize;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempPath;

/// How long bubblewrap may take to build a sandbox. Hundreds of mounts take seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of bubblewrap. It gets its options by descriptors, because every user can read arguments.
pub(crate) struct Bubblewrap {
    /// Open until bubblewrap has started.
    inherited: Vec<OwnedFd>,
    /// Must exist until the command has ended.
    _masks: Vec<TempPath>,
    arguments: Vec<OsString>,
    status: File,
    /// What bubblewrap has reported up to now.
    heard: Vec<u8>,
    /// The command starts when a byte is written here.
    gate: Option<File>,
    /// The last stage before the command, if the kernel supports it.
    entry: Option<Entry>,
    /// Mounts in places that commands can change, and the folder or file that each of them must be.
    inside: Vec<(PathBuf, Identity)>,
    /// All mount points in places that commands can change.
    points: Vec<PathBuf>,
    /// The mounts for the user as which the command runs.
    lent: Option<LentMounts>,
    /// Why the command runs as root although it should have been another user.
    why_root: Option<String>,
}

/// What bubblewrap has reported about its sandbox.
pub(crate) struct BubblewrapReport {
    /// The first process in the sandbox, which reaps the others. It belongs to bubblewrap.
    pub first_process: Option<i32>,
    /// The command has run to its end. If not, bubblewrap's output contains the reason.
    pub ran: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Document {
    child_pid: Option<i32>,
    exit_code: Option<i32>,
}

impl Bubblewrap {
    /// Prepares a sandbox, in which the command will work in `folder`.
    pub(crate) fn prepare(sandbox: &CommandSandbox, folder: &Path) -> io::Result<Bubblewrap> {
        let (status, says) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Bubblewrap's end does not block either: its few messages always fit into the pipe.
        let filter = linux::in_memory(&Filter::of(sandbox).bytes())?;
        let (layout, lent, why_root) = match sandbox.lends.then(|| lend(sandbox)) {
            Some(Ok((layout, lent))) => (layout, Some(lent), None),
            // An agent may have caused a failure that is not permanent.
            Some(Err(error)) if sandbox.must_lend || !is_for_good(&error) => return Err(error),
            Some(Err(error)) => (mounts::layout(sandbox, None)?, None, Some(error.to_string())),
            None => (mounts::layout(sandbox, None)?, None, None),
        };
        let Layout { arguments: mounts, masks, writable, inside, points } = layout;
        let mut options = options(sandbox, folder, mounts, lent.is_some());
        let mut option = |name: &str, descriptor: &OwnedFd| {
            options.extend([name.into(), descriptor.as_raw_fd().to_string().into()]);
        };
        option("--seccomp", &filter);
        option("--json-status-fd", &says);
        let mut inherited = Vec::new();
        let mut gate = None;
        if needs_gate(sandbox) {
            let (waits, opens) = pipe_with(PipeFlags::CLOEXEC)?;
            option("--block-fd", &waits);
            inherited.push(waits);
            gate = Some(File::from(opens));
        }
        let mut text = Vec::new();
        for option in &options {
            text.extend(option.as_bytes());
            text.push(0);
        }
        let options = linux::in_memory(&text)?;
        let mut arguments =
            vec!["--args".into(), options.as_raw_fd().to_string().into(), "--".into()];
        inherited.extend([filter, says, options]);
        let mut entry = Entry::prepare(&writable)?;
        if let Some(entry) = &mut entry {
            if lent.is_some() {
                entry.inherited.iter().try_for_each(give_away)?;
            }
            arguments.append(&mut entry.arguments);
            inherited.append(&mut entry.inherited);
        }
        let (status, heard) = (status.into(), Vec::new());
        Ok(Bubblewrap {
            inherited,
            _masks: masks,
            arguments,
            status,
            heard,
            gate,
            entry,
            inside,
            points,
            lent,
            why_root,
        })
    }

    /// The arguments before the command and its own arguments.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Makes the descriptors inheritable. For the process that is about to become bubblewrap.
    pub(crate) fn hand_on(&self) -> io::Result<()> {
        for descriptor in &self.inherited {
            fcntl_setfd(descriptor.as_fd(), FdFlags::empty())?;
        }
        Ok(())
    }

    /// Takes the mounts, which the process that becomes bubblewrap puts in place before it gives up being root.
    pub(crate) fn lent(&mut self) -> Option<LentMounts> {
        self.lent.take()
    }

    /// Why the command runs as root although it should have been another user.
    pub(crate) fn why_root(&self) -> Option<&str> {
        self.why_root.as_deref()
    }

    /// Closes the descriptors that bubblewrap has inherited.
    pub(crate) fn started(&mut self) {
        self.inherited.clear();
    }

    /// Waits until the sandbox exists, and returns its first process. `None` if that fails.
    pub(crate) fn stands(&mut self) -> Option<i32> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(process) = self.said().first_process {
                return Some(process);
            }
            let time = Timespec { tv_sec: 1, tv_nsec: 0 };
            let mut events = [PollFd::new(&self.status, PollFlags::IN)];
            if poll(&mut events, Some(&time)).is_ok() && events[0].revents() == PollFlags::HUP {
                return None;
            }
        }
        None
    }

    /// Returns true if the command waits for the gate to open.
    pub(crate) fn has_gate(&self) -> bool {
        self.gate.is_some()
    }

    /// Returns whether the workspace in the sandbox is the folder that the run began in, and whether
    /// the mounts in it are those that were planned. Bubblewrap mounts by path. A process that may
    /// change the folders around a path can put another folder or a link there at any moment. After the
    /// mount, that has no effect any more.
    pub(crate) fn holds(&mut self, inside: i32, sandbox: &CommandSandbox) -> io::Result<bool> {
        let Some(identity) = sandbox.identity else { return Ok(true) };
        let root = PathBuf::from(format!("/proc/{inside}/root"));
        let outside = rustix::fs::stat("/dev")?.st_dev;
        let began = Instant::now();
        // The sandbox is complete when it has its own devices: only then does it become the root.
        loop {
            match rustix::fs::stat(root.join("dev")) {
                Ok(found) if found.st_dev != outside => break,
                // We cannot look into the sandbox of a setuid bubblewrap.
                Err(Errno::ACCESS | Errno::PERM) => return Ok(true),
                _ if began.elapsed() > PATIENCE => {
                    let seconds = PATIENCE.as_secs();
                    return Err(io::Error::other(format!(
                        "the sandbox was not complete after {seconds} s"
                    )));
                }
                _ => {}
            }
            let time = Timespec { tv_sec: 0, tv_nsec: 500_000 };
            let mut events = [PollFd::new(&self.status, PollFlags::IN)];
            // Bubblewrap has ended, and its output contains the reason.
            if poll(&mut events, Some(&time)).is_ok() && events[0].revents() == PollFlags::HUP {
                return Ok(true);
            }
        }
        let root = folder_handle(&root)?;
        let is_there = |path: &Path, identity: Identity| {
            let path = path.strip_prefix("/").unwrap_or(path);
            identity_below(&root, path).is_ok_and(|found| found == identity)
        };
        let mounted = linux::mounted_for(inside)?.into_iter().map(|it| it.point);
        let mounted: HashSet<PathBuf> = mounted.collect();
        Ok(is_there(&sandbox.workspace, identity)
            && self.inside.iter().all(|(path, identity)| is_there(path, *identity))
            && self.points.iter().all(|path| mounted.contains(path)))
    }

    /// Lets the command start, if it waits for the gate.
    pub(crate) fn open_gate(&mut self) {
        if let Some(mut gate) = self.gate.take() {
            let _ = gate.write_all(b"+");
        }
    }

    /// How the last stage before the command ended; `None` if there is no such stage.
    pub(crate) fn entered(&mut self) -> Option<StageEnd> {
        self.entry.as_mut().map(Entry::entered)
    }

    /// What bubblewrap has reported up to now.
    pub(crate) fn said(&mut self) -> BubblewrapReport {
        // Returns an error if there is no more to read at the moment.
        let _ = self.status.read_to_end(&mut self.heard);
        let mut said = BubblewrapReport { first_process: None, ran: false };
        for document in serde_json::Deserializer::from_slice(&self.heard).into_iter::<Document>() {
            let Ok(document) = document else { break };
            said.first_process = said.first_process.or(document.child_pid);
            said.ran |= document.exit_code.is_some();
        }
        said
    }
}

/// Returns true if the command must wait: for the bridge to the proxy, or until the supervisor has
/// checked that the workspace, which the command may change, is the right one.
fn needs_gate(sandbox: &CommandSandbox) -> bool {
    let writes = sandbox.profile == Profile::WorkspaceWrite;
    matches!(sandbox.link, Link::Proxy(_)) || (writes && sandbox.identity.is_some())
}

/// The layout for a command that runs as another user, and the mounts for that user.
fn lend(sandbox: &CommandSandbox) -> io::Result<(Layout, LentMounts)> {
    let mut lender = Lender::new()?;
    let layout = mounts::layout(sandbox, Some(&mut lender))?;
    Ok((layout, lender.into_lent()))
}

fn options(
    sandbox: &CommandSandbox,
    folder: &Path,
    mounts: Vec<OsString>,
    lends: bool,
) -> Vec<OsString> {
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
    if sandbox.link != Link::Open {
        options.push("--unshare-net".into());
    }
    if lends {
        // In the sandbox it appears as root, because the mounts show it root's files as its own.
        options.extend(["--uid", "0", "--gid", "0"].map(OsString::from));
    }
    options.extend(mounts);
    if sandbox.writable.is_empty() {
        options.extend(["--setenv", "TMPDIR", "/tmp"].map(OsString::from));
    }
    options.extend(["--chdir".into(), folder.into()]);
    options
}
