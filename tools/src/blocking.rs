//! Runs work on a blocking thread, and stops it when its caller is gone.

use crate::failure::Failure;
use posse_agent::ToolContext;
use tokio_util::sync::CancellationToken;

/// Runs `work` on a blocking thread. `work` gets a token that fires when the call is cancelled or its
/// future is dropped, and must check it often. Returns at once when the call is cancelled.
pub(crate) async fn interruptible<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&CancellationToken) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let token = context.cancel.child_token();
    let _stops_the_work = token.clone().drop_guard();
    let thread = tokio::task::spawn_blocking(move || work(&token));
    tokio::select! {
        () = context.cancel.cancelled() => Err(cancelled()),
        joined = thread => joined.unwrap_or_else(|error| Err(broken(&error))),
    }
}

/// Runs `work` on a blocking thread to its end, so that a write is always reported completely.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(broken(&error)))
}

pub(crate) fn cancelled() -> Failure {
    Failure::new("the call was cancelled")
}

fn broken(error: &tokio::task::JoinError) -> Failure {
    Failure(format!("the tool broke off ({error}); this is a defect, try another way"))
}
