//! `posse daemon`: a background process that executes runs. One file per verb.

mod start;
mod status;
mod stop;
mod unit;

use super::Common;
use crate::args::DaemonVerb;
use crate::daemon::protocol::Ask;
use crate::exit::{Code, Failure};
use std::time::Duration;

/// How long the daemon may take to answer after its start: it may have to migrate a large database.
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

/// The error for a daemon that does not answer, with advice.
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
