//! The process of the daemon, from its start to its end.

use super::VERSION;
use super::address::Address;
use super::lock::{Lock, Notice};
use super::server::{RequestHandler, StopMode, serve};
use crate::common::Common;
use crate::exit::{Code, Failure};
use crate::format;
use crate::print::{self, FailureFormat};
use crate::signals::Signals;
use posse::{ByFolder, LiveCatalog, Recovery, Runtime, RuntimeConfig, Surroundings};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long a gentle stop waits for the present steps.
pub const GRACE: Duration = Duration::from_secs(30);

/// Executes runs until it is asked to stop.
pub async fn run(
    common: &Common,
    address: &Address,
    log: Option<PathBuf>,
) -> Result<Code, Failure> {
    let signals = Signals::listen()?;
    let tell = FailureFormat::as_json(common.global.json);
    common.lines.end_on_signal(tell, Code::Done)?;
    address.prepare()?;
    let cannot =
        |what: &str, error: std::io::Error| Failure::internal(format!("cannot {what}: {error}"));
    let lock = Lock::take(&address.lock)
        .map_err(|error| cannot(&format!("lock {}", address.lock.display()), error))?;
    let Some(mut lock) = lock else {
        let database = &address.database;
        return Err(Failure::internal(format!("a daemon runs already on {database}"))
            .hint("`posse daemon status` says more"));
    };
    let (runtime, slots) = open(common, |_| {}).await?;
    let socket = address.socket.display();
    let listener = match listen(address) {
        Ok(listener) => listener,
        Err(error) => {
            runtime.shutdown().await;
            return Err(cannot(&format!("listen on {socket}"), error));
        }
    };
    let (pid, version) = (std::process::id(), VERSION.to_owned());
    let notice = Notice { pid, socket: address.socket.clone(), log, version };
    let database = address.database.to_string();
    let told = lock.tell(&notice).map_err(|error| cannot("say that it runs", error));
    let mut ended = Ok(Code::Done);
    if told.is_ok() {
        note(&format!("posse {VERSION} (pid {pid}) executes the runs of {database}"));
        let (stop, asked) = mpsc::channel(8);
        let handler = Arc::new(RequestHandler::new(runtime.clone(), database, slots, stop));
        let end = CancellationToken::new();
        let working = async {
            let ended = work(&runtime, &handler, signals, asked).await;
            end.cancel();
            ended
        };
        ended = tokio::join!(serve(listener, handler.clone(), end.clone()), working).1;
    } else {
        runtime.shutdown().await;
    }
    // Remove the socket before the lock is free: the next holder makes a new one.
    let _ = std::fs::remove_file(&address.socket);
    drop(lock);
    told?;
    note("stopped");
    ended
}

/// Opens a runtime that continues all runs, each with the agents and skills of its folder. Returns
/// it and the number of its slots.
pub async fn open(
    common: &Common,
    change: impl FnOnce(&mut RuntimeConfig),
) -> Result<(Runtime, usize), Failure> {
    // The settings of a project do not apply to the daemon.
    let config = common.user_config()?;
    let nowhere = LiveCatalog::from(posse::AgentCatalog::built_in());
    let place = common.clone();
    let by_folder = ByFolder::new(move |folder| Surroundings {
        agents: LiveCatalog::load(place.agent_sources(folder, &[])),
        skills: place.skills(Some(folder.to_owned())),
        guidance: place.guidance(Some(folder)),
    });
    let runtime = {
        let mut config: RuntimeConfig = common.runtime_config(&config, nowhere, None)?;
        config.scheduling.recovery = Recovery::Continue;
        config.definitions.by_folder = Some(by_folder);
        config.scheduling.worker.stays = true;
        change(&mut config);
        config
    };
    let slots = runtime.scheduling.max_concurrent;
    let runtime = Runtime::open(runtime).await?;
    // A daemon that can only read the database cannot execute runs.
    if let Err(error) = runtime.check_store() {
        runtime.shutdown().await;
        return Err(error.into());
    }
    Ok((runtime, slots))
}

/// Listens for this user only. The daemon that listened there before is gone, because its lock was free.
fn listen(address: &Address) -> std::io::Result<UnixListener> {
    match std::fs::remove_file(&address.socket) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&address.socket)?;
    std::fs::set_permissions(&address.socket, PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

/// Lets the runtime work until a stop is requested, and stops it. A second request stops it at once.
async fn work(
    runtime: &Runtime,
    handler: &RequestHandler,
    mut signals: Signals,
    mut asked: mpsc::Receiver<StopMode>,
) -> Result<Code, Failure> {
    let mut haste = tokio::select! {
        error = runtime.store_lost() => {
            handler.stopping.cancel();
            // The present steps can no longer be stored.
            runtime.shutdown_within(Duration::ZERO).await;
            return Err(error.into());
        }
        signal = signals.next() => {
            note(&format!("{signal}: stopping"));
            StopMode::Gentle
        }
        haste = asked.recv() => {
            note("told to stop");
            haste.unwrap_or(StopMode::Gentle)
        }
    };
    handler.stopping.cancel();
    if haste == StopMode::Gentle {
        let steps = format::count(runtime.executing() as u64, "run");
        note(&format!("{steps} at work may finish the current step"));
        haste = tokio::select! {
            () = runtime.shutdown_within(GRACE) => return Ok(Code::Done),
            _ = signals.next() => StopMode::Now,
            haste = hurried(&mut asked) => haste,
        };
    }
    if haste == StopMode::Now {
        note("stopping in the middle of steps");
        runtime.shutdown_within(Duration::ZERO).await;
    }
    Ok(Code::Done)
}

/// Waits for a request to stop now.
async fn hurried(asked: &mut mpsc::Receiver<StopMode>) -> StopMode {
    while let Some(haste) = asked.recv().await {
        if haste == StopMode::Now {
            return haste;
        }
    }
    std::future::pending().await
}

/// Writes a line to the log.
fn note(text: &str) {
    print::note(format!("{} {text}", format::timestamp(format::now())));
}
