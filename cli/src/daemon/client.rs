//! Finds the daemon and sends requests to it.

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

/// The daemon of a database.
pub enum Found {
    /// There is no daemon.
    Nobody,
    /// A daemon that answers.
    Daemon(Daemon),
    /// A daemon that does not answer.
    Silent {
        /// Its process id, if known.
        pid: Option<u32>,
        /// The reason.
        why: String,
    },
}

/// A daemon that answers.
pub struct Daemon {
    notice: Notice,
    /// Its version, from its answer.
    pub version: String,
    /// It is stopping.
    pub stopping: bool,
}

/// Finds the daemon at `address`.
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
    /// The daemon of the database, if there is one that accepts work.
    pub async fn daemon(&self) -> Option<Daemon> {
        match find(&Address::of(self).ok()?).await {
            Ok(Found::Daemon(daemon)) if !daemon.stopping => Some(daemon),
            _ => None,
        }
    }

    /// Wakes the daemon, if there is one, because there may be work. If this fails, the daemon
    /// finds the work a moment later.
    pub async fn nudge_daemon(&self) {
        if let Some(daemon) = self.daemon().await {
            let _ = daemon.ask(&Ask::Look).await;
        }
    }
}

impl Daemon {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.notice.pid
    }

    /// Its description in the lock file.
    pub fn notice(&self) -> &Notice {
        &self.notice
    }

    /// Sends a request.
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

    /// Fails if the daemon is stopping, or if it has another version, which may not understand the
    /// data that this version stores.
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

    /// Fails if the daemon cannot use a model: it has only the keys that it was started with.
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
