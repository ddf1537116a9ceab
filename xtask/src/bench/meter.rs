//! What a process has used: time, processor, memory.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What something cost the process it ran in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Seconds by the clock.
    pub wall: f64,
    /// Seconds of processor time, user and system, of all threads.
    pub cpu: f64,
}

/// Measures from its start.
pub struct Meter {
    began: Instant,
    cpu: Duration,
}

impl Meter {
    pub fn start() -> Self {
        Meter { began: Instant::now(), cpu: cpu() }
    }

    pub fn read(&self) -> Cost {
        let wall = self.began.elapsed().as_secs_f64();
        Cost { wall, cpu: cpu().saturating_sub(self.cpu).as_secs_f64() }
    }
}

/// Processor time of this process so far, user and system, of all threads.
pub fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Resident memory of the process `pid` now, in KiB.
pub fn resident_kib(pid: u32) -> super::Result<f64> {
    status(pid, "VmRSS:")
}

/// The most resident memory that the process `pid` ever had, in KiB.
pub fn peak_kib(pid: u32) -> super::Result<f64> {
    status(pid, "VmHWM:")
}

fn status(pid: u32, field: &str) -> super::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = status.lines().find_map(|line| line.strip_prefix(field));
    let number = field.and_then(|rest| rest.split_whitespace().next());
    Ok(number.ok_or("the kernel does not tell how much memory is resident")?.parse()?)
}

/// The threads that a benchmark and its parts run on.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// Allows as many open files as the system lets us: thousands of connections are open at once.
pub fn allow_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If the system refuses, the program that runs out of files says so.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The machine in a few words, without names.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, |count| count.get());
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: Option<u64> = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    let gib = kib.unwrap_or_default() as f64 / f64::from(1 << 20);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // The rest of the text after the version names a build.
    let release = release.split(['-', '\n']).next().unwrap_or_default();
    format!("{cores} cores, {gib:.0} GiB of memory, Linux {release}")
}
