//! Runs the commands of a root host as a user that owns nothing. So they cannot read files that only
//! root can read, wherever these files are.
//!
//! The sandbox lends its paths to that user. It mounts them so that root's files belong to the user
//! there, and so that files which the user creates there belong to root outside. The user sees the rest
//! of the machine as any other user does. If lending is permanently impossible, Posse reports why, and
//! the command runs as root without capabilities. If lending only fails now, the command does not run,
//! because an agent may have caused the failure.

use crate::linux;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, mknodat, openat2};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Gid, Pid, Uid, WaitOptions, waitpid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::error::Error;
use std::ffi::{CStr, CString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

// The C library has no names for these yet. The numbers are the same on all architectures.
const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;

/// The argument of `mount_setattr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    users: u64,
}

/// The id of this user and its group. No system assigns it: it is above the ids of people, services and
/// containers.
const USER: u32 = 1_886_344_019;

/// Where bubblewrap finds lent paths. Commands see a folder of their own there.
const STAGING: &CStr = c"/tmp";

/// A map of all user ids that swaps root and this user, and leaves the others unchanged.
fn swapped() -> String {
    let (user, after) = (USER, USER + 1);
    let rest = u32::MAX - after;
    format!("0 {user} 1\n1 1 {}\n{user} 0 1\n{after} {after} {rest}\n", user - 1)
}

/// Why lending is permanently impossible: the kernel, a file system, or the setup of the machine. No
/// agent can cause it.
#[derive(Debug)]
struct Never(String);

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Never {}

/// Creates an error that means permanent failure.
pub(super) fn never(why: impl Into<String>) -> io::Error {
    io::Error::other(Never(why.into()))
}

/// Returns true for such an error.
pub(super) fn is_for_good(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|it| it.is::<Never>())
}

/// Adds `why` to an error of a mount. The failure is permanent if the kernel does not permit such mounts.
fn told(error: &io::Error, why: String) -> io::Error {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::INVAL | Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => never(why),
        _ => io::Error::new(error.kind(), why),
    }
}

/// Lends paths.
pub(super) struct Lender {
    users: OwnedFd,
    lent: LentMounts,
}

/// The lent mounts, in the order in which bubblewrap finds them.
#[derive(Default)]
pub(crate) struct LentMounts(Vec<OwnedFd>);

impl Lender {
    /// Fails if the kernel has no such mounts, or does not let this process make them.
    pub(super) fn new() -> io::Result<Lender> {
        let is_folder = Path::new("/tmp").symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_folder {
            return Err(never("/tmp is no folder"));
        }
        // This program starts the command in the sandbox, as that user.
        let mode = std::fs::metadata(linux::OWN_EXECUTABLE)?.permissions().mode();
        if mode & 0o005 != 0o005 {
            return Err(never("only root may run this program"));
        }
        Ok(Lender { users: namespace()?, lent: LentMounts::default() })
    }

    /// Lends `path`, and returns where bubblewrap finds it.
    pub(super) fn lend(&mut self, path: &Path) -> io::Result<PathBuf> {
        let tree = self
            .tree(path)
            .map_err(|error| told(&error, format!("{} cannot be lent: {error}", path.display())))?;
        self.lent.0.push(tree);
        Ok(Path::new("/tmp").join((self.lent.0.len() - 1).to_string()))
    }

    fn tree(&self, path: &Path) -> io::Result<OwnedFd> {
        // Follow no links: a link that was put there meanwhile leads elsewhere.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let place = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let tree = open_tree(&place)?;
        swap_owners(&tree, &self.users)?;
        Ok(tree)
    }

    pub(super) fn into_lent(self) -> LentMounts {
        self.lent
    }
}

impl LentMounts {
    /// Mounts all lent paths where bubblewrap finds them, invisible to other processes, and gives up
    /// being root. For the process that is about to become bubblewrap, with its output in place.
    pub(crate) fn hand_over(&self) -> io::Result<()> {
        unshare(libc::CLONE_NEWNS)?;
        mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_SLAVE, c"")?;
        mount(c"tmpfs", STAGING, c"tmpfs", libc::MS_NOSUID | libc::MS_NODEV, c"mode=755")?;

