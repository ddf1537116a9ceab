//! The supervisor: the process between the host and a command. It is the host's executable, started again.
//!
//! Its input is the lifeline. It carries one order and then only its end, which means that the host let go
//! or died. The supervisor writes one report to its output. Its error stream carries the command's
//! output. It has no threads. It must not end before the last descendant of the command is dead, unless
//! the kernel cannot kill that process. It runs below a guardian.

use super::bridge::Bridge;
use super::guardian;
use crate::confine::{
    Backend, Bubblewrap, CommandLimits, CommandSandbox, LentMounts, Limit, Link, Placeholders,
    Repositories, StageEnd, Watchdog,
};
use crate::linux;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, geteuid, getpid, setsid, wait};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio, exit};
use std::time::{Duration, Instant};

/// How long to keep killing processes that do not die.
pub(super) const CLEAN_UP: Duration = Duration::from_secs(5);

/// How long a command may take to end after the host let go, unless its grace is shorter. In this time,
/// git removes its locks.
pub(super) const LEAVE: Duration = Duration::from_millis(500);

/// How long the inspection of the folders that a command can change may take before it. There may be millions of
/// files on a slow disk.
pub(super) const LONGEST_LOOK: Duration = Duration::from_secs(120);

/// How long the inspection after the command may take. Git may run what it has not found yet, so the run waits
/// rather than goes on.
pub(super) const LONGEST_CHECK: Duration = Duration::from_secs(1_800);

/// The byte that precedes a report: once when the command may start, and once when all its processes
/// are dead. It is white space, which the JSON parser of the report ignores.
pub(super) const MARK: u8 = b' ';

/// How often to check what the command has started, and to reap orphans. A command that writes a
/// gigabyte per second exceeds its limit by at most a tenth of a gigabyte.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How many dead children to reap in one pass, besides those that were killed. A fork bomb keeps
/// producing more.
const BURIED_AT_ONCE: usize = 256;

/// A command that the host wants to run.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub deadline: Duration,
    pub grace: Duration,
    pub program: OsString,
    pub args: Vec<OsString>,
    /// `None` if the command is not confined.
    pub sandbox: Option<CommandSandbox>,
    pub limits: CommandLimits,
    /// The descriptors of the command's input and output. Without them, it has no input, and its output
    /// goes to our error stream.
    pub pipes: Option<[i32; 2]>,
}

/// The input and the output of the command.
type Pipes = Option<[OwnedFd; 2]>;

/// The supervisor's report to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub ending: Ending,
    pub leftovers: u32,
    pub survivors: u32,
    pub written_bytes: u64,
    /// Files that it left in git repositories and that git must not find.
    #[serde(default)]
    pub set_aside: Vec<String>,
    /// Why the command ran as root although it should have been another user.
    pub why_root: Option<String>,
}

/// How the command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ending {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    /// The host let go of the lifeline.
    Released,
    /// It exceeded a limit, and was killed.
    OverLimit(Limit),
    /// The sandbox could not be built. If `reason` is empty, the output may contain the reason.
    NotConfined {
        reason: String,
    },
    /// The program could not be started; the number is the system's error.
    NotStarted {
        error: i32,
    },
}

/// Runs a supervisor, and its guardian, from start to end.
pub(super) fn main() -> ! {
    let ended = supervise().unwrap_or_else(|error| Some(Report::of(not_started(&error))));
    // If the host is dead, the write fails. That does not matter.
    if let Some(report) = ended.and_then(|report| serde_json::to_vec(&report).ok()) {
        let _ = io::stdout().write_all(&report).and_then(|()| io::stdout().flush());
    }
    exit(0)
}

