//! The fan-out as users have it: the binary, its default settings and a new home, against a raw
//! client that makes the same requests.

use super::fan_out::raw;
use super::recording::{Recording, requests};
use super::written;
use crate::bench::Result;
use crate::bench::meter::Cost;
use crate::bench::process::{command, sibling};
use crate::bench::requests::fill;
use crate::bench::runs::{LATENCY, compare};
use crate::bench::serve::{LEAD, Server};
use crate::bench::spine::Effort;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Most that `posse run` may take of the wall time of a raw client, for each number of children.
const WALL: [(usize, &str, f64); 3] =
    [(10, "≤ 1.05 × raw", 1.05), (100, "≤ 1.1 × raw", 1.1), (1_000, "≤ 1.3 × raw", 1.3)];
/// How many children go through few slots, and how many slots there are.
const QUEUED: usize = 1_000;
const FEW: &str = "max_concurrent = 16\n";

/// A main agent and its children, through `posse run`.
pub fn measure(recording: &Recording, effort: Effort) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        let ours = posse(&recording.workspace(), recording.children, LATENCY, "")?;
        rounds.push((raw(recording)?, ours));
    }
    let name = |what: &str| format!("shipped: {} children, {what}", written(recording.children));
    let goal = WALL.iter().find(|(children, ..)| *children == recording.children);
    compare(&name("wall"), &rounds, |cost| cost.wall, goal.map(|(_, words, most)| (*words, *most)));
    let goal = (recording.children == 1_000).then_some(("≤ 6 × raw", 6.0));
    compare(&name("processor"), &rounds, |cost| cost.cpu, goal);
    Ok(())
}

/// The same children through few slots, against all at once. Replies take no time, so that what is
/// left is Posse's own.
pub fn measure_queue(effort: Effort) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("work");
    fill(&workspace)?;
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds() {
        let at_once = posse(&workspace, QUEUED, Duration::ZERO, "")?;
        rounds.push((at_once, posse(&workspace, QUEUED, Duration::ZERO, FEW)?));
    }
    let name = format!("shipped: {} through 16 slots, processor", written(QUEUED));
    compare(&name, &rounds, |cost| cost.cpu, Some(("≤ 1.3 × at once", 1.3)));
    Ok(())
}

/// Runs the binary from its start to its exit.
fn posse(workspace: &Path, children: usize, latency: Duration, settings: &str) -> Result<Cost> {
    let server = Server::of_tree(children, latency)?;
    let home = tempfile::tempdir()?;
    let config = home.path().join("config");
    std::fs::create_dir_all(config.join("posse"))?;
    std::fs::write(config.join("posse/config.toml"), settings)?;
    let mut command = command(sibling("posse")?);
    command
        .args(["run", LEAD, "--cwd"])
        .arg(workspace)
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", &config)
        .env("XDG_DATA_HOME", home.path().join("data"))
        .env("XDG_STATE_HOME", home.path().join("state"))
        .env("XDG_CACHE_HOME", home.path().join("cache"))
        .env("ANTHROPIC_BASE_URL", &server.url)
        .env("ANTHROPIC_API_KEY", "any")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn()?;
    // Until it is reaped, the kernel still tells what it has used.
    let pid = Pid::from_raw(child.id().cast_signed()).ok_or("a process without a number")?;
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let wall = began.elapsed().as_secs_f64();
    let cpu = processor_seconds(child.id())?;
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("posse run with {children} children ended with {status}").into());
    }
    server.end(requests(children))?;
    Ok(Cost { wall, cpu })
}

/// Processor time of the process `pid`, user and system.
fn processor_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program, in parentheses, may hold spaces.
    let fields = stat.rsplit_once(')').ok_or("the kernel does not tell what was used")?.1;
    let ticks = |index: usize| fields.split_whitespace().nth(index).and_then(|it| it.parse().ok());
    let (user, system): (Option<f64>, Option<f64>) = (ticks(11), ticks(12));
    let ticks = user.zip(system).ok_or("the kernel does not tell what was used")?;
    Ok((ticks.0 + ticks.1) / rustix::param::clock_ticks_per_second() as f64)
}
