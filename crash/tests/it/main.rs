//! Tests of the crash harness itself.

#![allow(clippy::unwrap_used)]

mod check;
mod owners;
mod told;
mod tree;
mod trees;
