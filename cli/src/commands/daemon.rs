//! `posse daemon`: a process in the background that executes runs. One file a verb.

mod start;
mod status;
mod stop;
mod unit;

use super::Common;
use crate::args::DaemonVerb;
use crate::daemon::protocol::Ask;
use crate::exit::{Code, Failure};
use std::time::Duration;

/// How long it may take until it answers: a large database may be brought to a new form.
const COMING_UP: Duration = Duration::from_secs(60);

pub async fn run(common: Common, verb: DaemonVerb) -> Result<Code, Failure> {
    match verb {
        DaemonVerb::Start { foreground: false, .. } => start::in_background(&common).await,
        DaemonVerb::Start { detached: false, .. } => start::here(&common).await,
        DaemonVerb::Start { .. } => start::detached(&common).await,
        DaemonVerb::Stop { now } => stop::run(&common, Ask::Stop { now }).await,
        DaemonVerb::Status => status::run(&common).await,
        DaemonVerb::Unit { install: true } => unit::install(&common),
        DaemonVerb::Unit { .. } => unit::show(&common),
    }
}

/// Why a daemon that is there does not answer, and what to do.
fn silent(pid: Option<u32>, why: &str) -> Failure {
    match pid {
        None => Failure::internal(format!("a daemon is there and does not answer: {why}"))
            .hint("try again in a moment"),
        Some(pid) => Failure::internal(format!("the daemon (pid {pid}) does not answer: {why}"))
            .hint(format!(
                "if it does not recover: `kill -9 {pid}`; its runs are kept and continue later"
            )),
    }
}
