//! The task that sends due deliveries. It takes them from the store, so that only one of several
//! processes sends each, and stores the result there.

use super::attempt::{Trial, attempt, trial};
use super::{Hooks, Webhook, mismatch};
use crate::error::Error;
use futures_util::stream::{FuturesUnordered, StreamExt};
use posse_protocol::{RunId, Seq};
use posse_store::{Delivery, Settlement, Store, StoreError};
use posse_tools::egress::Egress;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The most concurrent attempts to one webhook.
const SEATS: usize = 4;
/// How long a new process leaves deliveries to the processes that stored them: most processes live
/// only a moment.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// How often the task looks for deliveries that other processes left.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// How much longer than an attempt a process owns a delivery.
const MARGIN: Duration = Duration::from_secs(5);

pub(crate) struct Sender {
    office: Arc<Office>,
    tasks: TaskTracker,
}

struct Office {
    store: Arc<dyn Store>,
    hooks: Arc<Hooks>,
    egress: Egress,
    stop: CancellationToken,
    /// Fires when the time is up: attempts in progress are abandoned.
    leave: CancellationToken,
    /// No attempt is in progress, and nothing was due at the last look.
    idle: watch::Sender<bool>,
}

/// An attempt; returns the index of its webhook.
type Attempt = Pin<Box<dyn Future<Output = usize> + Send>>;

/// The attempts in progress.
struct Attempts {
    futures: FuturesUnordered<Attempt>,
    /// How many attempts each webhook has.
    busy: Vec<usize>,
}

impl Sender {
    /// Starts the task, if there are webhooks.
    pub(crate) fn start(store: Arc<dyn Store>, hooks: Arc<Hooks>) -> Self {
        let (stop, leave) = (CancellationToken::new(), CancellationToken::new());
        let (egress, idle) = (Egress::default(), watch::Sender::new(true));
        let office = Arc::new(Office { store, hooks, egress, stop, leave, idle });
        let tasks = TaskTracker::new();
        if !office.hooks.is_empty() {
            #[expect(clippy::disallowed_methods, reason = "the one sender; awaited at shutdown")]
            tokio::spawn(tasks.track_future(office.clone().work()));
        }
        tasks.close();
        Sender { office, tasks }
    }

    /// Waits until every pending delivery was attempted once, but no longer than `within`.
    pub(crate) async fn flush(&self, within: Duration) {
        if self.office.hooks.is_empty() {
            return;
        }
        let mut idle = self.office.idle.subscribe();
        idle.mark_unchanged();
        self.office.hooks.posted();
        // The task may be idle because it has not looked yet: wait until it has.
        let tried = async {
            while self.office.hooks.owed.load(Ordering::Acquire) || !*idle.borrow_and_update() {
                if idle.changed().await.is_err() {
                    return;
                }
            }
        };
        // Slower attempts continue. A lost delivery is due again when its lease ends.
        let _ = tokio::time::timeout(within, tried).await;
    }

    /// Stops the task: it attempts pending deliveries once more, and abandons them when the time is
    /// up.
    pub(crate) async fn shutdown(&self, within: Duration) {
        self.office.stop.cancel();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_err() {
            self.office.leave.cancel();
            self.tasks.wait().await;
        }
    }

    /// Sends a test event to `hook`.
    pub(crate) async fn test(&self, hook: &Webhook) -> Result<Trial, Error> {
        if hook.secrets() == 0 {
            return Err(Error::InvalidInput(format!(
                "webhook `{}` has no secret{}",
                hook.name(),
                match hook.unset() {
                    [] => "; give it one".to_owned(),
                    names => format!(": set {}", names.join(", ")),
                }
            )));
        }
        Ok(trial(&self.office.egress, hook, format!("msg_test_{}", RunId::new())).await)
    }
}

impl Office {
    async fn work(self: Arc<Self>) {
        tokio::select! {
            () = self.leave.cancelled() => {}
            () = self.send() => {}
        }
    }

