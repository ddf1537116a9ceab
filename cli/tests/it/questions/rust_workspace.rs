//! A Rust workspace: a harbour that gives berths to ships.

use super::{Asked, Repository, ask};

pub fn repository() -> Repository {
    Repository { name: "rust-workspace", files: FILES, commits: &[], asked: asked() }
}

const FILES: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        r#"[workspace]
resolver = "3"
members = ["core", "http", "quay"]

[workspace.package]
version = "0.4.2"
edition = "2024"
license = "MIT"

[workspace.dependencies]
serde = { version = "1", features = ["derive"] }
thiserror = "2"
tokio = { version = "1", features = ["full"] }
"#,
    ),
    (
        "README.md",
        r#"# Harbour

Harbour assigns berths to arriving ships. Ships announce themselves over HTTP; a planner finds
the berth that fits their length and draught and keeps a timetable.

## Getting started

```sh
cargo run -p quay -- serve --port 7070
```

## Running the tests

```sh
cargo test --workspace
cargo test -p harbour-core --features slow-tests
```

## Layout

- `core`: ships, berths and the planner; no I/O.
- `http`: the JSON API.
- `quay`: the command line.
"#,
    ),
    (
        "core/Cargo.toml",
        r#"[package]
name = "harbour-core"
description = "Ships, berths and the planner"
version.workspace = true
edition.workspace = true

[features]
slow-tests = []

[dependencies]
serde.workspace = true
thiserror.workspace = true

[dev-dependencies]
proptest = "1"
"#,
    ),
    (
        "core/src/lib.rs",
        r#"//! Ships, berths and the planner. Knows nothing of networks or files.

pub mod berth;
pub mod planner;
pub mod tide;

pub use berth::{Berth, BerthId};
pub use planner::{PlanError, Planner};
"#,
    ),
    (
        "core/src/berth.rs",
        r#"//! Where ships can lie.

use serde::{Deserialize, Serialize};

/// Names a berth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BerthId(pub u32);

/// A place along the quay.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Berth {
    pub id: BerthId,
    /// Metres along the quay.
    pub length: f64,
    /// Metres of water at low tide.
    pub depth: f64,
    pub crane_count: u8,
}

impl Berth {
    /// True when a ship of these measures can lie here at any tide.
    pub fn admits(&self, length: f64, draught: f64) -> bool {
        self.length >= length && self.depth - SAFETY_MARGIN >= draught
    }
}

/// Metres of water that must be left below the keel.
pub const SAFETY_MARGIN: f64 = 0.8;
"#,
    ),
    (
        "core/src/planner.rs",
        r#"//! Finds a berth for a ship.

use crate::berth::{Berth, BerthId};
use crate::tide::Tide;

/// Why no berth was found.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("no berth is long enough for {length} m")]
    TooLong { length: f64 },
    #[error("no water is deep enough for {draught} m")]
    TooDeep { draught: f64 },
    #[error("all fitting berths are taken until {free_at}")]
    Occupied { free_at: u64 },
}

/// Gives berths to ships, first come, first served.
pub struct Planner {
    berths: Vec<Berth>,
    taken: Vec<(BerthId, u64)>,
    tide: Tide,
}

impl Planner {
    pub fn new(berths: Vec<Berth>, tide: Tide) -> Self {
        Planner { berths, taken: Vec::new(), tide }
    }

    /// Assigns the smallest berth that fits, so that large ones stay free for large ships.
    pub fn assign_berth(&mut self, length: f64, draught: f64, until: u64) -> Result<BerthId, PlanError> {
        let deeper = self.tide.lowest();
        let mut fitting: Vec<&Berth> =
            self.berths.iter().filter(|berth| berth.admits(length, draught - deeper)).collect();
        fitting.sort_by(|one, other| one.length.total_cmp(&other.length));
        // TODO: take the number of cranes into account
        match fitting.first() {
            Some(berth) => {
                let id = berth.id;
                self.taken.push((id, until));
                Ok(id)
            }
            None => Err(PlanError::TooLong { length }),
        }
    }

