//! Faults that put a refusal in the place of the reply: statuses, in the provider's own words.

use super::draft::{Coding, Draft, chunk};
use super::expectation::{Expectation, Failure, Needs};
use super::plan::{Move, Plan};
use super::trouble::Trouble;
use super::{Deed, Fault, Wire, fault, spoilt};
use serde_json::json;
use std::time::Duration;

/// An answer's own date, and one second later and earlier: what counts is the difference.
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const A_SECOND_LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const A_SECOND_EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

const HTML: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n";

const BUSY: Expectation = Expectation::Retried(&[Failure::RateLimited]);
const DOWN: Expectation = Expectation::Retried(&[Failure::Overloaded]);
const REJECTED: Expectation = Expectation::Refused(&[Failure::Rejected]);
const NO_ENTRY: Expectation = Expectation::Refused(&[Failure::Unauthorised]);
const TOO_LONG: Expectation = Expectation::Refused(&[Failure::ContextOverflow]);

pub(super) static FAULTS: &[Fault] = &[
    refusal("rate-limit", "429 without a word on when to come back", BUSY, |draft| {
        refuse(draft, Trouble::RateLimit)
    }),
    refusal("rate-limit-seconds", "429 with `retry-after: 1`", BUSY, |draft| later(draft, "1")),
    refusal("rate-limit-fraction", "429 with `retry-after: 0.05`", BUSY, |draft| {
        later(draft, "0.05")
    }),
    refusal("rate-limit-zero", "429 with `retry-after: 0`", BUSY, |draft| later(draft, "0")),
    refusal(
        "rate-limit-date",
        "429 with a date one second after the answer's own",
        BUSY,
        |draft| later(draft, A_SECOND_LATER).header("date", DATE),
    ),
    refusal("rate-limit-past-date", "429 with a date that is over", BUSY, |draft| {
        later(draft, A_SECOND_EARLIER).header("date", DATE)
    }),
    refusal(
        "rate-limit-huge",
        "429 with a day as `retry-after`, longer than anybody waits",
        Expectation::Refused(&[Failure::RateLimited]),
        |draft| later(draft, "86400"),
    ),
    refusal("rate-limit-negative", "429 with `retry-after: -5`", BUSY, |draft| later(draft, "-5")),
    refusal("rate-limit-garbage", "429 with words as `retry-after`", BUSY, |draft| {
        later(draft, "when the moon is full")
    }),
    refusal("rate-limit-no-number", "429 with `retry-after: NaN`", BUSY, |draft| {
        later(draft, "NaN")
    }),
    refusal("rate-limit-milliseconds", "429 with `retry-after-ms: 50`", BUSY, |draft| {
        refuse(draft, Trouble::RateLimit).header("retry-after-ms", "50")
    }),
    refusal("rate-limit-retry-info", "429 with Gemini's `RetryInfo` of 0.05 s", BUSY, |draft| {
        let wire = draft.wire();
        let mut body = Trouble::RateLimit.document(wire);
        let kind = "type.googleapis.com/google.rpc.RetryInfo";
        body["error"]["details"] = json!([{"@type": kind, "retryDelay": "0.05s"}]);
        draft.document(429, "application/json", body.to_string())
    }),
    refusal("quota-exhausted", "the account has no money left", REJECTED, |draft| {
        refuse(draft, Trouble::Quota)
    })
    // Gemini uses the same status and nearly the same words for limits of a minute.
    .except(&[(Wire::Gemini, Expectation::Retried(&[Failure::RateLimited, Failure::Rejected]))]),
    refusal("overloaded", "529", DOWN, |draft| refuse(draft, Trouble::Overload)),
    refusal("server-error", "500", DOWN, |draft| refuse(draft, Trouble::Internal)),
    refusal("server-error-empty", "500 with an empty body", DOWN, |draft| {
        draft.document(500, "text/plain", String::new())
    }),
    spoilt("server-error-endless", "500 with a body that never ends", DOWN, |draft| {
        let draft = refuse(draft, Trouble::Internal).coded(Coding::Chunked);
        let more = chunk(" and so on".repeat(1024).as_bytes());
        Plan::sending(draft.head()).then(Move::Flood(more, Duration::ZERO))
    }),
    refusal("bad-gateway", "502 with a page for people", DOWN, |draft| {
        draft.document(502, "text/html", HTML.to_owned())
    }),
    refusal("unavailable", "503 with `retry-after: 0.05`", DOWN, |draft| {
        refuse(draft, Trouble::Unavailable).header("retry-after", "0.05")
    }),
    refusal("gateway-timeout", "504", DOWN, |draft| refuse(draft, Trouble::Timeout)),
    refusal("request-timeout", "408", DOWN, |draft| {
        let draft = refuse(draft, Trouble::Timeout);
        Draft { status: 408, ..draft }
    }),
    refusal("bad-key", "401", NO_ENTRY, |draft| refuse(draft, Trouble::Key)),
    refusal("forbidden", "403", NO_ENTRY, |draft| refuse(draft, Trouble::Permission)),
    refusal("unknown-model", "404", REJECTED, |draft| refuse(draft, Trouble::UnknownModel)),
    refusal("too-large", "413", TOO_LONG, |draft| refuse(draft, Trouble::TooLarge)),
    refusal("context-overflow", "400: the transcript is too long", TOO_LONG, |draft| {
        refuse(draft, Trouble::Overflow)
    }),
    refusal("bad-request", "400: a parameter is wrong", REJECTED, |draft| {
        refuse(draft, Trouble::BadRequest)
    }),
];

const fn refusal(
    name: &'static str,
    about: &'static str,
    expectation: Expectation,
    deed: fn(Draft) -> Draft,
) -> Fault {
    fault(name, about, Needs::Nothing, expectation, Deed::Answer(deed))
}

/// The provider's refusal for this trouble.
pub(super) fn refuse(draft: Draft, trouble: Trouble) -> Draft {
    let wire = draft.wire();
    let body = trouble.document(wire).to_string();
    draft.document(trouble.status(wire), "application/json", body)
}

fn later(draft: Draft, when: &str) -> Draft {
    refuse(draft, Trouble::RateLimit).header("retry-after", when)
}
