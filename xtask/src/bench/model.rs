//! The benchmark of models: which figures, in which order.

mod allocations;
mod flood;
mod hear;
mod suites;
mod wires;

pub use flood::Flood;
pub use hear::Hear;

use super::Result;
use super::harness::Choice;

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum Figure {
    /// Processor time of a streamed reply and of a megabyte of deltas, against a raw client;
    /// connections of 3,000 requests
    Replies,
    /// Allocations for each event
    Allocations,
    /// Requests a second that the fake model answers
    Fake,
    /// Cells of the grid of faults that pass, for each wire; quick: only if it is named
    Grid,
    /// Questions that the offline model answers rightly; quick: only if it is named
    Questions,
}

pub async fn measure(choice: Choice<Figure>) -> Result<()> {
    let effort = choice.effort;
    let named = |figure| choice.only == Some(figure) || (choice.wants(figure) && !effort.quick);
    if choice.wants(Figure::Replies) {
        hear::measure(effort)?;
    }
    if choice.wants(Figure::Allocations) {
        allocations::measure().await?;
    }
    if choice.wants(Figure::Fake) {
        flood::measure(effort)?;
    }
    if named(Figure::Grid) {
        suites::grid()?;
    }
    if named(Figure::Questions) {
        suites::questions()?;
    }
    Ok(())
}
