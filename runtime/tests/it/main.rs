//! The runtime through its public API, against the fake model over HTTP and the real store.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod approvals;
mod archiving;
mod background;
mod bench;
mod budgets;
mod cancelling;
mod catalog;
mod catalog_files;
mod catalog_fuzz;
mod compacting;
mod control;
mod delegation;
mod delegation_rules;
mod durability;
mod facade_query;
mod facade_subagents;
mod forking;
mod full_disk;
mod governor;
mod leaving;
mod limits;
mod provider;
mod queueing;
mod runs;
mod selection;
mod sessions;
mod shutting_down;
mod skills;
mod subagent_rules;
mod subagents_tool;
mod tools;
mod trees;
mod trust;
mod webhooks;
