//! An answer before it is sent: head, events or document, framing. Faults work on this.

use super::Wire;
use super::anatomy::{self, Anatomy};
use super::place::Place;
use super::plan::{Ending, Move, Plan};
use crate::http::{After, Framing, Payload, Response, Version, head};
use serde_json::Value;
use std::net::SocketAddr;

/// Where an answer is given.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) wire: Wire,
    pub(crate) anatomy: &'static dyn Anatomy,
    /// What was asked for, with its query.
    pub(crate) target: String,
    pub(crate) framing: Framing,
    /// The second address of the server.
    pub(crate) elsewhere: Option<SocketAddr>,
}

/// An answer that can still be changed.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(super) scene: Scene,
    pub(super) version: &'static str,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) form: Form,
    /// The events of a stream, or a document as the only one.
    pub(super) pieces: Vec<Vec<u8>>,
    pub(super) coding: Coding,
}

/// What the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Events,
    Document,
}

/// How the client finds the end of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// In chunks, with a last one.
    Chunked,
    /// In chunks, but the last one never comes.
    ChunkedWithoutEnd,
    /// By its length.
    Length,
    /// By a length, true or not.
    ClaimedLength(usize),
    /// Not at all: it ends with the connection.
    Unsaid,
}

impl Draft {
    pub(crate) fn new(response: Response, scene: Scene) -> Self {
        let Response { status, headers, payload } = response;
        let (form, pieces) = match payload {
            Payload::Document(body) => (Form::Document, vec![body.into_bytes()]),
            Payload::Events(events) => {
                let pieces = events.iter().map(|(event, _)| event.as_bytes().to_vec());
                (Form::Events, pieces.collect())
            }
        };
        let coding = match (form, scene.framing.version) {
            (Form::Document, _) => Coding::Length,
            (Form::Events, Version::Http11) => Coding::Chunked,
            (Form::Events, Version::Http10) => Coding::Unsaid,
        };
        Draft { scene, version: "HTTP/1.1", status, headers, form, pieces, coding }
    }

    /// The wire, as faults see it.
    pub(super) fn wire(&self) -> &'static dyn Anatomy {
        self.scene.anatomy
    }

    pub(super) fn is_stream(&self) -> bool {
        self.form == Form::Events
    }

    /// Sends it as it is.
    pub(super) fn plan(self) -> Plan {
        let mut plan = Plan::sending(self.head());
        plan.moves.extend(self.body().into_iter().map(Move::Send));
        match self.coding {
            Coding::Unsaid => plan.ending(Ending::Close),
            _ => plan,
        }
    }

    /// The head, with the blank line that ends it.
    pub(super) fn head(&self) -> Vec<u8> {
        let after = match self.coding {
            Coding::Unsaid => After::Close,
            _ => self.scene.framing.after,
        };
        let mut out = head(self.version, self.status, &self.headers, after);
        match self.coding {
            Coding::Chunked | Coding::ChunkedWithoutEnd => {
                out.push_str("transfer-encoding: chunked\r\n");
            }
            Coding::Length => {
                out.push_str(&format!("content-length: {}\r\n", self.length()));
            }
            Coding::ClaimedLength(length) => {
                out.push_str(&format!("content-length: {length}\r\n"));
            }
            Coding::Unsaid => {}
        }
        out.push_str("\r\n");
        out.into_bytes()
    }

    /// The body, piece by piece, as it goes over the connection.
    pub(super) fn body(&self) -> Vec<Vec<u8>> {
        let chunked = matches!(self.coding, Coding::Chunked | Coding::ChunkedWithoutEnd);
        let written = self.pieces.iter().filter(|piece| !piece.is_empty());
        let mut out: Vec<Vec<u8>> = match chunked {
            true => written.map(|piece| chunk(piece)).collect(),
            false => written.cloned().collect(),
        };
        if self.coding == Coding::Chunked {
            out.push(b"0\r\n\r\n".to_vec());
        }
        out
    }

    /// The bytes of the body, without framing.
    pub(super) fn length(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(set, _)| set != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(set, _)| set != name);
        self
    }

    /// Puts a document in the place of the reply.
    pub(super) fn document(mut self, status: u16, media_type: &str, body: String) -> Self {
        self.status = status;
        self.form = Form::Document;
        self.coding = Coding::Length;
        self.pieces = vec![body.into_bytes()];
        self.without_header("cache-control").header("content-type", media_type)
    }

    pub(super) fn coded(self, coding: Coding) -> Self {
        Draft { coding, ..self }
    }

    /// Changes each event of a stream. A document has none.
    pub(super) fn each_event(mut self, change: impl FnMut(Vec<u8>) -> Vec<u8>) -> Self {
        if self.is_stream() {
            self.pieces = self.pieces.into_iter().map(change).collect();
        }
        self
    }

    /// Puts a copy of `event` before each event of a stream.
    pub(super) fn between_events(mut self, event: &[u8]) -> Self {
        if self.is_stream() {
            let pairs = self.pieces.into_iter().flat_map(|piece| [event.to_vec(), piece]);
            self.pieces = pairs.collect();
        }
        self
    }

    /// Changes the JSON of each event, or of the document.
    pub(super) fn each_json(mut self, mut change: impl FnMut(&mut Value)) -> Self {
        for piece in &mut self.pieces {
            if let Some(mut value) = anatomy::json(piece) {
                change(&mut value);
                anatomy::replace_json(piece, &value);
            }
        }
        self
    }

    /// Changes the JSON of each event of a stream. A document has none.
    pub(super) fn each_event_json(self, change: impl FnMut(&mut Value)) -> Self {
        match self.form {
            Form::Events => self.each_json(change),
            Form::Document => self,
        }
    }

    /// Keeps what comes before `place`, and ends there in this way.
    pub(super) fn cut(mut self, place: Place, how: Cut) -> Plan {
        let whole = self.length();
        place.truncate(&mut self);
        if how == Cut::Orderly {
            return self.plan();
        }
        // The body is shorter than the head says.
        self.coding = match self.coding {
            Coding::Chunked => Coding::ChunkedWithoutEnd,
            Coding::Length => Coding::ClaimedLength(whole),
            other => other,
        };
        self.plan().ending(if how == Cut::Reset { Ending::Reset } else { Ending::Close })
    }
}

/// How a reply ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The connection is closed before the body has come to its end.
    Close,
    /// The connection is reset.
    Reset,
    /// The body ends as HTTP wants it, but what it says is not complete.
    Orderly,
}

/// A piece of a body in chunks.
pub(super) fn chunk(piece: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", piece.len()).into_bytes();
    out.extend_from_slice(piece);
    out.extend_from_slice(b"\r\n");
    out
}
