//! One connection: reads requests, and sends the answers at their pace and with their faults. It
//! notices a client that leaves while its reply waits.

use crate::gate::Gate;
use crate::http::{
    After, BodyWanted, EventKind, Events, Framing, Payload, ReadError, Reader, Request, Response,
    Version, begin_chunked, encode, end_chunked, push_chunk,
};
use crate::ledger::Ledger;
use crate::performance::Performance;
use crate::script::Book;
use crate::script::fault::{Draft, Ending, Fault, Move, Plan, Scene};
use crate::wire;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long, and for how many bytes, a refused client may continue to send before the connection is
/// closed.
const PATIENCE: Duration = Duration::from_secs(1);
const DISCARDED: u64 = 64 * 1024 * 1024;

/// What all connections of a server share.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) book: Book,
    pub(crate) ledger: Arc<Ledger>,
    /// Where redirects lead to, if the script has faults.
    pub(crate) elsewhere: Option<SocketAddr>,
}

/// The client left before its reply was complete.
struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Gone
    }
}

/// Answers requests until the client leaves or the connection must end.
pub(crate) async fn serve(stream: TcpStream, stage: &Stage) {
    let Stage { book, ledger, elsewhere } = stage;
    ledger.connect();
    // Without it the pieces of a slow stream would wait for each other. If this fails, the socket
    // is closed, and the first read reports it.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection { stream };
    let mut reader = Reader::default();
    loop {
        if book.may_leave_unread()
            && connection.hears().await
            && let Some(ending) = book.leaves_unread()
        {
            connection.end(ending).await;
            return;
        }
        let request = match reader.request(&mut connection.stream).await {
            Ok(request) => Arc::new(request),
            Err(ReadError::Closed) => return,
            Err(ReadError::Refused { status, reason }) => {
                connection.refuse(wire::refusal(status, &reason)).await;
                return;
            }
        };
        let framing = request.framing;
        let in_flight = ledger.arrive(&request);
        let wire::Answer { performance, note } = wire::answer(&request, book, in_flight.number);
        ledger.note(in_flight.number, note);
        let spoilt = performance.fault.map(|fault| (fault, scene(&request, *elsewhere)));
        // A reply can take long, and does not need the request.
        drop(request);
        let performed = match spoilt {
            None => connection.perform(performance, framing).await.map(|()| Ending::KeepOpen),
            Some((fault, scene)) => connection.misperform(performance, fault, scene).await,
        };
        let Ok(ending) = performed else {
            ledger.abandon();
            return;
        };
        drop(in_flight);
        if ending != Ending::KeepOpen {
            connection.end(ending).await;
            return;
        }
        if framing.after == After::Close {
            return;
        }
    }
}

/// Answers requests that should not have come with an error.
pub(crate) async fn turn_away(mut stream: TcpStream, ledger: &Ledger) {
    ledger.connect();
    let mut reader = Reader::default();
    if let Ok(request) = reader.request(&mut stream).await {
        let request = Arc::new(request);
        let _in_flight = ledger.arrive(&request);
        let response = wire::refusal(404, "nothing is served here: a redirect led astray");
        Connection { stream }.refuse(response).await;
    }
}

fn scene(request: &Request, elsewhere: Option<SocketAddr>) -> Scene {
    let wire = wire::at(request.path());
    Scene {
        wire,
        anatomy: wire::anatomy(wire),
        target: request.target.clone(),
        framing: request.framing,
        elsewhere,
    }
}

struct Connection {
    stream: TcpStream,
}

impl Connection {
    async fn perform(&mut self, performance: Performance, framing: Framing) -> Result<(), Gone> {
        let Performance {
            response, latency, token_delay, held_by, held_after, written, seat, ..
        } = performance;
        self.pause(latency).await?;
        if let Some(gate) = held_by {
            self.hold(&gate).await?;
        }
        if let Some(written) = written {
            written.keep();
        }
        match &response.payload {
            Payload::Document(body) => {
                if let Some((_, gate)) = held_after {
                    self.hold(&gate).await?;
                }
                let out = encode(response.status, &response.headers, body, framing);
                drop(seat);
                self.stream.write_all(&out).await?;
            }
            Payload::Events(events) => {
                let head = begin_chunked(response.status, &response.headers, framing);
                let mut out = head;
                self.stream_events(&mut out, events, framing.version, token_delay, held_after)
                    .await?;
                // Before the last byte: the client may ask again the moment it has come.
                drop(seat);
                self.flush(&mut out).await?;
            }
        }
        Ok(())
    }

