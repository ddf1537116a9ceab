//! The output of a server on its way to the SDK: counts lines and bytes, and ends the connection when a server floods.

use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest message.
pub(super) const LONGEST_LINE: usize = 8 << 20;
/// The most messages, and the most bytes, that a server may send between two requests.
const MOST_LINES: usize = 20_000;
const MOST_BYTES: usize = 64 << 20;

/// What a server has sent since the last request, and why its connection ended.
#[derive(Default)]
pub(super) struct Watch(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    line: usize,
    lines: usize,
    bytes: usize,
    broken: Option<String>,
}

impl Watch {
    /// Begins to count anew, since a request begins.
    pub(super) fn begin(&self) {
        let mut counts = self.0.lock();
        (counts.lines, counts.bytes) = (0, 0);
    }

    /// Returns why Posse ended the connection, if it did.
    pub(super) fn broken(&self) -> Option<String> {
        self.0.lock().broken.clone()
    }

    fn count(&self, bytes: &[u8]) -> Result<(), String> {
        let mut counts = self.0.lock();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            counts.line += piece.len();
            if counts.line > LONGEST_LINE {
                counts.broken = Some(format!("a message has more than {LONGEST_LINE} bytes"));
            }
            if piece.ends_with(b"\n") {
                counts.lines += 1;
                counts.line = 0;
            }
        }
        counts.bytes += bytes.len();
        if counts.lines > MOST_LINES {
            counts.broken =
                Some(format!("it sent more than {MOST_LINES} messages for one request"));
        }
        if counts.bytes > MOST_BYTES {
            counts.broken = Some(format!("it sent more than {MOST_BYTES} bytes for one request"));
        }
        counts.broken.clone().map_or(Ok(()), Err)
    }
}

/// A reader that fails when the server floods.
pub(super) struct Watched<R> {
    pub(super) inner: R,
    pub(super) watch: Arc<Watch>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let counted = self.watch.count(&buffer.filled()[before..]);
        Poll::Ready(counted.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_ends_the_connection_and_each_request_counts_anew() {
        let watch = Watch::default();
        let lines = vec![b'\n'; MOST_LINES];
        for _ in 0..3 {
            watch.begin();
            watch.count(&lines).unwrap();
        }
        assert!(watch.count(b"\n").unwrap_err().contains("messages for one request"));
        assert_eq!(watch.broken(), watch.count(b"").err());
    }

    #[test]
    fn a_message_without_an_end_ends_the_connection() {
        let watch = Watch::default();
        let half = vec![b'x'; LONGEST_LINE / 2];
        watch.count(&half).unwrap();
        watch.begin();
        watch.count(&half).unwrap();
        assert!(watch.count(b"x").unwrap_err().contains("a message has more than"));
    }
}
