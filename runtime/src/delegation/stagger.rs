//! Staggers siblings whose requests have the same beginning. The first one writes the provider's
//! prompt cache. The others wait until it gets the start of its reply, then read the cache.

use async_trait::async_trait;
use parking_lot::Mutex;
use posse_agent::{DeltaSink, Model, ModelError, ModelInfo, Reply, Request};
use posse_protocol::Delta;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a provider keeps unused cache entries, at least.
const WARM: Duration = Duration::from_secs(240);
/// The longest wait for a sibling. After that, time matters more than the price.
const PATIENCE: Duration = Duration::from_secs(120);

/// One place to wait for each shared beginning of requests.
#[derive(Default)]
pub(crate) struct Beginnings {
    places: Mutex<HashMap<String, Arc<CacheEntry>>>,
}

#[derive(Default)]
struct CacheEntry {
    /// Held by the run that writes the cache.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// When a reply last began.
    warm: Mutex<Option<Instant>>,
}

impl CacheEntry {
    fn is_warm(&self) -> bool {
        let warm = *self.warm.lock();
        warm.is_some_and(|since| since.elapsed() < WARM)
    }

    fn warmed(&self) {
        *self.warm.lock() = Some(Instant::now());
    }
}

impl Beginnings {
    fn place(&self, beginning: &str) -> Arc<CacheEntry> {
        let mut places = self.places.lock();
        places.retain(|_, place| Arc::strong_count(place) > 1 || place.is_warm());
        places.entry(beginning.to_owned()).or_default().clone()
    }
}

/// A model whose first call waits for the reply to a sibling's call, if one is in progress.
pub(crate) struct Staggered {
    model: Arc<dyn Model>,
    /// Where to wait; taken by the first call.
    place: Mutex<Option<Arc<CacheEntry>>>,
}

impl Staggered {
    /// `model` for a run. All runs with the same `beginning` start their requests alike.
    pub(crate) fn new(model: Arc<dyn Model>, beginnings: &Beginnings, beginning: &str) -> Self {
        Staggered { model, place: Mutex::new(Some(beginnings.place(beginning))) }
    }
}

/// The right to write the cache, released when the reply begins.
struct Turn {
    place: Arc<CacheEntry>,
    held: Mutex<Option<OwnedMutexGuard<()>>>,
}

impl Turn {
    fn answered(&self) {
        if let Some(held) = self.held.lock().take() {
            self.place.warmed();
            drop(held);
        }
    }
}

/// Waits until the cache can be read, or until this run may write it.
async fn wait(place: Arc<CacheEntry>) -> Option<Turn> {
    let held = tokio::time::timeout(PATIENCE, place.turn.clone().lock_owned()).await.ok()?;
    if place.is_warm() {
        return None;
    }
    Some(Turn { place, held: Mutex::new(Some(held)) })
}

#[async_trait]
impl Model for Staggered {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn get_ready(&self) {
        self.model.get_ready();
    }

    async fn call(
        &self,
        request: Request,
        deltas: DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        let place = self.place.lock().take();
        let Some(place) = place else { return self.model.call(request, deltas, cancel).await };
        let turn = tokio::select! {
            turn = wait(place) => turn,
            () = cancel.cancelled() => return Err(ModelError::NotSent),
        };
        let Some(turn) = turn else { return self.model.call(request, deltas, cancel).await };
        let listen = |delta: Delta| {
            // A call that waits for the governor has no reply yet.
            if !matches!(delta, Delta::Waiting { .. }) {
                turn.answered();
            }
            deltas(delta);
        };
        let result = self.model.call(request, &listen, cancel).await;
        // A call that failed leaves the turn to the next one.
        if result.is_ok() {
            turn.answered();
        }
        result
    }
}
