//! Faults that end a reply too early, at each of its stages.
//!
//! `reset-…` resets the connection, `cut-…` closes it with the body unfinished, and `end-…` ends
//! the body as HTTP wants it, so that only the wire's own rules tell that something is missing.

use super::anatomy;
use super::draft::Cut;
use super::expectation::{Expectation, Failure, Needs};
use super::place::Place;
use super::plan::{Ending, Plan};
use super::{Deed, Fault, Wire, fault};
use serde_json::Value;

const AGAIN: Expectation = Expectation::Retried(&[Failure::Cut]);
const NO_ANSWER: Expectation = Expectation::Retried(&[Failure::Unreachable]);
const EITHER: Expectation = Expectation::Tolerated(&[Failure::Cut]);
const NOTHING_CAME: Expectation = Expectation::Retried(&[Failure::Cut, Failure::Malformed]);

/// The wires that say something after the reason for stopping.
const WITH_AN_END: &[Wire] = &[Wire::Anthropic, Wire::OpenAiChat];

use Needs::{Call, Nothing, Text};

pub(super) static FAULTS: &[Fault] = &[
    fault(
        "reset-unread",
        "a reset before the request is read",
        Nothing,
        NO_ANSWER,
        Deed::Unread(Ending::Reset),
    ),
    fault(
        "cut-unread",
        "an end before the request is read",
        Nothing,
        NO_ANSWER,
        Deed::Unread(Ending::Close),
    ),
    fault(
        "reset-before-headers",
        "a reset in place of an answer",
        Nothing,
        NO_ANSWER,
        Deed::Bytes(|_| Plan::nothing().ending(Ending::Reset)),
    ),
    fault(
        "cut-before-headers",
        "an end in place of an answer",
        Nothing,
        NO_ANSWER,
        Deed::Bytes(|_| Plan::nothing().ending(Ending::Close)),
    ),
    fault(
        "reset-in-headers",
        "a reset within the headers",
        Nothing,
        NO_ANSWER,
        Deed::Bytes(|draft| half_a_head(draft.head()).ending(Ending::Reset)),
    ),
    fault(
        "cut-in-headers",
        "an end within the headers",
        Nothing,
        NO_ANSWER,
        Deed::Bytes(|draft| half_a_head(draft.head()).ending(Ending::Close)),
    ),
    fault(
        "reset-after-headers",
        "a reset before any byte of the body",
        Nothing,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::AfterHeaders, Cut::Reset)),
    ),
    fault(
        "cut-after-headers",
        "an end before any byte of the body",
        Nothing,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::AfterHeaders, Cut::Close)),
    ),
    fault(
        "end-after-headers",
        "a body without a byte",
        Nothing,
        NOTHING_CAME,
        Deed::Bytes(|draft| draft.cut(Place::AfterHeaders, Cut::Orderly)),
    ),
    fault(
        "reset-before-first-event",
        "a reset after a comment",
        Nothing,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::BeforeFirstEvent, Cut::Reset)),
    ),
    fault(
        "cut-before-first-event",
        "an end after a comment",
        Nothing,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::BeforeFirstEvent, Cut::Close)),
    ),
    fault(
        "end-before-first-event",
        "a body that is a comment",
        Nothing,
        NOTHING_CAME,
        Deed::Bytes(|draft| draft.cut(Place::BeforeFirstEvent, Cut::Orderly)),
    ),
    fault(
        "reset-in-line",
        "a reset in the middle of a line",
        Nothing,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::InLine, Cut::Reset)),
    ),
    fault(
        "cut-in-line",
        "an end in the middle of a line",
        Nothing,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::InLine, Cut::Close)),
    ),
    fault(
        "end-in-line",
        "a body that ends in the middle of a line",
        Nothing,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::InLine, Cut::Orderly)),
    ),
    fault(
        "cut-in-character",
        "an end in the middle of a character",
        Text,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::InCharacter, Cut::Close)),
    ),
    fault(
        "end-in-character",
        "a body that ends in the middle of a character",
        Text,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::InCharacter, Cut::Orderly)),
    ),
    fault(
        "reset-after-text",
        "a reset after a piece of text",
        Text,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::AfterText, Cut::Reset)),
    ),
    fault(
        "cut-after-text",
        "an end after a piece of text",
        Text,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::AfterText, Cut::Close)),
    ),
    fault(
        "end-after-text",
        "a body that ends after a piece of text",
        Text,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::AfterText, Cut::Orderly)),
    ),
    fault(
        "reset-in-arguments",
        "a reset among the arguments of a call",
        Call,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::InArguments, Cut::Reset)),
    ),
    fault(
        "cut-in-arguments",
        "an end among the arguments of a call",
        Call,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::InArguments, Cut::Close)),
    ),
    fault(
        "end-in-arguments",
        "a body that ends among the arguments of a call",
        Call,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::InArguments, Cut::Orderly)),
    ),
    fault(
        "unclosed-call",
        "a call whose end is missing, in a reply that goes on to its own",
        Call,
        AGAIN,
        Deed::Bytes(|mut draft| {
            if !draft.is_stream() {
                return draft.cut(Place::InArguments, Cut::Orderly);
            }
            let is_end = |data: &Value| data["type"] == "content_block_stop";
            draft.pieces.retain(|piece| !anatomy::json(piece).as_ref().is_some_and(is_end));
            draft.plan()
        }),
    )
    .only_on(&[Wire::Anthropic]),
    fault(
        "reset-after-call",
        "a reset after a complete call, before the reason for stopping",
        Call,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::AfterCall, Cut::Reset)),
    ),
    fault(
        "cut-after-call",
        "an end after a complete call, before the reason for stopping",
        Call,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::AfterCall, Cut::Close)),
    ),
    fault(
        "end-after-call",
        "a body that ends after a complete call, before the reason for stopping",
        Call,
        AGAIN,
        Deed::Bytes(|draft| draft.cut(Place::AfterCall, Cut::Orderly)),
    ),
    fault(
        "reset-before-end",
        "a reset after the reason for stopping, before the mark of the end",
        Nothing,
        EITHER,
        Deed::Bytes(|draft| draft.cut(Place::BeforeEnd, Cut::Reset)),
    )
    .only_on(WITH_AN_END),
    fault(
        "cut-before-end",
        "an end after the reason for stopping, before the mark of the end",
        Nothing,
        EITHER,
        Deed::Bytes(|draft| draft.cut(Place::BeforeEnd, Cut::Close)),
    )
    .only_on(WITH_AN_END),
    fault(
        "end-before-end",
        "a body that ends after the reason for stopping, without the mark of the end",
        Nothing,
        EITHER,
        Deed::Bytes(|draft| draft.cut(Place::BeforeEnd, Cut::Orderly)),
    )
    .only_on(WITH_AN_END),
];

fn half_a_head(mut head: Vec<u8>) -> Plan {
    head.truncate(head.len() / 2);
    Plan::sending(head)
}
