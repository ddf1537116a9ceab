//! Faults that change what a reply says: its calls, numbers, usage and reasons for stopping.

use super::stream::{Asked, ask, faulty, read_all, request};
use crate::client::events;
use serde_json::{Value, json};

/// The events of a stream with this fault.
async fn spoilt(fault: &str) -> Vec<(String, Value)> {
    events(&body(fault, Asked::Stream).await)
}

/// A body with this fault, without its chunks.
async fn body(fault: &str, asked: Asked) -> String {
    let fake = faulty(fault).await;
    let (bytes, _) = read_all(&mut ask(&fake, &request(asked)).await).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, mut rest) = text.split_once("\r\n\r\n").unwrap();
    if !head.contains("chunked") {
        return rest.to_owned();
    }
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    body
}

/// The arguments of each call, as they were streamed.
fn arguments(events: &[(String, Value)]) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for (_, data) in events {
        if data["content_block"]["type"] == "tool_use" {
            calls.push(String::new());
        }
        if let Some(piece) = data["delta"]["partial_json"].as_str() {
            calls.last_mut().unwrap().push_str(piece);
        }
    }
    calls
}

fn stop_reason(events: &[(String, Value)]) -> &Value {
    let (_, data) = events.iter().find(|(name, _)| name == "message_delta").unwrap();
    &data["delta"]["stop_reason"]
}

const FIRST: &str = r#"{"command":"echo first"}"#;
const SECOND: &str = r#"{"command":"echo second"}"#;

