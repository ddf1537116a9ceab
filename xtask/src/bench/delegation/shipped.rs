//! The fan-out as users have it: the binary, its default settings and a new home, against a raw
//! client that makes the same requests.

use super::fan_out::raw;
use super::tree::requests;
use crate::bench::Result;
use crate::bench::harness::Effort;
use crate::bench::line::{Line, written};
use crate::bench::meter::Cost;
use crate::bench::part::{Guarded, posse};
use crate::bench::recording::{Recording, workspace};
use crate::bench::server::{LEAD, Pace, Play, Server};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::path::Path;
use std::time::Instant;

/// How many children go through few slots, and the setting for few slots.
const QUEUED: usize = 1_000;
const FEW: &str = "max_concurrent = 16\n";

/// A main agent and its children, through `posse run`.
pub fn measure(recording: &Recording, children: usize, effort: Effort) -> Result<()> {
    let rounds = effort.rounds(|| {
        let ours = run(recording.workspace.path(), children, Pace::Thinking, "")?;
        Ok((ours, raw(recording, children)?))
    })?;
    let [wall, processor] =
        Line::costs(&format!("shipped: {} children", written(children)), &rounds);
    let (most_wall, most_processor) = match children {
        10 => (1.05, None),
        100 => (1.1, None),
        _ => (1.3, Some(6.0)),
    };
    wall.at_most(most_wall, "raw").print();
    processor.at_most(most_processor, "raw").print();
    Ok(())
}

/// The same children through few slots, against all at once. Replies take no time, so that what is
/// left is Posse's own.
pub fn measure_queue(effort: Effort) -> Result<()> {
    let workspace = workspace()?;
    let cost = |settings| run(workspace.path(), QUEUED, Pace::AtOnce, settings);
    let rounds = effort.rounds(|| {
        let at_once = cost("")?;
        Ok((cost(FEW)?, at_once))
    })?;
    let name = format!("shipped: {} through 16 slots", written(QUEUED));
    let [_, processor] = Line::costs(&name, &rounds);
    processor.at_most(1.3, "at once").print();
    Ok(())
}

/// Runs the binary from its start to its exit.
fn run(workspace: &Path, children: usize, pace: Pace, settings: &str) -> Result<Cost> {
    let server = Server::start(Play::Tree(children), pace)?;
    let home = tempfile::tempdir()?;
    let config = home.path().join("config/posse");
    std::fs::create_dir_all(&config)?;
    std::fs::write(config.join("config.toml"), settings)?;
    let mut command = posse(home.path(), &server.url)?;
    command.args(["run", LEAD, "--cwd"]).arg(workspace);
    let began = Instant::now();
    let mut child = Guarded(command.spawn()?);
    // The kernel says what a process has used until someone has waited for its end.
    let id = child.0.id();
    let pid = Pid::from_raw(id.cast_signed()).ok_or("a process without a number")?;
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let wall = began.elapsed().as_secs_f64();
    let cpu = processor_seconds(id)?;
    child.wait()?;
    server.end_after(requests(children))?;
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
