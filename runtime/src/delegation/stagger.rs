//! Siblings whose requests begin alike: the first of them writes the provider's prompt cache, the
//! others wait for it to begin its answer, and read the cache.

use async_trait::async_trait;
use posse_agent::{DeltaSink, Model, ModelError, ModelInfo, Reply, Request};
use posse_protocol::Delta;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a provider keeps what it was not asked for again, at the least.
const WARM: Duration = Duration::from_secs(240);
/// How long anyone waits for another. Later than that the price matters less than the time.
const PATIENCE: Duration = Duration::from_secs(120);

/// One place to wait for each common beginning.
#[derive(Default)]
pub(crate) struct Beginnings {
    places: Mutex<HashMap<String, Arc<Place>>>,
}

#[derive(Default)]
struct Place {
    /// Held by whoever writes the cache.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// When someone last had an answer begin.
    warm: Mutex<Option<Instant>>,
}

impl Place {
    fn is_warm(&self) -> bool {
        let warm = *self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        warm.is_some_and(|since| since.elapsed() < WARM)
    }

    fn warmed(&self) {
        *self.warm.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Beginnings {
    fn place(&self, beginning: &str) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, place| Arc::strong_count(place) > 1 || place.is_warm());
        places.entry(beginning.to_owned()).or_default().clone()
    }
}

/// A model whose first call waits until a sibling's has been answered, if there is one under way.
pub(crate) struct Staggered {
    model: Arc<dyn Model>,
    /// Where to wait; taken by the first call.
    place: Mutex<Option<Arc<Place>>>,
}

impl Staggered {
    /// `model`, for a run whose requests begin like those of all that say `beginning`.
    pub(crate) fn new(model: Arc<dyn Model>, beginnings: &Beginnings, beginning: &str) -> Self {
        Staggered { model, place: Mutex::new(Some(beginnings.place(beginning))) }
    }
}

/// The right to write the cache, given back when the answer begins.
struct Turn {
    place: Arc<Place>,
    held: Mutex<Option<OwnedMutexGuard<()>>>,
}

impl Turn {
    fn answered(&self) {
        if let Some(held) = self.held.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.place.warmed();
            drop(held);
        }
    }
}

/// Waits until the cache can be read, or until it is this one's turn to write it.
async fn wait(place: Arc<Place>) -> Option<Turn> {
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
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(place) = place else { return self.model.call(request, deltas, cancel).await };
        let turn = tokio::select! {
            turn = wait(place) => turn,
            () = cancel.cancelled() => return Err(ModelError::NotSent),
        };
        let Some(turn) = turn else { return self.model.call(request, deltas, cancel).await };
        let listen = |delta: Delta| {
            // Who waits for leave to ask has no answer yet.
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
