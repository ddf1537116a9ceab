//! Every fault on every wire: it spoils what it says it does, and what it does not concern stays.

use super::stream::{Asked, End, ask, post, read_all, said};
use crate::wires::{Form, Talk};
use posse_testkit::{Expectation, Failure, FakeModel, Fault, Rule, Script, When, Wire};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

fn request(wire: Wire, asked: Asked) -> String {
    let form = match asked {
        Asked::Stream => Form::Stream,
        Asked::Document => Form::Document,
    };
    let talk = Talk::saying(wire, "go");
    let headers = talk.headers().into_iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    post(&talk.path(form), &headers.collect::<String>(), &talk.body(form))
}

async fn fake(fault: Option<&str>) -> FakeModel {
    let reply = match fault {
        Some(name) => said().fault(name),
        None => said(),
    };
    FakeModel::start(Script::new().rule(Rule::when(When::any()).reply(reply))).await.unwrap()
}

/// What a client sees of a reply that goes on until the client leaves: its first bytes.
fn goes_on(fault: &Fault, wire: Wire) -> bool {
    let stalls = fault.expectation(wire).failures().contains(&Failure::Stalled);
    stalls || fault.name().contains("endless")
}

/// Everything that is sent, and how the connection ends; the first bytes of what goes on.
async fn exchange(fault: Option<&Fault>, wire: Wire, asked: Asked) -> (Vec<u8>, Option<End>) {
    let fake = fake(fault.map(Fault::name)).await;
    let mut stream = ask(&fake, &request(wire, asked)).await;
    if fault.is_some_and(|fault| goes_on(fault, wire)) {
        let mut first = vec![0; 4];
        if fault.is_some_and(|fault| fault.name() != "silence") {
            stream.read_exact(&mut first).await.unwrap();
        }
        return (first, None);
    }
    let (bytes, end) = read_all(&mut stream).await;
    (bytes, Some(end))
}

async fn check(wire: Wire, asked: Asked) {
    let (clean, _) = exchange(None, wire, asked).await;
    assert!(clean.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&clean));
    for fault in Fault::all().filter(|fault| !fault.is_unread()) {
        let name = fault.name();
        let (bytes, end) = exchange(Some(fault), wire, asked).await;
        let Some(end) = end else { continue };
        let reset = fault.concerns(wire) && name.starts_with("reset");
        assert_eq!(end == End::Reset, reset, "{} × {name}", wire.name());
        // What is only about the connection shows in none of its bytes, and the end of lines is
        // a matter of the wire.
        let invisible = matches!(name, "closed-after" | "crlf" | "no-event-names");
        if asked == Asked::Stream && !invisible {
            assert_eq!(bytes != clean, fault.concerns(wire), "{} × {name}", wire.name());
        }
    }
}

#[tokio::test]
async fn every_fault_spoils_the_streams_of_the_wires_that_it_concerns() {
    for wire in Wire::ALL {
        check(wire, Asked::Stream).await;
    }
}

#[tokio::test]
async fn every_fault_comes_to_its_end_on_the_documents_of_every_wire() {
    for wire in Wire::ALL {
        check(wire, Asked::Document).await;
    }
}

