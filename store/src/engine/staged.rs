//! What both engines do around what is staged: they stage it, show it, and remove what has expired.

use crate::StoreError;
use crate::stage::TRIES;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::task::TaskTracker;

/// Stages something and shows it, and does both again if some of it was removed in between.
pub(crate) async fn show<T, S, W>(
    stage: impl Fn() -> S,
    then: impl Fn() -> W,
) -> Result<T, StoreError>
where
    S: Future<Output = Result<(), StoreError>>,
    W: Future<Output = Result<T, StoreError>>,
{
    let mut tries = 0;
    loop {
        stage().await?;
        let shown = then().await;
        tries += 1;
        if tries == TRIES || !matches!(shown, Err(StoreError::Unstaged(_))) {
            return shown;
        }
    }
}

/// The task of a process that removes what has expired.
#[derive(Default)]
pub(crate) struct Removal {
    runs: Arc<AtomicBool>,
}

impl Removal {
    /// Begins `work`, unless this task runs already. If this process ends meanwhile, the next look for
    /// leftovers goes on.
    pub(crate) fn begin(
        &self,
        tasks: &TaskTracker,
        work: impl Future<Output = Result<(), StoreError>> + Send + 'static,
    ) {
        if self.runs.swap(true, Ordering::SeqCst) {
            return;
        }
        let runs = self.runs.clone();
        let work = async move {
            // Errors show up where runs append.
            let _ = work.await;
            runs.store(false, Ordering::SeqCst);
        };
        #[expect(clippy::disallowed_methods, reason = "ends with the store; awaited by close")]
        tokio::spawn(tasks.track_future(work));
    }
}
