//! When runs rest, and which to go on with: a run that waits for others is one with them.

use crate::exit::Failure;
use crate::family::Family;
use posse::{RunHandle, RunId, RunRow, Runtime, Status};

/// Waits until there is nothing to do for `run`, and returns how it then stands; nothing when it
/// waits for others below it, and will go on when they have ended.
pub async fn settled(run: &RunHandle) -> Result<Option<RunRow>, posse::Error> {
    loop {
        let row = run.at_rest().await?;
        // A person can talk to a session meanwhile; another run is not done before those are.
        let is_done = row.awaits == 0 && (row.session || row.expects == 0);
        if is_done || row.paused {
            return Ok(Some(row));
        }
        // It goes on when they have ended, which its events tell.
        if run.has_unfinished_below().await? {
            return Ok(None);
        }
        // The last of them may have ended since the first look.
        let row = run.row().await?;
        if !is_busy(&row) {
            return Ok(Some(row));
        }
    }
}

/// Waits until there is nothing to do for `run`, nor for any below it that it waits for.
pub async fn rested(runtime: &Runtime, run: RunId) -> Result<RunRow, Failure> {
    let handle = runtime.handle(run);
    loop {
        let settled = settled(&handle).await?;
        let tree = handle.tree().await?;
        // Those at work for it wake it when they have ended. Where nobody is, they wait for a person.
        let is_idle = !tree.iter().any(is_busy);
        let idle = tree.iter().find(|row| row.id == run && is_idle).cloned();
        if let Some(row) = settled.filter(|row| row.expects == 0).or(idle) {
            return Ok(row);
        }
        for below in tree.iter().rev().filter(|row| row.id != run && is_open(row)) {
            runtime.handle(below.id).at_rest().await?;
        }
    }
}

/// Those below `run` that somebody is at work on, or could be.
pub async fn busy_below(runtime: &Runtime, run: RunId) -> Result<Vec<RunId>, Failure> {
    let below = runtime.handle(run).unfinished_below().await?;
    Ok(below.iter().filter(|row| is_busy(row)).map(|row| row.id).collect())
}

/// The runs to go on with so that all of `rows` do, and whoever waits for them: each root once,
/// or the run itself if nobody above it waits any more.
pub async fn heads(runtime: &Runtime, rows: &[RunRow]) -> Result<Vec<RunRow>, Failure> {
    let mut heads: Vec<RunRow> = Vec::new();
    for row in rows {
        if heads.iter().any(|head| head.id == row.root) {
            continue;
        }
        let head = match row.parent {
            None => row.clone(),
            Some(_) => {
                let root = Family::of(runtime, row).await?.find(row.root).cloned();
                root.filter(is_open).unwrap_or_else(|| row.clone())
            }
        };
        heads.push(head);
    }
    Ok(heads)
}

/// Says who continues a run that nobody executes now, or how the user does; nothing if somebody does.
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

/// Says that a run rests, why, and how it goes on.
pub fn at_rest(row: &RunRow) -> String {
    let short = row.id.short();
    match row {
        _ if row.interrupted => {
            format!("run {short} is interrupted; `posse runs resume {short}` goes on")
        }
        _ if row.paused => format!("run {short} is paused; `posse runs resume {short}` goes on"),
        _ if row.asks > 0 => {
            format!("run {short} waits for an answer; `posse runs questions {short}` shows to what")
        }
        _ if row.session => {
            format!("run {short} waits; `posse chat --resume {short}` goes on")
        }
        _ => format!("run {short} waits; `posse runs show {short}` says more"),
    }
}

/// True when a run has not ended and can.
pub fn is_open(row: &RunRow) -> bool {
    row.outcome.is_none() && row.damaged.is_none()
}

fn is_busy(row: &RunRow) -> bool {
    is_open(row) && (row.owner.is_some() || (row.runnable && !row.paused))
}
