//! Benchmarks: programs that print ratios against a raw client or a bare store that was measured
//! in the same run. Machines are noisy, so nothing here asserts a time.
//!
//! A benchmark says what is particular to it. The `harness` builds and starts it, `part` runs its
//! parts in processes of their own, `server` is the fake model, and `line` prints.

mod background;
mod client;
mod cluster;
mod confinement;
mod delegation;
mod governor;
mod harness;
mod line;
mod load;
mod meter;
mod model;
mod part;
mod policy;
mod raw;
mod recording;
mod registry;
mod server;
mod spine;

use harness::{Choice, Effort};
use part::Part;
use std::error::Error;
use std::process::ExitCode;

/// Errors here are only shown.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What to measure
#[derive(clap::Subcommand)]
pub enum Bench {
    /// The spine: runs, memory, start, appends, recovery, long transcripts
    Spine(Choice<spine::Figure>),
    /// Models: streamed replies, allocations, connections, the fake model, the grid, the questions
    Model(Choice<model::Figure>),
    /// Delegation: trees of runs, their memory, who watches them, forks, definitions
    Delegation(Choice<delegation::Figure>),
    /// Background: thousands of runs, each announced exactly once, with and without faults
    Background(Choice<background::Figure>),
    /// Many machines: a private PostgreSQL server, and several workers on it
    Cluster(Choice<cluster::Figure>),
    /// The registry: lists and searches among a million runs
    Registry(registry::Registry),
    /// The governor: many runs against a provider that takes few requests at a time
    Governor(Effort),
    /// Confinement: what it adds to the start of a command
    Confinement(confinement::Confinement),
    /// Rules: decisions about calls
    Policy(Effort),
    /// A part of a benchmark, as JSON
    #[command(hide = true)]
    Part { part: String },
}

impl Bench {
    pub fn run(self) -> ExitCode {
        let result = match self {
            Bench::Spine(choice) => choice.effort.run(spine::measure(choice)),
            Bench::Model(choice) => choice.effort.run(model::measure(choice)),
            Bench::Delegation(choice) => choice.effort.run(delegation::measure(choice)),
            Bench::Background(choice) => choice.effort.run(background::measure(choice)),
            Bench::Cluster(choice) => choice.effort.run(cluster::measure(choice)),
            Bench::Registry(registry) => registry.effort().run(registry.measure()),
            Bench::Governor(effort) => effort.run(governor::measure(effort)),
            Bench::Confinement(confinement) => Effort::AS_BUILT.run(confinement.measure()),
            Bench::Policy(effort) => effort.run(policy::measure(effort)),
            Bench::Part { part } => part::run(&part),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                line::note(&format!("error: {error}"));
                ExitCode::FAILURE
            }
        }
    }
}
