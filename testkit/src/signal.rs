//! Waits for a condition with a deadline. A change of the condition wakes it.

use std::time::Duration;
use tokio::sync::Notify;

/// How long the waiting functions of this crate wait before they give up.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The condition did not become true in time.
#[derive(Debug, thiserror::Error)]
#[error(
    "waited {} s for {what}: wanted {wanted}, saw {seen}; is the caller stuck, or was less asked \
     for than the test expects?",
    DEADLINE.as_secs()
)]
pub struct TimedOut {
    /// What was counted.
    pub what: &'static str,
    /// How many were waited for.
    pub wanted: usize,
    /// How many there were at the end.
    pub seen: usize,
}

/// Returns when `reached` is true for the number from `count`. Code that changes the number must
/// notify `changed` afterwards.
pub(crate) async fn wait_for(
    what: &'static str,
    wanted: usize,
    changed: &Notify,
    count: impl Fn() -> usize,
    reached: impl Fn(usize) -> bool,
) -> Result<(), TimedOut> {
    let waiting = async {
        loop {
            let notified = changed.notified();
            tokio::pin!(notified);
            // Registered before the check, so that a change between check and wait is not missed.
            notified.as_mut().enable();
            if reached(count()) {
                return;
            }
            notified.await;
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, waiting).await;
    in_time.map_err(|_| TimedOut { what, wanted, seen: count() })
}
