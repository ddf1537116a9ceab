//! Deliveries: notices about events, stored with the events, and sent to webhooks.

use crate::error::StoreError;
use async_trait::async_trait;
use posse_protocol::{RunId, Seq, hex};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// A notice about the last event of an append. The same transaction stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The name of the webhook.
    pub hook: String,
    /// The kind of the notice, such as `run.completed`.
    pub kind: String,
    /// The content, as JSON.
    pub data: Arc<str>,
}

/// A stored notice and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The id. It is the same for every attempt, and depends only on the event and the webhook.
    pub id: String,
    /// The run that it is about.
    pub run: RunId,
    /// The event that it is about.
    pub seq: Seq,
    /// The name of the webhook.
    pub hook: String,
    /// The kind of the notice.
    pub kind: String,
    /// The content, as JSON. Empty after the delivery, to save space.
    pub data: String,
    /// Its progress.
    pub state: DeliveryState,
    /// How often it was taken for sending, since it was stored or revived.
    pub attempts: u32,
    /// When it is due, or when the lease of its sender ends; milliseconds since 1970.
    pub due_at: u64,
    /// When the event was stored: milliseconds since 1970.
    pub created_at: u64,
    /// The result of the last attempt, for people.
    pub note: String,
    /// What is wrong with the stored delivery, if another program changed it. The store does not
    /// hand out such a delivery.
    pub damaged: Option<String>,
}

/// The progress of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// It waits to be sent.
    Due,
    /// It was delivered.
    Delivered,
    /// The sender gave up. A person may revive it.
    Dead,
}

impl DeliveryState {
    /// All states.
    pub const ALL: [DeliveryState; 3] =
        [DeliveryState::Due, DeliveryState::Delivered, DeliveryState::Dead];

    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            DeliveryState::Due => "due",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Dead => "dead",
        }
    }
}

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It was delivered.
    Delivered,
    /// It must be sent again after this time.
    Again(Duration),
    /// The sender gives up.
    Dead,
}

/// Whether the store recorded the result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It did.
    Noted,
    /// It did not, because another sender has taken or settled the delivery since.
    TooLate,
}

/// Which deliveries to list.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// Only this one.
    pub id: Option<String>,
    /// Only deliveries about this run.
    pub run: Option<RunId>,
    /// Only deliveries in this state.
    pub state: Option<DeliveryState>,
    /// At most this many, newest first; 0 means 100.
    pub limit: usize,
}

/// Which dead deliveries to revive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revival {
    /// This one.
    One(String),
    /// All of them.
    All,
}

/// The deliveries of a store. Their due times use the wall clock, because they must survive a
/// restart of the machine.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Takes at most `limit` deliveries to `hook` that are due, longest due first. For the time of
    /// `lease`, no other sender gets them. Damaged deliveries become dead instead.
    async fn take_due(
        &self,
        hook: &str,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Delivery>, StoreError>;

    /// Records the result of the attempt for which `delivery` was taken.
    async fn settle(
        &self,
        delivery: &Delivery,
        settlement: Settlement,
        note: &str,
    ) -> Result<Settled, StoreError>;

    /// Makes dead deliveries due again and resets their attempts, except damaged ones. Returns the
    /// revived deliveries.
    async fn revive(&self, which: &Revival) -> Result<Vec<Delivery>, StoreError>;

    /// Returns the deliveries that `filter` selects.
    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError>;

    /// Returns the time until the next delivery to `hook` is due, if there is one.
    async fn next_due(&self, hook: &str) -> Result<Option<Duration>, StoreError>;
}

impl Notice {
    /// Returns the delivery of this notice about the event `seq` of `run`, stored at `at`.
    pub fn delivery(&self, run: RunId, seq: Seq, at: u64) -> Delivery {
        Delivery {
            id: delivery_id(&self.hook, run, seq),
            run,
            seq,
            hook: self.hook.clone(),
            kind: self.kind.clone(),
            data: self.data.as_ref().to_owned(),
            state: DeliveryState::Due,
            attempts: 0,
            due_at: at,
            created_at: at,
            note: String::new(),
            damaged: None,
        }
    }
}

impl Delivery {
    /// Returns the delivery as taken by a sender for the time of `lease`. It must not be damaged;
    /// see [`Delivery::condemned`].
    #[must_use]
    pub fn taken(mut self, now_ms: u64, lease: Duration) -> Self {
        (self.due_at, self.attempts) = (after(now_ms, lease), self.attempts.saturating_add(1));
        self
    }

    /// Returns the delivery with the result of the attempt number `attempts`. Returns `None` if
    /// another sender has taken it since, or if it is settled.
    pub fn settled(
        mut self,
        attempts: u32,
        settlement: Settlement,
        note: &str,
        now_ms: u64,
    ) -> Option<Self> {
        if (self.state, self.attempts) != (DeliveryState::Due, attempts) {
            return None;
        }
        let (state, wait) = match settlement {
            Settlement::Delivered => (DeliveryState::Delivered, Duration::ZERO),
            Settlement::Again(wait) => (DeliveryState::Due, wait),
            Settlement::Dead => (DeliveryState::Dead, Duration::ZERO),
        };
        (self.state, self.due_at) = (state, after(now_ms, wait));
        note.clone_into(&mut self.note);
        if state == DeliveryState::Delivered {
            self.data.clear();
        }
        Some(self)
    }

    /// Returns the delivery as due again, or `None` if it is not dead or is damaged.
    pub fn revived(mut self, now_ms: u64) -> Option<Self> {
        if self.state != DeliveryState::Dead || self.damaged.is_some() {
            return None;
        }
        (self.state, self.attempts, self.due_at) = (DeliveryState::Due, 0, now_ms);
        Some(self)
    }

    /// Returns the note for a damaged delivery that becomes dead. Its seal stays invalid.
    pub fn condemned(&self) -> Option<String> {
        let why = self.damaged.as_ref()?;
        Some(format!("not sent: {why}"))
    }

    /// Returns a hash over all fields, which is stored in the row. The store computes it with each
    /// change, so a row that was changed otherwise is detected.
    pub fn seal(&self) -> String {
        let (run, seq, state) = (self.run.to_string(), self.seq.to_string(), self.state.name());
        let [attempts, due, created] =
            [u64::from(self.attempts), self.due_at, self.created_at].map(|it| it.to_string());
        let fields: [&str; 11] = [
            &self.id, &run, &seq, &self.hook, &self.kind, &self.data, state, &attempts, &due,
            &created, &self.note,
        ];
        let mut hash = Sha256::new();
        for field in fields {
            hash.update((field.len() as u64).to_be_bytes());
            hash.update(field);
        }
        hex(&hash.finalize())
    }
}

/// Returns the time `wait` after `now_ms`. A column holds 63 bits.
fn after(now_ms: u64, wait: Duration) -> u64 {
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    now_ms.saturating_add(wait).min(i64::MAX as u64)
}

/// Returns the id of a delivery. It depends only on the event and the webhook, so a repeated append
/// adds no second delivery.
fn delivery_id(hook: &str, run: RunId, seq: Seq) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{run} {seq} {hook}"));
    format!("msg_{}", hex(&hash.finalize()[..16]))
}
