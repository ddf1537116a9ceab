//! Workers that can be killed.

use super::SOON;
use crate::{Store, StoreError};
use parking_lot::{Mutex, MutexGuard};
use posse_protocol::WorkerId;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// Workers of this process, each with its own executor. When a worker is killed, it loses its
/// executor: its tasks end where they are, and their files, locks and connections are closed, as by
/// the kernel after a process was killed. The code that runs when a store is closed or dropped is
/// not executed.
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
    /// Opens a store on its own executor.
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

    /// Kills the worker of this store. Returns when all its tasks have ended. An engine outside of
    /// its executor may still execute earlier requests.
    pub async fn kill(&self, store: Arc<dyn Store>) {
        let executor = self.known().remove(&store.worker());
        if let Some(runtime) = executor.and_then(|mut executor| executor.0.take()) {
            // The shutdown blocks, which an executor does not allow.
            let ended = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(SOON));
            // A panic there ends it too.
            let _ = ended.await;
        }
        drop(store);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<WorkerId, Executor>> {
        self.0.lock()
    }
}
