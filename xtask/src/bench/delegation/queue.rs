//! What waiting for a slot costs: many children through few slots, against the same children all at
//! once. Replies take no time, so that what is left is the runtime's own.

use super::tree::Tree;
use crate::bench::Result;
use crate::bench::harness::Effort;
use crate::bench::line::{Line, written};
use crate::bench::recording::workspace;
use crate::bench::server::Pace;

const CHILDREN: usize = 2_000;
const FEW_SLOTS: usize = 128;

pub fn measure(effort: Effort) -> Result<()> {
    let workspace = workspace()?;
    let at_once = Tree::at_once(workspace.path(), CHILDREN);
    let queued = Tree { slots: FEW_SLOTS, ..at_once.clone() };
    let rounds = effort.rounds(|| {
        let at_once = at_once.grow(Pace::AtOnce)?.cost;
        Ok((queued.grow(Pace::AtOnce)?.cost, at_once))
    })?;
    let name = format!("queue: {} through {FEW_SLOTS} slots", written(CHILDREN));
    Line::costs(&name, &rounds).into_iter().for_each(Line::print);
    Ok(())
}
