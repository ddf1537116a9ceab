//! Faults: what can go wrong between a provider and its client, by name.
//!
//! A fault spoils its reply in the form of the wire of the request. It says what a good client does
//! then. It must never depend on chance or on the speed of the client.

pub(crate) mod anatomy;
mod calls;
mod content;
mod draft;
mod ending;
mod expectation;
mod framing;
mod gzip;
mod noise;
mod pace;
mod place;
mod plan;
mod refusal;
mod trouble;

pub(crate) use anatomy::Anatomy;
pub(crate) use draft::{Draft, Scene};
pub use expectation::{Expectation, Failure, Needs};
pub(crate) use plan::{Ending, Move, Plan};
pub(crate) use trouble::Trouble;

use super::{Block, Body, Reply};
use crate::ask::Wire;
use posse_protocol::near::distance;
use std::fmt;

/// Something that can go wrong with a reply.
pub struct Fault {
    name: &'static str,
    about: &'static str,
    needs: Needs,
    /// The wires that it applies to.
    wires: &'static [Wire],
    expectation: Expectation,
    /// Where a wire's own rules make the difference.
    exceptions: &'static [(Wire, Expectation)],
    deed: Deed,
}

/// What is done to a reply.
#[derive(Clone, Copy)]
enum Deed {
    /// Ends the connection before the request is read.
    Unread(Ending),
    /// Sends a document to a client that asked for a stream, and a stream to one that did not.
    Form,
    /// Changes what is said.
    Words(fn(&mut Body)),
    /// Puts another answer in its place.
    Answer(fn(Draft) -> Draft),
    /// Changes how it is sent.
    Bytes(fn(Draft) -> Plan),
    /// Both.
    Both(fn(&mut Body), fn(Draft) -> Plan),
}

/// There is no fault of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no fault `{name}`; near ones: {}", near.join(", "))]
pub struct UnknownFault {
    /// What was asked for.
    pub name: String,
    /// The names that are most like it.
    pub near: Vec<&'static str>,
}

impl Fault {
    /// Every fault there is, by family.
    pub fn all() -> impl Iterator<Item = &'static Fault> {
        let families: [&'static [Fault]; 7] = [
            refusal::FAULTS,
            ending::FAULTS,
            calls::FAULTS,
            noise::FAULTS,
            content::FAULTS,
            pace::FAULTS,
            framing::FAULTS,
        ];
        families.into_iter().flatten()
    }

    /// The fault of this name.
    ///
    /// # Errors
    /// When there is none; the error lists the names that are most like it.
    pub fn named(name: &str) -> Result<&'static Fault, UnknownFault> {
        Self::all().find(|fault| fault.name == name).ok_or_else(|| {
            let mut near: Vec<&'static str> = Self::all().map(|fault| fault.name).collect();
            near.sort_by_key(|known| distance(name, known));
            near.truncate(3);
            UnknownFault { name: name.to_owned(), near }
        })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What goes wrong, in one line.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// What a reply must hold for it to have something to spoil.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Whether this wire has what it spoils; on another it changes nothing.
    pub fn concerns(&self, wire: Wire) -> bool {
        self.wires.contains(&wire)
    }

    /// What a good client makes of it on this wire.
    pub fn expectation(&self, wire: Wire) -> Expectation {
        let exception = self.exceptions.iter().find(|(on, _)| *on == wire);
        exception.map_or(self.expectation, |(_, expectation)| *expectation)
    }

    /// Whether it ends the connection before the request is read.
    pub fn is_unread(&self) -> bool {
        matches!(self.deed, Deed::Unread(_))
    }

    pub(crate) fn unread(&self) -> Option<Ending> {
        match self.deed {
            Deed::Unread(ending) => Some(ending),
            _ => None,
        }
    }

    pub(crate) fn swaps_form(&self) -> bool {
        matches!(self.deed, Deed::Form)
    }

    /// Why it cannot be done to `reply`.
    pub(crate) fn problem_with(&self, reply: &Reply) -> Option<String> {
        if reply.held_after.is_some() || !reply.token_delay.is_zero() {
            let name = self.name;
            return Some(format!(
                "fault {name} has a pace of its own; leave out what holds or delays deltas"
            ));
        }
        let Body::Message { blocks, .. } = &reply.body else {
            return None;
        };
        let count = |is: fn(&Block) -> bool| blocks.iter().filter(|block| is(block)).count();
        let texts = count(|block| matches!(block, Block::Text(_)));
        let calls = count(|block| matches!(block, Block::ToolCall { .. }));
        let (there, wanted) = match self.needs {
            Needs::Nothing => return None,
            Needs::Text => (texts > 0, "a text"),
            Needs::Call => (calls > 0, "a tool call"),
            Needs::TwoCalls => (calls > 1, "two tool calls"),
        };
        let name = self.name;
        (!there).then(|| format!("fault {name} spoils {wanted}, and the reply has none; add it"))
    }

    /// Changes the reply before it is encoded for a wire.
    pub(crate) fn spoil_words(&self, body: &mut Body) {
        if let Deed::Words(spoil) | Deed::Both(spoil, _) = self.deed {
            spoil(body);
        }
    }

    /// How a reply is sent.
    pub(crate) fn plan(&self, draft: Draft) -> Plan {
        match self.deed {
            _ if !self.concerns(draft.scene.wire) => draft.plan(),
            Deed::Answer(answer) => answer(draft).plan(),
            Deed::Bytes(spoil) | Deed::Both(_, spoil) => spoil(draft),
            // The request was read already.
            Deed::Unread(ending) => Plan::nothing().ending(ending),
            Deed::Form | Deed::Words(_) => draft.plan(),
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Fault").field(&self.name).finish()
    }
}

/// A row of a family's table, to be refined by the methods below.
const fn fault(
    name: &'static str,
    about: &'static str,
    needs: Needs,
    expectation: Expectation,
    deed: Deed,
) -> Fault {
    Fault { name, about, needs, wires: &Wire::ALL, expectation, exceptions: &[], deed }
}

/// The same for a fault that changes how a reply is sent, whatever the reply holds.
const fn spoilt(
    name: &'static str,
    about: &'static str,
    expectation: Expectation,
    deed: fn(Draft) -> Plan,
) -> Fault {
    fault(name, about, Needs::Nothing, expectation, Deed::Bytes(deed))
}

impl Fault {
    const fn needing(mut self, needs: Needs) -> Fault {
        self.needs = needs;
        self
    }

    const fn only_on(mut self, wires: &'static [Wire]) -> Fault {
        self.wires = wires;
        self
    }

    const fn except(mut self, exceptions: &'static [(Wire, Expectation)]) -> Fault {
        self.exceptions = exceptions;
        self
    }
}
