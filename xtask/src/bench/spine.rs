//! The benchmark of the spine: which figures, in which order.

mod appends;
mod fill;
mod memory;
mod recovery;
mod runs;
mod start;
mod turns;

pub use appends::event;
pub use fill::{Fill, append, ended, started};
pub use memory::{beyond, per_run};
pub use recovery::Claim;
pub use turns::{Talk, TalkRaw};

use super::Result;
use super::harness::Choice;
use super::recording::Recording;
use super::server::Play;

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum Figure {
    /// 1,000 and 10,000 runs at once, against a raw client
    Runs,
    /// Memory of a live run
    Memory,
    /// From the start of the process to the first request
    Start,
    /// Appends in a second
    Appends,
    /// Claiming unfinished runs; quick: without the database of a million runs
    Recovery,
    /// The cost of a turn as the transcript grows
    Turns,
}

pub async fn measure(choice: Choice<Figure>) -> Result<()> {
    let effort = choice.effort;
    if choice.wants(Figure::Runs) || choice.wants(Figure::Memory) {
        let recording = Recording::of(Play::Reads).await?;
        if choice.wants(Figure::Runs) {
            runs::measure(&recording, effort)?;
        }
        if choice.wants(Figure::Memory) {
            memory::measure(&recording, effort)?;
        }
    }
    if choice.wants(Figure::Start) {
        start::measure()?;
    }
    if choice.wants(Figure::Appends) {
        appends::measure(effort).await?;
    }
    if choice.wants(Figure::Recovery) {
        recovery::measure(effort)?;
    }
    if choice.wants(Figure::Turns) {
        turns::measure(effort)?;
    }
    Ok(())
}