    /// Frees berths whose time is over.
    pub fn release_expired(&mut self, now: u64) -> usize {
        let before = self.taken.len();
        self.taken.retain(|(_, until)| *until > now);
        before - self.taken.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_ship_gets_the_shortest_berth() {
        let berth = |id, length| Berth { id: BerthId(id), length, depth: 12.0, crane_count: 1 };
        let mut planner = Planner::new(vec![berth(1, 300.0), berth(2, 120.0)], Tide::still());
        assert_eq!(planner.assign_berth(100.0, 6.0, 10).unwrap(), BerthId(2));
    }
}
"#,
    ),
    (
        "core/src/tide.rs",
        r#"//! The tide, as a table of heights.

/// Heights over a day, in metres above chart datum.
pub struct Tide {
    heights: Vec<f64>,
}

impl Tide {
    /// Water that never moves.
    pub fn still() -> Self {
        Tide { heights: vec![0.0] }
    }

    /// The lowest height of the day.
    pub fn lowest(&self) -> f64 {
        // FIXME: an empty table gives infinity
        self.heights.iter().copied().fold(f64::INFINITY, f64::min)
    }
}
"#,
    ),
    (
        "core/src/ledger.rs",
        r#"//! What lies where.

#[cfg(test)]
mod tests;

pub struct Ledger {
    rows: Vec<u32>,
}

impl Ledger {
    pub fn berth_count(&self) -> usize {
        self.rows.len()
    }
    pub fn is_empty(&self) -> bool {
        self.berth_count() == 0
    }
}
#[test]
fn an_empty_ledger_counts_nothing() {
    assert_eq!(Ledger { rows: Vec::new() }.berth_count(), 0);
}
"#,
    ),
    (
        "LICENSE",
        "MIT License\n\nPermission is hereby granted, free of charge, to any person. The software may \
         be announced, limited, checked and supported by clients, ships and servers.\n",
    ),
    (
        "core/tests/expiry.rs",
        r#"use harbour_core::{Berth, BerthId, Planner, tide::Tide};

#[test]
fn expired_stays_are_released() {
    let berth = Berth { id: BerthId(1), length: 200.0, depth: 10.0, crane_count: 0 };
    let mut planner = Planner::new(vec![berth], Tide::still());
    planner.assign_berth(50.0, 3.0, 5).unwrap();
    assert_eq!(planner.release_expired(6), 1);
}
"#,
    ),
    (
        "http/Cargo.toml",
        r#"[package]
name = "harbour-http"
description = "The JSON API of the harbour"
version.workspace = true
edition.workspace = true

[dependencies]
harbour-core = { path = "../core" }
axum = "0.8"
tokio.workspace = true
tracing = "0.1"
"#,
    ),
    (
        "http/src/lib.rs",
        r#"//! The JSON API: announce a ship, ask for the timetable.

mod limit;
mod routes;

pub use limit::RateLimiter;
pub use routes::router;
"#,
    ),
    (
        "http/src/routes.rs",
        r#"use axum::Router;
use axum::routing::{get, post};
use harbour_core::Planner;
use std::sync::{Arc, Mutex};

type Shared = Arc<Mutex<Planner>>;

/// All routes of the API.
pub fn router(planner: Shared) -> Router {
    Router::new()
        .route("/ships", post(announce))
        .route("/timetable", get(timetable))
        .route("/health", get(|| async { "ok" }))
        .with_state(planner)
}

async fn announce() -> &'static str {
    tracing::info!("a ship announced itself");
    "accepted"
}

async fn timetable() -> &'static str {
    "[]"
}
"#,
    ),
    (
        "http/src/limit.rs",
        r#"//! Keeps one client from asking too often: a token bucket per address.

use std::collections::HashMap;
use std::net::IpAddr;

/// Tokens that a client may save up.
const BURST: u32 = 20;

/// A token bucket for each client.
#[derive(Default)]
pub struct RateLimiter {
    buckets: HashMap<IpAddr, u32>,
}

impl RateLimiter {
    /// Takes a token of this client, if it has one left.
    pub fn admit(&mut self, client: IpAddr) -> bool {
        let left = self.buckets.entry(client).or_insert(BURST);
        if *left == 0 {
            return false;
        }
        *left -= 1;
        true
    }
}
"#,
    ),
    (
        "quay/Cargo.toml",
        r#"[package]
name = "quay"
description = "The harbour's command line"
version.workspace = true
edition.workspace = true

[dependencies]
harbour-core = { path = "../core" }
harbour-http = { path = "../http" }
clap = { version = "4", features = ["derive"] }
tokio.workspace = true
"#,
    ),
    (
        "quay/src/main.rs",
        r#"//! The command line: `quay serve` and `quay berths`.

use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Answer requests until stopped.
    Serve {
        #[arg(long, default_value_t = 7070)]
        port: u16,
    },
    /// List the berths.
    Berths,
}

#[tokio::main]
async fn main() {
    match Command::parse() {
        Command::Serve { port } => println!("listening on {port}"),
        Command::Berths => println!("{}", std::env::var("HARBOUR_BERTHS").unwrap_or_default()),
    }
}
"#,
    ),
    (
        ".github/workflows/ci.yml",
        "name: ci\non: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n      - run: cargo clippy --workspace -- -D warnings\n      - run: cargo test --workspace\n",
    ),
];

