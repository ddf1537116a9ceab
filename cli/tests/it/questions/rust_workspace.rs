//! A Rust workspace: a harbour that gives berths to ships.

use super::{Asked, Repository, nothing, place};

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
        Asked::new(
            "Where is `Planner` defined?",
            [place("core/src/planner.rs", "pub struct Planner")],
        ),
        Asked::new(
            "which function assigns a berth to a ship",
            [place("core/src/planner.rs", "pub fn assign_berth")],
        ),
        Asked::new(
            "where do we call release_expired?",
            [place("core/tests/expiry.rs", "release_expired(6)")],
        ),
        Asked::new(
            "What is SAFETY_MARGIN for",
            [place("core/src/berth.rs", "pub const SAFETY_MARGIN")],
        ),
        Asked::new(
            "How do I run the tests of this thing?",
            [place("README.md", "cargo test"), place("README.md", "Running the tests")],
        ),
        Asked::new(
            "is assign_berth tested anywhere",
            [
                place("core/src/planner.rs", "assign_berth(100.0"),
                place("core/src/planner.rs", "fn a_short_ship_gets"),
                place("core/tests/expiry.rs", "assign_berth"),
            ],
        ),
        Asked::new("what does this repository do?", [place("README.md", "")]),
        Asked::new(
            "Which third-party crates does it depend on?",
            [
                place("Cargo.toml", ""),
                place("http/Cargo.toml", "axum"),
                place("core/Cargo.toml", ""),
            ],
        ),
        Asked::new("how are requests rate limited?", [place("http/src/limit.rs", "")]),
        Asked::new("which HTTP routes are there", [place("http/src/routes.rs", ".route(")]),
        Asked::new("list all TODOs and FIXMEs", [place("core/src/planner.rs", "TODO")]),
        Asked::new("what errors can planning give?", [place("core/src/planner.rs", "")]),
        Asked::new("summarise core/src/tide.rs", [place("core/src/tide.rs", "")]),
        Asked::new("where is the TideGauge struct?", [nothing("TideGauge")]),
    ]
}
