//! `posse worker` executes runs until a signal stops it. `posse workers` lists the living workers.

use super::{Common, folder};
use crate::args::WorkerOptions;
use crate::clean::clean_line;
use crate::daemon::process::{GRACE, open};
use crate::exit::{Code, Failure};
use crate::format;
use crate::print::{self, FailureFormat};
use crate::signals::Signals;
use crate::table::{Column, Table};
use posse::protocol::near;
use posse::store::{Contact, Worker};
use posse::{LiveCatalog, RunRow, Runtime};
use serde_json::json;
use std::time::Duration;

/// How often a worker checks that the database takes what it stores.
const CHECK: Duration = Duration::from_secs(5);

/// Executes runs until a signal asks it to stop. Then it claims no more runs, lets the current steps
/// end, and leaves the runs to other workers. A second signal does not wait for the steps.
pub async fn run(common: &Common, options: &WorkerOptions) -> Result<Code, Failure> {
    let mut signals = Signals::listen()?;
    // To stop is what the signal asks a worker for: it ends well, whether the server is there or not.
    common.lines.end_on_signal(FailureFormat::as_json(common.global.json), Code::Done)?;
    let runtime = open(common, |config| {
        let scheduling = &mut config.scheduling;
        if let Some(slots) = options.slots {
            scheduling.max_concurrent = slots as usize;
        }
        scheduling.worker.labels.clone_from(&options.label);
        scheduling.worker.agents.clone_from(&options.agent);
    })
    .await?
    .0;
    if let Err(error) = runtime.check_can_work().await {
        runtime.shutdown_within(Duration::ZERO).await;
        return Err(error.into());
    }
    if !common.global.quiet {
        tell_unknown(common, &options.agent)?;
        print::note(format!("executes runs of {}; Ctrl-C stops it", common.database()?));
    }
    tokio::select! {
        error = runtime.store_lost() => {
            runtime.shutdown_within(Duration::ZERO).await;
            return Err(error.into());
        }
        () = tell_refusals(&runtime, &common.lines.contact) => {}
        _ = signals.next() => {}
    }
    if !common.global.quiet {
        let steps = format::count(runtime.executing() as u64, "run");
        print::note(format!("stopping: {steps} at work may finish the current step"));
    }
    tokio::select! {
        () = runtime.shutdown_within(GRACE) => {}
        _ = signals.next() => runtime.shutdown_within(Duration::ZERO).await,
    }
    Ok(Code::Done)
}

/// Says when the database refuses what a worker writes, as without rights, and when it no longer does.
/// That the server is away is said elsewhere.
async fn tell_refusals(runtime: &Runtime, contact: &Contact) {
    let mut told = String::new();
    loop {
        tokio::time::sleep(CHECK).await;
        let refused = match runtime.check_can_work().await {
            Err(_) if contact.away().is_some() => continue,
            Err(error) => clean_line(&error.to_string(), 600),
            Ok(()) => String::new(),
        };
        if refused == told {
            continue;
        }
        print::note(match refused.as_str() {
            "" => "the database takes what this worker stores again".to_owned(),
            reason => format!("no run goes on here: {reason}"),
        });
        told = refused;
    }
}

/// Says which of the agents `named` this machine does not know. Their runs bring their agent with
/// them, so the worker executes them if another machine or another folder has the agent.
fn tell_unknown(common: &Common, named: &[String]) -> Result<(), Failure> {
    if named.is_empty() {
        return Ok(());
    }
    let agents = common.agents(&folder(None)?, &[])?.current();
    let known: Vec<&str> = agents.entries().iter().map(|entry| entry.name.as_str()).collect();
    for name in named.iter().filter(|name| !known.contains(&name.as_str())) {
        let meant = near::suggestion(name, known.iter().copied(), "`posse agents list` lists all");
        let end = if meant.ends_with('?') { "" } else { "." };
        let name = clean_line(name, 80);
        print::note(clean_line(
            &format!(
                "there is no agent `{name}` in your settings or this folder; {meant}{end} This worker takes \
                 only runs that another machine or folder starts with it"
            ),
            600,
        ));
    }
    Ok(())
}

/// The command that starts a worker for `row`, and the machine on which it must be.
pub fn to_start(runtime: &Runtime, row: &RunRow) -> String {
    let start = match row.work.needs.as_str() {
        "" => "`posse worker`".to_owned(),
        needs => format!("`posse worker --label {needs}`"),
    };
    match runtime.other_machine(row) {
        Some(machine) => format!("{start} on the machine `{}`", clean_line(machine, 64)),
        None => start,
    }
}

/// Lists the workers that are alive.
pub async fn list(common: &Common) -> Result<Code, Failure> {
    let workers = match common.has_database()? {
        false => Vec::new(),
        true => {
            let agents = LiveCatalog::from(posse::AgentCatalog::built_in());
            let runtime = common.runtime(&common.user_config()?, agents).await?;
            let workers = runtime.workers().await;
            runtime.shutdown().await;
            workers?
        }
    };
    // A command that ends with its own run is no worker to count on.
    let workers: Vec<Worker> = workers.into_iter().filter(|it| it.about.stays).collect();
    if common.global.json {
        let view = |worker: &Worker| {
            let about = &worker.about;
            json!({
                "worker": worker.id.to_string(), "host": about.host, "version": about.version,
                "slots": about.slots, "busy": about.busy, "labels": about.labels,
                "agents": about.agents, "lacks": about.lacks, "silent_ms": worker.silent_ms,
            })
        };
        print::json_pretty(&workers.iter().map(view).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    if workers.is_empty() {
        print::note("no workers; `posse worker` or `posse daemon start` starts one");
        return Ok(Code::Done);
    }
    let row = |worker: Worker| {
        let about = worker.about;
        let host = if about.host.is_empty() { "this machine".to_owned() } else { about.host };
        [
            clean_line(&host, 64),
            format!("{} of {}", about.busy, about.slots),
            clean_line(&about.labels.join(", "), 80),
            clean_line(&about.agents.join(", "), 80),
            clean_line(&about.version, 20),
            format!("{} ago", format::seconds(Duration::from_millis(worker.silent_ms))),
        ]
    };
    let columns = [
        Column::text("HOST"),
        Column::text("RUNS"),
        Column::text("LABELS").leaves(2),
        Column::text("ONLY AGENTS").leaves(1),
        Column::text("VERSION").leaves(3),
        Column::text("SEEN"),
    ];
    Table { columns, rows: workers.into_iter().map(row).collect() }.print(common)?;
    Ok(Code::Done)
}
