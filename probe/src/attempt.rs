//! The list of probes.

use super::inside::Stage;
use super::{files, kernel, network};
use posse_protocol::Profile;
use std::io;

/// What shows that a probe succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// An effect outside of the confinement.
    Outside,
    /// Something that is left when the command has ended.
    Left,
    /// The answer of the kernel.
    ByAnswer,
    /// It touches nothing but memory of its own.
    Private,
}

/// One thing to try. It succeeds if it returns without an error.
pub(super) struct Attempt {
    pub name: &'static str,
    pub seen: Seen,
    pub act: fn(&Stage) -> io::Result<()>,
}

const fn outside(name: &'static str, act: fn(&Stage) -> io::Result<()>) -> Attempt {
    Attempt { name, seen: Seen::Outside, act }
}

const fn by_answer(name: &'static str, act: fn(&Stage) -> io::Result<()>) -> Attempt {
    Attempt { name, seen: Seen::ByAnswer, act }
}

const fn left(name: &'static str, act: fn(&Stage) -> io::Result<()>) -> Attempt {
    Attempt { name, seen: Seen::Left, act }
}

/// Probes of processes first: with fewer processes before, their ids within a box are smaller.
const ALL: &[Attempt] = &[
    by_answer("signal to an outside process", kernel::signal),
    by_answer("ptrace of an outside process", kernel::ptrace),
    by_answer("process_vm_readv of an outside process", kernel::read_memory),
    by_answer("limits of an outside process", kernel::change_limits),
    by_answer("priority of an outside process", kernel::change_priority),
    by_answer("/proc/PID/environ of an outside process", files::read_environment),
    by_answer("/proc/PID/cmdline of an outside process", files::read_arguments),
    by_answer("/proc/PID/root of an outside process", files::read_through_root),
    outside("create a file", files::create),
    outside("create in /tmp", files::create_in_tmp),
    outside("create in /var/tmp", files::create_in_var_tmp),
    outside("create in /run", files::create_in_run),
    outside("create in /dev/shm", files::create_in_shm),
    outside("append", files::append),
    outside("open with O_TRUNC", files::open_truncating),
    outside("truncate", files::truncate),
    outside("O_TMPFILE and link", files::temporary_and_link),
    outside("mkdir", files::make_folder),
    outside("symlink", files::make_link),
    outside("link", files::make_hard_link),
    outside("rename", files::rename),
    outside("mkfifo", files::make_pipe),
    outside("unlink", files::unlink),
    outside("a child of a shell writes", files::write_by_shell),
    outside("a daemon in a session of its own writes", files::write_by_daemon),
    outside("write through an inherited descriptor", files::write_inherited),
    outside("open /proc/self/fd/N again to write", files::reopen_inherited),
    outside("write into a FIFO outside", files::write_into_pipe),
    outside("chmod", files::change_mode),
    outside("chown", files::change_owner),
    outside("utimensat", files::change_times),
    outside("setxattr", files::set_attribute),
    outside("FS_IOC_SETFLAGS", files::set_flags),
    by_answer("read what the host hides", files::read_secret),
    by_answer("read another project in the home folder", files::read_home),
    by_answer("read it through a link in the workspace", files::read_home_by_link),
    by_answer("read /etc/shadow", files::read_shadow),
    by_answer("read a disk", files::read_disk),
    by_answer("open_by_handle_at", files::open_by_handle),
    outside("TCP connect", network::connect),
    outside("TCP fast open", network::fast_open),
    outside("MPTCP connect", network::multipath),
    by_answer("TCP listen", network::listen),
    by_answer("TCP listen without bind", network::listen_unbound),
    outside("UDP send", network::datagram),
    by_answer("raw socket", network::raw),
    by_answer("packet socket", network::packet),
    by_answer("netlink socket", network::netlink),
    by_answer("vsock socket", network::vsock),
    outside("Unix socket by path", network::local),
    outside("abstract Unix socket", network::local_abstract),
    by_answer("io_uring_setup", kernel::io_uring),
    by_answer("change of a kernel setting", files::change_kernel_setting),
    by_answer("chmod of what buries processes", files::change_first_process),
    by_answer("unshare of user and mount namespace", kernel::unshare),
    by_answer("clone with a user namespace", kernel::clone_namespace),
    by_answer("clone3 with a user namespace", kernel::clone3_namespace),
    by_answer("mount", kernel::mount),
    by_answer("keyctl", kernel::keyctl),
    by_answer("bpf", kernel::bpf),
    by_answer("userfaultfd", kernel::userfaultfd),
    by_answer("perf_event_open", kernel::perf),
    by_answer("TIOCSTI", kernel::type_into_terminal),
    by_answer("a call of i386", kernel::call_of_i386),
    by_answer("a call of x32", kernel::call_of_x32),
    by_answer("System V shared memory of the host", kernel::shared_memory),
    Attempt { name: "memfd", seen: Seen::Private, act: kernel::memfd },
];

/// What the workspace-write profile adds.
const IN_WORKSPACE: &[Attempt] = &[
    outside("write .git/hooks", files::write_hook),
    outside("write .git/config", files::write_git_config),
    outside("make .posse", files::make_posse),
    outside("make posse.toml", files::make_settings),
    outside("replace .git", files::replace_git),
    left("settings of a nested repository", files::make_nested_settings),
    left("a hook of a nested repository", files::make_nested_hook),
    left("a repository without files", files::make_bare_repository),
    left("a link in .git", files::link_in_git),
    by_answer("chmod that makes a program run as its owner", files::run_as_owner),
    by_answer("open that makes a program run as its owner", files::made_to_run_as_owner),
    by_answer("chmod that marks a file as a placeholder", files::marked),
    by_answer("mkdir that marks a folder as a placeholder", files::made_with_mark),
    outside("settings that the user's include", files::change_included_settings),
];

/// All probes for a profile.
pub(super) fn all(profile: Profile) -> impl Iterator<Item = &'static Attempt> {
    let more = if profile == Profile::WorkspaceWrite { IN_WORKSPACE } else { &[] };
    ALL.iter().chain(more)
}

/// The one of this name.
pub(super) fn every() -> impl Iterator<Item = &'static Attempt> {
    ALL.iter().chain(IN_WORKSPACE)
}
