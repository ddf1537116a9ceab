//! The benchmark of delegation: which figures, in which order.

mod definitions;
mod fan_out;
mod forks;
mod memory;
mod queue;
mod recording;
mod shipped;
mod tree;
mod tree_raw;
mod watching;

pub use definitions::Define;
pub use tree::Tree;
pub use tree_raw::TreeRaw;

use super::spine::{Effort, again, build};
use super::{Result, line, meter};
use recording::Recording;

/// Measures what handing work to others costs
#[derive(clap::Args)]
pub struct Delegation {
    /// Only this figure
    #[arg(long, value_enum)]
    only: Option<Figure>,
    /// One round of each
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Figure {
    /// A main agent and 10, 100, 1,000 children, against a raw client
    FanOut,
    /// The same through `posse run` as it ships, and through few slots
    Shipped,
    /// Memory of a live child
    Memory,
    /// What someone gets to see who watches a tree
    Watching,
    /// What children bill that take over a conversation
    Forks,
    /// Many children through few slots
    Queue,
    /// Loading definitions of agents
    Definitions,
}

/// Children of one main agent, from few to many.
const SIZES: [usize; 3] = [10, 100, 1_000];

impl Delegation {
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
        for children in SIZES {
            let fan_out = wanted(Figure::FanOut);
            let shipped = wanted(Figure::Shipped);
            let memory = wanted(Figure::Memory) && children == memory::CHILDREN;
            if !fan_out && !shipped && !memory {
                continue;
            }
            let recording = runtime.block_on(Recording::of_tree(children))?;
            if fan_out {
                fan_out::measure(&recording, effort)?;
            }
            if shipped {
                shipped::measure(&recording, effort)?;
            }
            if memory {
                memory::measure(&recording, effort)?;
            }
        }
        if wanted(Figure::Shipped) {
            shipped::measure_queue(effort)?;
        }
        if wanted(Figure::Watching) {
            watching::measure(effort)?;
        }
        if wanted(Figure::Forks) {
            runtime.block_on(forks::measure())?;
        }
        if wanted(Figure::Queue) {
            queue::measure(effort)?;
        }
        if wanted(Figure::Definitions) {
            definitions::measure(effort)?;
        }
        Ok(())
    }
}

/// A count as people write it.
pub(super) fn written(count: usize) -> String {
    match (count / 1_000, count % 1_000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    }
}
