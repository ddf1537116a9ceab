//! Delivers `collect` announcements: when no result has arrived for a while, it tells the waiting
//! runs to take the results they have. Every runtime does this for all runs of its database; if two
//! do it at once, the store accepts one.

use posse_protocol::{Event, Extra, TimePassed};
use posse_store::{Append, Filter, Guard, RunRow, Store, Unfinished};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The longest interval between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// Checks until `stop` fires.
pub(crate) async fn watch(store: Arc<dyn Store>, quiet: Duration, stop: CancellationToken) {
    let every = LOOK.min(quiet / 2).max(Duration::from_millis(10));
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
        let filter = Filter { unfinished: Unfinished::Gathering, ..Filter::default() };
        // After a failure of the store, the next round tries again.
        let Ok(rows) = store.list(&filter).await else { continue };
        if rows.is_empty() {
            continue;
        }
        let Ok(now_ms) = store.now().await else { continue };
        for row in rows {
            if is_quiet(&row, now_ms, quiet) {
                fail::fail_point!("quiet.append.before");
                let _ = store.append(vec![told(&row)]).await;
                fail::fail_point!("quiet.append.after");
            }
        }
    }
}

/// True when the last result arrived at least `quiet` ago. Both times are from the clock of the
/// store. If someone sets that clock back, the run only waits longer.
fn is_quiet(row: &RunRow, now_ms: u64, quiet: Duration) -> bool {
    u128::from(now_ms.saturating_sub(row.family.gathered_at)) >= quiet.as_millis()
}

fn told(row: &RunRow) -> Append {
    let passed = TimePassed { worked_ms: 0, quiet: true, extra: Extra::default() };
    // If a result arrives at this moment, the append fails and the wait starts again.
    let guard = Guard::Anyone { last: Some(row.log.last_seq) };
    Append { guard, ..Append::by_anyone(row.id, Event::TimePassed(passed)) }
}
