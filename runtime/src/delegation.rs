//! Delegation to other runs: what a child may do, how it starts, how its result reaches its caller.
//!
//! The agent loop does not know about it. To the loop, delegation is a tool whose answer is
//! pending. The tool has a handle of the runtime, and the end of the child is stored together with
//! the answer to its caller.

pub(crate) mod arguments;
pub(crate) mod spawn;
pub(crate) mod stagger;
pub(crate) mod subagents;
pub(crate) mod target;
pub(crate) mod task;
