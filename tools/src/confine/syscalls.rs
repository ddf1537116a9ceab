//! The system calls that are refused to all confined commands, and those refused to some.

use super::program::{Refusal, When};
use libc::{EAFNOSUPPORT, ENOSYS, EOPNOTSUPP, EPERM};

/// Flags of `clone` and `unshare` that create a namespace. A process would have new powers in it.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// The flag for a time namespace. For `clone`, this bit means something else.
const NEW_TIME: u32 = 0x80;

// The C library has no names for these yet. The numbers are the same on all architectures.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

// Requests of `ioctl`.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;
const TIOCSETD: u32 = 0x5423;
const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
const FS_IOC32_SETFLAGS: u32 = 0x4004_6602;
const FS_IOC_SETVERSION: u32 = 0x4008_7602;
const FS_IOC_FSSETXATTR: u32 = 0x401C_5820;

/// Powers over other processes, the kernel and the machine. Most of them need capabilities anyway. Some
/// do not, and each is more attack surface of the kernel.
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

/// The same, for calls that depend on the architecture.
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

/// Mode bits with which a program runs as the owner of its file, no matter which user starts it.
const AS_OWNER: u32 = libc::S_ISUID | libc::S_ISGID;

/// The mode bit that marks placeholders. If a command could set it, it could pass off its files as
/// placeholders.
const MARK: u32 = libc::S_ISVTX;

/// Flags of `open` that create a file.
const MAKES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// Calls that set the mode of a file, and the argument with the mode.
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

/// Calls that create a folder, and the argument with the mode. The kernel ignores the bits of
/// [`AS_OWNER`] here.
const FOLDERS: &[(i64, u32)] = &[
    (libc::SYS_mkdirat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
];

/// Calls that set a mode if they create a file: the arguments with the flags and with the mode.
const OPENS: &[(i64, [u32; 2])] = &[
    (libc::SYS_openat, [2, 3]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, [1, 2]),
];

/// Refused with the error of a kernel without these calls, so that programs use the older ones.
const UNKNOWN: &[i64] = &[
    // Its flags are in memory, where a filter cannot read them.
    libc::SYS_clone3,
    // So are its flags and its mode.
    libc::SYS_openat2,
    // Its operations would bypass this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Changes of metadata that need no open file, so that Landlock does not see them.
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

/// Objects that outlive a process or reach other processes, unless there is a namespace.
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
/// Calls that change the process in an argument. 0 means the caller itself, and is allowed.
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

/// The refusals for every confined command.
pub(super) fn always() -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = refuse(NEVER, EPERM).collect();
    refusals.extend(refuse(NEVER_HERE, EPERM));
    refusals.extend(refuse(UNKNOWN, ENOSYS));
    // Reserves disk space that does not count as written. Programs then write instead.
    refusals.extend(refuse(&[libc::SYS_fallocate], EOPNOTSUPP));
    refusals.extend([TIOCSTI, TIOCLINUX, TIOCSETD].map(ioctl));
    refusals.extend([
        on(libc::SYS_clone, When::AnyBit { argument: 0, bits: NAMESPACES }),
        on(libc::SYS_unshare, When::AnyBit { argument: 0, bits: NAMESPACES | NEW_TIME }),
        // It could change the limits of another process, such as this runtime.
        on(libc::SYS_prlimit64, When::IsNot { argument: 0, value: 0 }),
    ]);
    // Outside the sandbox, other users could run such a file, and the agent's code would run as this user.
    let set_mode = |calls: &[(i64, u32)], bits: u32| -> Vec<Refusal> {
        calls.iter().map(|&(call, argument)| on(call, When::AnyBit { argument, bits })).collect()
    };
    refusals.extend(set_mode(MODES, AS_OWNER | MARK));
    refusals.extend(set_mode(FOLDERS, MARK));
    let opens = OPENS.iter();
    refusals.extend(opens.map(|&(number, arguments)| {
        on(number, When::AnyBits { arguments, bits: [MAKES, AS_OWNER | MARK] })
    }));
    refusals
}

/// The refusals for commands that may change nothing.
pub(super) fn changes() -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = refuse(METADATA, EPERM).collect();
    refusals.extend(refuse(METADATA_HERE, EPERM));
    refusals.extend(
        [FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_SETVERSION, FS_IOC_FSSETXATTR].map(ioctl),
    );
    refusals
}

/// The refusals for commands without namespaces between them and other processes.
pub(super) fn reaching_out() -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = refuse(SHARED, EPERM).collect();
    let others = OTHERS.iter();
    refusals.extend(
        others.map(|(number, argument)| on(*number, When::IsNot { argument: *argument, value: 0 })),
    );
    refusals
}

/// Refuses sockets of every kind. A pair of sockets within the command stays allowed.
pub(super) fn sockets() -> Vec<Refusal> {
    vec![on(libc::SYS_socket, When::Always)]
}

/// Refuses all sockets except those of the internet: the others lead to processes of this machine.
pub(super) fn local_sockets() -> Vec<Refusal> {
    const FAMILIES: &[u32] = &[libc::AF_INET as u32, libc::AF_INET6 as u32];
    const TYPES: &[u32] = &[libc::SOCK_STREAM as u32, libc::SOCK_DGRAM as u32];
    let family = When::NoneOf { argument: 0, mask: u32::MAX, values: FAMILIES };
    let of_type = When::NoneOf { argument: 1, mask: 0xF, values: TYPES };
    let (number, errno) = (libc::SYS_socket, EAFNOSUPPORT);
    vec![Refusal { number, when: family, errno }, Refusal { number, when: of_type, errno }]
}
