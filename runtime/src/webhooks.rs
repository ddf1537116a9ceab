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

use crate::delegation::announcement::Account;
use crate::error::Error;
use crate::runtime::Runtime;
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
        account: &Account,
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

impl Runtime {
    /// The webhooks there are.
    pub fn webhooks(&self) -> &[Webhook] {
        &self.config().webhooks
    }

    /// The deliveries that `filter` selects, the newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, Error> {
        Ok(self.inner.store.deliveries(filter).await?)
    }

    /// Makes deliveries due again that were given up, with all their attempts before them, and
    /// returns them. They are sent as soon as there is time; [`Runtime::flush_webhooks`] waits.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn retry_deliveries(&self, which: &Revival) -> Result<Vec<Delivery>, Error> {
        let back = self.inner.store.revive(which).await?;
        if !back.is_empty() {
            self.inner.workbench.hooks.posted();
        }
        Ok(back)
    }

    /// Waits until everything that is due to be sent now was tried once, at most as long as a
    /// shutdown may take. What fails waits for its next attempt.
    pub async fn flush_webhooks(&self) {
        self.inner.sender.flush(self.config().shutdown_after).await;
    }

    /// Sends a signed test event to a webhook and says what came back. Nothing is stored.
    ///
    /// # Errors
    /// When there is no webhook of this name, or it has no secret.
    pub async fn test_webhook(&self, name: &str) -> Result<Trial, Error> {
        let hook = self.webhooks().iter().find(|hook| hook.name() == name).ok_or_else(|| {
            let known: Vec<&str> = self.webhooks().iter().map(Webhook::name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let name: String = name.chars().take(80).collect();
            Error::InvalidInput(format!("there is no webhook `{name}`; there are: {known}"))
        })?;
        self.inner.sender.test(hook).await
    }
}
