//! A command in a box of bubblewrap's: namespaces of its own for users, processes, the network and
//! all else, mounts as in `mounts.rs`, no capabilities, and the filter.

use super::entry::{Entered, Entry};
use super::filter::Filter;
use super::lending::{Lender, Lent, give_away, is_for_good};
use super::mounts::{self, Identity, Layout, folder_handle, identity_below};
use super::walls::{Link, Walls};
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
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempPath;

/// How long a box may take to come about.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the program is told by descriptors rather than by arguments, which everybody could read.
pub(crate) struct Bubblewrap {
    /// Kept open until it has started.
    inherited: Vec<OwnedFd>,
    /// Kept until the command has ended.
    _masks: Vec<TempPath>,
    arguments: Vec<OsString>,
    status: File,
    /// What it has said up to now.
    heard: Vec<u8>,
    /// The command starts when something is written here.
    gate: Option<File>,
    /// What is within, around the command alone, where the kernel has it.
    entry: Option<Entry>,
    /// What is mounted in places that commands can change, and which folder or file each is.
    inside: Vec<(PathBuf, Identity)>,
    /// Where something is mounted in there.
    points: Vec<PathBuf>,
    /// What is lent to the user that the command is.
    lent: Option<Lent>,
    /// Why the command is root, where it was to be another user.
    why_root: Option<String>,
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
        let filter = linux::in_memory(&Filter::of(walls).bytes())?;
        let (layout, lent, why_root) = match walls.lends.then(|| lend(walls)) {
            Some(Ok((layout, lent))) => (layout, Some(lent), None),
            // What only fails now, an agent may have seen to.
            Some(Err(error)) if walls.must_lend || !is_for_good(&error) => return Err(error),
            Some(Err(error)) => (mounts::layout(walls, None)?, None, Some(error.to_string())),
            None => (mounts::layout(walls, None)?, None, None),
        };
        let Layout { arguments: mounts, masks, writable, inside, points } = layout;
        let mut options = options(walls, folder, mounts, lent.is_some());
        let mut option = |name: &str, descriptor: &OwnedFd| {
            options.extend([name.into(), descriptor.as_raw_fd().to_string().into()]);
        };
        option("--seccomp", &filter);
        option("--json-status-fd", &says);
        let mut inherited = Vec::new();
        let mut gate = None;
        if needs_gate(walls) {
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

    /// What the process that is about to become the program must be given, and give up.
    pub(crate) fn lent(&mut self) -> Option<Lent> {
        self.lent.take()
    }

    /// Why the command is root, where it was to be another user.
    pub(crate) fn why_root(&self) -> Option<&str> {
        self.why_root.as_deref()
    }

    /// Closes what the program has for itself now.
    pub(crate) fn started(&mut self) {
        self.inherited.clear();
    }

    /// Waits until the box stands, and names its first process; nothing if it does not come about.
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

    /// True when the command waits until it is let in.
    pub(crate) fn has_gate(&self) -> bool {
        self.gate.is_some()
    }

    /// Whether the workspace in the box is the folder that the run began in, and what is mounted in it
    /// is what was there when the box was planned. All of it was mounted by its path, and whoever may
    /// change what is around it can put another folder or a link there at any moment; what is mounted
    /// stays.
    pub(crate) fn holds(&mut self, inside: i32, walls: &Walls) -> io::Result<bool> {
        let Some(identity) = walls.identity else { return Ok(true) };
        let root = PathBuf::from(format!("/proc/{inside}/root"));
        let outside = rustix::fs::stat("/dev")?.st_dev;
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            // It is whole when its own devices are there: it becomes the root only then.
            match rustix::fs::stat(root.join("dev")) {
                Ok(found) if found.st_dev != outside => break,
                // A bubblewrap that is setuid cannot be looked into.
                Err(Errno::ACCESS | Errno::PERM) => return Ok(true),
                _ => {}
            }
            let time = Timespec { tv_sec: 0, tv_nsec: 500_000 };
            let mut events = [PollFd::new(&self.status, PollFlags::IN)];
            // It is gone, and what it has written says why.
            if poll(&mut events, Some(&time)).is_ok() && events[0].revents() == PollFlags::HUP {
                return Ok(true);
            }
        }
        let root = folder_handle(&root)?;
        let is_there = |path: &Path, identity: Identity| {
            let path = path.strip_prefix("/").unwrap_or(path);
            identity_below(&root, path).is_ok_and(|found| found == identity)
        };
        let mounted = mount_points(inside)?;
        Ok(is_there(&walls.workspace, identity)
            && self.inside.iter().all(|(path, identity)| is_there(path, *identity))
            && self.points.iter().all(|path| mounted.contains(path)))
    }

    /// Lets the command start, if it waits for that.
    pub(crate) fn open_gate(&mut self) {
        if let Some(mut gate) = self.gate.take() {
            let _ = gate.write_all(b"+");
        }
    }

    /// What became of the stage that stands before the command; nothing where there is none.
    pub(crate) fn entered(&mut self) -> Option<Entered> {
        self.entry.as_mut().map(Entry::entered)
    }

    /// What the program has said up to now.
    pub(crate) fn said(&mut self) -> Said {
        // Ends with an error where nothing more was said.
        let _ = self.status.read_to_end(&mut self.heard);
        let mut said = Said { first_process: None, ran: false };
        for document in serde_json::Deserializer::from_slice(&self.heard).into_iter::<Document>() {
            let Ok(document) = document else { break };
            said.first_process = said.first_process.or(document.child_pid);
            said.ran |= document.exit_code.is_some();
        }
        said
    }
}

/// Where something is mounted, as the process `inside` sees it.
fn mount_points(inside: i32) -> io::Result<HashSet<PathBuf>> {
    let table = std::fs::read(format!("/proc/{inside}/mountinfo"))?;
    let point = |line: &[u8]| line.split(|it| *it == b' ').nth(4).map(unescaped);
    Ok(table.split(|it| *it == b'\n').filter_map(point).collect())
}

/// A path of that table: blanks and the like are three octal digits behind a backslash there.
fn unescaped(path: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, others)) = rest.split_first() {
        let digits = others.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|it| std::str::from_utf8(it).ok());
        match digits.and_then(|it| u8::from_str_radix(it, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[3..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// The command has to wait for its way to the proxy, or until it is seen that its workspace, which it
/// may change, is the right one.
fn needs_gate(walls: &Walls) -> bool {
    let writes = walls.profile == Profile::WorkspaceWrite;
    matches!(walls.link, Link::Proxy(_)) || (writes && walls.identity.is_some())
}

/// The layout for a command that is another user, and what is lent to it.
fn lend(walls: &Walls) -> io::Result<(Layout, Lent)> {
    let mut lender = Lender::new()?;
    let layout = mounts::layout(walls, Some(&mut lender))?;
    Ok((layout, lender.into_lent()))
}

fn options(walls: &Walls, folder: &Path, mounts: Vec<OsString>, lends: bool) -> Vec<OsString> {
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
    if walls.link != Link::Open {
        options.push("--unshare-net".into());
    }
    if lends {
        // Who it is outside is nobody's business: here it owns what is root's.
        options.extend(["--uid", "0", "--gid", "0"].map(OsString::from));
    }
    options.extend(mounts);
    if walls.writable.is_empty() {
        options.extend(["--setenv", "TMPDIR", "/tmp"].map(OsString::from));
    }
    options.extend(["--chdir".into(), folder.into()]);
    options
}
