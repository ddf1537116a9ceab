//! `posse daemon start`.

use super::super::Common;
use super::{COMING_UP, silent};
use crate::daemon::address::Address;
use crate::daemon::client::{Daemon, Found, find};
use crate::daemon::{VERSION, detach, process};
use crate::exit::{Code, Failure};
use crate::print;
use serde_json::json;
use std::time::{Duration, Instant};

/// The interval between two checks.
const A_MOMENT: Duration = Duration::from_millis(20);

/// Runs the daemon in this process, in the foreground.
pub async fn here(common: &Common) -> Result<Code, Failure> {
    process::run(common, &Address::of(common)?, None).await
}

/// Runs the daemon in this process, without a terminal.
pub async fn detached(common: &Common) -> Result<Code, Failure> {
    detach::leave_session()
        .map_err(|error| Failure::internal(format!("cannot leave the session: {error}")))?;
    let address = Address::of(common)?;
    process::run(common, &address, Some(address.log.clone())).await
}

/// Starts the daemon as a new process, and waits until it answers.
pub async fn in_background(common: &Common) -> Result<Code, Failure> {
    let address = Address::of(common)?;
    let began = Instant::now();
    loop {
        match find(&address).await? {
            Found::Nobody => break,
            Found::Daemon(daemon) => {
                daemon.check_ready()?;
                return tell(common, &address, &daemon, "runs already");
            }
            // Another command is just starting a daemon.
            Found::Silent { pid: None, .. } if began.elapsed() < COMING_UP => {
                tokio::time::sleep(A_MOMENT).await;
            }
            Found::Silent { pid, why } => return Err(silent(pid, &why)),
        }
    }
    address.prepare()?;
    let from = detach::end_of(&address.log);
    let mut child = detach::start(&address, &common.environment).map_err(|error| {
        Failure::internal(format!("cannot start posse again as a daemon: {error}"))
    })?;
    loop {
        if let Found::Daemon(daemon) = find(&address).await? {
            if daemon.pid() == child.id() {
                return tell(common, &address, &daemon, "runs");
            }
            // Another daemon was faster, and this one would only wait for the lock.
            let _ = child.kill();
            let _ = child.wait();
            return tell(common, &address, &daemon, "runs already");
        }
        let ended = child.try_wait().ok().flatten();
        if ended.is_some() || began.elapsed() > COMING_UP {
            let what = match ended {
                Some(status) => format!("ended at once ({status})"),
                None => format!("(pid {}) does not answer", child.id()),
            };
            let code = match ended.and_then(|status| status.code()) {
                Some(code) if code == Code::Usage as i32 => Code::Usage,
                Some(code) if code == Code::Store as i32 => Code::Store,
                _ => Code::Failed,
            };
            return Err(Failure { code, ..failed(&what, &address, from) });
        }
        tokio::time::sleep(A_MOMENT).await;
    }
}

/// The error for a daemon that did not start, with the last lines of its log.
fn failed(what: &str, address: &Address, from: u64) -> Failure {
    let said = detach::said_since(&address.log, from);
    let lines: Vec<&str> = said.lines().collect();
    let last = lines[lines.len().saturating_sub(6)..].join("\n  ");
    let said = if last.is_empty() { String::new() } else { format!(":\n  {last}") };
    Failure::internal(format!("the daemon {what}{said}"))
        .hint(format!("its log is {}", address.log.display()))
}

fn tell(common: &Common, address: &Address, daemon: &Daemon, word: &str) -> Result<Code, Failure> {
    let (pid, database) = (daemon.pid(), &address.database);
    let log = daemon.notice().log.as_ref();
    if common.global.json {
        print::json_pretty(&json!({
            "running": true,
            "started": word == "runs",
            "pid": pid,
            "version": VERSION,
            "database": address.database.to_string(),
            "socket": daemon.notice().socket,
            "log": log,
        }))?;
    } else if !common.global.quiet {
        print::note(format!("the daemon {word} (pid {pid}) and executes the runs of {database}"));
        if let Some(log) = log {
            print::note(format!("  log: {}", log.display()));
        }
    }
    Ok(Code::Done)
}
