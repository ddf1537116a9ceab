//! The side within the confinement: makes each probe in a process of its own, which may die, and
//! reports the result.

use super::attempt::{self, Attempt};
use super::kernel::fork;
use rustix::process::{Pid, WaitOptions, waitpid};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use std::process::exit;

/// The first argument that makes an executable make the probes.
pub(super) const MARKER: &str = "__posse-probe";

/// What there is to attack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stage {
    /// A folder that must not be changed, with the files that the probes are about.
    pub target: PathBuf,
    pub workspace: PathBuf,
    /// A name that nothing else has.
    pub word: String,
    pub port: u16,
    pub datagrams: u16,
    /// Which network the host is in.
    pub network: Option<PathBuf>,
    pub socket: PathBuf,
    pub secret: PathBuf,
    pub at_home: PathBuf,
    /// A FIFO in a place that can only be read, if there is such a place.
    pub pipe: Option<PathBuf>,
    /// A process outside.
    pub process: i32,
    pub shared_memory: i32,
}

/// The name of a probe as a file name, for its target and its traces.
pub(super) fn slug(name: &str) -> String {
    name.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect()
}

/// Makes the probes if this process was started for them, and then never returns. Call it first thing in
/// `main`, before any thread exists.
pub fn init() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == MARKER) {
        make(&arguments.next().unwrap_or_default().to_string_lossy())
    }
}

fn make(stage: &str) -> ! {
    let Ok(stage) = serde_json::from_str::<Stage>(stage) else { exit(2) };
    for attempt in attempt::every() {
        let word = if succeeds(attempt, &stage) { "succeeded" } else { "denied" };
        let _ = writeln!(std::io::stdout(), "probe {word} {}", attempt.name);
    }
    exit(0)
}

/// Whether it succeeds. A probe that is killed or gets stuck has not succeeded.
fn succeeds(attempt: &Attempt, stage: &Stage) -> bool {
    match fork() {
        Ok(None) => {
            rustix::process::setrlimit(
                rustix::process::Resource::Cpu,
                rustix::process::Rlimit { current: Some(5), maximum: Some(5) },
            )
            .ok();
            exit(i32::from((attempt.act)(stage).is_err()))
        }
        Ok(Some(child)) => ended_well(child),
        Err(_) => false,
    }
}

fn ended_well(child: Pid) -> bool {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.exit_status() == Some(0),
            Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return false,
        }
    }
}

/// What was said.
pub(super) struct Said(Vec<(String, bool)>);

impl Said {
    pub(super) fn read(text: &str) -> Said {
        let lines = text.lines().filter_map(|line| line.strip_prefix("probe "));
        let pairs = lines.filter_map(|line| line.split_once(' '));
        Said(pairs.map(|(word, name)| (name.to_owned(), word == "succeeded")).collect())
    }

    pub(super) fn succeeded(&self, name: &str) -> Option<bool> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, succeeded)| *succeeded)
    }
}