/// Supervises one command. Returns the report, or `None` in a process that has nothing to report.
fn supervise() -> io::Result<Option<Report>> {
    let mut order = match Order::read(io::stdin().lock()) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return Ok(Some(Report::of(Ending::Released)));
        }
        order => order?,
    };
    let pipes: Pipes = match order.pipes {
        Some([input, output]) => Some([linux::handed_on(input)?, linux::handed_on(output)?]),
        None => None,
    };
    let guardian = getpid();
    linux::adopt_orphans()?;
    linux::keep_descriptors_private()?;
    // Leave the host's terminal: an interrupt is for the host, which then lets go of us.
    let _ = setsid();
    // Before the fork, so that the guardian can clean up if the supervisor is lost.
    let surroundings = match order.sandbox.as_mut().map(Preparations::prepare).transpose() {
        Ok(surroundings) => surroundings.unwrap_or_default(),
        Err(error) => return Ok(Some(Report::of(not_confined(&error)))),
    };
    if has_let_go() {
        surroundings.clean_up();
        return Ok(Some(Report::of(Ending::Released)));
    }
    mark();
    let (killed, tell_killed) = pipe_with(PipeFlags::CLOEXEC)?;
    if let Some(supervisor) = linux::fork()? {
        drop((tell_killed, pipes));
        guardian::guard(supervisor, &killed, &surroundings);
        return Ok(None);
    }
    drop(killed);
    let ended = oversee(&order, pipes, guardian);
    let _ = rustix::io::write(&tell_killed, b"+");
    mark();
    let set_aside = surroundings.clean_up();
    Ok(ended?.map(|report| Report { set_aside, ..report }))
}

/// Tells the host that the next step begins.
fn mark() {
    // If the host is dead, the write fails. That does not matter.
    let _ = rustix::io::write(rustix::stdio::stdout(), &[MARK]);
}

/// Returns whether the host has let go. The preparation may have taken long.
fn has_let_go() -> bool {
    let lifeline = io::stdin();
    let mut events = [PollFd::new(&lifeline, PollFlags::IN)];
    wait_for(&mut events, Duration::ZERO).is_ok() && !events[0].revents().is_empty()
}

/// Preparations in a workspace for a command, which must be cleaned up after it.
#[derive(Default)]
pub(super) struct Preparations {
    repositories: Option<Repositories>,
    placeholders: Option<Placeholders>,
}

impl Preparations {
    fn prepare(sandbox: &mut CommandSandbox) -> io::Result<Preparations> {
        let repositories = Repositories::look(sandbox)?;
        sandbox.fixed.extend(repositories.iter().flat_map(|it| it.fixed()).cloned());
        let placeholders = Placeholders::put_up(sandbox).inspect_err(|_| {
            repositories.iter().for_each(Repositories::forget_unused);
        })?;
        Ok(Preparations { repositories, placeholders })
    }

    /// Cleans up after all processes are dead. Returns the files that were set aside because git must
    /// not find them.
    pub(super) fn clean_up(&self) -> Vec<String> {
        let set_aside = self.repositories.as_ref().map(Repositories::settle).unwrap_or_default();
        self.repositories.iter().for_each(Repositories::forget);
        self.placeholders.iter().for_each(Placeholders::take_down);
        set_aside
    }
}

/// Starts the command and watches it until the command and all its processes have ended.
fn oversee(order: &Order, pipes: Pipes, guardian: Pid) -> io::Result<Option<Report>> {
    // A session apart from the guardian, so that no signal to a group reaches both.
    let _ = setsid();
    linux::adopt_orphans()?;
    let guardian = linux::watch_parent(guardian)?;
    let mut bubblewrap = match prepare(order) {
        Ok(bubblewrap) => bubblewrap,
        Err(error) => return Ok(Some(Report::of(not_confined(&error)))),
    };
    let command = start(order, pipes, bubblewrap.as_mut())?;
    let bridge = match bubblewrap.as_mut().map(|it| let_in(order, it)).transpose() {
        Ok(bridge) => bridge.flatten(),
        Err(error) => {
            Reaper::of(command).kill_all();
            return Ok(Some(Report::of(not_confined(&error))));
        }
    };
    let mut reaper = Reaper::of(command);
    let watched = watch(order, &mut reaper, &guardian);
    // The bridge is ours. It must not count as a process that the command left.
    drop(bridge);
    // The whole tree must die, whatever went wrong.
    if let Some(said) = bubblewrap.as_mut().map(Bubblewrap::said) {
        reaper.uncounted = said.first_process.and_then(Pid::from_raw);
        if let (Ok(Watched::Ended(_)), false) = (&watched, said.ran) {
            reaper.kill_all();
            return Ok(Some(Report::of(Ending::NotConfined { reason: String::new() })));
        }
    }
    if let (Ok(Watched::Ended(_)), Some(bubblewrap)) = (&watched, bubblewrap.as_mut())
        && let Some(ending) = bubblewrap.entered().and_then(never_began)
    {
        reaper.kill_all();
        return Ok(Some(Report::of(ending)));
    }
    let (leftovers, survivors) = reaper.kill_all();
    let ending = match watched? {
        Watched::Ended(status) => ending(status),
        Watched::TimedOut => Ending::TimedOut,
        Watched::Released => Ending::Released,
        Watched::OverLimit(limit) => Ending::OverLimit(limit),
        Watched::Unguarded => return Ok(None),
    };
    let written_bytes = linux::written_by_the_buried();
    let why_root = bubblewrap.and_then(|it| it.why_root().map(str::to_owned));
    let set_aside = Vec::new();
    Ok(Some(Report { ending, leftovers, survivors, written_bytes, set_aside, why_root }))
}

