//! Finding the daemon, and asking it.

use super::VERSION;
use super::address::Address;
use super::lock::{Holder, Notice, holder};
use super::protocol::{Answer, Ask, FORM, PATIENCE, Request, check_peer, read_line, write_line};
use crate::common::Common;
use crate::exit::Failure;
use std::io;
use std::path::Path;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Who executes what is left in the database.
pub enum Found {
    /// No daemon.
    Nobody,
    /// This one, which answers.
    Daemon(Daemon),
    /// One that does not answer.
    Silent {
        /// Its process, if it has said.
        pid: Option<u32>,
        /// What became of the attempt.
        why: String,
    },
}

/// A daemon that answers.
pub struct Daemon {
    notice: Notice,
    /// Its version, as it says now.
    pub version: String,
    /// It was told to stop.
    pub stopping: bool,
}

/// Looks for the daemon at `address`.
pub async fn find(address: &Address) -> Result<Found, Failure> {
    let notice = match holder(&address.lock) {
        Ok(Holder::Nobody) => return Ok(Found::Nobody),
        Ok(Holder::Starting) => {
            return Ok(Found::Silent { pid: None, why: "it is just starting".to_owned() });
        }
        Ok(Holder::Daemon(notice)) => notice,
        Err(error) => {
            let path = address.lock.display();
            return Err(Failure::internal(format!("cannot read {path}: {error}")));
        }
    };
    Ok(match exchange(&notice.socket, &Ask::Ping).await {
        Ok(Answer { version, stopping, .. }) => Found::Daemon(Daemon { notice, version, stopping }),
        Err(error) => Found::Silent { pid: Some(notice.pid), why: error.to_string() },
    })
}

impl Common {
    /// The daemon of the database, if there is one that takes work on.
    pub async fn daemon(&self) -> Option<Daemon> {
        match find(&Address::of(self).ok()?).await {
            Ok(Found::Daemon(daemon)) if !daemon.stopping => Some(daemon),
            _ => None,
        }
    }

    /// Tells the daemon, if there is one, that there may be something to do. If it does not hear,
    /// it finds out by itself, a moment later.
    pub async fn nudge_daemon(&self) {
        if let Some(daemon) = self.daemon().await {
            let _ = daemon.ask(&Ask::Look).await;
        }
    }
}

impl Daemon {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.notice.pid
    }

    /// What it tells of itself.
    pub fn notice(&self) -> &Notice {
        &self.notice
    }

    /// Asks it.
    pub async fn ask(&self, ask: &Ask) -> Result<Answer, Failure> {
        let answer = exchange(&self.notice.socket, ask).await.map_err(|error| {
            let pid = self.notice.pid;
            Failure::internal(format!("the daemon (pid {pid}) does not answer: {error}"))
        })?;
        match answer.error {
            None => Ok(answer),
            Some(why) => Err(Failure::internal(format!("the daemon refuses: {why}"))),
        }
    }

    /// Refuses one that takes nothing on any more, and one of another version: what this version
    /// stores it may not understand.
    pub fn check_ready(&self) -> Result<(), Failure> {
        let (pid, version) = (self.notice.pid, &self.version);
        if self.stopping {
            return Err(Failure::internal(format!("the daemon (pid {pid}) is stopping"))
                .hint("try again when it is gone; `posse daemon stop --now` does not wait"));
        }
        if version == VERSION {
            return Ok(());
        }
        let message =
            format!("the daemon (pid {pid}) is posse {version}, and this is posse {VERSION}");
        Err(Failure::internal(message).hint(
            "`posse daemon stop` and then `posse daemon start` replace it; its runs are kept and continue",
        ))
    }

    /// Refuses a model that it cannot reach: its keys are those it was started with.
    pub async fn check_reach(&self, model: &str) -> Result<(), Failure> {
        self.ask(&Ask::Reach { model: model.to_owned() }).await.map(|_| ()).map_err(|failure| {
            failure.hint(
                "it has the keys and settings it was started with: `posse daemon stop`, set what \
                 is missing, `posse daemon start`",
            )
        })
    }
}

async fn exchange(socket: &Path, ask: &Ask) -> io::Result<Answer> {
    let talk = async {
        let mut stream = UnixStream::connect(socket).await?;
        check_peer(&stream)?;
        write_line(&mut stream, &Request { posse: FORM, ask: ask.clone() }).await?;
        let line = read_line(&mut stream).await?;
        Ok(serde_json::from_slice(&line)?)
    };
    let silent = || io::Error::new(io::ErrorKind::TimedOut, "no answer within five seconds");
    timeout(PATIENCE, talk).await.map_err(|_| silent())?
}
