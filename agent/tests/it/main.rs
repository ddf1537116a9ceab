//! The pure part of the loop: whatever happens, in whatever order, the fold and the next step
//! keep their promises.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fold;
mod limits;
mod stopping;
mod world;
