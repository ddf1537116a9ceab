//! Everything that only Linux offers, apart from how cap-std opens files. Support for another system
//! needs one more file like this. It has handles that only name a folder, the process tree, the
//! parent-death signal, and readers of /proc. Nothing here knows about tools or commands.

use rustix::fs::{
    MemfdFlags, Mode, OFlags, RenameFlags, ResolveFlags, memfd_create, openat, openat2,
    renameat_with,
};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getppid, getrlimit, kill_process_group,
    pidfd_open, pidfd_send_signal, set_child_subreaper, set_parent_process_death_signal, setrlimit,
};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A path to the running executable that works even if the file has been replaced.
pub(crate) const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// A path through which a child, right after the fork, can open the folder behind `handle`.
pub(crate) fn path_of_handle(handle: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// The descriptor with this number, which the parent process passed to this one.
pub(crate) fn handed_on(number: RawFd) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    if number <= libc::STDERR_FILENO {
        return Err(Errno::BADF.into());
    }
    #[expect(unsafe_code, reason = "a number is all that is known of it")]
    // SAFETY: the call checks the descriptor first, and the parent opened it for this call alone.
    unsafe {
        rustix::io::fcntl_getfd(BorrowedFd::borrow_raw(number))?;
        Ok(OwnedFd::from_raw_fd(number))
    }
}

/// An anonymous file in memory with this content.
pub(crate) fn in_memory(content: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("posse", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

/// Moves this process into `network`, and into the user namespace that owns it, where it has the
/// permission for that. The process must have no other threads.
pub(crate) fn enter_network(network: &std::fs::File) -> io::Result<()> {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    use std::os::fd::FromRawFd;
    /// The request for the user namespace that owns a namespace.
    const NS_GET_USERNS: libc::c_ulong = 0xb701;
    #[expect(unsafe_code, reason = "neither the standard library nor rustix offers it")]
    // SAFETY: the request takes no argument and returns a new descriptor, or an error.
    let owner = unsafe {
        match libc::ioctl(network.as_raw_fd(), NS_GET_USERNS as _) {
            -1 => return Err(io::Error::last_os_error()),
            descriptor => OwnedFd::from_raw_fd(descriptor),
        }
    };
    move_into_link_name_space(owner.as_fd(), Some(LinkNameSpaceType::User))?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

/// A file system, or a folder of it, as it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// The number of the mount.
    pub id: u64,
    /// The number of the file system.
    pub device: String,
    /// The folder of the file system.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
}

/// What is mounted for this process, in the order of the mounts.
pub(crate) fn mounted() -> io::Result<Vec<Mounted>> {
    mounted_for("self")
}

/// The number of the mount that `path` is on, if the kernel tells it (Linux 5.8).
pub(crate) fn mount_of(path: &std::path::Path) -> Option<u64> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok()?;
    (StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID))
        .then_some(found.stx_mnt_id)
}

/// What is mounted for a process.
pub(crate) fn mounted_for(process: impl std::fmt::Display) -> io::Result<Vec<Mounted>> {
    let table = std::fs::read(format!("/proc/{process}/mountinfo"))?;
    let mount = |line: &[u8]| {
        let mut fields = line.split(|it| *it == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let mut fields = fields.skip(1);
        let device = String::from_utf8_lossy(fields.next()?).into_owned();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some(Mounted { id, device, root, point })
    };
    Ok(table.split(|it| *it == b'\n').filter_map(mount).collect())
}

/// Decodes a path of that table, where blanks and the like are a backslash and three octal digits.
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

/// The machine's memory, in bytes.
pub(crate) fn machine_bytes() -> u64 {
    let facts = rustix::system::sysinfo();
    facts.totalram.saturating_mul(u64::from(facts.mem_unit))
}

/// How many files the table of this process has room for from the start.
const ROOM: u64 = 4_096;

/// Lets this process open as many files as the system permits, with a table that has room for some
/// thousands from the start.
///
/// Call it before there is a second thread. While a table that threads share grows, the kernel delays
/// every thread that opens a file or a connection, for 10 ms and more each time the table doubles.
pub(crate) fn make_room_for_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this is refused, an error appears later, when the files run out.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(ROOM);
    if let Ok(last) = RawFd::try_from(allowed.min(ROOM).saturating_sub(1)) {
        // The handle is closed at once, and the table keeps its size. If no handle is available, only
        // time is lost.
        let _ = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), last);
    }
}

