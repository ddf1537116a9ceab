//! Lists deliveries to webhooks, retries deliveries that were given up, and sends test events.

use crate::error::Error;
use crate::runtime::Runtime;
use crate::webhooks::{Delivery, DeliveryFilter, Revival, Trial, Webhook};

impl Runtime {
    /// The configured webhooks.
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

    /// Makes deliveries that were given up due again, with a fresh count of attempts, and returns
    /// them. They are sent soon; [`Runtime::flush_webhooks`] waits for that.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn retry_deliveries(&self, which: &Revival) -> Result<Vec<Delivery>, Error> {
        let back = self.inner.store.revive(which).await?;
        if !back.is_empty() {
            self.inner.hooks.posted();
        }
        Ok(back)
    }

    /// Waits until every due delivery was tried once, at most as long as a shutdown may take. A
    /// delivery that fails waits for its next attempt.
    pub async fn flush_webhooks(&self) {
        self.inner.sender.flush(self.config().scheduling.shutdown_after).await;
    }

    /// Sends a signed test event to a webhook and returns the response. Stores nothing.
    ///
    /// # Errors
    /// When there is no webhook of this name, or it has no secret.
    pub async fn test_webhook(&self, name: &str) -> Result<Trial, Error> {
        let hook = self.webhooks().iter().find(|hook| hook.name() == name).ok_or_else(|| {
            let known: Vec<&str> = self.webhooks().iter().map(Webhook::name).collect();
            let known = match known.is_empty() {
                true => "your settings define none".to_owned(),
                false => format!("there are: {}", known.join(", ")),
            };
            let name: String = name.chars().take(80).collect();
            Error::InvalidInput(format!("there is no webhook `{name}`; {known}"))
        })?;
        self.inner.sender.test(hook).await
    }
}
