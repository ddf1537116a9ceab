//! The data types of Posse. This crate does no I/O, reads no clock and starts no task.
//!
//! A **run** is one execution of an agent. Its whole state is an append-only log of [`Event`]s.
//! Everything that Posse shows or decides follows from that log. This crate defines the events and
//! the types in them for all other crates, the command line and exported logs.
//!
//! Stored data has a version: a [`Record`] carries the [`SCHEMA_VERSION`] that it was written with.
//! [`Record::decode`] refuses a newer version. It keeps unknown fields in [`Extra`] and writes them
//! back unchanged.

mod budget;
mod delegation;
mod delta;
mod event;
mod extra;
mod facts;
mod grant;
mod guidance;
mod handover;
mod hex;
mod id;
mod limits;
mod message;
pub mod near;
mod outcome;
mod permission;
pub mod piped;
mod site;
mod skill;
mod source;
mod spec;
mod subagents;
mod tally;
mod tool;
mod usage;
mod worktree;

pub use budget::{Amount, Budget, Share};
pub use delegation::{BorrowedPrompt, ChildStarted, Delegation, Forked, Offer, Parent};
pub use delta::Delta;
pub use event::*;
pub use extra::Extra;
pub use facts::{About, Effect, ToolFacts};
pub use grant::Grant;
pub use guidance::GuidanceFile;
pub use handover::{Announce, Caller, Cleanup, Context, DelegationStrategy, TimeAtWork};
pub use hex::hex;
pub use id::{AgentName, CallId, InvalidName, InvalidRunId, RunId, Seq, WorkerId};
pub use limits::{Limit, Limits};
pub use message::{Message, Part, Role, Text, Thinking, ToolCall, ToolResult};
pub use outcome::{Outcome, Shortfall, Status};
pub use permission::{Mode, Network, Permissions, Profile, host_name};
pub use site::{Place, RepositorySite, Site};
pub use skill::{SkillOffer, SkillRules};
pub use source::SourceOffer;
pub use spec::{
    AgentChildren, AgentRights, AgentSpec, AgentStart, Effort, Instructions, ModelChoice, ROLES,
    RunRights, RunSpec, ToolRules,
};
pub use subagents::{NameRules, SubagentRules};
pub use tally::{Charge, Tally};
pub use tool::{Schema, SeenFile, ToolOutput, ToolSpec};
pub use usage::{Price, Usage, Usd};
pub use worktree::{Changes, Isolation, Kept, Worktree};
