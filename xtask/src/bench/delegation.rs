//! The benchmark of delegation: which figures, in which order.

mod definitions;
mod fan_out;
mod forks;
mod queue;
mod shipped;
mod tree;
mod watching;

pub use definitions::Define;
pub use fan_out::raw;
pub use tree::Tree;

use super::Result;
use super::harness::Choice;
use super::recording::Recording;
use super::server::Play;

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum Figure {
    /// A main agent and 10, 100, 1,000 children, against a raw client
    FanOut,
    /// The same through `posse run` as it ships, and through few slots
    Shipped,
    /// Memory of a live child
    Memory,
    /// The updates that a watcher of a tree gets
    Watching,
    /// The cost of children that take over a conversation
    Forks,
    /// Many children through few slots
    Queue,
    /// Loading definitions of agents
    Definitions,
}

/// Children of one main agent, from few to many.
const SIZES: [usize; 3] = [10, 100, 1_000];
const MOST: usize = SIZES[SIZES.len() - 1];

pub async fn measure(choice: Choice<Figure>) -> Result<()> {
    let effort = choice.effort;
    let [fan_out, shipped, memory] =
        [Figure::FanOut, Figure::Shipped, Figure::Memory].map(|figure| choice.wants(figure));
    for children in SIZES {
        let memory = memory && children == MOST;
        if !fan_out && !shipped && !memory {
            continue;
        }
        let recording = Recording::of(Play::Tree(children)).await?;
        if fan_out {
            fan_out::measure(&recording, children, effort)?;
        }
        if shipped {
            shipped::measure(&recording, children, effort)?;
        }
        if memory {
            fan_out::measure_memory(&recording, children, effort)?;
        }
    }
    if shipped {
        shipped::measure_queue(effort)?;
    }
    if choice.wants(Figure::Watching) {
        watching::measure(effort)?;
    }
    if choice.wants(Figure::Forks) {
        forks::measure().await?;
    }
    if choice.wants(Figure::Queue) {
        queue::measure(effort)?;
    }
    if choice.wants(Figure::Definitions) {
        definitions::measure(effort)?;
    }
    Ok(())
}
