//! The benchmark of work in the background: which figures, in which order.

mod crowd;
mod crowd_raw;
mod recording;
mod rough;
mod serve;
mod smooth;
mod told;
mod wake;

pub use crowd::Crowd;
pub use crowd_raw::CrowdRaw;
pub use serve::ServeCrowd;

use super::spine::{Effort, again, build};
use super::{Result, line, meter};
use recording::Recording;

/// Measures work in the background: thousands of runs, each told of exactly once
#[derive(clap::Args)]
pub struct Background {
    /// Only this figure
    #[arg(long, value_enum)]
    only: Option<Figure>,
    /// A tenth of the runs
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Figure {
    /// 10,000 runs through 256 slots, against a raw client of the same width
    Runs,
    /// The same with faults, hung tools, kills and cancels
    Rough,
    /// A parent that sleeps, from its child's last word to its next request
    Wake,
}

/// How many runs there are, and who started them.
#[derive(Clone, Copy)]
pub struct Size {
    pub sessions: usize,
    /// Of each session.
    pub children: usize,
}

/// Runs that are executed at the same time.
pub const SLOTS: usize = 256;

impl Size {
    fn of(effort: Effort) -> Self {
        let sessions = match effort {
            Effort::Quick => 5,
            Effort::Full => 50,
        };
        Size { sessions, children: 200 }
    }

    /// All children.
    pub fn runs(self) -> usize {
        self.sessions * self.children
    }

    /// In an order to a part of the benchmark.
    fn arguments(self) -> [String; 2] {
        [format!("--sessions={}", self.sessions), format!("--children={}", self.children)]
    }
}

impl Background {
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
        let size = Size::of(effort);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        if wanted(Figure::Runs) || wanted(Figure::Rough) {
            let recording = runtime.block_on(Recording::of_child())?;
            if wanted(Figure::Runs) {
                smooth::measure(&recording, size)?;
            }
            if wanted(Figure::Rough) {
                rough::measure(&recording, size)?;
            }
        }
        if wanted(Figure::Wake) {
            runtime.block_on(wake::measure(effort))?;
        }
        Ok(())
    }
}
