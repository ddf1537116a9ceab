//! The crash harness: kills the real binary at named points and at random moments, starts it
//! again until everything has ended, and compares what its log says with what can be seen from
//! outside: files, processes, exit codes, requests to the model.
//!
//! It knows the binary by its command line alone, and must never look into its database. Cycles on
//! many machines have one exception: a witness in the server notes who wrote what.
//!
//! [`Simulation`] is another way to find mistakes: many workers and one store in one thread, where a
//! seed decides what happens.

mod announce;
mod campaign;
mod check;
mod cluster;
mod cycle;
mod flips;
mod kin;
mod leftovers;
mod log;
mod points;
mod process;
mod random;
mod scenario;
mod script;
mod simulation;
mod stage;
mod told;
mod tree;
mod violation;

pub use announce::Telling;
pub use campaign::{Campaign, Engine, Kill, Report, at_point, long, quick, quick_on_server};
pub use check::{Asked, Effect, Evidence, check};
pub use cluster::{
    ClusterCampaign, ClusterEnded, ClusterReport, Fault, Plan, Plant, Taken, Write, check_owners,
};
pub use cycle::{Cycle, Ended};
pub use flips::{Counts as FlipCounts, Flipped, Flips};
pub use log::RunLog;
pub use points::{POINTS, Point, names_in, point};
pub use scenario::{SCENARIOS, Scenario, scenarios};
pub use simulation::{Breach, Law, Simulated, Simulation, Tally};
pub use violation::{PROMISES, Promise, Violation};
