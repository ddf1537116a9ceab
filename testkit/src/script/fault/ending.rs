//! Faults that end a reply too early, at each of its stages.
//!
//! `reset-…` resets the connection, `cut-…` closes it with the body unfinished, and `end-…` ends
//! the body correctly for HTTP, so that only the rules of the wire show that something is missing.

use super::anatomy;
use super::draft::Cut;
use super::expectation::{Expectation, Failure, Needs};
use super::place::Place;
use super::plan::{Ending, Plan};
use super::{Deed, Fault, Wire, fault, spoilt};
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
    spoilt("reset-before-headers", "a reset in place of an answer", NO_ANSWER, |_| {
        Plan::nothing().ending(Ending::Reset)
    }),
    spoilt("cut-before-headers", "an end in place of an answer", NO_ANSWER, |_| {
        Plan::nothing().ending(Ending::Close)
    }),
    spoilt("reset-in-headers", "a reset within the headers", NO_ANSWER, |draft| {
        half_a_head(draft.head()).ending(Ending::Reset)
    }),
    spoilt("cut-in-headers", "an end within the headers", NO_ANSWER, |draft| {
        half_a_head(draft.head()).ending(Ending::Close)
    }),
    spoilt("reset-after-headers", "a reset before any byte of the body", AGAIN, |draft| {
        draft.cut(Place::AfterHeaders, Cut::Reset)
    }),
    spoilt("cut-after-headers", "an end before any byte of the body", AGAIN, |draft| {
        draft.cut(Place::AfterHeaders, Cut::Close)
    }),
    spoilt("end-after-headers", "a body without a byte", NOTHING_CAME, |draft| {
        draft.cut(Place::AfterHeaders, Cut::Orderly)
    }),
    spoilt("reset-before-first-event", "a reset after a comment", AGAIN, |draft| {
        draft.cut(Place::BeforeFirstEvent, Cut::Reset)
    }),
    spoilt("cut-before-first-event", "an end after a comment", AGAIN, |draft| {
        draft.cut(Place::BeforeFirstEvent, Cut::Close)
    }),
    spoilt("end-before-first-event", "a body that is a comment", NOTHING_CAME, |draft| {
        draft.cut(Place::BeforeFirstEvent, Cut::Orderly)
    }),
    spoilt("reset-in-line", "a reset in the middle of a line", AGAIN, |draft| {
        draft.cut(Place::InLine, Cut::Reset)
    }),
    spoilt("cut-in-line", "an end in the middle of a line", AGAIN, |draft| {
        draft.cut(Place::InLine, Cut::Close)
    }),
    spoilt("end-in-line", "a body that ends in the middle of a line", AGAIN, |draft| {
        draft.cut(Place::InLine, Cut::Orderly)
    }),
    spoilt("cut-in-character", "an end in the middle of a character", AGAIN, |draft| {
        draft.cut(Place::InCharacter, Cut::Close)
    })
    .needing(Text),
    spoilt("end-in-character", "a body that ends in the middle of a character", AGAIN, |draft| {
        draft.cut(Place::InCharacter, Cut::Orderly)
    })
    .needing(Text),
    spoilt("reset-after-text", "a reset after a piece of text", AGAIN, |draft| {
        draft.cut(Place::AfterText, Cut::Reset)
    })
    .needing(Text),
    spoilt("cut-after-text", "an end after a piece of text", AGAIN, |draft| {
        draft.cut(Place::AfterText, Cut::Close)
    })
    .needing(Text),
    spoilt("end-after-text", "a body that ends after a piece of text", AGAIN, |draft| {
        draft.cut(Place::AfterText, Cut::Orderly)
    })
    .needing(Text),
    spoilt("reset-in-arguments", "a reset among the arguments of a call", AGAIN, |draft| {
        draft.cut(Place::InArguments, Cut::Reset)
    })
    .needing(Call),
    spoilt("cut-in-arguments", "an end among the arguments of a call", AGAIN, |draft| {
        draft.cut(Place::InArguments, Cut::Close)
    })
    .needing(Call),
    spoilt("end-in-arguments", "a body that ends among the arguments of a call", AGAIN, |draft| {
        draft.cut(Place::InArguments, Cut::Orderly)
    })
    .needing(Call),
    spoilt(
        "unclosed-call",
        "a call whose end is missing, in a reply that goes on to its own",
        AGAIN,
        |mut draft| {
            if !draft.is_stream() {
                return draft.cut(Place::InArguments, Cut::Orderly);
            }
            let is_end = |data: &Value| data["type"] == "content_block_stop";
            draft.pieces.retain(|piece| !anatomy::json(piece).as_ref().is_some_and(is_end));
            draft.plan()
        },
    )
    .needing(Call)
    .only_on(&[Wire::Anthropic]),
    spoilt(
        "reset-after-call",
        "a reset after a complete call, before the reason for stopping",
        AGAIN,
        |draft| draft.cut(Place::AfterCall, Cut::Reset),
    )
    .needing(Call),
    spoilt(
        "cut-after-call",
        "an end after a complete call, before the reason for stopping",
        AGAIN,
        |draft| draft.cut(Place::AfterCall, Cut::Close),
    )
    .needing(Call),
    spoilt(
        "end-after-call",
        "a body that ends after a complete call, before the reason for stopping",
        AGAIN,
        |draft| draft.cut(Place::AfterCall, Cut::Orderly),
    )
    .needing(Call),
    spoilt(
        "reset-before-end",
        "a reset after the reason for stopping, before the mark of the end",
        EITHER,
        |draft| draft.cut(Place::BeforeEnd, Cut::Reset),
    )
    .only_on(WITH_AN_END),
    spoilt(
        "cut-before-end",
        "an end after the reason for stopping, before the mark of the end",
        EITHER,
        |draft| draft.cut(Place::BeforeEnd, Cut::Close),
    )
    .only_on(WITH_AN_END),
    spoilt(
        "end-before-end",
        "a body that ends after the reason for stopping, without the mark of the end",
        EITHER,
        |draft| draft.cut(Place::BeforeEnd, Cut::Orderly),
    )
    .only_on(WITH_AN_END),
];

fn half_a_head(mut head: Vec<u8>) -> Plan {
    head.truncate(head.len() / 2);
    Plan::sending(head)
}
