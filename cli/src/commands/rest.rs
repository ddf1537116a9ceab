//! Messages about runs that are idle, and how they continue.

use posse::{RunRow, Status};

/// Says who continues a run that has no worker, or how the user can. `None` if it has a worker.
pub fn who_continues(row: &RunRow, has_daemon: bool) -> Option<String> {
    let short = row.id.short();
    Some(match row.status {
        Status::Running => return None,
        Status::Paused | Status::Interrupted => {
            format!("run {short} is {}: `posse runs resume {short}` continues it", row.status)
        }
        _ if has_daemon => format!("the daemon continues run {short}"),
        _ => {
            format!("if no terminal has run {short} open, `posse runs resume {short}` continues it")
        }
    })
}

/// Says that a run is idle, why, and how it continues.
pub fn at_rest(row: &RunRow) -> String {
    let short = row.id.short();
    match row {
        _ if row.state.interrupted => {
            format!("run {short} is interrupted; `posse runs resume {short}` continues it")
        }
        _ if row.state.paused => {
            format!("run {short} is paused; `posse runs resume {short}` continues it")
        }
        _ if row.state.asks > 0 => {
            format!("run {short} waits for an answer; `posse runs questions {short}` shows to what")
        }
        _ if row.about.session => {
            format!("run {short} waits; `posse chat --resume {short}` continues it")
        }
        _ => format!("run {short} waits; `posse runs show {short}` says more"),
    }
}
