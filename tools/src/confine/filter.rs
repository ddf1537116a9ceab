//! The filter of system calls around a command.

use super::backend::Backend;
use super::command_sandbox::{CommandSandbox, Link};
use super::program::{assemble, bytes};
use super::syscalls;
use libc::{sock_filter, sock_fprog};
use posse_protocol::Profile;
use std::io;

/// The system calls that are refused to a command and to all programs that it starts.
pub(super) struct Filter(Vec<sock_filter>);

impl Filter {
    pub(super) fn of(sandbox: &CommandSandbox) -> Filter {
        let mut refusals = syscalls::always();
        if sandbox.profile == Profile::ReadOnly {
            refusals.extend(syscalls::changes());
        }
        if sandbox.backend == Backend::Landlock {
            refusals.extend(syscalls::reaching_out());
        }
        refusals.extend(match &sandbox.link {
            // In a sandbox the command has its own network, which contains nothing else.
            Link::None if sandbox.backend == Backend::Bubblewrap => syscalls::local_sockets(),
            Link::None => syscalls::sockets(),
            Link::Proxy(_) | Link::Open => syscalls::local_sockets(),
        });
        Filter(assemble(&refusals))
    }

    /// The filter in the format that bubblewrap reads.
    pub(super) fn bytes(&self) -> Vec<u8> {
        bytes(&self.0)
    }

    /// Applies the filter permanently to this process and all processes that it starts. The process
    /// must have set `no_new_privs`.
    #[expect(unsafe_code, reason = "neither the standard library nor rustix offers it")]
    pub(super) fn enforce(&self) -> io::Result<()> {
        let length = u16::try_from(self.0.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let program = sock_fprog { len: length, filter: self.0.as_ptr().cast_mut() };
        // SAFETY: the program lives until the call returns, and the kernel only reads it.
        let set = unsafe {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
