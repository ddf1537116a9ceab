//! `posse daemon status`.

use super::super::Common;
use crate::clean::clean_line;
use crate::daemon::VERSION;
use crate::daemon::address::Address;
use crate::daemon::client::{Daemon, Found, find};
use crate::daemon::protocol::{Ask, Status};
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use serde_json::json;

pub async fn run(common: &Common) -> Result<Code, Failure> {
    let address = Address::of(common)?;
    let (pid, why) = match find(&address).await? {
        Found::Daemon(daemon) => return tell(common, &daemon).await,
        Found::Silent { pid, why } => {
            (pid, format!("a daemon is there and does not answer: {why}"))
        }
        Found::Nobody => (None, "no daemon runs".to_owned()),
    };
    if common.global.json {
        print::json_pretty(
            &json!({"running": false, "pid": pid, "why": why, "database": address.database.to_string()}),
        )?;
    } else {
        let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        print::line(format!("{:11} {why}{pid}", "daemon"))?;
        print::line(format!("{:11} {}", "database", address.database))?;
        if !common.global.quiet {
            print::note("`posse daemon start` starts one");
        }
    }
    Ok(Code::Failed)
}

async fn tell(common: &Common, daemon: &Daemon) -> Result<Code, Failure> {
    let notice = daemon.notice();
    let answer = daemon.ask(&Ask::Status).await?;
    let stopping = answer.stopping;
    let status = answer
        .status
        .ok_or_else(|| Failure::internal("the daemon does not report its status".to_owned()))?;
    if common.global.json {
        print::json_pretty(&json!({
            "running": true,
            "stopping": stopping,
            "pid": daemon.pid(),
            "version": daemon.version,
            "started": format::timestamp(status.started_at),
            "uptime_ms": status.uptime_ms,
            "database": status.database,
            "socket": notice.socket,
            "log": notice.log,
            "slots": status.slots,
            "runs": status.runs,
        }))?;
        return Ok(Code::Done);
    }
    let word = if stopping { "is stopping" } else { "running" };
    let uptime = format::seconds(std::time::Duration::from_millis(status.uptime_ms));
    let (pid, version) = (daemon.pid(), clean_line(&daemon.version, 40));
    let mut facts = vec![
        ("daemon", format!("{word}, pid {pid}, posse {version}, for {uptime}")),
        ("database", status.database.clone()),
        ("socket", notice.socket.display().to_string()),
    ];
    if let Some(log) = &notice.log {
        facts.push(("log", log.display().to_string()));
    }
    facts.push(("runs", counts(&status)));
    for (name, value) in facts {
        print::line(format!("{name:11} {value}"))?;
    }
    if daemon.version != VERSION && !common.global.quiet {
        print::note(format!(
            "this is posse {VERSION}: `posse daemon stop` and `posse daemon start` replace it"
        ));
    }
    Ok(Code::Done)
}

fn counts(status: &Status) -> String {
    let runs = &status.runs;
    let mut parts = vec![format!("{} of {} slots in use", runs.running, status.slots)];
    let more = [
        (runs.queued, "queued"),
        (runs.waiting, "waiting"),
        (runs.paused, "paused"),
        (runs.interrupted, "interrupted"),
        (runs.elsewhere, "executed by other processes"),
    ];
    let more = more.into_iter().filter(|(count, _)| *count > 0);
    parts.extend(more.map(|(count, word)| format!("{count} {word}")));
    parts.join(", ")
}
