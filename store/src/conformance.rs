//! Tests that every store must pass.
//!
//! A [`Subject`] opens stores, kills workers, moves their clocks and damages stored data.
//! [`conformance_tests!`](crate::conformance_tests) makes a test of each case. The cases use only
//! the [`Store`] trait, and wait for conditions with deadlines.
//!
//! ```ignore
//! mod conformance {
//!     posse_store::conformance_tests!(MySubject::new().await);
//! }
//! ```

mod background;
mod budgets;
mod bundles;
mod cases;
mod claims;
mod clock;
mod copies;
mod damage;
mod deaths;
mod deliveries;
mod leftovers;
mod lists;
mod logs;
mod ownership;
mod queue;
mod sample;
mod spending;
mod trees;
mod watching;
mod workers;

pub use clock::MovableClock;
pub use workers::Workers;

use crate::{Store, StoreError};
use async_trait::async_trait;
use posse_protocol::{RunId, Seq};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Opens the stores under test, and simulates what can happen to them.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Opens the store `name`, which is empty at first. Opening the same name twice gives two
    /// workers on the same data. They hold leases of [`Subject::lease`] and use the clock that
    /// [`Subject::pass`] moves.
    async fn open(&self, name: &str) -> Arc<dyn Store>;

    /// Kills a worker: it does not finish its requests, and does not close its store. [`Workers`]
    /// does that to a worker in this process.
    async fn kill(&self, worker: Arc<dyn Store>);

    /// How long a silent worker keeps its runs. It must be longer than any case takes.
    fn lease(&self) -> Duration;

    /// Moves the clocks of the stores and of all their workers forward.
    fn pass(&self, time: Duration);

    /// Sets the wall clock of the machine of the workers. No time passes.
    fn set_wall(&self, by: WallJump);

    /// Changes one byte of a stored event, without the store.
    async fn damage(&self, name: &str, run: RunId, seq: Seq);
}

/// A change of a wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallJump {
    /// Forwards by this time.
    Forwards(Duration),
    /// Back by this time.
    Back(Duration),
}

/// A case that a store does not pass.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the store breaks `{case}`: {reason}")]
pub struct Violation {
    /// The name of the case.
    pub case: String,
    /// What was expected, and what happened.
    pub reason: String,
}

/// How long a case may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a store may take to report what another worker did.
const SOON: Duration = Duration::from_secs(10);

/// Why a case failed.
#[derive(Debug)]
struct Fault(String);

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault(format!("the store answered: {error}"))
    }
}

type Verdict = Result<(), Fault>;
type Case = fn(&dyn Subject) -> Pin<Box<dyn Future<Output = Verdict> + Send + '_>>;

/// Fails the case with a reason unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Fault(format!($($reason)+)));
        }
    };
}

/// Fails the case unless a result is an error that matches a pattern.
macro_rules! ensure_refused {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => {}
            other => {
                let expected = stringify!($pattern $(if $guard)?);
                let reason = format!("expected {expected}, got {other:?}");
                return Err($crate::conformance::Fault(reason));
            }
        }
    };
}

use {ensure, ensure_refused};

macro_rules! table {
    ($($module:ident: $($name:ident)+;)+) => {
        &[$($((
            concat!(stringify!($module), "::", stringify!($name)),
            |subject| Box::pin($module::$name(subject)),
        )),+),+]
    };
}

const CASES: &[(&str, Case)] = crate::conformance_cases!([table]);
const DAMAGE_CASES: &[(&str, Case)] = crate::conformance_damage_cases!([table]);

fn all() -> impl Iterator<Item = &'static (&'static str, Case)> {
    CASES.iter().chain(DAMAGE_CASES)
}

/// The names of all cases as `group::case`, with those about damage last.
pub fn cases() -> impl Iterator<Item = &'static str> {
    all().map(|(name, _)| *name)
}

/// Tests a store with one case.
///
/// # Errors
/// When the store does not pass it, or there is no such case.
pub async fn check(subject: &dyn Subject, case: &str) -> Result<(), Violation> {
    let violation = |reason| Violation { case: case.to_owned(), reason };
    let Some((_, run)) = all().find(|(name, _)| *name == case) else {
        return Err(violation("there is no such case".to_owned()));
    };
    let verdict = tokio::time::timeout(PATIENCE, run(subject)).await;
    let fault = verdict.unwrap_or_else(|_| Err(Fault(format!("no end after {PATIENCE:?}"))));
    fault.map_err(|fault| violation(fault.0))
}
