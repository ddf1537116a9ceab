//! The daemon's side of the socket.

use super::VERSION;
use super::protocol::{
    Answer, Ask, Counts, FORM, PATIENCE, Request, Status, check_peer, read_line, write_line,
};
use crate::format;
use posse::store::{Filter, Unfinished};
use posse::{Runtime, Status as Standing};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Connections that are served at once; more wait.
const MOST: usize = 32;
/// How long to wait when no connection can be taken, for want of descriptors.
const EXHAUSTED: Duration = Duration::from_millis(200);
/// Unfinished runs that are counted.
const COUNTED: usize = 1_000_000;

/// How soon to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// Each run after its step.
    Gentle,
    /// In the middle of steps.
    Now,
}

/// What answers are made of.
pub struct Desk {
    runtime: Runtime,
    database: String,
    slots: u64,
    began: Instant,
    started_at: u64,
    /// Hears that it is to stop.
    stop: mpsc::Sender<Haste>,
    /// It is stopping.
    pub stopping: CancellationToken,
}

/// Answers whoever connects, until `end`.
pub async fn serve(listener: UnixListener, desk: Arc<Desk>, end: CancellationToken) {
    let mut talks = JoinSet::new();
    loop {
        tokio::select! {
            () = end.cancelled() => break,
            Some(_) = talks.join_next(), if !talks.is_empty() => {}
            accepted = listener.accept(), if talks.len() < MOST => match accepted {
                Ok((stream, _)) => {
                    let desk = desk.clone();
                    talks.spawn(async move {
                        // Whoever is gone, slow or another user gets no answer.
                        let _ = timeout(PATIENCE, talk(stream, &desk)).await;
                    });
                }
                Err(_) => tokio::time::sleep(EXHAUSTED).await,
            },
        }
    }
    // The listener first: nobody is to connect who will not be heard.
    drop(listener);
    while talks.join_next().await.is_some() {}
}

async fn talk(mut stream: UnixStream, desk: &Desk) -> std::io::Result<()> {
    check_peer(&stream)?;
    let line = read_line(&mut stream).await?;
    let answer = match understand(&line) {
        Ok(ask) => desk.answer(ask).await,
        Err(why) => Err(why),
    };
    write_line(&mut stream, &desk.line(answer)).await
}

/// What a line asks for.
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

impl Desk {
    /// A desk for `runtime`, which begins now.
    pub fn new(
        runtime: Runtime,
        database: String,
        slots: usize,
        stop: mpsc::Sender<Haste>,
    ) -> Self {
        Desk {
            runtime,
            database,
            slots: slots as u64,
            began: Instant::now(),
            started_at: format::now(),
            stop,
            stopping: CancellationToken::new(),
        }
    }

    /// The line that tells what became of a request.
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
                let haste = if now { Haste::Now } else { Haste::Gentle };
                // A full channel means that it was asked for often enough.
                let _ = self.stop.try_send(haste);
                Ok(None)
            }
            Ask::Status => self.status().await.map(Some),
        }
    }

    async fn status(&self) -> Result<Status, String> {
        let filter = Filter { unfinished: Unfinished::Only, limit: COUNTED, ..Filter::default() };
        let rows = match self.stopping.is_cancelled() {
            // The store may be closed any moment.
            true => Vec::new(),
            false => self.runtime.list(&filter).await.map_err(|error| error.to_string())?,
        };
        let running = self.runtime.executing() as u64;
        let mut runs = Counts { running, ..Counts::default() };
        for row in &rows {
            match row.status {
                Standing::Running if self.runtime.handle(row.id).executed_here().is_none() => {
                    runs.elsewhere += 1;
                }
                Standing::Queued | Standing::Crashed => runs.queued += 1,
                Standing::Waiting => runs.waiting += 1,
                Standing::Paused => runs.paused += 1,
                Standing::Interrupted => runs.interrupted += 1,
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
