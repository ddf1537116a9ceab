//! Faults in usage, reasons for stopping and errors within a stream, and answers that are not
//! replies.

use super::anatomy;
use super::draft::{Draft, Form};
use super::expectation::{Expectation, Failure, Needs};
use super::place::Place;
use super::plan::Plan;
use super::trouble::Trouble;
use super::{Deed, Fault, Wire, fault, spoilt};
use crate::script::Body;
use serde_json::{Value, json};

const NO_REPLY: Expectation = Expectation::Retried(&[Failure::Malformed, Failure::Cut]);
const DOWN: Expectation = Expectation::Retried(&[Failure::Overloaded]);
const EITHER: Expectation = Expectation::Tolerated(&[Failure::Malformed]);

const PAGE: &str = "<!doctype html><html><body><h1>Sign in to the network</h1></body></html>";

pub(super) static FAULTS: &[Fault] = &[
    spoilt("missing-usage", "no usage", Expectation::Unharmed, |draft| {
        draft.each_json(remove_usage).plan()
    }),
    spoilt("huge-usage", "usage of 18446744073709551615 tokens", Expectation::Unharmed, |draft| {
        counting(draft, json!(u64::MAX))
    }),
    spoilt("negative-usage", "usage of -5 tokens", EITHER, |draft| counting(draft, json!(-5))),
    spoilt("text-usage", "usage in words", EITHER, |draft| counting(draft, json!("plenty"))),
    spoilt(
        "missing-stop-reason",
        "no reason for stopping",
        Expectation::Tolerated(&[Failure::Cut, Failure::Malformed]),
        |draft| stopping(draft, &Value::Null),
    ),
    spoilt(
        "unknown-stop-reason",
        "a reason for stopping that nobody knows",
        Expectation::Unharmed,
        |draft| stopping(draft, &json!("lost_interest")),
    ),
    fault(
        "wrong-stop-reason",
        "a reason for stopping that denies the calls before it",
        Needs::Call,
        Expectation::Unharmed,
        Deed::Bytes(|draft| {
            let reason = draft.wire().no_call_word();
            stopping(draft, &json!(reason))
        }),
    )
    .only_on(&[Wire::Anthropic, Wire::OpenAiChat]),
    fault(
        "empty-reply",
        "a reply that says nothing",
        Needs::Nothing,
        EITHER,
        Deed::Words(|body| {
            if let Body::Message { blocks, .. } = body {
                blocks.clear();
            }
        }),
    ),
    spoilt("error-first", "an error in place of the first event", DOWN, |draft| {
        erring(draft, Place::AfterHeaders, Trouble::Internal)
    }),
    spoilt("overloaded-in-stream", "an error of overload after a piece of text", DOWN, |draft| {
        erring(draft, Place::AfterText, Trouble::Overload)
    })
    .needing(Needs::Text),
    spoilt(
        "rate-limit-in-stream",
        "an error of too many requests after a piece of text",
        Expectation::Retried(&[Failure::RateLimited]),
        |draft| erring(draft, Place::AfterText, Trouble::RateLimit),
    )
    .needing(Needs::Text),
    spoilt("error-after-call", "an error after a complete call", DOWN, |draft| {
        erring(draft, Place::AfterCall, Trouble::Internal)
    })
    .needing(Needs::Call),
    spoilt(
        "rejected-in-stream",
        "an error of a wrong parameter in place of the first event",
        Expectation::Refused(&[Failure::Rejected]),
        |draft| erring(draft, Place::AfterHeaders, Trouble::BadRequest),
    ),
    spoilt(
        "overflow-in-stream",
        "an error of a transcript that is too long in place of the first event",
        Expectation::Refused(&[Failure::ContextOverflow]),
        |draft| erring(draft, Place::AfterHeaders, Trouble::Overflow),
    ),
    spoilt(
        "error-with-200",
        "a refusal with status 200",
        Expectation::Retried(&[Failure::Overloaded, Failure::Malformed]),
        |draft| {
            let body = Trouble::Internal.document(draft.wire()).to_string();
            draft.document(200, "application/json", body).plan()
        },
    ),
    fault(
        "other-form",
        "a document to who asked for a stream, and a stream to who did not",
        Needs::Nothing,
        Expectation::Unharmed,
        Deed::Form,
    ),
    spoilt("html", "a page for people with status 200", NO_REPLY, |draft| {
        draft.document(200, "text/html; charset=utf-8", PAGE.to_owned()).plan()
    }),
    spoilt("html-as-stream", "a page for people that claims to be a stream", NO_REPLY, |draft| {
        draft.document(200, "text/event-stream", PAGE.to_owned()).plan()
    }),
    spoilt("empty", "status 200 and a body of length 0", NO_REPLY, |draft| {
        let media_type = if draft.is_stream() { "text/event-stream" } else { "application/json" };
        draft.document(200, media_type, String::new()).plan()
    }),
    spoilt("no-content", "status 204", NO_REPLY, |draft| {
        let bare = draft.document(204, "text/plain", String::new());
        bare.without_header("content-type").plan()
    }),
    spoilt("json-list", "status 200 and a list", NO_REPLY, |draft| {
        draft.document(200, "application/json", "[]".to_owned()).plan()
    }),
    spoilt("wrong-content-type", "a right body as `text/plain`", Expectation::Unharmed, |draft| {
        draft.header("content-type", "text/plain; charset=utf-8").plan()
    }),
    spoilt("no-content-type", "a right body of no stated type", Expectation::Unharmed, |draft| {
        draft.without_header("content-type").plan()
    }),
];

fn remove_usage(data: &mut Value) {
    match data {
        Value::Object(fields) => {
            fields.retain(|key, _| key != "usage" && key != "usageMetadata");
            fields.values_mut().for_each(remove_usage);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_usage),
        _ => {}
    }
}

/// Claims `count` wherever tokens are counted.
fn counting(draft: Draft, count: Value) -> Plan {
    draft.each_json(|data| anatomy::each_usage(data, &|usage| set_numbers(usage, &count))).plan()
}

fn set_numbers(data: &mut Value, number: &Value) {
    match data {
        Value::Number(_) => *data = number.clone(),
        Value::Object(fields) => fields.values_mut().for_each(|value| set_numbers(value, number)),
        Value::Array(items) => items.iter_mut().for_each(|item| set_numbers(item, number)),
        _ => {}
    }
}

fn stopping(draft: Draft, reason: &Value) -> Plan {
    let wire = draft.wire();
    draft.each_json(|data| anatomy::restop(wire, data, reason)).plan()
}

/// Sends an error at `place`, and ends. A document becomes a refusal.
fn erring(mut draft: Draft, place: Place, trouble: Trouble) -> Plan {
    if draft.form == Form::Document {
        return super::refusal::refuse(draft, trouble).plan();
    }
    place.truncate(&mut draft);
    draft.pieces.push(trouble.event(draft.wire()));
    draft.plan()
}