/// Returns the ending if the last step into the sandbox failed, so that the command never began.
fn never_began(entered: StageEnd) -> Option<Ending> {
    match entered {
        StageEnd::Became => None,
        StageEnd::NotStarted(error) => Some(Ending::NotStarted { error }),
        StageEnd::NotConfined(reason) => Some(Ending::NotConfined { reason }),
    }
}

fn not_started(error: &io::Error) -> Ending {
    Ending::NotStarted { error: error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()) }
}

fn not_confined(error: &io::Error) -> Ending {
    Ending::NotConfined { reason: error.to_string() }
}

impl Report {
    fn of(ending: Ending) -> Report {
        Report {
            ending,
            leftovers: 0,
            survivors: 0,
            written_bytes: 0,
            set_aside: Vec::new(),
            why_root: None,
        }
    }
}

impl Order {
    /// Encodes the order as its length, followed by JSON.
    ///
    /// # Errors
    /// If a value cannot be encoded.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let body = serde_json::to_vec(self)?;
        Ok([&(body.len() as u64).to_le_bytes()[..], &body].concat())
    }

    fn read(mut from: impl Read) -> io::Result<Order> {
        let mut length = [0; 8];
        from.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length);
        let mut body = Vec::new();
        from.take(length).read_to_end(&mut body)?;
        if (body.len() as u64) < length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        // A complete but invalid order must not look like an order that never came.
        serde_json::from_slice(&body).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }
}

/// Prepares the sandbox of the command, if bubblewrap confines it.
fn prepare(order: &Order) -> io::Result<Option<Bubblewrap>> {
    let boxed = order.sandbox.as_ref().filter(|sandbox| sandbox.backend == Backend::Bubblewrap);
    boxed.map(|sandbox| Bubblewrap::prepare(sandbox, &std::env::current_dir()?)).transpose()
}

/// Checks the sandbox before the command starts in it. Builds the bridge to the proxy, if the command
/// needs one. Then lets the command start.
fn let_in(order: &Order, bubblewrap: &mut Bubblewrap) -> io::Result<Option<Bridge>> {
    let Some(sandbox) = order.sandbox.as_ref().filter(|_| bubblewrap.has_gate()) else {
        return Ok(None);
    };
    let inside = bubblewrap.stands();
    let inside = inside.ok_or_else(|| io::Error::other("there is no box around the command"))?;
    if !bubblewrap.holds(inside, sandbox)? {
        return Err(io::Error::other("the workspace was replaced while the command was starting"));
    }
    let bridge = match &sandbox.link {
        Link::Proxy(proxy) => Some(Bridge::build(inside, proxy)?),
        Link::None | Link::Open => None,
    };
    bubblewrap.open_gate();
    Ok(bridge)
}

