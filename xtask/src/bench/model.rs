//! The benchmark of models: which figures, in which order.

mod allocations;
mod flood;
mod hear;
mod replies;
mod server;
mod suites;
mod wires;

pub use flood::Flood;
pub use hear::{Hear, HearRaw};
pub use server::SayText;

use super::spine::{Effort, again, build};
use super::{Result, line, meter};

/// Measures what talking to models costs, and counts what holds
#[derive(clap::Args)]
pub struct Model {
    /// Only this figure
    #[arg(long, value_enum)]
    only: Option<Figure>,
    /// One round of each, without the grid of faults and the question set
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Figure {
    /// Processor time of a streamed reply and of a megabyte of deltas, against a raw client;
    /// connections of 3,000 requests
    Replies,
    /// Allocations for each event
    Allocations,
    /// Requests a second that the fake model answers
    Fake,
    /// Cells of the grid of faults that pass, for each wire
    Grid,
    /// Questions that the offline model answers rightly
    Questions,
}

impl Model {
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
        // What takes minutes is left out when time is short, unless it is asked for.
        let has_time = |figure| wanted(figure) && (!self.quick || self.only == Some(figure));
        if wanted(Figure::Replies) {
            replies::measure(effort)?;
        }
        if wanted(Figure::Allocations) {
            allocations::measure()?;
        }
        if wanted(Figure::Fake) {
            flood::measure(effort)?;
        }
        if has_time(Figure::Grid) {
            suites::grid()?;
        }
        if has_time(Figure::Questions) {
            suites::questions()?;
        }
        Ok(())
    }
}