    async fn send(&self) {
        let busy = vec![0; self.hooks.all.len()];
        let mut attempts = Attempts { futures: FuturesUnordered::new(), busy };
        tokio::select! {
            () = self.stop.cancelled() => return self.finish(attempts).await,
            () = self.hooks.nudge.notified() => {}
            () = tokio::time::sleep(FIRST_LOOK) => {}
        }
        loop {
            let wait = self.take(&mut attempts).await;
            tokio::select! {
                () = self.stop.cancelled() => return self.finish(attempts).await,
                Some(hook) = attempts.futures.next() => attempts.busy[hook] -= 1,
                () = self.hooks.nudge.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Finishes the attempts in progress, and attempts what this process stored last.
    async fn finish(&self, mut attempts: Attempts) {
        loop {
            if self.hooks.owed.load(Ordering::Acquire) {
                self.take(&mut attempts).await;
            }
            match attempts.futures.next().await {
                Some(hook) => attempts.busy[hook] -= 1,
                None if self.hooks.owed.load(Ordering::Acquire) => {}
                None => return,
            }
        }
    }

    /// Takes due deliveries while seats are free. Returns how long until there may be more.
    async fn take(&self, attempts: &mut Attempts) -> Duration {
        // This order matters: a waiter on both must not see the second change before the first.
        self.idle.send_replace(false);
        self.hooks.owed.store(false, Ordering::Release);
        let mut wait = LOOK_AGAIN;
        for (index, hook) in self.hooks.all.iter().enumerate() {
            // Without a secret, the delivery is left to a process that has one.
            let free = SEATS.saturating_sub(attempts.busy[index]);
            if hook.secrets() == 0 || free == 0 {
                continue;
            }
            let (taken, next) = self.take_for(hook, free).await;
            attempts.busy[index] += taken.len();
            for delivery in taken {
                attempts.futures.push(self.attempt(index, delivery));
            }
            if next.is_zero() {
                self.hooks.owed.store(true, Ordering::Release);
            }
            wait = wait.min(next.max(Duration::from_millis(1)));
        }
        let is_idle = attempts.futures.is_empty() && !self.hooks.owed.load(Ordering::Acquire);
        self.idle.send_replace(is_idle);
        wait
    }

    /// Takes due deliveries for `hook`, and returns how long until there are more. After a failure
    /// of the store, the next round tries again.
    async fn take_for(&self, hook: &Webhook, free: usize) -> (Vec<Delivery>, Duration) {
        let next = async || match self.store.next_due(hook.name()).await {
            Ok(Some(next)) => next,
            Ok(None) | Err(_) => LOOK_AGAIN,
        };
        let wait = next().await;
        if !wait.is_zero() {
            return (Vec::new(), wait);
        }
        let lease = hook.timeout + MARGIN;
        match self.store.take_due(hook.name(), free, lease).await {
            // A delivery is due, but could not be taken: pause before the next query.
            Ok(taken) if taken.is_empty() => (taken, next().await.max(LOOK_AGAIN)),
            Ok(taken) => (taken, next().await),
            Err(_) => (Vec::new(), LOOK_AGAIN),
        }
    }

    fn attempt(&self, index: usize, delivery: Delivery) -> Attempt {
        let (store, hooks, egress) = (self.store.clone(), self.hooks.clone(), self.egress.clone());
        Box::pin(async move {
            let Some(hook) = hooks.all.get(index) else { return index };
            let (settlement, note) = match checked(&*store, &delivery).await {
                Checked::Fits => attempt(&egress, hook, &delivery).await,
                Checked::Differs(why) => (Settlement::Dead, format!("not sent: {why}")),
                // It is due again when its lease ends.
                Checked::Unknown => return index,
            };
            // If this fails, the delivery is sent again when its lease ends, with the same id.
            let _ = store.settle(&delivery, settlement, &note).await;
            index
        })
    }
}

/// Whether a delivery matches the log.
enum Checked {
    Fits,
    Differs(String),
    /// The log cannot be read now.
    Unknown,
}

/// Compares `delivery` with its event: what Posse signs must be what happened.
async fn checked(store: &dyn Store, delivery: &Delivery) -> Checked {
    let before = Seq(delivery.seq.0.saturating_sub(1));
    match store.read(delivery.run, before, 1).await {
        Ok(events) => match mismatch(delivery, events.first()) {
            None => Checked::Fits,
            Some(why) => Checked::Differs(format!("it does not fit the log: {why}")),
        },
        // The log was removed on request. Only the seal of the delivery is left to check.
        Err(StoreError::Erased(_)) => Checked::Fits,
        Err(error @ (StoreError::Damaged { .. } | StoreError::NotFound(_))) => {
            Checked::Differs(error.to_string())
        }
        Err(_) => Checked::Unknown,
    }
}
