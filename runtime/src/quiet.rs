//! Tells runs that for a while nothing has come to what they gather: then they are told what there
//! is. Every runtime looks, for whoever waits on its database; of two that look, one is heard.

use posse_protocol::{Event, Extra, TimePassed};
use posse_store::{Append, Filter, Guard, RunRow, Store, Unfinished};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often a runtime looks, at most.
const LOOK: Duration = Duration::from_secs(1);

/// Looks until `stop` fires.
pub(crate) async fn watch(store: Arc<dyn Store>, quiet: Duration, stop: CancellationToken) {
    let every = LOOK.min(quiet / 2).max(Duration::from_millis(10));
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
        let filter = Filter { unfinished: Unfinished::Gathering, ..Filter::default() };
        // A store that fails now is asked again soon.
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

/// True when the last result came at least so long ago. Both times are the store's; a clock that is
/// set back makes a run wait longer, and nothing worse.
fn is_quiet(row: &RunRow, now_ms: u64, quiet: Duration) -> bool {
    u128::from(now_ms.saturating_sub(row.family.gathered_at)) >= quiet.as_millis()
}

fn told(row: &RunRow) -> Append {
    let passed = TimePassed { worked_ms: 0, quiet: true, extra: Extra::default() };
    // A result that comes at this moment begins a new while.
    let guard = Guard::Anyone { last: Some(row.log.last_seq) };
    Append { guard, ..Append::by_anyone(row.id, Event::TimePassed(passed)) }
}