/// How many bytes the reaped children of this process, and the children that they had reaped, have
/// written to disks.
pub(crate) fn written_by_the_buried() -> u64 {
    /// The unit in which the kernel counts.
    const BLOCK_BYTES: u64 = 512;
    #[expect(unsafe_code, reason = "neither the standard library nor rustix offers it")]
    // SAFETY: the structure consists of numbers, for which zero is valid, and the kernel fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    u64::try_from(usage.ru_oublock).unwrap_or(0).saturating_mul(BLOCK_BYTES)
}

/// The current path of the file behind `handle`, as the kernel reports it.
pub(crate) fn real_path(handle: impl AsFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd()))
}

/// Renames the file `from` to `to` in the same folder, unless that name exists.
pub(crate) fn rename_unless_taken(folder: impl AsFd, from: &OsStr, to: &OsStr) -> io::Result<()> {
    let folder = folder.as_fd();
    match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        // Some file systems do not support the flag: check, then rename.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::statat(folder, to, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Err(Errno::EXIST.into()),
                Err(_) => Ok(rustix::fs::renameat(folder, from, folder, to)?),
            }
        }
        other => Ok(other?),
    }
}

/// Flags that name a folder, and never the target of a link.
const NAMES_A_FOLDER: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A handle that names the folder `name`, even if it cannot be read.
pub(crate) fn name_folder(
    around: impl AsFd,
    name: impl rustix::path::Arg,
) -> Result<OwnedFd, Errno> {
    openat(around, name, NAMES_A_FOLDER, Mode::empty())
}

/// Like [`name_folder`], but fails if another file system (or another part of this one) is mounted there.
pub(crate) fn name_folder_unless_mounted(
    around: impl AsFd,
    name: impl rustix::path::Arg + Copy,
) -> Result<OwnedFd, Errno> {
    let around = around.as_fd();
    match openat2(around, name, NAMES_A_FOLDER, Mode::empty(), ResolveFlags::NO_XDEV) {
        // Before Linux 5.6, only another file system can be detected.
        Err(Errno::NOSYS) => {
            let folder = name_folder(around, name)?;
            let device =
                |handle: BorrowedFd<'_>| rustix::fs::fstat(handle).map(|found| found.st_dev);
            let same = device(around)? == device(folder.as_fd())?;
            if same { Ok(folder) } else { Err(Errno::XDEV) }
        }
        other => other,
    }
}

/// Sets the mode of the file that `handle` names, even if the handle can only name it.
pub(crate) fn set_mode(handle: &impl AsRawFd, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path_of_handle(handle), Permissions::from_mode(mode))
}

/// Makes every orphan below this process its child, so that no descendant escapes.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Forks this process. Returns the id of the child, and `None` in the child.
///
/// Only for a process without threads.
#[expect(unsafe_code, reason = "neither the standard library nor rustix offers it")]
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: without other threads every lock is free in the child, so the child may do everything
    // that its parent may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Makes the kernel kill this process when `parent` dies. Fails if the parent is dead already.
pub(crate) fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::CHILD.into()) }
}

/// A descriptor that becomes readable when the process ends.
pub(crate) fn watch_exit(process: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(process, PidfdFlags::empty())?)
}

/// A descriptor that becomes readable when the parent ends. If this process is stopped at that time,
/// the kernel resumes it. Fails if the parent is dead already.
pub(crate) fn watch_parent(parent: Pid) -> io::Result<OwnedFd> {
    set_parent_process_death_signal(Some(Signal::CONT))?;
    let watch = watch_exit(parent)?;
    if getppid() == Some(parent) { Ok(watch) } else { Err(Errno::CHILD.into()) }
}

/// Ensures that a program that this process starts inherits only descriptors 0, 1 and 2.
pub(crate) fn keep_descriptors_private() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if number > 2 {
            set_close_on_exec(number);
        }
    }
    Ok(())
}