/// Starts the command with its pipes. Without pipes, it has no input, and both its output streams go to
/// our error stream.
fn start(order: &Order, pipes: Pipes, mut bubblewrap: Option<&mut Bubblewrap>) -> io::Result<Pid> {
    let output = || -> io::Result<OwnedFd> { io::stderr().as_fd().try_clone_to_owned() };
    let copy = match (&bubblewrap, &order.sandbox) {
        (Some(_), Some(sandbox)) => copy_for_root(&sandbox.bubblewrap),
        _ => None,
    };
    let copied = copy.as_ref().map(|copy| format!("/proc/self/fd/{}", copy.as_raw_fd()));
    let program = match (&bubblewrap, &order.sandbox) {
        (Some(_), Some(sandbox)) => {
            copied.as_ref().map_or(sandbox.bubblewrap.as_os_str(), |path| path.as_ref())
        }
        _ => &order.program,
    };
    #[expect(clippy::disallowed_methods, reason = "this is the launcher")]
    let mut command = Command::new(program);
    if let Some(bubblewrap) = &bubblewrap {
        command.args(bubblewrap.arguments()).arg(&order.program);
        bubblewrap.hand_on()?;
    }
    let (stdin, stdout) = match pipes {
        Some([input, output]) => (input.into(), output),
        None => (Stdio::null(), output()?),
    };
    command.args(&order.args).stdin(stdin).stdout(stdout).stderr(output()?);
    let supervisor = getpid();
    let sandbox = order.sandbox.clone().filter(|_| bubblewrap.is_none());
    let limits = order.limits;
    let lent = bubblewrap.as_mut().and_then(|it| it.lent());
    #[expect(unsafe_code, reason = "the standard library has no safe way to act after the fork")]
    // SAFETY: this process has one thread. So in the child every lock is free, and the child may do
    // everything that this process may.
    unsafe {
        command.pre_exec(move || {
            between_fork_and_exec(supervisor, limits, lent.as_ref(), sandbox.as_ref())
        });
    }
    let child = command.spawn()?;
    if let Some(bubblewrap) = &mut bubblewrap {
        bubblewrap.started();
    }
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| Errno::SRCH.into())
}

/// Returns a copy of the program in memory, if we are root. The first process in a sandbox runs this
/// program, so a command of root could reach the file and change its mode, however it is mounted.
fn copy_for_root(program: &Path) -> Option<OwnedFd> {
    if !geteuid().is_root() {
        return None;
    }
    // Older kernels do not know the flag that permits execution.
    let made = memfd_create("bwrap", MemfdFlags::CLOEXEC | MemfdFlags::EXEC)
        .or_else(|_| memfd_create("bwrap", MemfdFlags::CLOEXEC));
    let mut copy = File::from(made.ok()?);
    io::copy(&mut File::open(program).ok()?, &mut copy).ok()?;
    // A file that is open for writing cannot be executed.
    let path = format!("/proc/self/fd/{}", copy.as_raw_fd());
    Some(File::open(path).ok()?.into())
}

/// Everything that happens in the command's process before it becomes the command.
fn between_fork_and_exec(
    supervisor: Pid,
    limits: CommandLimits,
    lent: Option<&LentMounts>,
    sandbox: Option<&CommandSandbox>,
) -> io::Result<()> {
    setsid()?;
    limits.enforce()?;
    if let Some(lent) = lent {
        lent.hand_over()?;
    }
    // Last: a process that changes its user loses its parent-death signal.
    linux::die_with(supervisor)?;
    match sandbox {
        Some(sandbox) => sandbox.close_around_this_process(),
        None => Ok(()),
    }
}

/// Why the watch ended.
#[derive(Clone, Copy)]
enum Watched {
    Ended(WaitStatus),
    TimedOut,
    Released,
    OverLimit(Limit),
    /// The guardian was killed.
    Unguarded,
}

/// Waits until the command ends, the deadline passes, the host lets go, or the guardian dies. At the
/// deadline, and when the host lets go, asks the command to end and gives it a short time for that.
fn watch(order: &Order, reaper: &mut Reaper, guardian: &OwnedFd) -> io::Result<Watched> {
    let command = reaper.child;
    let exit = linux::watch_exit(command)?;
    let lifeline = io::stdin();
    let watchdog = Watchdog::new(order.limits);
    let boxed =
        order.sandbox.as_ref().is_some_and(|sandbox| sandbox.backend == Backend::Bubblewrap);
    let started = Instant::now();
    let mut looked = started;
    // Not bubblewrap itself: its end would kill the sandbox before the processes in it get TERM.
    let spared = boxed.then_some(command);
    let mut until = order.deadline;
    let mut asked_to_end = None;
    loop {
        reaper.reap();
        if let Some(status) = reaper.status {
            return Ok(asked_to_end.unwrap_or(Watched::Ended(status)));
        }
        let left = until.saturating_sub(started.elapsed());
        if left.is_zero()
            && let Some(why) = asked_to_end
        {
            return Ok(why);
        }
        if left.is_zero() {
            asked_to_end = Some(Watched::TimedOut);
            until = order.deadline.saturating_add(order.grace);
            ask_to_end(spared)?;
            continue;
        }
        if looked.elapsed() >= LOOK_INTERVAL {
            looked = Instant::now();
            if let Some(limit) = watchdog.over(linux::tree(order.limits.processes)) {
                return Ok(Watched::OverLimit(limit));
            }
        }
        let mut events =
            vec![PollFd::new(guardian, PollFlags::IN), PollFd::new(&exit, PollFlags::IN)];
        // Do not poll the lifeline after its end: it would wake us all the time.
        let is_held = !matches!(asked_to_end, Some(Watched::Released));
        if is_held {
            events.push(PollFd::new(&lifeline, PollFlags::IN));
        }
        wait_for(&mut events, left.min(LOOK_INTERVAL))?;
        if !events[0].revents().is_empty() {
            return Ok(Watched::Unguarded);
        }
        if events.get(2).is_some_and(|event| !event.revents().is_empty()) {
            // The command was asked to end before, and has had its time.
            if asked_to_end.is_some() {
                return Ok(Watched::Released);
            }
            asked_to_end = Some(Watched::Released);
            until = started.elapsed().saturating_add(order.grace.min(LEAVE));
            ask_to_end(spared)?;
        }
    }
}