#[tokio::test]
async fn arguments_are_spoilt_as_their_names_say() {
    for (fault, first, second) in [
        ("truncated-arguments", FIRST, r#"{"command":""#),
        ("broken-off-arguments", r#"{"command":""#, r#"{"command":""#),
        ("invalid-arguments", r#"{"command": oops, "x": }"#, r#"{"command": oops, "x": }"#),
        ("text-arguments", r#""echo hello""#, r#""echo hello""#),
        ("null-arguments", "null", "null"),
        ("no-arguments", "", ""),
    ] {
        assert_eq!(arguments(&spoilt(fault).await), [first, second], "{fault}");
    }
    let doubled = [format!("{FIRST}{FIRST}"), format!("{SECOND}{SECOND}")];
    assert_eq!(arguments(&spoilt("doubled-arguments").await), doubled);
    let listed = [format!("[{FIRST}]"), format!("[{SECOND}]")];
    assert_eq!(arguments(&spoilt("list-arguments").await), listed);
    assert_eq!(stop_reason(&spoilt("truncated-arguments").await), "max_tokens");
    assert_eq!(stop_reason(&spoilt("broken-off-arguments").await), "tool_use");
}

#[tokio::test]
async fn names_and_ids_are_spoilt_as_their_names_say() {
    for (fault, key, values) in [
        ("unknown-tool", "name", ["Teleport", "Teleport"]),
        ("nameless-tool", "name", ["", ""]),
        ("missing-call-id", "id", ["", ""]),
        ("duplicate-call-ids", "id", ["call_twin", "call_twin"]),
    ] {
        let events = spoilt(fault).await;
        let calls = events.iter().filter(|(_, data)| data["content_block"]["type"] == "tool_use");
        let found: Vec<&Value> = calls.map(|(_, data)| &data["content_block"][key]).collect();
        assert_eq!(found, values, "{fault}");
    }
}

/// The numbers of the events of this name, each once.
fn numbers(events: &[(String, Value)], name: &str) -> Vec<i64> {
    let named = events.iter().filter(|(found, _)| found == name);
    let mut numbers: Vec<i64> = named.map(|(_, data)| data["index"].as_i64().unwrap()).collect();
    numbers.dedup();
    numbers
}

#[tokio::test]
async fn numbers_are_spoilt_as_their_names_say() {
    const HUGE: i64 = 4_000_000_000;
    for (fault, starts, deltas) in [
        ("duplicate-index", vec![0], vec![0]),
        ("swapped-index", vec![1, 0, 2], vec![1, 0, 2]),
        ("huge-index", vec![HUGE, HUGE + 1, HUGE + 2], vec![HUGE, HUGE + 1, HUGE + 2]),
        ("negative-index", vec![-1], vec![-1]),
        ("unknown-index", vec![0, 1, 2], vec![7, 8, 9]),
    ] {
        let events = spoilt(fault).await;
        assert_eq!(numbers(&events, "content_block_start"), starts, "{fault}");
        assert_eq!(numbers(&events, "content_block_delta"), deltas, "{fault}");
    }
}

#[tokio::test]
async fn usage_is_spoilt_as_its_name_says_in_streams_and_documents() {
    for (fault, count) in [
        ("missing-usage", Value::Null),
        ("huge-usage", json!(u64::MAX)),
        ("negative-usage", json!(-5)),
        ("text-usage", json!("plenty")),
    ] {
        let events = spoilt(fault).await;
        let (_, start) = &events[0];
        assert_eq!(start["message"]["usage"]["input_tokens"], count, "{fault}");
        let (_, end) = &events[events.len() - 2];
        assert_eq!(end["usage"]["output_tokens"], count, "{fault}");
        let document: Value = serde_json::from_str(&body(fault, Asked::Document).await).unwrap();
        assert_eq!(document["usage"]["output_tokens"], count, "{fault}");
    }
}

#[tokio::test]
async fn reasons_for_stopping_are_spoilt_as_their_names_say_in_streams_and_documents() {
    for (fault, reason) in [
        ("missing-stop-reason", Value::Null),
        ("unknown-stop-reason", json!("lost_interest")),
        ("wrong-stop-reason", json!("end_turn")),
    ] {
        assert_eq!(*stop_reason(&spoilt(fault).await), reason, "{fault}");
        let document: Value = serde_json::from_str(&body(fault, Asked::Document).await).unwrap();
        assert_eq!(document["stop_reason"], reason, "{fault}");
    }
}

#[tokio::test]
async fn unknown_fields_are_everywhere_but_in_what_belongs_to_tools() {
    let events = spoilt("unknown-fields").await;
    let aura = json!({"colour": ["blue", null, 7.5]});
    for (name, data) in &events {
        assert_eq!(data["x_aura"], aura, "{name}");
        assert!(data["delta"].is_null() || data["delta"]["x_aura"] == aura, "{name}");
        assert!(data["content_block"]["input"]["x_aura"].is_null(), "{name}");
    }
    assert_eq!(arguments(&events), [FIRST, SECOND]);
}

#[tokio::test]
async fn data_over_several_lines_is_the_same_data() {
    let text = body("several-data-lines", Asked::Stream).await;
    let clean = spoilt("closed-after").await;
    let events: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(events.len(), clean.len());
    for (event, (name, data)) in events.iter().zip(&clean) {
        let mut lines = event.lines();
        assert_eq!(lines.next(), Some(format!("event: {name}").as_str()));
        let found: Vec<&str> = lines.map(|line| line.strip_prefix("data: ").unwrap()).collect();
        assert!(found.len() > 2, "{event}");
        assert_eq!(serde_json::from_str::<Value>(&found.join("\n")).unwrap(), *data);
    }
}

#[tokio::test]
async fn the_other_form_and_nothing_at_all() {
    let document: Value = serde_json::from_str(&body("other-form", Asked::Stream).await).unwrap();
    assert_eq!(document["content"][0]["text"], "One é two.");
    let stream = events(&body("other-form", Asked::Document).await);
    assert_eq!(stream.last().unwrap().0, "message_stop");
    let names: Vec<String> =
        spoilt("empty-reply").await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["message_start", "message_delta", "message_stop"]);
}

#[tokio::test]
async fn compressed_bodies_say_so_and_have_their_length() {
    for (fault, least) in [("gzip", 100), ("gzip-bomb", 100_000)] {
        let fake = faulty(fault).await;
        let (bytes, _) = read_all(&mut ask(&fake, &request(Asked::Stream)).await).await;
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let body = &bytes[end..];
        assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        assert!(body.starts_with(&[0x1f, 0x8b]) && body.len() > least, "{fault}");
    }
}

#[tokio::test]
async fn a_refusal_without_end_goes_on_in_chunks() {
    use tokio::io::AsyncReadExt;
    let fake = faulty("server-error-endless").await;
    let mut stream = ask(&fake, &request(Asked::Stream)).await;
    let mut bytes = vec![0; 100_000];
    stream.read_exact(&mut bytes).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("HTTP/1.1 500 Internal Server Error\r\n"), "{}", &text[..100]);
    assert!(text.contains("transfer-encoding: chunked") && text.contains("and so on and so on"));
}
