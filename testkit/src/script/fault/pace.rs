//! Faults of pace and size: replies that stop coming, and replies that never stop.
//!
//! The timers are short, so that nobody has to wait long, and regular, so that nothing rests on
//! luck: what is slow goes on being slow until the client leaves.

use super::anatomy::{self, Marks};
use super::draft::{Coding, Draft, chunk};
use super::expectation::{Expectation, Failure, Needs};
use super::place::Place;
use super::plan::{Move, Plan};
use super::{Deed, Fault, Wire, fault};
use serde_json::json;
use std::time::Duration;

/// Between two pings that come forever.
const OFTEN: Duration = Duration::from_millis(5);
/// Between two bytes of what comes slowly: an event takes seconds.
const SLOWLY: Duration = Duration::from_millis(25);
/// More than any sane cap on an event.
const HUGE: usize = 12 << 20;
/// What comes at once of what comes forever.
const WAVE: usize = 64 << 10;

const STALLED: Expectation = Expectation::Retried(&[Failure::Stalled]);
const TOO_MUCH: Expectation = Expectation::Retried(&[Failure::Malformed]);
const USELESS: Expectation = Expectation::Retried(&[Failure::Stalled, Failure::Malformed]);

pub(super) static FAULTS: &[Fault] = &[
    pace("silence", "no byte at all", STALLED, |_| Plan::nothing().then(Move::Silence)),
    pace("silence-after-headers", "nothing after the headers", STALLED, |draft| {
        stop_at(draft, Place::AfterHeaders, Move::Silence)
    }),
    fault(
        "silence-in-stream",
        "nothing after a piece of text",
        Needs::Text,
        STALLED,
        Deed::Bytes(|draft| stop_at(draft, Place::AfterText, Move::Silence)),
    ),
    fault(
        "silence-in-arguments",
        "nothing after half the arguments of a call",
        Needs::Call,
        STALLED,
        Deed::Bytes(|draft| stop_at(draft, Place::InArguments, Move::Silence)),
    ),
    pace("pings-only", "pings in place of a reply, every 5 ms", STALLED, |draft| {
        let pings = chunk(&anatomy::ping(draft.wire()));
        stop_at(draft, Place::AfterHeaders, Move::Flood(pings, OFTEN))
    }),
    pace("comments-only", "comments in place of a reply, every 5 ms", STALLED, |draft| {
        let comments = chunk(b": still here\n\n");
        stop_at(draft, Place::AfterHeaders, Move::Flood(comments, OFTEN))
    }),
    fault(
        "pings-in-stream",
        "pings after a piece of text, every 5 ms",
        Needs::Text,
        STALLED,
        Deed::Bytes(|draft| {
            let pings = chunk(&anatomy::ping(draft.wire()));
            stop_at(draft, Place::AfterText, Move::Flood(pings, OFTEN))
        }),
    ),
    fault(
        "empty-text",
        "empty pieces of text after one that is not, every 5 ms",
        Needs::Text,
        STALLED,
        Deed::Bytes(|draft| {
            let empty = chunk(&without_text(&draft, |marks| marks.text));
            stop_at(draft, Place::AfterText, Move::Flood(empty, OFTEN))
        }),
    ),
    pace(
        "repeated-stop",
        "the reason for stopping again and again, every 5 ms",
        STALLED,
        |draft| {
            let stop = chunk(&without_text(&draft, |marks| marks.stop));
            stop_at(draft, Place::BeforeEnd, Move::Flood(stop, OFTEN))
        },
    )
    .only_on(&[Wire::Anthropic, Wire::OpenAiChat, Wire::Gemini]),
    pace("slow-headers", "headers at a byte every 25 ms", STALLED, |draft| {
        let head = draft.head();
        Plan::nothing().then(Move::Drip(head, SLOWLY)).then(Move::Silence)
    }),
    pace("slow-body", "a body at a byte every 25 ms", STALLED, |draft| {
        let body = draft.body().concat();
        Plan::sending(draft.head()).then(Move::Drip(body, SLOWLY)).then(Move::Silence)
    }),
    fault(
        "endless-text",
        "a text without end",
        Needs::Text,
        TOO_MUCH,
        Deed::Bytes(|draft| {
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
        }),
    ),
    pace("endless-pings", "long pings without end, as fast as they are read", USELESS, |draft| {
        let pings = chunk(&padded_ping(&draft, WAVE));
        stop_at(draft, Place::AfterHeaders, Move::Flood(pings, Duration::ZERO))
    }),
    pace(
        "endless-comments",
        "long comments without end, as fast as they are read",
        USELESS,
        |draft| {
            let comments = chunk(format!(": {}\n\n", "x".repeat(WAVE)).as_bytes());
            stop_at(draft, Place::AfterHeaders, Move::Flood(comments, Duration::ZERO))
        },
    ),
    pace("endless-line", "a line without end", TOO_MUCH, |draft| {
        let letters = chunk(&vec![b'x'; WAVE]);
        let mut plan = stop_at(draft, Place::AfterHeaders, Move::Flood(letters, Duration::ZERO));
        plan.moves.insert(1, Move::Send(chunk(b"data: ")));
        plan
    }),
    pace("huge-event", "an event of 12 MiB before the reply", TOO_MUCH, |mut draft| {
        let huge = padded_ping(&draft, HUGE);
        if draft.is_stream() {
            draft.pieces.insert(0, huge);
        } else {
            draft.pieces[0].splice(..0, vec![b' '; HUGE]);
        }
        draft.plan()
    }),
];

const fn pace(
    name: &'static str,
    about: &'static str,
    expectation: Expectation,
    deed: fn(Draft) -> Plan,
) -> Fault {
    fault(name, about, Needs::Nothing, expectation, Deed::Bytes(deed))
}

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
    // The head must not say where a body ends that does not.
    draft.coded(Coding::ChunkedWithoutEnd).plan().then(then)
}
