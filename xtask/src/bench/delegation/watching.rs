//! What a watcher gets of a main agent and all its children. It must grow with their number, and no
//! faster.

use super::tree::{Tree, Watcher};
use super::{MOST, SIZES};
use crate::bench::Result;
use crate::bench::harness::Effort;
use crate::bench::line::{Line, Samples, seconds, times, written};
use crate::bench::recording::workspace;
use crate::bench::server::Pace;

/// Updates for each child of many, against those for each child of few.
const GROWTH: f64 = 1.05;

pub fn measure(effort: Effort) -> Result<()> {
    let workspace = workspace()?;
    let mut few = None;
    for children in SIZES {
        let unwatched = Tree::at_once(workspace.path(), children);
        let watched = Tree { watcher: Watcher::Someone, ..unwatched.clone() };
        let rounds = effort.rounds(|| {
            let unwatched = unwatched.grow(Pace::Thinking)?.cost.cpu;
            Ok((watched.grow(Pace::Thinking)?, unwatched))
        })?;
        let share = |updates: usize| updates as f64 / children as f64;
        let shares = Samples::new(rounds.iter().map(|(watched, _)| share(watched.updates)));
        let growth = shares.median() / *few.get_or_insert(shares.median());
        let name = |what: &str| format!("watching: {} children, {what}", written(children));
        Line::new(name("updates"), format!("{} for a child", shares.shown(times)))
            .ratio(format!("{growth:.2} of 10"))
            .goal(format!("linear (≤ {GROWTH})"), growth <= GROWTH)
            .print();
        let costs: Vec<_> = rounds.iter().map(|(watched, raw)| (watched.cost.cpu, *raw)).collect();
        let line = Line::compared(name("processor"), &costs, seconds).against("unwatched");
        line.at_most((children == MOST).then_some(1.2), "unwatched").print();
    }
    Ok(())
}
