//! Whether the server answers, as the connections of this process have last seen it.

use super::link::Trouble;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long the server may take to answer before it counts as away.
const SILENCE: Duration = Duration::from_secs(1);

/// Whether the server of a database answers. Clones share what they know.
#[derive(Clone, Debug)]
pub struct Contact(Arc<watch::Sender<Option<Away>>>);

/// A server that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Away {
    /// Since when.
    pub since: Instant,
    /// What the last attempt met.
    pub reason: String,
}

impl Default for Contact {
    fn default() -> Self {
        Contact(Arc::new(watch::Sender::new(None)))
    }
}

impl Contact {
    /// Watches the server. It changes when the server goes away, and when it answers again.
    pub fn watch(&self) -> watch::Receiver<Option<Away>> {
        self.0.subscribe()
    }

    /// Returns since when the server is away, if it is.
    pub fn away(&self) -> Option<Away> {
        self.0.borrow().clone()
    }

    /// Waits until the server has been away for `least` without interruption.
    pub async fn away_for(&self, least: Duration) -> Away {
        let mut watch = self.watch();
        loop {
            let away = watch.borrow_and_update().clone();
            let long = async {
                match &away {
                    Some(away) => sleep(least.saturating_sub(away.since.elapsed())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // The sender cannot be gone: this has one.
                _ = watch.changed() => {}
                () = long => return self.away().or(away).unwrap_or_else(Away::now),
            }
        }
    }

    /// Notes that an attempt that began at `began` got no answer.
    pub(super) fn lost(&self, began: Instant, reason: &str) {
        self.0.send_if_modified(|away| match away {
            Some(away) => {
                reason.clone_into(&mut away.reason);
                false
            }
            None => {
                *away = Some(Away { since: began, reason: reason.to_owned() });
                true
            }
        });
    }

    /// Notes that the server has answered.
    pub(super) fn answered(&self) {
        self.0.send_if_modified(|away| away.take().is_some());
    }

    /// Notes what `answer` says of the server, and that it is silent if `answer` takes long. For
    /// what a server answers quickly.
    pub(super) async fn attend<T>(
        &self,
        answer: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let began = Instant::now();
        let mut answer = pin!(answer);
        let answered = match timeout(SILENCE, &mut answer).await {
            Ok(answered) => answered,
            Err(_) => {
                // This process may have been stopped meanwhile.
                let begun = Instant::now().checked_sub(SILENCE).unwrap_or(began);
                self.lost(begun.max(began), "the server does not answer");
                answer.await
            }
        };
        self.note(began, &answered);
        answered
    }

    /// Notes what the result of an attempt that began at `began` says of the server.
    pub(super) fn note<T>(&self, began: Instant, answered: &Result<T, Trouble>) {
        match answered {
            Err(Trouble::Lost(reason)) => self.lost(began, reason),
            _ => self.answered(),
        }
    }
}

impl Away {
    fn now() -> Self {
        Away { since: Instant::now(), reason: "the server does not answer".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_is_away_from_its_first_silence_to_its_next_answer() {
        let contact = Contact::default();
        let began = Instant::now();
        contact.lost(began, "refused");
        contact.lost(Instant::now(), "starts up");
        let away = contact.away_for(Duration::ZERO).await;
        assert_eq!(away, Away { since: began, reason: "starts up".to_owned() });
        contact.answered();
        assert_eq!(contact.away(), None);
        let long = contact.away_for(Duration::ZERO);
        assert!(timeout(Duration::from_millis(50), long).await.is_err(), "it answers");
    }

    #[tokio::test]
    async fn a_server_that_takes_long_is_away_meanwhile() {
        let contact = Contact::default();
        let slow = async {
            contact.away_for(Duration::ZERO).await;
            Ok(())
        };
        assert!(contact.attend(slow).await.is_ok());
        assert_eq!(contact.away(), None);
    }
}