/// The data of the events, or the document, that a fault makes of a reply.
async fn data(fault: &str, wire: Wire, asked: Asked) -> Vec<Value> {
    let (bytes, _) = exchange(Some(Fault::named(fault).unwrap()), wire, asked).await;
    let text = String::from_utf8(bytes).unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    if asked == Asked::Document {
        return vec![serde_json::from_str(body).unwrap()];
    }
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// All values at a place, of all events.
fn at(events: &[Value], pointer: &str) -> Vec<Value> {
    events.iter().filter_map(|event| event.pointer(pointer).cloned()).collect()
}

#[tokio::test]
async fn usage_and_reasons_are_found_on_every_wire() {
    for (wire, usage, stop) in [
        (Wire::OpenAiChat, "/usage/completion_tokens", "/choices/0/finish_reason"),
        (Wire::OpenAiResponses, "/response/usage/output_tokens", "/response/status"),
        (Wire::Gemini, "/usageMetadata/candidatesTokenCount", "/candidates/0/finishReason"),
    ] {
        let counts = at(&data("huge-usage", wire, Asked::Stream).await, usage);
        assert_eq!(counts, [json!(u64::MAX)], "{}", wire.name());
        assert_eq!(at(&data("missing-usage", wire, Asked::Stream).await, usage), [] as [Value; 0]);
        let reasons = at(&data("unknown-stop-reason", wire, Asked::Stream).await, stop);
        assert_eq!(reasons.last(), Some(&json!("lost_interest")), "{}", wire.name());
        let (usage, stop) =
            (usage.trim_start_matches("/response"), stop.trim_start_matches("/response"));
        let counts = at(&data("negative-usage", wire, Asked::Document).await, usage);
        assert_eq!(counts, [json!(-5)], "{}", wire.name());
        let reasons = at(&data("unknown-stop-reason", wire, Asked::Document).await, stop);
        assert_eq!(reasons, [json!("lost_interest")], "{}", wire.name());
    }
}

#[tokio::test]
async fn a_cap_on_length_is_told_in_the_words_of_the_wire() {
    let chat = data("truncated-arguments", Wire::OpenAiChat, Asked::Stream).await;
    assert_eq!(at(&chat, "/choices/0/finish_reason").last(), Some(&json!("length")));
    let responses = data("truncated-arguments", Wire::OpenAiResponses, Asked::Stream).await;
    let last = responses.last().unwrap();
    assert_eq!(last["type"], "response.incomplete");
    assert_eq!(last["response"]["incomplete_details"]["reason"], "max_output_tokens");
    // A call that breaks off makes an event of Gemini's that cannot be read; the last one can.
    let gemini = data("truncated-arguments", Wire::Gemini, Asked::Stream).await;
    assert_eq!(gemini.last().unwrap()["candidates"][0]["finishReason"], "MAX_TOKENS");
}

#[tokio::test]
async fn numbers_are_found_on_the_wires_that_have_them() {
    let chat = data("huge-index", Wire::OpenAiChat, Asked::Stream).await;
    let mut numbers = at(&chat, "/choices/0/delta/tool_calls/0/index");
    numbers.dedup();
    assert_eq!(numbers, [json!(4_000_000_000_u64), json!(4_000_000_001_u64)]);
    let responses = data("duplicate-index", Wire::OpenAiResponses, Asked::Stream).await;
    let mut numbers = at(&responses, "/output_index");
    numbers.dedup();
    assert_eq!(numbers, [json!(0)]);
}

#[tokio::test]
async fn troubles_within_a_stream_are_told_in_the_words_of_the_wire() {
    for (wire, pointer, words) in [
        (Wire::OpenAiChat, "/error/code", "server_is_overloaded"),
        (Wire::OpenAiResponses, "/code", "server_is_overloaded"),
        (Wire::Gemini, "/error/status", "UNAVAILABLE"),
    ] {
        let events = data("overloaded-in-stream", wire, Asked::Stream).await;
        assert_eq!(events.last().unwrap().pointer(pointer), Some(&json!(words)));
    }
}

#[tokio::test]
async fn refusals_have_the_form_of_the_wire() {
    for (wire, pointer, words) in [
        (Wire::Anthropic, "/error/type", "invalid_request_error"),
        (Wire::OpenAiChat, "/error/code", "context_length_exceeded"),
        (Wire::OpenAiResponses, "/error/code", "context_length_exceeded"),
        (Wire::Gemini, "/error/status", "INVALID_ARGUMENT"),
    ] {
        let document = &data("context-overflow", wire, Asked::Document).await[0];
        assert_eq!(document.pointer(pointer), Some(&json!(words)), "{}", wire.name());
    }
}

#[test]
fn what_is_refused_is_never_tried_again_and_the_rest_is_told_apart() {
    for fault in Fault::all() {
        for wire in Wire::ALL {
            let expectation = fault.expectation(wire);
            let harmless = expectation == Expectation::Unharmed;
            assert_eq!(expectation.failures().is_empty(), harmless, "{}", fault.name());
        }
    }
}
