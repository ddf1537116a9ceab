//! Tests of the SQLite store, from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod conformance;
