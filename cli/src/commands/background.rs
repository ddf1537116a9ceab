//! `posse run --background`: stores a run for the daemon, and says what will happen to it.

use super::Common;
use super::run::Asked;
use super::worker::to_start;
use crate::args::RunOptions;
use crate::clean::clean_line;
use crate::daemon::address::Address;
use crate::daemon::client::{Daemon, Found, find};
use crate::daemon::protocol::Ask;
use crate::exit::{Code, Failure};
use crate::family;
use crate::print;
use posse::views::Tree;
use posse::{RunId, RunSpec, Runtime, StartResult};
use serde_json::json;

/// The process that will execute the run.
enum Executor {
    Daemon(Daemon),
    /// A daemon that does not answer, with the error.
    Silent(String),
    /// A worker that is not the daemon of this machine.
    Worker,
    /// No worker: why none takes the run, and the command that starts one.
    Missing {
        why: String,
        start: String,
    },
    /// No daemon.
    Nobody,
}

/// A stored run.
struct Stored {
    run: RunId,
    /// Its model.
    model: String,
    /// Its status, in one word.
    word: String,
    /// It existed before, with the same key.
    found: bool,
}

pub async fn run(common: &Common, options: &RunOptions) -> Result<Code, Failure> {
    let Asked { folder, config, spec } = Asked::read(common, options)?;
    let agents = common.agents(&folder, &options.agent.agents)?;
    let address = Address::of(common)?;
    let mut taker = match find(&address).await? {
        // The daemon has no labels.
        _ if !spec.needs.is_empty() => Executor::Nobody,
        Found::Daemon(daemon) => Executor::Daemon(daemon),
        Found::Silent { why, .. } => Executor::Silent(why),
        Found::Nobody => Executor::Nobody,
    };
    if let Executor::Daemon(daemon) = &taker {
        daemon.check_ready()?;
    }
    let runtime = common.runtime(&config, agents).await?;
    let stored = store(&runtime, spec, &mut taker).await;
    runtime.shutdown().await;
    tell(common, &address, &stored?, &taker)
}

/// Stores the run, unless the daemon cannot execute it.
async fn store(runtime: &Runtime, spec: RunSpec, taker: &mut Executor) -> Result<Stored, Failure> {
    let selection = runtime.select(&spec).await?;
    if let Executor::Daemon(daemon) = taker {
        daemon.check_reach(&selection.model).await?;
    }
    let begun = runtime.enqueue(spec).await?;
    if let Executor::Daemon(daemon) = taker {
        // The run is stored, so the daemon finds it even if this call fails.
        let _ = daemon.ask(&Ask::Look).await;
    }
    let run = match begun {
        StartResult::New(run) => {
            if matches!(taker, Executor::Nobody) {
                *taker = worker_for(runtime, run).await?;
            }
            let (model, word) = (selection.model, "queued".to_owned());
            return Ok(Stored { run, model, word, found: false });
        }
        StartResult::Found(run) => run,
    };
    let row = runtime.find(&run.to_string()).await?;
    let standing = Tree::of(runtime, &row).await?.standing(&row);
    Ok(Stored {
        run,
        model: row.about.model.clone(),
        word: family::word(&row, standing),
        found: true,
    })
}

/// Who executes `run` without a daemon.
async fn worker_for(runtime: &Runtime, run: RunId) -> Result<Executor, Failure> {
    let row = runtime.find(&run.to_string()).await?;
    if let Some(why) = runtime.why_nobody_takes(&row).await? {
        return Ok(Executor::Missing { why, start: to_start(runtime, &row) });
    }
    let workers = runtime.workers().await?;
    let takes = workers.iter().any(|worker| worker.about.stays && worker.about.takes(&row));
    Ok(if takes { Executor::Worker } else { Executor::Nobody })
}

fn tell(
    common: &Common,
    address: &Address,
    stored: &Stored,
    taker: &Executor,
) -> Result<Code, Failure> {
    let pid = match taker {
        Executor::Daemon(daemon) => Some(daemon.pid()),
        _ => None,
    };
    if common.global.json {
        print::json_pretty(&json!({
            "run": stored.run,
            "model": stored.model,
            "status": stored.word,
            "found": stored.found,
            "database": address.database.to_string(),
            "daemon": pid.map(|pid| json!({"pid": pid})),
        }))?;
        return Ok(Code::Done);
    }
    print::line(stored.run)?;
    if !common.global.quiet {
        for line in lines(stored, taker) {
            print::note(line);
        }
    }
    Ok(Code::Done)
}

/// Lines that say what will happen to the run.
fn lines(stored: &Stored, taker: &Executor) -> Vec<String> {
    let (short, model) = (stored.run.short(), &stored.model);
    let follow = format!(
        "  `posse runs watch {short}` follows it, `posse runs show {short}` shows its status"
    );
    if stored.found {
        let word = &stored.word;
        return vec![format!("run {short} already has this key; it is {word}"), follow];
    }
    match taker {
        Executor::Daemon(daemon) => vec![
            format!(
                "run {short} ({model}) is queued at the daemon (pid {}), which keeps working when this terminal closes",
                daemon.pid()
            ),
            follow,
        ],
        Executor::Silent(why) => vec![
            format!("run {short} ({model}) is queued, but the daemon does not answer: {why}"),
            "  `posse daemon status` shows more".to_owned(),
        ],
        Executor::Worker => {
            vec![format!("run {short} ({model}) is queued, and a worker executes it"), follow]
        }
        Executor::Missing { why, start } => vec![
            format!("run {short} ({model}) is queued. It {}", clean_line(why, 600)),
            format!("  to start one: {start}"),
        ],
        Executor::Nobody => vec![
            format!(
                "run {short} ({model}) is queued, but no daemon is running. Start one: `posse daemon start`"
            ),
            format!("  or run it in this terminal: `posse runs resume {short}`"),
        ],
    }
}
