//! Tests of the SQLite store, from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod conformance;
mod damage;
mod full;
mod groups;
mod leases;
mod newer;
mod opening;
mod process;
mod sample;
