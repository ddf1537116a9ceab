//! How much of the machine a command may use. The kernel limits each process, and the supervisor limits
//! the whole tree, which no process can leave.

use crate::linux;
use rustix::process::{Pid, Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// How many times its share of memory a process may reserve without using it.
const RESERVED_FACTOR: u64 = 4;

/// The limits of a command. They apply to all its processes together unless the field says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Bytes of memory that are not shared.
    pub memory_bytes: u64,
    /// Processes at the same time.
    pub processes: u32,
    /// Size of each file that is written, in bytes.
    pub file_bytes: u64,
    /// Bytes written to disks in total.
    pub disk_bytes: u64,
    /// Open files of each process.
    pub open_files: u64,
}

/// The memory limit of a command on a machine with at least twice as much.
const MEMORY_BYTES: u64 = 4 << 30;

/// How much of the machine's memory each concurrent command counts for.
const SHARE_BYTES: u64 = 512 << 20;

/// The default number of commands that run at the same time on this machine: two for each core, but no
/// more than memory allows. It is at least two, so that a slow command does not hold up all others.
pub fn usual_commands_at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
    let shares = usize::try_from(linux::machine_bytes() / SHARE_BYTES).unwrap_or(usize::MAX);
    (2 * cores).max(4).min(shares).max(2)
}

impl CommandLimits {
    /// The defaults: 4 GiB of memory, or half of the machine's memory if that is less, and generous
    /// values for the rest.
    pub fn usual() -> CommandLimits {
        CommandLimits {
            memory_bytes: MEMORY_BYTES.min(linux::machine_bytes() / 2),
            processes: 512,
            file_bytes: 10 << 30,
            disk_bytes: 20 << 30,
            open_files: 4096,
        }
    }
}

/// The limit that ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// It used more memory than this, in bytes.
    Memory(u64),
    /// It had more processes than this.
    Processes(u32),
    /// It wrote more than this to disks, in bytes.
    Disk(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Memory(bytes) => write!(f, "it used more than {} MiB of memory", bytes >> 20),
            Limit::Processes(count) => write!(f, "it had more than {count} processes"),
            Limit::Disk(bytes) => write!(f, "it wrote more than {} MiB to disks", bytes >> 20),
        }
    }
}

impl CommandLimits {
    /// Sets the kernel's limits for this process and all processes that it starts.
    pub(crate) fn enforce(&self) -> io::Result<()> {
        let most = |resource, value: u64| {
            let now = rustix::process::getrlimit(resource);
            // Never raise a limit that the host has set.
            let value = Some(now.maximum.map_or(value, |maximum| maximum.min(value)));
            setrlimit(resource, Rlimit { current: value, maximum: value })
        };
        // Not 0: with 0, the kernel would still start the host's program for core dumps.
        most(Resource::Core, 1)?;
        most(Resource::Fsize, self.file_bytes)?;
        most(Resource::Nofile, self.open_files)?;
        most(Resource::Data, self.memory_bytes.saturating_mul(RESERVED_FACTOR))?;
        // If memory runs out all the same, the kernel kills these processes first. This write may be
        // forbidden, and `/proc` does not exist everywhere.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        Ok(())
    }
}

/// Checks the process tree of a command against its limits.
pub(crate) struct Watchdog {
    limits: CommandLimits,
    page_bytes: u64,
}

impl Watchdog {
    pub(crate) fn new(limits: CommandLimits) -> Watchdog {
        Watchdog { limits, page_bytes: rustix::param::page_size() as u64 }
    }

    /// Returns the limit that the processes `tree` exceed, if any.
    pub(crate) fn over(&self, tree: Vec<Pid>) -> Option<Limit> {
        let (mut count, mut bytes) = (0, 0);
        let mut written = linux::written_by_the_buried();
        for process in tree {
            count += 1;
            bytes += self.own_bytes(process);
            written = written.saturating_add(written_bytes(process));
        }
        let CommandLimits { memory_bytes, processes, disk_bytes, .. } = self.limits;
        if count > processes {
            return Some(Limit::Processes(processes));
        }
        if written > disk_bytes {
            return Some(Limit::Disk(disk_bytes));
        }
        (bytes > memory_bytes).then_some(Limit::Memory(memory_bytes))
    }

    /// Resident memory that is neither shared nor backed by a file.
    fn own_bytes(&self, process: Pid) -> u64 {
        let path = format!("/proc/{}/statm", process.as_raw_pid());
        let Ok(text) = std::fs::read_to_string(path) else { return 0 };
        let mut fields = text.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0));
        let resident: u64 = fields.nth(1).unwrap_or(0);
        let shared = fields.next().unwrap_or(0);
        resident.saturating_sub(shared) * self.page_bytes
    }
}

/// Bytes that a process and its reaped children have written to disks.
fn written_bytes(process: Pid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/io", process.as_raw_pid()));
    let text = text.unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
