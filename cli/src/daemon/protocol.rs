//! The protocol on the daemon's socket: one line of JSON in, one line of JSON out, then it closes.

use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

/// The version of the protocol. A daemon answers no other.
pub const FORM: u32 = 1;
/// The most bytes of a line.
const LARGEST: u64 = 256 << 10;
/// How long each side waits for the other.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A request to the daemon, such as `{"posse":1,"ask":"status"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The version of the protocol, [`FORM`].
    pub posse: u32,
    #[serde(flatten)]
    pub ask: Ask,
}

/// The kind of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Check that the daemon answers.
    Ping,
    /// Return the status.
    Status,
    /// Check at once for new work.
    Look,
    /// Check that the daemon can use a model, with its API key or server.
    Reach {
        /// The model, as `vendor/name`.
        model: String,
    },
    /// Stop.
    Stop {
        /// Do not wait for the end of the present steps.
        #[serde(default)]
        now: bool,
    },
}

/// An answer of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The version of the protocol, [`FORM`].
    pub posse: u32,
    /// The daemon's version.
    pub version: String,
    /// The daemon's process id.
    pub pid: u32,
    /// The daemon is stopping, and accepts no work.
    #[serde(default)]
    pub stopping: bool,
    /// Why the request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The status, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// The status of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// When it started: milliseconds since 1970.
    pub started_at: u64,
    /// How long it has run, in milliseconds.
    pub uptime_ms: u64,
    /// Its database.
    pub database: String,
    /// The most runs that it executes at the same time.
    pub slots: u64,
    /// The numbers of unfinished runs.
    pub runs: Counts,
}

/// The numbers of unfinished runs in the database, by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Executed by the daemon.
    pub running: u64,
    /// Executed by other processes.
    pub elsewhere: u64,
    /// Have work to do and wait for a slot.
    pub queued: u64,
    /// Wait for a message, a result or their children.
    pub waiting: u64,
    /// Paused until a person resumes them.
    pub paused: u64,
    /// Interrupted by a person, until a person resumes them.
    #[serde(default)]
    pub interrupted: u64,
}

/// Writes `value` as a line.
pub async fn write_line(
    to: &mut (impl AsyncWrite + Unpin),
    value: &impl Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

/// Reads a line. The end of the stream also ends it.
pub async fn read_line(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut from = from.take(LARGEST + 1);
    loop {
        let more = from.read_buf(&mut line).await?;
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Ok(line);
        }
        if line.len() as u64 > LARGEST {
            return Err(io::Error::other(format!("a line of more than {LARGEST} bytes")));
        }
        if more == 0 {
            return Ok(line);
        }
    }
}

/// Fails if another user is at the other end.
pub fn check_peer(stream: &UnixStream) -> io::Result<()> {
    let (own, other) = (rustix::process::geteuid().as_raw(), stream.peer_cred()?.uid());
    match is_trusted(own, other) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the other end belongs to user {other}, not to user {own}"),
        )),
    }
}

/// Only the same user is trusted, not even root: root can become the user.
fn is_trusted(own: u32, other: u32) -> bool {
    own == other
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_as_they_are_documented() {
        let read = |text: &str| serde_json::from_str::<Request>(text).map(|request| request.ask);
        assert_eq!(read(r#"{"posse":1,"ask":"status"}"#).unwrap(), Ask::Status);
        assert_eq!(read(r#"{"posse":1,"ask":"stop"}"#).unwrap(), Ask::Stop { now: false });
        let reach = Ask::Reach { model: "a/b".to_owned() };
        let text = serde_json::to_string(&Request { posse: FORM, ask: reach.clone() }).unwrap();
        assert_eq!(text, r#"{"posse":1,"ask":"reach","model":"a/b"}"#);
        assert_eq!(read(&text).unwrap(), reach);
        assert!(read(r#"{"posse":1,"ask":"dance"}"#).is_err());
    }

    #[tokio::test]
    async fn a_line_ends_at_its_end_and_has_a_largest_size() {
        let mut text: &[u8] = b"one\ntwo";
        assert_eq!(read_line(&mut text).await.unwrap(), b"one");
        let mut rest: &[u8] = b"two";
        assert_eq!(read_line(&mut rest).await.unwrap(), b"two");
        let endless = vec![b'x'; LARGEST as usize + 10];
        assert!(read_line(&mut endless.as_slice()).await.is_err());
    }

    #[tokio::test]
    async fn only_the_same_user_is_spoken_to() {
        let (one, other) = UnixStream::pair().unwrap();
        check_peer(&one).unwrap();
        check_peer(&other).unwrap();
        assert!(is_trusted(1000, 1000) && !is_trusted(1000, 1001) && !is_trusted(1000, 0));
    }
}
