//! Probes of powers over other processes and the kernel.

#![expect(unsafe_code, reason = "the point is to make calls that no safe interface offers")]

use super::inside::Stage;
use libc::{c_long, c_void};
use rustix::process::Pid;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

fn done(result: c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Forks this process. Returns the id of the child in the parent.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, so that every lock is free in the second one.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Writes to an open descriptor of this process.
pub(super) fn write_to(number: i32, text: &[u8]) -> io::Result<()> {
    // SAFETY: the text lives until the call returns, and its size is its own.
    done(unsafe { libc::write(number, text.as_ptr().cast(), text.len()) } as c_long)
}

pub(super) fn truncate(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends with a zero and lives until the call returns.
    done(c_long::from(unsafe { libc::truncate(path.as_ptr(), 0) }))
}

pub(super) fn signal(stage: &Stage) -> io::Result<()> {
    // SAFETY: the call takes numbers only, and this signal does nothing.
    done(c_long::from(unsafe { libc::kill(stage.process, 0) }))
}

pub(super) fn ptrace(stage: &Stage) -> io::Result<()> {
    const SEIZE: c_long = 0x4206;
    let none: *const c_void = null();
    // SAFETY: the kernel reads no memory of ours for this.
    done(unsafe { libc::syscall(libc::SYS_ptrace, SEIZE, stage.process, none, none) })
}

pub(super) fn read_memory(stage: &Stage) -> io::Result<()> {
    let mut byte = 0_u8;
    let ours = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // The usual address of a program; if memory can be read at all, this can.
    let theirs = libc::iovec { iov_base: 0x40_0000 as *mut c_void, iov_len: 1 };
    // SAFETY: the one byte that may be written is ours.
    let read = unsafe { libc::process_vm_readv(stage.process, &ours, 1, &theirs, 1, 0) };
    match done(read as c_long) {
        // The address is not mapped, but the kernel allowed the access.
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
        other => other,
    }
}

pub(super) fn change_limits(stage: &Stage) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to the one structure, which is ours.
    done(c_long::from(unsafe {
        libc::prlimit(stage.process, libc::RLIMIT_NOFILE, null(), &raw mut limit)
    }))
}

pub(super) fn change_priority(stage: &Stage) -> io::Result<()> {
    // SAFETY: the call takes numbers only; the value is what processes have anyway.
    let set = unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, stage.process, 0) };
    done(set)
}

pub(super) fn open_by_handle() -> io::Result<()> {
    let mut handle = [0_u32; 34];
    handle[0] = 128;
    let mut mount = 0_i32;
    // SAFETY: the kernel writes at most the 128 bytes that follow the head of the handle.
    done(unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            c"/etc/passwd".as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0,
        )
    })?;
    let root = std::fs::File::open("/")?;
    let root = std::os::fd::AsRawFd::as_raw_fd(&root);
    // SAFETY: the handle is what the call before has written.
    done(unsafe {
        libc::syscall(libc::SYS_open_by_handle_at, root, handle.as_ptr(), libc::O_RDONLY)
    })
}

pub(super) fn io_uring(_: &Stage) -> io::Result<()> {
    let mut parameters = [0_u8; 256];
    // SAFETY: the kernel writes fewer bytes than there are.
    done(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) })
}

pub(super) fn unshare(_: &Stage) -> io::Result<()> {
    // SAFETY: the call takes numbers only.
    done(c_long::from(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) }))
}

pub(super) fn clone_namespace(_: &Stage) -> io::Result<()> {
    let flags = c_long::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
    // SAFETY: without a stack of its own this is a fork; both sides go on with what they have.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    leave_if_child(child)
}

pub(super) fn clone3_namespace(_: &Stage) -> io::Result<()> {
    let mut arguments = [0_u64; 11];
    arguments[0] = libc::CLONE_NEWUSER as u64;
    arguments[4] = libc::SIGCHLD as u64;
    let size = std::mem::size_of_val(&arguments);
    // SAFETY: without a stack of its own this is a fork; the arguments live until it returns.
    let child = unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size) };
    leave_if_child(child)
}