        for (number, tree) in self.0.iter().enumerate() {
            let place = Path::new("/tmp").join(number.to_string());
            // Opens no file: the limit of open files may be low.
            match FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode) {
                FileType::Directory => mkdirat(CWD, &place, Mode::RWXU)?,
                _ => mknodat(CWD, &place, FileType::RegularFile, Mode::RUSR, 0)?,
            }
            move_mount(tree, &place)?;
        }
        let (user, group) = (Uid::from_raw(USER), Gid::from_raw(USER));
        // Programs reopen standard output by its name (`/dev/stdout`).
        give_away(rustix::stdio::stdout())?;
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        Ok(set_thread_res_uid(user, user, user)?)
    }
}

/// Makes that user the owner of a pipe.
pub(super) fn give_away(pipe: impl AsFd) -> io::Result<()> {
    let pipe = pipe.as_fd();
    if FileType::from_raw_mode(rustix::fs::fstat(pipe)?.st_mode).is_fifo() {
        rustix::fs::fchown(pipe, Some(Uid::from_raw(USER)), Some(Gid::from_raw(USER)))?;
    }
    Ok(())
}

/// A user namespace in which root and that user are swapped. A separate process creates it, and has
/// ended when this function returns.
fn namespace() -> io::Result<OwnedFd> {
    let (made, says) = pipe_with(PipeFlags::CLOEXEC)?;
    let (waits, holds) = pipe_with(PipeFlags::CLOEXEC)?;
    let Some(child) = linux::fork()? else {
        drop((made, holds));
        if unshare(libc::CLONE_NEWUSER).is_ok() {
            let _ = rustix::io::write(&says, b"+");
            // Waits until the other end is closed.
            let _ = Read::read(&mut File::from(waits), &mut [0]);
        }
        std::process::exit(0);
    };
    drop((says, waits));
    let users = Read::read_exact(&mut File::from(made), &mut [0])
        .map_err(|_| never("no user namespace can be made"))
        .and_then(|()| map(child).map_err(|error| told(&error, error.to_string())));
    drop(holds);
    while let Err(rustix::io::Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
    users
}

fn map(process: Pid) -> io::Result<OwnedFd> {
    let folder = PathBuf::from(format!("/proc/{}", process.as_raw_pid()));
    for name in ["uid_map", "gid_map"] {
        std::fs::write(folder.join(name), swapped())?;
    }
    Ok(File::open(folder.join("ns/user"))?.into())
}

fn done(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[expect(unsafe_code, reason = "rustix calls it unsafe too, for processes with threads")]
fn unshare(what: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes a number only, and this process has one thread.
    done(libc::c_long::from(unsafe { libc::unshare(what) })).map(drop)
}

#[expect(unsafe_code, reason = "the crate's features do not include mounts")]
fn mount(
    from: &CStr,
    to: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    options: &CStr,
) -> io::Result<()> {
    // SAFETY: the texts end with zeros and live until the call returns.
    let mounted = unsafe {
        libc::mount(from.as_ptr(), to.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    done(libc::c_long::from(mounted)).map(drop)
}

/// A detached copy of the mount at `place`, with all mounts below it.
#[expect(unsafe_code, reason = "the crate's features do not include mounts")]
fn open_tree(place: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE
        | (libc::O_CLOEXEC | libc::AT_EMPTY_PATH | libc::AT_RECURSIVE) as libc::c_uint;
    // SAFETY: the text ends with a zero and is static.
    let tree = done(unsafe {
        libc::syscall(libc::SYS_open_tree, place.as_raw_fd(), c"".as_ptr(), flags)
    })?;
    // SAFETY: the descriptor is new, so no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(tree as i32) })
}

/// Shows the owners of files in `tree` as the namespace `users` maps them.
#[expect(unsafe_code, reason = "neither the standard library nor rustix offers it")]
fn swap_owners(tree: &OwnedFd, users: &OwnedFd) -> io::Result<()> {
    let users = users.as_raw_fd() as u64;
    let attributes = MountAttributes { set: MOUNT_ATTR_IDMAP, clear: 0, propagation: 0, users };
    // SAFETY: text and structure live until the call returns, and the size is the structure's.
    done(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    })
    .map(drop)
}

#[expect(unsafe_code, reason = "the crate's features do not include mounts")]
fn move_mount(tree: &OwnedFd, to: &Path) -> io::Result<()> {
    let to = CString::new(to.as_os_str().as_bytes())?;
    // SAFETY: the texts end with zeros and live until the call returns.
    done(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    })
    .map(drop)
}
