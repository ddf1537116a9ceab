//! Faults of HTTP itself: lengths, chunks, versions, redirects, interim answers, compression.

use super::draft::{Coding, Draft, chunk};
use super::expectation::{Expectation, Failure};
use super::gzip;
use super::plan::{Ending, Move, Plan};
use super::{Fault, spoilt};
use std::time::Duration;

const CUT: Expectation = Expectation::Retried(&[Failure::Cut]);
const NO_ANSWER: Expectation = Expectation::Retried(&[Failure::Unreachable]);
const UNREADABLE: Expectation = Expectation::Retried(&[Failure::Malformed]);
const NOT_FOLLOWED: Expectation = Expectation::Refused(&[Failure::Rejected]);
use Expectation::Unharmed;

pub(super) static FAULTS: &[Fault] = &[
    spoilt(
        "length-too-long",
        "a content-length beyond the body, and an end",
        Expectation::Tolerated(&[Failure::Cut]),
        |draft| {
            let claimed = draft.length() + 1000;
            draft.coded(Coding::ClaimedLength(claimed)).plan().ending(Ending::Close)
        },
    ),
    spoilt("length-too-short", "a content-length of half the body", CUT, |draft| {
        let claimed = draft.length() / 2;
        draft.coded(Coding::ClaimedLength(claimed)).plan()
    }),
    spoilt("bad-chunk-size", "a chunk whose size is no number", CUT, |draft| {
        spoilt_chunk(draft, |good| [b"zz\r\n".as_slice(), good, b"\r\n"].concat())
    }),
    spoilt("chunk-too-short", "a chunk that is longer than its size", CUT, |draft| {
        spoilt_chunk(draft, |good| {
            let size = format!("{:x}\r\n", good.len() / 2).into_bytes();
            [&size, good, b"\r\n"].concat()
        })
    }),
    spoilt(
        "chunk-too-long",
        "a chunk that is shorter than its size, and an end",
        Expectation::Tolerated(&[Failure::Cut]),
        |draft| {
            let plan = spoilt_chunk(draft, |good| {
                let size = format!("{:x}\r\n", good.len() + 5000).into_bytes();
                [&size, good].concat()
            });
            plan.ending(Ending::Close)
        },
    ),
    spoilt("trailers", "headers after the last chunk", Unharmed, |draft| {
        if !draft.is_stream() {
            return draft.plan();
        }
        let plan = draft.coded(Coding::ChunkedWithoutEnd).plan();
        plan.then(Move::Send(b"0\r\nx-checksum: 7\r\n\r\n".to_vec()))
    }),
    spoilt("no-length", "a body that ends with the connection", Unharmed, |draft| {
        draft.coded(Coding::Unsaid).plan()
    }),
    spoilt("http-1-0", "an answer of HTTP/1.0", Unharmed, |mut draft| {
        draft.version = "HTTP/1.0";
        draft.coded(Coding::Unsaid).plan()
    }),
    spoilt(
        "closed-after",
        "a connection that is said to stay, and ends after the reply",
        Unharmed,
        |draft| draft.plan().ending(Ending::Close),
    ),
    spoilt("early-continue", "`100 Continue` before the answer", Unharmed, |draft| {
        draft.plan().after(Move::Send(CONTINUE.to_vec()))
    }),
    spoilt("early-hints", "`103 Early Hints` before the answer", Unharmed, |draft| {
        let hints = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n".to_vec();
        draft.plan().after(Move::Send(hints))
    }),
    spoilt(
        "endless-continue",
        "`100 Continue` every 5 ms, and no answer",
        Expectation::Retried(&[Failure::Stalled, Failure::Unreachable]),
        |_| Plan::nothing().then(Move::Flood(CONTINUE.to_vec(), Duration::from_millis(5))),
    ),
    spoilt("not-http", "a greeting of another protocol", NO_ANSWER, |_| {
        Plan::sending(&b"220 mail.example ESMTP ready\r\n"[..]).ending(Ending::Close)
    }),
    spoilt("huge-header", "a header of 1 MiB", NO_ANSWER, |draft| {
        draft.header("x-huge", &"x".repeat(1 << 20)).plan()
    }),
    spoilt("many-headers", "1,000 headers", NO_ANSWER, |mut draft| {
        let many = (0..1000).map(|number| (format!("x-header-{number}"), "x".to_owned()));
        draft.headers.extend(many);
        draft.plan()
    }),
    spoilt("redirect-loop", "a redirect to the same address", NOT_FOLLOWED, |draft| {
        let target = draft.scene.target.clone();
        redirected(draft, &target)
    }),
    spoilt(
        "redirect-elsewhere",
        "a redirect to another host, which must not get the key",
        NOT_FOLLOWED,
        |draft| {
            let target = match draft.scene.elsewhere {
                Some(address) => format!("http://{address}{}", draft.scene.target),
                None => draft.scene.target.clone(),
            };
            redirected(draft, &target)
        },
    ),
    spoilt("gzip", "a compressed body, which nobody asked for", UNREADABLE, |draft| {
        let body = gzip::packed(&draft.pieces.concat()).unwrap_or_default();
        compressed(draft, body)
    }),
    spoilt("gzip-bomb", "a body that unpacks to 256 MiB", UNREADABLE, |draft| {
        compressed(draft, gzip::bomb())
    }),
    spoilt("gzip-lie", "a plain body that claims to be compressed", UNREADABLE, |draft| {
        draft.header("content-encoding", "gzip").plan()
    }),
];

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Sends the first half of the body in good chunks, and the rest in a spoilt one.
fn spoilt_chunk(mut draft: Draft, spoil: fn(&[u8]) -> Vec<u8>) -> Plan {
    let body = draft.pieces.concat();
    let (good, bad) = body.split_at(body.len() / 2);
    draft.pieces = Vec::new();
    draft.coding = Coding::ChunkedWithoutEnd;
    let sent = draft.plan().then(Move::Send(chunk(good))).then(Move::Send(spoil(bad)));
    sent.then(Move::Send(b"0\r\n\r\n".to_vec()))
}

fn redirected(draft: Draft, location: &str) -> Plan {
    let moved = draft.document(307, "text/plain", format!("Moved to {location}\n"));
    moved.header("location", location).plan()
}

fn compressed(mut draft: Draft, body: Vec<u8>) -> Plan {
    draft.pieces = vec![body];
    draft.header("content-encoding", "gzip").coded(Coding::Length).plan()
}
