//! `posse daemon stop`.

use super::super::Common;
use super::{COMING_UP, silent};
use crate::daemon::address::Address;
use crate::daemon::client::{Found, find};
use crate::daemon::lock::{Holder, holder};
use crate::daemon::process::GRACE;
use crate::daemon::protocol::Ask;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use posse::store::{Filter, Unfinished};
use posse::{LiveCatalog, Status};
use serde_json::json;
use std::time::{Duration, Instant};

/// How long the process may take to end after its last step.
const SLACK: Duration = Duration::from_secs(20);
/// The interval between two checks.
const A_MOMENT: Duration = Duration::from_millis(20);

/// Stops the daemon with `ask`, and waits until it is gone.
pub async fn run(common: &Common, ask: Ask) -> Result<Code, Failure> {
    let address = Address::of(common)?;
    let daemon = match come_up(&address).await? {
        Found::Daemon(daemon) => daemon,
        Found::Silent { pid, why } => return Err(silent(pid, &why)),
        Found::Nobody => {
            if common.global.json {
                print::json_pretty(&json!({"stopped": false, "pid": null, "unfinished": null}))?;
            } else if !common.global.quiet {
                print::note(format!("no daemon runs on {}", address.database));
            }
            return Ok(Code::Done);
        }
    };
    let pid = daemon.pid();
    // A daemon of another version may answer in another format. Stop it all the same.
    let status = daemon.ask(&Ask::Status).await.ok().and_then(|answer| answer.status);
    let at_work = status.map_or(0, |status| status.runs.running);
    daemon.ask(&ask).await?;
    if at_work > 0
        && ask != (Ask::Stop { now: true })
        && !common.global.quiet
        && !common.global.json
    {
        let runs = format::count(at_work, "run");
        let most = GRACE.as_secs();
        print::note(format!(
            "{runs} may finish the current step, for at most {most} s; \
             `posse daemon stop --now` does not wait"
        ));
    }
    let began = Instant::now();
    while is_held_by(&address, pid)? {
        if began.elapsed() > GRACE + SLACK {
            return Err(silent(Some(pid), "it was asked to stop and is still running"));
        }
        tokio::time::sleep(A_MOMENT).await;
    }
    let (left, waiting) = unfinished(common).await?;
    if common.global.json {
        print::json_pretty(&json!({"stopped": true, "pid": pid, "unfinished": left}))?;
    } else if !common.global.quiet {
        print::note(match left {
            0 if waiting == 0 => {
                format!("the daemon (pid {pid}) has stopped; no unfinished run is left")
            }
            0 => format!(
                "the daemon (pid {pid}) has stopped; {} left, which nothing continues by itself \
                 (`posse runs list --unfinished`)",
                format::count(waiting, "unfinished run")
            ),
            left => format!(
                "the daemon (pid {pid}) has stopped; {} kept; `posse daemon start` \
                 continues them",
                format::count(left, "unfinished run")
            ),
        });
    }
    Ok(Code::Done)
}

/// Finds the daemon. Waits for one that is just starting, so that it can be stopped.
async fn come_up(address: &Address) -> Result<Found, Failure> {
    let began = Instant::now();
    loop {
        match find(address).await? {
            Found::Silent { pid: None, .. } if began.elapsed() < COMING_UP => {
                tokio::time::sleep(A_MOMENT).await;
            }
            found => return Ok(found),
        }
    }
}

/// True while the process `pid` is the daemon.
fn is_held_by(address: &Address, pid: u32) -> Result<bool, Failure> {
    match holder(&address.lock) {
        Ok(Holder::Daemon(notice)) => Ok(notice.pid == pid),
        Ok(Holder::Nobody | Holder::Starting) => Ok(false),
        Err(error) => {
            let path = address.lock.display();
            Err(Failure::internal(format!("cannot read {path}: {error}")))
        }
    }
}

/// The numbers of runs that have work to do and no worker, and of other unfinished runs.
async fn unfinished(common: &Common) -> Result<(u64, u64), Failure> {
    let config = common.user_config()?;
    let agents = LiveCatalog::from(posse::AgentCatalog::built_in());
    let runtime = common.runtime(&config, agents).await?;
    let filter = Filter { unfinished: Unfinished::Only, limit: 1_000_000, ..Filter::default() };
    let rows = runtime.list(&filter).await;
    runtime.shutdown().await;
    let left = |status: &Status| matches!(status, Status::Queued | Status::Crashed);
    let statuses: Vec<Status> = rows?.iter().map(|row| row.status).collect();
    let all = statuses.len() as u64;
    let left = statuses.iter().filter(|status| left(status)).count() as u64;
    Ok((left, all - left))
}