    /// Sends a response with its fault, and returns how the connection ends.
    async fn misperform(
        &mut self,
        performance: Performance,
        fault: &Fault,
        scene: Scene,
    ) -> Result<Ending, Gone> {
        self.pause(performance.latency).await?;
        if let Some(gate) = performance.held_by {
            self.hold(&gate).await?;
        }
        if let Some(written) = performance.written {
            written.keep();
        }
        let Plan { moves, ending } = fault.plan(Draft::new(performance.response, scene));
        for part in moves {
            match part {
                Move::Send(bytes) => self.stream.write_all(&bytes).await?,
                Move::Drip(bytes, pause) => {
                    for byte in bytes {
                        self.stream.write_all(&[byte]).await?;
                        // Without a pause, other tasks still get their turn.
                        tokio::task::yield_now().await;
                        self.pause(pause).await?;
                    }
                }
                Move::Flood(bytes, pause) => loop {
                    self.stream.write_all(&bytes).await?;
                    self.pause(pause).await?;
                },
                Move::Silence => {
                    self.left().await;
                    return Err(Gone);
                }
            }
        }
        Ok(ending)
    }

    /// Ends the connection in this way.
    async fn end(&mut self, ending: Ending) {
        match ending {
            // If this fails, the socket is closed already.
            Ending::Reset => drop(self.stream.set_zero_linger()),
            Ending::KeepOpen | Ending::Close => self.close().await,
        }
    }

    /// Returns when the client has sent something; false when it left.
    async fn hears(&self) -> bool {
        matches!(self.stream.peek(&mut [0]).await, Ok(1..))
    }

    /// Sends events at their pace; what is left in `out` is still to be sent.
    async fn stream_events(
        &mut self,
        out: &mut Vec<u8>,
        events: &Events,
        version: Version,
        token_delay: Duration,
        mut held_after: Option<(usize, Gate)>,
    ) -> Result<(), Gone> {
        let last = events.len().saturating_sub(1);
        let mut deltas = 0;
        for (index, (event, kind)) in events.iter().enumerate() {
            if index > 0
                && let Some((_, gate)) =
                    held_after.take_if(|(count, _)| deltas >= *count || index == last)
            {
                self.flush(out).await?;
                self.hold(&gate).await?;
            }
            if kind == EventKind::Delta {
                if deltas > 0 && !token_delay.is_zero() {
                    self.flush(out).await?;
                    self.pause(token_delay).await?;
                }
                deltas += 1;
            }
            push_chunk(out, event, version);
        }
        end_chunked(out, version);
        Ok(())
    }

    async fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), Gone> {
        self.stream.write_all(out).await?;
        out.clear();
        Ok(())
    }

    async fn pause(&self, time: Duration) -> Result<(), Gone> {
        if time.is_zero() {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.left() => Err(Gone),
        }
    }

    async fn hold(&self, gate: &Gate) -> Result<(), Gone> {
        tokio::select! {
            () = gate.pass() => Ok(()),
            () = self.left() => Err(Gone),
        }
    }

    /// Returns when the client has closed the connection.
    async fn left(&self) {
        let mut byte = [0];
        if let Ok(1..) = self.stream.peek(&mut byte).await {
            // It has sent its next request, so it is connected; a later end is not visible yet.
            std::future::pending::<()>().await;
        }
    }

    /// Tells the client that its request cannot be read.
    async fn refuse(&mut self, response: Response) {
        let framing =
            Framing { version: Version::Http11, after: After::Close, body: BodyWanted::Yes };
        if self.perform(response.into(), framing).await.is_err() {
            return;
        }
        self.close().await;
    }

    /// Closes the connection in an orderly way.
    async fn close(&mut self) {
        // Closing over unread bytes would reset the connection, and the client could lose the
        // answer while it still sends.
        let discard = async {
            self.stream.shutdown().await?;
            let (mut rest, mut nothing) = ((&mut self.stream).take(DISCARDED), tokio::io::sink());
            tokio::io::copy(&mut rest, &mut nothing).await
        };
        // The connection ends, whether the client reads this or not.
        let _ = tokio::time::timeout(PATIENCE, discard).await;
    }
}
