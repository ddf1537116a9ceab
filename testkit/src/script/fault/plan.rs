//! The steps of a connection, which `connection` carries out.

use std::time::Duration;

/// How a spoilt answer is sent.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) moves: Vec<Move>,
    pub(crate) ending: Ending,
}

/// One thing a connection does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// One write.
    Send(Vec<u8>),
    /// A write for each byte, with a pause after it.
    Drip(Vec<u8>, Duration),
    /// The same bytes again and again until the client leaves, with a pause after each time.
    Flood(Vec<u8>, Duration),
    /// Nothing until the client leaves.
    Silence,
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It serves further requests, if the client wants that.
    KeepOpen,
    /// It is closed in an orderly way.
    Close,
    /// It is reset: the client gets an error.
    Reset,
}

impl Plan {
    /// Sends these bytes.
    pub(super) fn sending(bytes: impl Into<Vec<u8>>) -> Self {
        Plan { moves: vec![Move::Send(bytes.into())], ending: Ending::KeepOpen }
    }

    pub(super) fn nothing() -> Self {
        Plan { moves: Vec::new(), ending: Ending::KeepOpen }
    }

    pub(super) fn then(mut self, next: Move) -> Self {
        self.moves.push(next);
        self
    }

    pub(super) fn ending(self, ending: Ending) -> Self {
        Plan { ending, ..self }
    }

    /// Does this before everything else.
    pub(super) fn after(mut self, first: Move) -> Self {
        self.moves.insert(0, first);
        self
    }

    /// The same bytes in one write. Only for what consists of plain writes.
    pub(super) fn in_one_write(self) -> Self {
        Plan { ending: self.ending, ..Plan::sending(self.bytes()) }
    }

    /// The same bytes, each in its own write, with a pause after it. Only for what consists of
    /// plain writes.
    pub(super) fn dripping(self, pause: Duration) -> Self {
        Plan { moves: vec![Move::Drip(self.bytes(), pause)], ending: self.ending }
    }

    fn bytes(&self) -> Vec<u8> {
        let written = self.moves.iter().filter_map(|part| match part {
            Move::Send(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        written.collect::<Vec<_>>().concat()
    }
}
