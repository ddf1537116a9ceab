//! When runs rest, and which to go on with: a run that waits for others is one with them.

use crate::exit::Failure;
use crate::family::Family;
use posse::{RunHandle, RunId, RunRow, Runtime, Status};

/// Waits until there is nothing to do for `run`, and returns how it then stands. One that waits for others
/// below it rests when nobody is at work on them, or could be: then they wait for a person.
pub async fn settled(runtime: &Runtime, run: &RunHandle) -> Result<RunRow, posse::Error> {
    loop {
        let row = run.at_rest().await?;
        // A person can talk to a session meanwhile; another run is not done before those are.
        let is_done = row.awaits == 0 && (row.session || row.expects == 0);
        if is_done || row.paused {
            return Ok(row);
        }
        let busy = busy_below(runtime, run.id()).await?;
        for below in &busy {
            runtime.handle(*below).at_rest().await?;
        }
        // The last of them may have ended since the first look.
        let row = run.row().await?;
        if busy.is_empty() && !is_busy(&row) {
            return Ok(row);
        }
    }
}

/// Waits until there is nothing to do for `run`, nor for any below it that it will be told of.
pub async fn rested(runtime: &Runtime, run: RunId) -> Result<RunRow, Failure> {
    let handle = runtime.handle(run);
    loop {
        let row = settled(runtime, &handle).await?;
        if row.expects == 0 {
            return Ok(row);
        }
        let busy = busy_below(runtime, run).await?;
        // The last of them may have woken it since.
        let row = handle.row().await?;
        if busy.is_empty() && !is_busy(&row) {
            return Ok(row);
        }
        for below in busy {
            runtime.handle(below).at_rest().await?;
        }
    }
}

/// Those below `run` that somebody is at work on, or could be.
pub async fn busy_below(runtime: &Runtime, run: RunId) -> Result<Vec<RunId>, posse::Error> {
    let below = runtime.handle(run).unfinished_below().await?;
    Ok(below.iter().filter(|row| is_busy(row)).map(|row| row.id).collect())
}

/// The runs to go on with so that all of `rows` do, and whoever waits for them: each root once or, where
/// it has ended, whoever stands highest above the run of those that have not.
pub async fn heads(runtime: &Runtime, rows: &[RunRow]) -> Result<Vec<RunRow>, Failure> {
    let mut heads: Vec<RunRow> = Vec::new();
    for row in rows {
        if heads.iter().any(|head| head.id == row.root) {
            continue;
        }
        let head = match row.parent {
            None => row.clone(),
            Some(_) => head_of(&Family::of(runtime, row).await?, row).clone(),
        };
        if heads.iter().all(|known| known.id != head.id) {
            heads.push(head);
        }
    }
    Ok(heads)
}

fn head_of<'f>(family: &'f Family, row: &'f RunRow) -> &'f RunRow {
    if let Some(root) = family.find(row.root).filter(|root| is_open(root)) {
        return root;
    }
    let mut head = row;
    while let Some(above) = head.parent.and_then(|run| family.find(run)).filter(|it| is_open(it)) {
        head = above;
    }
    head
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
    row.can_go_on() || is_open(row) && row.owner.is_some()
}
