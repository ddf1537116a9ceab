//! The benchmark of many machines: which figures, in which order. The server is a private one, which
//! survives a loss of power. It starts with the benchmark and ends with it.

mod appends;
mod claims;
mod crowds;
mod fan_out;
mod retention;
mod takeover;
mod wake;
mod worker;

pub use appends::Writers;
pub use worker::Work;

use super::Result;
use super::harness::Choice;
use posse::RuntimeConfig;
use posse::store::PostgresOptions;
use posse_testkit::postgres::{Database, Server};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum Figure {
    /// Appends in a second, against bare inserts
    Appends,
    /// A main agent and 1,000 children, against SQLite and a raw client
    FanOut,
    /// 10,000 runs (quick: 1,000) with 1, 2 and 4 worker processes; connections; bytes
    Workers,
    /// Claims beside few and very many waiting and finished runs; quick: without the million
    Claims,
    /// From a stored run to its claim by another worker, and from a child's end to its parent
    Wake,
    /// From the death of a worker to the next request of its runs
    Takeover,
    /// Appends beside the removal of old logs
    Retention,
}

/// A namespace in the database, as a part gets it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Place {
    url: String,
    schema: String,
}

impl Place {
    pub fn options(&self) -> PostgresOptions {
        PostgresOptions { schema: self.schema.clone(), ..PostgresOptions::new(&self.url) }
    }

    /// Lets a runtime use `place`, if there is one.
    pub fn set(place: Option<&Place>, config: &mut RuntimeConfig) {
        if let Some(place) = place {
            config.storage.store = Some(Arc::new(place.options()));
        }
    }
}

/// The server, and a number for the next namespace.
struct Cluster {
    database: Database,
    next: Cell<usize>,
}

/// Like a server of its own on this machine: everything that was committed is on the disk.
const SETTINGS: [&str; 6] = [
    "fsync=on",
    "full_page_writes=on",
    "max_connections=400",
    "shared_buffers=1GB",
    "max_wal_size=8GB",
    "autovacuum_naptime=60",
];

impl Cluster {
    /// A new namespace. The one before is removed, so that nothing vacuums it meanwhile.
    fn place(&self) -> Place {
        let number = self.next.replace(self.next.get() + 1);
        if let Some(before) = number.checked_sub(1) {
            self.database.execute(&format!("DROP SCHEMA IF EXISTS s{before} CASCADE"));
            self.database.execute("CHECKPOINT");
        }
        Place { url: self.database.url(), schema: format!("s{number}") }
    }
}

pub async fn measure(choice: Choice<Figure>) -> Result<()> {
    let effort = choice.effort;
    let database = Server::alone_with(&SETTINGS).database();
    let cluster = Cluster { database, next: Cell::new(0) };
    if choice.wants(Figure::Appends) {
        appends::measure(&cluster, effort)?;
    }
    if choice.wants(Figure::FanOut) {
        fan_out::measure(&cluster, effort).await?;
    }
    if choice.wants(Figure::Workers) {
        crowds::measure(&cluster, effort).await?;
    }
    if choice.wants(Figure::Wake) {
        wake::measure(&cluster, effort).await?;
    }
    if choice.wants(Figure::Takeover) {
        takeover::measure(&cluster, effort)?;
    }
    if choice.wants(Figure::Retention) {
        retention::measure(&cluster, effort).await?;
    }
    if choice.wants(Figure::Claims) {
        claims::measure(&cluster, effort).await?;
    }
    Ok(())
}
