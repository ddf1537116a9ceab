//! Workers that can be killed.

use super::SOON;
use crate::{Store, StoreError};
use posse_protocol::WorkerId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// Workers of this process, each on an executor of its own. Killed, a worker loses that: its tasks
/// end where they stand, and what they hold open (files, locks, connections) is let go of, as the kernel
/// does for a process that was killed. Nothing that a store does when it is closed, or dropped, is done.
#[derive(Default)]
pub struct Workers(Mutex<HashMap<WorkerId, Executor>>);

struct Executor(Option<Runtime>);

impl Drop for Executor {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Workers {
    /// Opens a store on an executor of its own.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn open<S: Store + 'static>(
        &self,
        opening: impl Future<Output = Result<S, StoreError>> + Send + 'static,
    ) -> Result<Arc<dyn Store>, StoreError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Unusable {
            path: "of an executor".to_owned(),
            reason: error.to_string(),
        })?;
        let opening = runtime.spawn(opening);
        let executor = Executor(Some(runtime));
        let store = opening.await.map_err(|_| StoreError::Closed)??;
        self.known().insert(store.worker(), executor);
        Ok(Arc::new(store))
    }

    /// Kills the worker whose store this is, and returns when nothing of it moves any more, but for what
    /// an engine outside its executor was told before.
    pub async fn kill(&self, store: Arc<dyn Store>) {
        let executor = self.known().remove(&store.worker());
        if let Some(runtime) = executor.and_then(|mut executor| executor.0.take()) {
            // It waits, which no executor may do.
            let ended = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(SOON));
            // Who panics there has ended too.
            let _ = ended.await;
        }
        drop(store);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<WorkerId, Executor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