fn leave_if_child(child: c_long) -> io::Result<()> {
    if child == 0 {
        std::process::exit(0);
    }
    done(child)
}

pub(super) fn mount(_: &Stage) -> io::Result<()> {
    let kind = c"tmpfs".as_ptr();
    // SAFETY: the texts end with zeros and live for ever.
    done(c_long::from(unsafe { libc::mount(kind, c"/mnt".as_ptr(), kind, 0, null()) }))
}

pub(super) fn keyctl(_: &Stage) -> io::Result<()> {
    // The number of the session's keyring. SAFETY: the call takes numbers only.
    done(unsafe { libc::syscall(libc::SYS_keyctl, 0, -3, 1) })
}

pub(super) fn bpf(_: &Stage) -> io::Result<()> {
    let mut attributes = [0_u32; 32];
    // A map of one array with one entry of four bytes.
    attributes[..4].copy_from_slice(&[2, 4, 4, 1]);
    let size = std::mem::size_of_val(&attributes);
    // SAFETY: the attributes live until the call returns.
    done(unsafe { libc::syscall(libc::SYS_bpf, 0, attributes.as_mut_ptr(), size) })
}

pub(super) fn userfaultfd(_: &Stage) -> io::Result<()> {
    // For faults of this process only, which needs no privilege. SAFETY: takes a number only.
    done(unsafe { libc::syscall(libc::SYS_userfaultfd, 1) })
}

pub(super) fn perf(_: &Stage) -> io::Result<()> {
    let mut attributes = [0_u32; 32];
    // Software, 128 bytes long; the clock of this process, without the kernel.
    attributes[0] = 1;
    attributes[1] = 128;
    attributes[10] = 0b110_0000;
    // SAFETY: the attributes live until the call returns.
    done(unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0) })
}

pub(super) fn type_into_terminal(_: &Stage) -> io::Result<()> {
    let letter = b'x';
    let mut typed = Err(io::ErrorKind::NotFound.into());
    for number in 0..3 {
        // SAFETY: the kernel reads the one letter.
        let done_here =
            done(c_long::from(unsafe { libc::ioctl(number, libc::TIOCSTI, &raw const letter) }));
        typed = done_here.or(typed);
    }
    typed
}

#[cfg(target_arch = "x86_64")]
pub(super) fn call_of_i386(_: &Stage) -> io::Result<()> {
    const GETPID: i32 = 20;
    let answer: i32;
    // SAFETY: asks for the number of this process; no memory is touched.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") GETPID => answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if answer > 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-answer)) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn call_of_i386(_: &Stage) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn call_of_x32(_: &Stage) -> io::Result<()> {
    const BIT: c_long = 0x4000_0000;
    // SAFETY: asks for the number of this process; no memory is touched.
    done(unsafe { libc::syscall(BIT + libc::SYS_getpid) })
}

/// Shared memory with permissions for all; its id, or -1.
pub(super) fn make_shared_memory() -> i32 {
    // SAFETY: the call takes numbers only.
    unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o666) }
}

pub(super) fn remove_shared_memory(number: i32) {
    // SAFETY: the kernel touches no memory of ours for this.
    unsafe { libc::shmctl(number, libc::IPC_RMID, null_mut()) };
}

pub(super) fn shared_memory(stage: &Stage) -> io::Result<()> {
    // SAFETY: the kernel picks where it is put, and nobody uses it.
    let put = unsafe { libc::shmat(stage.shared_memory, null(), 0) };
    done(put as c_long)
}

pub(super) fn memfd(_: &Stage) -> io::Result<()> {
    // SAFETY: the name ends with a zero and lives for ever.
    done(c_long::from(unsafe { libc::memfd_create(c"probe".as_ptr(), 0) }))
}
