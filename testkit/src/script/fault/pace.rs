//! Faults of pace and size: replies that stop coming, and replies that never stop.
//!
//! The timers are short, so that tests are fast, and regular, so that nothing depends on luck: a
//! slow reply stays slow until the client leaves.

use super::anatomy::{self, Marks};
use super::draft::{Coding, Draft, chunk};
use super::expectation::{Expectation, Failure, Needs};
use super::place::Place;
use super::plan::{Move, Plan};
use super::{Fault, Wire, spoilt};
use serde_json::json;
use std::time::Duration;

/// Between two pings that come forever.
const OFTEN: Duration = Duration::from_millis(5);
/// Between two bytes of a slow reply: an event takes seconds.
const SLOWLY: Duration = Duration::from_millis(25);
/// More than any sane cap on an event.
const HUGE: usize = 12 << 20;
/// The size of one write of an endless reply.
const WAVE: usize = 64 << 10;

const STALLED: Expectation = Expectation::Retried(&[Failure::Stalled]);
const TOO_MUCH: Expectation = Expectation::Retried(&[Failure::Malformed]);
const USELESS: Expectation = Expectation::Retried(&[Failure::Stalled, Failure::Malformed]);

pub(super) static FAULTS: &[Fault] = &[
    spoilt("silence", "no byte at all", STALLED, |_| Plan::nothing().then(Move::Silence)),
    spoilt("silence-after-headers", "nothing after the headers", STALLED, |draft| {
        stop_at(draft, Place::AfterHeaders, Move::Silence)
    }),
    spoilt("silence-in-stream", "nothing after a piece of text", STALLED, |draft| {
        stop_at(draft, Place::AfterText, Move::Silence)
    })
    .needing(Needs::Text),
    spoilt(
        "silence-in-arguments",
        "nothing after half the arguments of a call",
        STALLED,
        |draft| stop_at(draft, Place::InArguments, Move::Silence),
    )
    .needing(Needs::Call),
    spoilt("pings-only", "pings in place of a reply, every 5 ms", STALLED, |draft| {
        let pings = chunk(&anatomy::ping(draft.wire()));
        stop_at(draft, Place::AfterHeaders, Move::Flood(pings, OFTEN))
    }),
    spoilt("comments-only", "comments in place of a reply, every 5 ms", STALLED, |draft| {
        let comments = chunk(b": still here\n\n");
        stop_at(draft, Place::AfterHeaders, Move::Flood(comments, OFTEN))
    }),
    spoilt("pings-in-stream", "pings after a piece of text, every 5 ms", STALLED, |draft| {
        let pings = chunk(&anatomy::ping(draft.wire()));
        stop_at(draft, Place::AfterText, Move::Flood(pings, OFTEN))
    })
    .needing(Needs::Text),
    spoilt(
        "empty-text",
        "empty pieces of text after one that is not, every 5 ms",
        STALLED,
        |draft| {
            let empty = chunk(&without_text(&draft, |marks| marks.text));
            stop_at(draft, Place::AfterText, Move::Flood(empty, OFTEN))
        },
    )
    .needing(Needs::Text),
    spoilt(
        "repeated-stop",
        "the reason for stopping again and again, every 5 ms",
        STALLED,
        |draft| {
            let stop = chunk(&without_text(&draft, |marks| marks.stop));
            stop_at(draft, Place::BeforeEnd, Move::Flood(stop, OFTEN))
        },
    )
    .only_on(&[Wire::Anthropic, Wire::OpenAiChat, Wire::Gemini]),
    spoilt("slow-headers", "headers at a byte every 25 ms", STALLED, |draft| {
        let head = draft.head();
        Plan::nothing().then(Move::Drip(head, SLOWLY)).then(Move::Silence)
    }),
    spoilt("slow-body", "a body at a byte every 25 ms", STALLED, |draft| {
        let body = draft.body().concat();
        Plan::sending(draft.head()).then(Move::Drip(body, SLOWLY)).then(Move::Silence)
    }),
    spoilt("endless-text", "a text without end", TOO_MUCH, |draft| {
        let wire = draft.wire();
        let is_text = |piece: &&Vec<u8>| anatomy::marks(wire, piece).text;
        let mut more = draft.pieces.iter().find(is_text).cloned().unwrap_or_default();
        if let Some(mut data) = anatomy::json(&more) {
            if let Some(text) = anatomy::text_of(wire, &mut data) {
                *text = json!("and then ".repeat(WAVE / 9));
            }
            anatomy::replace_json(&mut more, &data);
        }
        stop_at(draft, Place::AfterText, Move::Flood(chunk(&more), Duration::ZERO))
    })
    .needing(Needs::Text),
    spoilt("endless-pings", "long pings without end, as fast as they are read", USELESS, |draft| {
        let pings = chunk(&padded_ping(&draft, WAVE));
        stop_at(draft, Place::AfterHeaders, Move::Flood(pings, Duration::ZERO))
    }),
    spoilt(
        "endless-comments",
        "long comments without end, as fast as they are read",
        USELESS,
        |draft| {
            let comments = chunk(format!(": {}\n\n", "x".repeat(WAVE)).as_bytes());
            stop_at(draft, Place::AfterHeaders, Move::Flood(comments, Duration::ZERO))
        },
    ),
    spoilt("endless-line", "a line without end", TOO_MUCH, |draft| {
        let letters = chunk(&vec![b'x'; WAVE]);
        let mut plan = stop_at(draft, Place::AfterHeaders, Move::Flood(letters, Duration::ZERO));
        plan.moves.insert(1, Move::Send(chunk(b"data: ")));
        plan
    }),
    spoilt("huge-event", "an event of 12 MiB before the reply", TOO_MUCH, |mut draft| {
        let huge = padded_ping(&draft, HUGE);
        if draft.is_stream() {
            draft.pieces.insert(0, huge);
        } else {
            draft.pieces[0].splice(..0, vec![b' '; HUGE]);
        }
        draft.plan()
    }),
];

/// A ping that is `size` bytes longer than need be.
pub(super) fn padded_ping(draft: &Draft, size: usize) -> Vec<u8> {
    let mut ping = anatomy::json(&anatomy::ping(draft.wire())).unwrap_or_default();
    ping["padding"] = json!("x".repeat(size));
    anatomy::event(draft.wire(), &ping)
}

/// The first event that brings this, but for its text. A document has none.
fn without_text(draft: &Draft, is_it: fn(&Marks) -> bool) -> Vec<u8> {
    let wire = draft.wire();
    let mut events = draft.pieces.iter().filter(|_| draft.is_stream());
    let found = events.find(|piece| is_it(&anatomy::marks(wire, piece)));
    let mut event = found.cloned().unwrap_or_else(|| anatomy::ping(wire));
    if let Some(mut data) = anatomy::json(&event) {
        if let Some(text) = anatomy::text_of(wire, &mut data) {
            *text = json!("");
        }
        anatomy::replace_json(&mut event, &data);
    }
    event
}

/// Sends what comes before `place`, and then does something else forever.
fn stop_at(mut draft: Draft, place: Place, then: Move) -> Plan {
    place.truncate(&mut draft);
    // An endless body must not have a length in the head.
    draft.coded(Coding::ChunkedWithoutEnd).plan().then(then)
}