#[expect(unsafe_code, reason = "a descriptor that was inherited has no owner to borrow it from")]
fn set_close_on_exec(number: i32) {
    // SAFETY: the borrow ends within this function, which only changes a flag of the descriptor. If the
    // descriptor is closed meanwhile, the call fails with EBADF, which does no harm.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let _ = rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC);
}

/// A process as /proc shows it. The start time distinguishes it from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub id: Pid,
    parent: i32,
    group: i32,
    started: u64,
    zombie: bool,
}

/// All living descendants of this process.
pub(crate) fn descendants() -> io::Result<Vec<Process>> {
    let mut by_parent: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(process) = look_up(id) {
            by_parent.entry(process.parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![getpid().as_raw_pid()];
    while let Some(parent) = parents.pop() {
        for process in by_parent.remove(&parent).unwrap_or_default() {
            parents.push(process.id.as_raw_pid());
            if !process.zombie {
                found.push(process);
            }
        }
    }
    Ok(found)
}

/// The ids of the processes below this one, at most one more than `most`. Unlike [`descendants`], it is
/// cheap if they are few. Empty if the kernel does not keep lists of children.
pub(crate) fn tree(most: u32) -> Vec<Pid> {
    let mut found: Vec<Pid> = Vec::new();
    let mut parents = vec![getpid()];
    while let Some(parent) = parents.pop() {
        let threads = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid()));
        for thread in threads.into_iter().flatten().flatten() {
            let Ok(children) = std::fs::read_to_string(thread.path().join("children")) else {
                continue;
            };
            let children = children.split_ascii_whitespace().filter_map(|id| id.parse().ok());
            for child in children.filter_map(Pid::from_raw) {
                if found.len() as u64 > u64::from(most) {
                    return found;
                }
                found.push(child);
                parents.push(child);
            }
        }
    }
    found
}

fn look_up(id: i32) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    // The name in the second field may contain anything, including blanks and brackets.
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(&stat[after_name..]).ok()?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Process {
        id: Pid::from_raw(id)?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

impl Process {
    /// Sends `signal` to exactly this process, never to a later one with the same id.
    pub(crate) fn signal(&self, signal: Signal) {
        let Ok(handle) = pidfd_open(self.id, PidfdFlags::empty()) else { return };
        let now = look_up(self.id.as_raw_pid());
        if now.is_some_and(|process| process.started == self.started) {
            let _ = pidfd_send_signal(handle, signal);
        }
    }
}

/// Kills descendants and their process groups. It kills a group in one step, so that a process that forks as fast
/// as it can does not outrun us. It kills each group only once, because that takes longer the more processes are
/// in it. A group never extends beyond its session, and the sessions of our descendants began below us. A process
/// that leaves its group meanwhile is among the descendants of the next call.
pub(crate) fn kill(descendants: &[Process]) {
    let own_group = rustix::process::getpgrp().as_raw_pid();
    let groups: HashSet<i32> = descendants.iter().map(|process| process.group).collect();
    let others = groups.into_iter().filter(|group| *group != own_group);
    others.filter_map(Pid::from_raw).for_each(kill_group);
    for process in descendants.iter().filter(|process| process.group == own_group) {
        process.signal(Signal::KILL);
    }
}

/// Kills a process group. Its id must be in use: a process is in the group, or its leader has not been reaped.
pub(crate) fn kill_group(group: Pid) {
    // The group may be empty.
    let _ = kill_process_group(group, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_a_descendant_and_this_process_is_not() {
        #[expect(clippy::disallowed_methods, reason = "a child is what this test needs")]
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = child.id() as i32;
        let found = descendants().unwrap();
        let process = found.iter().find(|process| process.id.as_raw_pid() == id).unwrap();
        assert!(found.iter().all(|process| process.id != getpid()));
        process.signal(Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_mounted_folder_is_named_only_when_that_is_wanted() {
        let root = name_folder(rustix::fs::CWD, "/").unwrap();
        assert!(name_folder(&root, "proc").is_ok());
        assert_eq!(name_folder_unless_mounted(&root, "proc").unwrap_err(), Errno::XDEV);
        let proc = name_folder(&root, "proc").unwrap();
        assert!(name_folder_unless_mounted(&proc, "sys").is_ok());
    }
}
