//! Webhooks: who outside is told that runs have ended.
//!
//! What is to be told is stored in the very transaction that ends the run, and sent by a task of
//! its own, as [Standard Webhooks](https://www.standardwebhooks.com) has it: signed, with the same
//! id at every attempt, again and again for three days, and then kept as dead until someone brings
//! it back. Nothing here knows what a run is made of.

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
pub use posse_tools::egress::Reach;
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

/// The webhooks of a runtime, and whether something is to be sent to one.
pub(crate) struct Hooks {
    all: Vec<Webhook>,
    /// Something was stored here that nobody has tried to send.
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

    /// What is told of the end of `run`.
    pub(crate) fn notices(
        &self,
        run: RunId,
        account: &RunSummary,
        finished: &RunFinished,
    ) -> Vec<Notice> {
        notice::of_the_end(&self.all, run, account, finished)
    }

    /// Something is due.
    pub(crate) fn posted(&self) {
        self.owed.store(true, Ordering::Release);
        self.nudge.notify_one();
    }
}

/// Refuses two webhooks of one name: deliveries are theirs by name.
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
