//! Which system calls no confined command makes, and which only some may not.

use super::program::{Refusal, When};
use libc::{EAFNOSUPPORT, ENOSYS, EOPNOTSUPP, EPERM};

/// Flags of `clone` and `unshare` that make a namespace, in which there would be new powers.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// The one for time, whose bit means something else to `clone`.
const NEW_TIME: u32 = 0x80;

// Newer than the names that the C library offers; these numbers are the same everywhere.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

// What `ioctl` is asked to do.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;
const TIOCSETD: u32 = 0x5423;
const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
const FS_IOC32_SETFLAGS: u32 = 0x4004_6602;
const FS_IOC_SETVERSION: u32 = 0x4008_7602;
const FS_IOC_FSSETXATTR: u32 = 0x401C_5820;

/// Powers over other processes, the kernel and the machine. Most are closed to those without
/// capabilities anyway; some are not, and each is more of the kernel to attack.
const NEVER: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_fanotify_init,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// The same, where only this architecture has them.
#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[i64] = &[libc::SYS_kexec_file_load];

/// Bits of a mode with which a program runs as the owner of its file, whoever starts it.
const AS_OWNER: u32 = libc::S_ISUID | libc::S_ISGID;

/// Flags of `open` with which a file is made.
const MAKES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// Calls that give a file a mode, and which argument that is.
const MODES: &[(i64, u32)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Calls that do so if a flag says that they make a file: where the flags are, and where the mode is.
const OPENS: &[(i64, [u32; 2])] = &[
    (libc::SYS_openat, [2, 3]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, [1, 2]),
];

/// Answered as by a kernel that does not have them, so that programs take the older way.
const UNKNOWN: &[i64] = &[
    // Its flags are in memory, where a filter cannot see them.
    libc::SYS_clone3,
    // So are its flags and its mode.
    libc::SYS_openat2,
    // Whatever it does would pass by this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Changes to a file that need no open file: Landlock does not see them.
const METADATA: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
    libc::SYS_utimensat,
];
#[cfg(target_arch = "x86_64")]
const METADATA_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const METADATA_HERE: &[i64] = &[];

/// What outlives a process, or reaches others, where there is no namespace around it.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// Calls that change the process named by an argument, unless that is 0 for the caller itself.
const OTHERS: &[(i64, u32)] = &[
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

fn refuse(numbers: &[i64], errno: i32) -> impl Iterator<Item = Refusal> {
    numbers.iter().map(move |number| Refusal { number: *number, when: When::Always, errno })
}

fn on(number: i64, when: When) -> Refusal {
    Refusal { number, when, errno: EPERM }
}

fn ioctl(request: u32) -> Refusal {
    on(libc::SYS_ioctl, When::Is { argument: 1, value: request })
}

/// What every confined command is refused.
pub(super) fn always() -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = refuse(NEVER, EPERM).collect();
    refusals.extend(refuse(NEVER_HERE, EPERM));
    refusals.extend(refuse(UNKNOWN, ENOSYS));
    // Takes room on a disk that is not counted as written. Programs write instead.
    refusals.extend(refuse(&[libc::SYS_fallocate], EOPNOTSUPP));
    refusals.extend([TIOCSTI, TIOCLINUX, TIOCSETD].map(ioctl));
    refusals.extend([
        on(libc::SYS_clone, When::AnyBit { argument: 0, bits: NAMESPACES }),
        on(libc::SYS_unshare, When::AnyBit { argument: 0, bits: NAMESPACES | NEW_TIME }),
        // The limits of another process, which may be the runtime.
        on(libc::SYS_prlimit64, When::IsNot { argument: 0, value: 0 }),
    ]);
    // Outside, others could run such a file, and it would do what an agent wrote in the user's name.
    let bits = AS_OWNER;
    let modes = MODES.iter();
    refusals.extend(modes.map(|&(number, argument)| on(number, When::AnyBit { argument, bits })));
    let opens = OPENS.iter();
    refusals.extend(opens.map(|&(number, arguments)| {
        on(number, When::AnyBits { arguments, bits: [MAKES, AS_OWNER] })
    }));
    refusals
}

/// What is refused where nothing may be changed.
pub(super) fn changes() -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = refuse(METADATA, EPERM).collect();
    refusals.extend(refuse(METADATA_HERE, EPERM));
    refusals.extend(
        [FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_SETVERSION, FS_IOC_FSSETXATTR].map(ioctl),
    );
    refusals
}

/// What is refused where no namespaces stand between the command and other processes.
pub(super) fn reaching_out() -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = refuse(SHARED, EPERM).collect();
    let others = OTHERS.iter();
    refusals.extend(
        others.map(|(number, argument)| on(*number, When::IsNot { argument: *argument, value: 0 })),
    );
    refusals
}

/// Sockets of every kind. A pair of sockets within the command is left to it.
pub(super) fn sockets() -> Vec<Refusal> {
    vec![on(libc::SYS_socket, When::Always)]
}

/// Sockets but those of the internet: the others lead to processes of this machine.
pub(super) fn local_sockets() -> Vec<Refusal> {
    const FAMILIES: &[u32] = &[libc::AF_INET as u32, libc::AF_INET6 as u32];
    const TYPES: &[u32] = &[libc::SOCK_STREAM as u32, libc::SOCK_DGRAM as u32];
    let family = When::NoneOf { argument: 0, mask: u32::MAX, values: FAMILIES };
    let of_type = When::NoneOf { argument: 1, mask: 0xF, values: TYPES };
    let (number, errno) = (libc::SYS_socket, EAFNOSUPPORT);
    vec![Refusal { number, when: family, errno }, Refusal { number, when: of_type, errno }]
}
