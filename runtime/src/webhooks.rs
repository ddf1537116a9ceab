//! Webhooks: URLs that Posse notifies when runs end.
//!
//! The transaction that ends a run also stores its deliveries. A separate task sends them as
//! [Standard Webhooks](https://www.standardwebhooks.com) says: signed, with the same id at every
//! attempt, repeated for three days. A delivery that still fails is dead until someone revives it.
//! This module does not know the content of runs.

mod attempt;
mod backoff;
mod hook;
mod notice;
mod secret;
mod sender;

pub use attempt::{Answered, Trial};
pub use backoff::SCHEDULE;
pub use hook::{EventKind, HookError, Runs, TIMEOUT, Webhook};
pub use posse_store::{Delivery, DeliveryFilter, DeliveryState, Revival};
pub use posse_tools::egress::AddressPolicy;
pub use secret::{InvalidSecret, SigningKey};

pub(crate) use notice::mismatch;
pub(crate) use secret::blotted;
pub(crate) use sender::Sender;

use crate::announcement::RunSummary;
use crate::error::Error;
use posse_protocol::{RunFinished, RunId};
use posse_store::Notice;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The webhooks of a runtime, and whether a delivery is due.
pub(crate) struct Hooks {
    all: Vec<Webhook>,
    /// This process stored a delivery that was not attempted yet.
    owed: AtomicBool,
    nudge: Notify,
}

impl Hooks {
    pub(crate) fn new(all: Vec<Webhook>) -> Self {
        Hooks { all, owed: AtomicBool::new(false), nudge: Notify::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the deliveries for the end of `run`.
    pub(crate) fn notices(
        &self,
        run: RunId,
        account: &RunSummary,
        finished: &RunFinished,
    ) -> Vec<Notice> {
        notice::of_the_end(&self.all, run, account, finished)
    }

    /// Notes that a delivery is due.
    pub(crate) fn posted(&self) {
        self.owed.store(true, Ordering::Release);
        self.nudge.notify_one();
    }
}

/// Refuses two webhooks with one name: the name identifies their deliveries.
pub(crate) fn check(hooks: &[Webhook]) -> Result<(), Error> {
    for (index, hook) in hooks.iter().enumerate() {
        if hooks[..index].iter().any(|other| other.name() == hook.name()) {
            let name = hook.name();
            return Err(Error::InvalidInput(format!(
                "there are two webhooks `{name}`; give one of them another name"
            )));
        }
    }
    Ok(())
}
