//! What is told to the outside of events: stored with them, sent by whoever takes it, settled here.

use crate::error::StoreError;
use async_trait::async_trait;
use posse_protocol::{RunId, Seq, hex};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// Something to tell of the last event of an append, stored in the same transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whom to tell: the name of a webhook.
    pub hook: String,
    /// What kind of thing it is, such as `run.completed`.
    pub kind: String,
    /// What is told, as JSON.
    pub data: Arc<str>,
}

/// A notice that was stored, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The same for every attempt, and for every store that is given the same event.
    pub id: String,
    /// The run that it tells of.
    pub run: RunId,
    /// The event that it tells of.
    pub seq: Seq,
    /// Whom to tell.
    pub hook: String,
    /// What kind of thing it is.
    pub kind: String,
    /// What is told, as JSON. Empty once it was delivered: nobody needs it any more.
    pub data: String,
    /// How far it is.
    pub state: DeliveryState,
    /// How often it was taken to be sent, since it was stored or brought back.
    pub attempts: u32,
    /// When it is to be sent, or may be taken from whoever took it; milliseconds since 1970.
    pub due_at: u64,
    /// When the event was stored; milliseconds since 1970.
    pub created_at: u64,
    /// What came of the last attempt, for people.
    pub note: String,
    /// What is wrong with what is stored of it: it was changed behind the store's back. Such a
    /// delivery is given to nobody to be sent.
    pub damaged: Option<String>,
}

/// How far a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is to be sent, at once or later.
    Due,
    /// It has arrived.
    Delivered,
    /// It was given up; someone may bring it back.
    Dead,
}

impl DeliveryState {
    /// All of them.
    pub const ALL: [DeliveryState; 3] =
        [DeliveryState::Due, DeliveryState::Delivered, DeliveryState::Dead];

    /// In one word, as it is stored.
    pub fn name(self) -> &'static str {
        match self {
            DeliveryState::Due => "due",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Dead => "dead",
        }
    }
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It has arrived.
    Delivered,
    /// It is to be sent again, after this long.
    Again(Duration),
    /// It is given up.
    Dead,
}

/// Whether what came of an attempt was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was.
    Noted,
    /// Someone else has taken or settled the delivery since: what they note counts.
    TooLate,
}

/// Which deliveries to list.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// Only this one.
    pub id: Option<String>,
    /// Only those that tell of this run.
    pub run: Option<RunId>,
    /// Only those that are so far.
    pub state: Option<DeliveryState>,
    /// At most this many, the newest first; 0 is 100.
    pub limit: usize,
}

/// Which deliveries that were given up to bring back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revival {
    /// This one.
    One(String),
    /// All of them.
    All,
}

/// Deliveries, as those who send and show them see them. Due times rest on the wall clock, for
/// they must outlive a restart of the machine.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Takes deliveries to `hook` that are due, the longest due first, at most `limit`. For the
    /// length of `lease` nobody else is given them. Damaged ones are given up in place of it.
    async fn take_due(
        &self,
        hook: &str,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Delivery>, StoreError>;

    /// Notes what came of the attempt for which `delivery` was taken.
    async fn settle(
        &self,
        delivery: &Delivery,
        settlement: Settlement,
        note: &str,
    ) -> Result<Settled, StoreError>;

    /// Makes deliveries due again that were given up, with all their attempts before them, but for
    /// damaged ones. Returns those.
    async fn revive(&self, which: &Revival) -> Result<Vec<Delivery>, StoreError>;

    /// The deliveries that `filter` selects.
    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<Delivery>, StoreError>;

    /// How long until a delivery to `hook` is due, if there is one that is to be sent.
    async fn next_due(&self, hook: &str) -> Result<Option<Duration>, StoreError>;
}

impl Notice {
    /// The delivery of this notice, of the event `seq` of `run` that was stored at `at`.
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
    /// Whoever is about to send it takes it, for so long. One that is damaged is for nobody: see
    /// [`Delivery::condemned`].
    #[must_use]
    pub fn taken(mut self, now_ms: u64, lease: Duration) -> Self {
        (self.due_at, self.attempts) = (after(now_ms, lease), self.attempts.saturating_add(1));
        self
    }

    /// Whoever took it with so many `attempts` has sent it, or has not; nothing if another has it by now
    /// or it was settled.
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

    /// One that was given up is due again; nothing if it was not, or is damaged.
    pub fn revived(mut self, now_ms: u64) -> Option<Self> {
        if self.state != DeliveryState::Dead || self.damaged.is_some() {
            return None;
        }
        (self.state, self.attempts, self.due_at) = (DeliveryState::Due, 0, now_ms);
        Some(self)
    }

    /// The note of one that is given up because it is damaged. Its seal stays broken.
    pub fn condemned(&self) -> Option<String> {
        let why = self.damaged.as_ref()?;
        Some(format!("not sent: {why}"))
    }

    /// A hash over all that is stored of it, which is stored beside it. Made anew with each change; a
    /// bit that flips in between shows.
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

/// So long after `now_ms`. A column holds 63 bits.
fn after(now_ms: u64, wait: Duration) -> u64 {
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    now_ms.saturating_add(wait).min(i64::MAX as u64)
}

/// The id of what `hook` is told of an event. Made of nothing else, so that nothing doubles.
fn delivery_id(hook: &str, run: RunId, seq: Seq) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{run} {seq} {hook}"));
    format!("msg_{}", hex(&hash.finalize()[..16]))
}
