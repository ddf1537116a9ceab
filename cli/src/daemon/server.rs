//! The daemon's end of the socket.

use super::VERSION;
use super::protocol::{
    Answer, Ask, Counts, FORM, PATIENCE, Request, Status, check_peer, read_line, write_line,
};
use crate::format;
use posse::store::{Filter, Unfinished};
use posse::{Runtime, Status as RunStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The most connections that are served at once. Further ones wait.
const MOST: usize = 32;
/// How long to wait if no connection can be accepted because file descriptors ran out.
const EXHAUSTED: Duration = Duration::from_millis(200);
/// The most unfinished runs that are counted.
const COUNTED: usize = 1_000_000;

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Stop each run after its present step.
    Gentle,
    /// Do not wait for the present steps.
    Now,
}

/// The state from which requests are answered.
pub struct RequestHandler {
    runtime: Runtime,
    database: String,
    slots: u64,
    began: Instant,
    started_at: u64,
    /// Sends requests to stop.
    stop: mpsc::Sender<StopMode>,
    /// Fires when the daemon is stopping.
    pub stopping: CancellationToken,
}

/// Answers requests until `end` fires.
pub async fn serve(listener: UnixListener, handler: Arc<RequestHandler>, end: CancellationToken) {
    let mut talks = JoinSet::new();
    loop {
        tokio::select! {
            () = end.cancelled() => break,
            Some(_) = talks.join_next(), if !talks.is_empty() => {}
            accepted = listener.accept(), if talks.len() < MOST => match accepted {
                Ok((stream, _)) => {
                    let handler = handler.clone();
                    talks.spawn(async move {
                        // A client that is gone, slow or of another user gets no answer.
                        let _ = timeout(PATIENCE, talk(stream, &handler)).await;
                    });
                }
                Err(_) => tokio::time::sleep(EXHAUSTED).await,
            },
        }
    }
    // Drop the listener first, so that no client connects that would get no answer.
    drop(listener);
    while talks.join_next().await.is_some() {}
}

async fn talk(mut stream: UnixStream, handler: &RequestHandler) -> std::io::Result<()> {
    check_peer(&stream)?;
    let line = read_line(&mut stream).await?;
    let answer = match understand(&line) {
        Ok(ask) => handler.answer(ask).await,
        Err(why) => Err(why),
    };
    write_line(&mut stream, &handler.line(answer)).await
}

/// The request in a line.
fn understand(line: &[u8]) -> Result<Ask, String> {
    let value: serde_json::Value =
        serde_json::from_slice(line).map_err(|error| format!("not valid JSON: {error}"))?;
    let form = value.get("posse").and_then(serde_json::Value::as_u64);
    if form != Some(u64::from(FORM)) {
        return Err(format!(
            "a request has \"posse\": {FORM}; posse {VERSION} speaks no other form"
        ));
    }
    let request: Request = serde_json::from_value(value)
        .map_err(|error| format!("posse {VERSION} does not know this request: {error}"))?;
    Ok(request.ask)
}

impl RequestHandler {
    /// A handler for `runtime`. The uptime starts now.
    pub fn new(
        runtime: Runtime,
        database: String,
        slots: usize,
        stop: mpsc::Sender<StopMode>,
    ) -> Self {
        RequestHandler {
            runtime,
            database,
            slots: slots as u64,
            began: Instant::now(),
            started_at: format::now(),
            stop,
            stopping: CancellationToken::new(),
        }
    }

    /// The answer to a request with this result.
    fn line(&self, result: Result<Option<Status>, String>) -> Answer {
        let (status, error) = match result {
            Ok(status) => (status, None),
            Err(why) => (None, Some(why)),
        };
        let (pid, stopping) = (std::process::id(), self.stopping.is_cancelled());
        Answer { posse: FORM, version: VERSION.to_owned(), pid, stopping, error, status }
    }

    async fn answer(&self, ask: Ask) -> Result<Option<Status>, String> {
        match ask {
            Ask::Ping => Ok(None),
            Ask::Look => {
                self.runtime.look_again();
                Ok(None)
            }
            Ask::Reach { model } => {
                let checked = self.runtime.check_model(&model);
                checked.map(|()| None).map_err(|error| error.to_string())
            }
            Ask::Stop { now } => {
                self.stopping.cancel();
                let haste = if now { StopMode::Now } else { StopMode::Gentle };
                // If the channel is full, enough stop requests are waiting.
                let _ = self.stop.try_send(haste);
                Ok(None)
            }
            Ask::Status => self.status().await.map(Some),
        }
    }

    async fn status(&self) -> Result<Status, String> {
        let filter = Filter { unfinished: Unfinished::Only, limit: COUNTED, ..Filter::default() };
        let rows = match self.stopping.is_cancelled() {
            // The store may close at any moment.
            true => Vec::new(),
            false => self.runtime.list(&filter).await.map_err(|error| error.to_string())?,
        };
        let running = self.runtime.executing() as u64;
        let mut runs = Counts { running, ..Counts::default() };
        for row in &rows {
            match row.status {
                RunStatus::Running if self.runtime.handle(row.id).executed_here().is_none() => {
                    runs.elsewhere += 1;
                }
                RunStatus::Queued | RunStatus::Crashed => runs.queued += 1,
                RunStatus::Waiting => runs.waiting += 1,
                RunStatus::Paused => runs.paused += 1,
                RunStatus::Interrupted => runs.interrupted += 1,
                _ => {}
            }
        }
        Ok(Status {
            started_at: self.started_at,
            uptime_ms: self.began.elapsed().as_millis() as u64,
            database: self.database.clone(),
            slots: self.slots,
            runs,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_answered_with_the_reason() {
        let why = |line: &str| understand(line.as_bytes()).unwrap_err();
        assert!(why("hello").starts_with("not valid JSON"));
        assert!(why(r#"{"posse":2,"ask":"ping"}"#).contains("speaks no other form"));
        assert!(why(r#"{"posse":1,"ask":"dance"}"#).contains("does not know this request"));
        assert_eq!(understand(br#"{"posse":1,"ask":"look"}"#), Ok(Ask::Look));
    }
}
