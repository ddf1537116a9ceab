//! The benchmark of the spine: which figures, in which order, built how.

use super::process::command;
use super::requests::Requests;
use super::{Result, appends, line, memory, meter, recovery, runs, start, turns};
use std::path::PathBuf;

/// Measures what the whole rests on
#[derive(clap::Args)]
pub struct Spine {
    /// Only this figure
    #[arg(long, value_enum)]
    only: Option<Figure>,
    /// One round of each, and no million of runs
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Figure {
    /// 1,000 and 10,000 runs at once, against a raw client
    Runs,
    /// Memory of a live run
    Memory,
    /// From the start of the process to the first request
    Start,
    /// Appends in a second
    Appends,
    /// Claiming what is unfinished
    Recovery,
    /// The cost of a turn as the transcript grows
    Turns,
}

/// How much is measured.
#[derive(Clone, Copy, PartialEq)]
pub enum Effort {
    Quick,
    Full,
}

impl Effort {
    /// How often each measurement is repeated.
    pub fn rounds(self) -> usize {
        match self {
            Effort::Quick => 1,
            Effort::Full => 3,
        }
    }
}

impl Spine {
    pub fn run(self) -> Result<()> {
        if cfg!(debug_assertions) {
            build()?;
            return again();
        }
        meter::allow_open_files();
        line::say(&format!("{}\n", meter::machine()));
        line::head();
        let effort = if self.quick { Effort::Quick } else { Effort::Full };
        let wanted = |figure| self.only.is_none_or(|only| only == figure);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        if wanted(Figure::Runs) || wanted(Figure::Memory) {
            let requests = runtime.block_on(Requests::record())?;
            if wanted(Figure::Runs) {
                runs::measure(&requests, effort)?;
            }
            if wanted(Figure::Memory) {
                memory::measure(&requests, effort)?;
            }
        }
        if wanted(Figure::Start) {
            start::measure()?;
        }
        if wanted(Figure::Appends) {
            runtime.block_on(appends::measure(effort))?;
        }
        if wanted(Figure::Recovery) {
            recovery::measure(effort)?;
        }
        if wanted(Figure::Turns) {
            turns::measure(effort)?;
        }
        Ok(())
    }
}

/// Builds what is measured, with optimisations.
pub(super) fn build() -> Result<()> {
    let mut cargo = command(PathBuf::from(env!("CARGO")));
    cargo.args(["build", "--release", "--quiet", "-p", "posse-cli", "-p", "xtask"]);
    let status = cargo.status()?;
    if status.success() { Ok(()) } else { Err("the release build failed".into()) }
}

/// Runs the same command with the optimised build of this program.
pub(super) fn again() -> Result<()> {
    let mut cargo = command(PathBuf::from(env!("CARGO")));
    cargo.args(["run", "--release", "--quiet", "-p", "xtask", "--"]);
    let status = cargo.args(std::env::args_os().skip(1)).status()?;
    if status.success() { Ok(()) } else { Err("the benchmark failed; see above".into()) }
}
