//! The benchmark of work in the background: which figures, in which order.

mod crowd;
mod rough;
mod script;
mod smooth;
mod tally;
mod wake;

pub use crowd::{Crowd, Grown, part_on};
pub use script::{LEAD, rough_script, script};
pub use smooth::{exactly_once, spread};
pub use wake::measure as measure_wake;

use super::Result;
use super::harness::{Choice, Effort};
use super::recording::Recording;
use super::server::Play;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum Figure {
    /// 10,000 runs (quick: 1,000) through 256 slots, against a raw client of the same width
    Runs,
    /// The same with faults, hung tools, kills and cancels
    Rough,
    /// A parent that waits, from its child's last reply to its own next request
    Wake,
}

/// How many runs there are.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Size {
    pub sessions: usize,
    /// Of each session.
    pub children: usize,
}

/// Runs that are executed at the same time.
pub const SLOTS: usize = 256;
/// Requests of a child.
pub const OF_CHILD: usize = 2;

impl Size {
    pub fn of(effort: Effort) -> Self {
        Size { sessions: effort.pick(5, 50), children: 200 }
    }

    /// All children.
    pub fn runs(self) -> usize {
        self.sessions * self.children
    }
}

pub async fn measure(choice: Choice<Figure>) -> Result<()> {
    let size = Size::of(choice.effort);
    if choice.wants(Figure::Runs) || choice.wants(Figure::Rough) {
        let recording = Recording::of(Play::Crowd(Size { sessions: 1, children: 1 })).await?;
        if choice.wants(Figure::Runs) {
            smooth::measure(&recording, size)?;
        }
        if choice.wants(Figure::Rough) {
            rough::measure(&recording, size)?;
        }
    }
    if choice.wants(Figure::Wake) {
        wake::measure(choice.effort, "wake: last reply to next request", |_| ()).await?;
    }
    Ok(())
}