/// Asks the whole tree to end, except for one process. A stopped process must resume to receive TERM.
fn ask_to_end(but: Option<Pid>) -> io::Result<()> {
    for process in linux::descendants()? {
        if Some(process.id) == but {
            continue;
        }
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
    Ok(())
}

pub(super) fn wait_for(events: &mut [PollFd<'_>], time: Duration) -> io::Result<()> {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    match poll(events, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn ending(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Signalled(signal.unwrap_or_default()),
    }
}

/// Reaps children: the one that we started, and the orphans that we adopted.
pub(super) struct Reaper {
    child: Pid,
    pub(super) status: Option<WaitStatus>,
    /// A process that belongs to us and not to the command.
    uncounted: Option<Pid>,
}

/// Whether any children are left.
#[derive(PartialEq, Eq)]
pub(super) enum Children {
    Some,
    None,
}

impl Reaper {
    pub(super) fn of(child: Pid) -> Reaper {
        Reaper { child, status: None, uncounted: None }
    }

    pub(super) fn reap(&mut self) -> Children {
        self.reap_besides(0)
    }

    /// Like `reap`, when `killed` processes were killed before.
    fn reap_besides(&mut self, killed: usize) -> Children {
        for _ in 0..BURIED_AT_ONCE + killed {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((child, status))) if child == self.child => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Children::Some,
                Err(_) => return Children::None,
            }
        }
        Children::Some
    }

    /// Kills until no process is left. Returns how many there were, and how many could not be killed.
    /// It repeats, because a process may fork meanwhile; the kernel hands us its orphans.
    pub(super) fn kill_all(&mut self) -> (u32, u32) {
        let started = Instant::now();
        if self.status.is_none() {
            // First, before listing processes: a fork bomb would fill the machine meanwhile. Not after
            // the child is reaped, because its id may then belong to another process.
            linux::kill_group(self.child);
        }
        let mut killed = HashSet::new();
        while self.reap_besides(killed.len()) == Children::Some {
            let alive = linux::descendants().unwrap_or_default();
            linux::kill(&alive);
            let ids = alive.iter().map(|process| process.id);
            killed.extend(ids.filter(|id| Some(*id) != self.uncounted));
            if started.elapsed() >= CLEAN_UP {
                return (killed.len() as u32, alive.len() as u32);
            }
            let _ = wait_for(&mut [], Duration::from_millis(1));
        }
        (killed.len() as u32, 0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn an_order_arrives_as_it_was_sent_and_needs_no_end_of_input() {
        let order = Order {
            deadline: Duration::from_millis(1500),
            grace: Duration::ZERO,
            program: "bash".into(),
            args: vec!["-c".into(), OsString::from_vec(b"\xFF\n\"".to_vec())],
            sandbox: None,
            limits: CommandLimits::usual(),
            pipes: Some([7, 8]),
        };
        let mut bytes = order.encode().unwrap();
        bytes.extend(b"more");
        assert_eq!(Order::read(&bytes[..]).unwrap(), order);
        let cut = Order::read(&bytes[..20]).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
        // An order that makes no sense does not mean that the host let go.
        let empty = Order::read(&0_u64.to_le_bytes()[..]).unwrap_err();
        assert_eq!(empty.kind(), ErrorKind::InvalidData);
    }
}
