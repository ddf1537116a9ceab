//! Handing work to other runs: what a child may do, how it starts, how its end reaches its caller.
//!
//! The loop knows nothing of this. Delegation is a tool that holds a handle of the runtime, a
//! pending answer, and an end that is stored together with the result it is to somebody else.

pub(crate) mod arguments;
pub(crate) mod spawn;
pub(crate) mod stagger;
pub(crate) mod subagents;
pub(crate) mod target;
pub(crate) mod task;
