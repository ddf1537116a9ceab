//! Whatever happens, in whatever order, the fold, the next step and the loop keep their promises.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod announcing;
mod answers;
mod approvals;
mod beside;
mod budgets;
mod fitting;
mod fold;
mod fork;
mod limits;
mod standing_in;
mod stopping;
mod time;
mod world;