fn asked() -> Vec<Asked> {
    vec![
        ask("What does this project do?")
            .says(&["`README.md:3`", "assigns berths to arriving ships", "`core/`"])
            .never(&["Getting started", "license"]),
        ask("where is assign_berth defined?").says(&[
            "`assign_berth` is a function, defined at `core/src/planner.rs:30`",
            "smallest berth that fits",
        ]),
        ask("who calls assign_berth?").says(&[
            "`core/tests/expiry.rs:7`",
            "In tests (2 lines)",
            "`core/src/planner.rs:62`",
        ]),
        ask("Is release_expired tested?")
            .says(&["`core/tests/expiry.rs:8` in `expired_stays_are_released`"]),
        // A bare `#[test]` is a test; what follows `mod tests;` is not.
        ask("where is `berth_count` used?")
            .says(&["`core/src/ledger.rs:15`", "In tests (1 line)", "`core/src/ledger.rs:20`"])
            .never(&["In tests (2 lines)", "In tests (3 lines)"]),
        ask("which tests cover BerthId?").says(&["`core/tests/expiry.rs:5`"]),
        ask("explain SAFETY_MARGIN").says(&[
            "`SAFETY_MARGIN` is a constant, defined at `core/src/berth.rs:28`",
            "> Metres of water that must be left",
        ]),
        ask("what does RateLimiter::admit do?")
            .says(&["defined at `http/src/limit.rs:17`", "Takes a token"])
            .never(&["core/src/berth.rs"]),
        ask("where is `BurstLimiter` defined?")
            .says(&["I found no `BurstLimiter`", "`RateLimiter`"]),
        ask("List the .rs files in the tests directory")
            .says(&["1 Rust file in `core/tests/`", "`core/tests/expiry.rs`"]),
        ask("list the files in http/src").says(&["3 files in `http/src/`", "`http/src/limit.rs`"]),
        ask("how many Rust files are there?").says(&["10 Rust files"]),
        ask("how many tests are there?").says(&["3 tests in 3 files"]),
        ask("how many tests are in core/src/planner.rs?")
            .says(&["1 test in `core/src/planner.rs`"]),
        ask("how many structs are in the core directory?").says(&["5 structs in `core/`"]),
        ask("which public functions are in core/src?")
            .says(&["public functions in `core/src/`", "`pub fn lowest(&self) -> f64`"])
            .never(&["a_short_ship_gets", "an_empty_ledger"]),
        ask("how many ships may be announced per minute?")
            .says(&["I cannot count that"])
            .never(&["10 Rust files", "lines in"]),
        ask("how are clients limited and how many tokens may they save?")
            .says(&["`http/src/limit.rs:"])
            .never(&["files: Rust"]),
        ask("how do I run the tests?").says(&["`cargo test --workspace`", "`README.md:15`"]),
        ask("how do I start the server?").says(&["`cargo run -p quay -- serve --port 7070`"]),
        ask("what are the dependencies?").says(&["`serde` 1", "`axum` 0.8", "`http/Cargo.toml:9`"]),
        ask("does it depend on tokio?").says(&["`tokio` 1", "`Cargo.toml:13`"]),
        ask("what license is this under?").says(&["`license`: MIT", "`Cargo.toml:8`"]),
        ask("which version is this?").says(&["`version` is 0.4.2", "`Cargo.toml:6`"]),
        ask("list the TODOs").says(&[
            "2 marks (1 TODO, 1 FIXME)",
            "`core/src/planner.rs:35`",
            "`core/src/tide.rs:16`",
        ]),
        ask("how is the code laid out?")
            .says(&["`core`: ships, berths and the planner", "`README.md:"]),
        ask("what is in core/src/tide.rs?").says(&[
            "`core/src/tide.rs` has 19 lines of Rust",
            "The tide, as a table of heights",
            "function `lowest`",
        ]),
        ask("list the functions in core/src/tide.rs")
            .says(&["function `still`", "function `lowest`"]),
        ask("show me core/src/tide.rs:16").says(&["FIXME: an empty table"]),
        ask("is there any unsafe code?").says(&["I found nothing about *unsafe*"]),
        ask("rename Planner to Pilot")
            .says(&[
                "I cannot review, write, judge or fix",
                "`posse models`",
                "`Planner` is a struct, defined at `core/src/planner.rs:18`",
            ])
            .never(&["no definition"]),
        ask("find bugs in core/src/tide.rs")
            .says(&["I cannot review, write, judge or fix", "`core/src/tide.rs` has 19 lines"]),
        ask("Gibt es Tests?").says(&["English only"]).never(&["files"]),
        ask("where is draught checked?").says(&["`core/src/"]).never(&["in constant"]),
    ]
}
