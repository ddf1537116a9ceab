//! Replies that are held back, so that a test can act while a call is in flight.

use crate::client::{ask, client, post, says, start, streaming, text};
use posse_testkit::{Gate, Reply, Script};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_held_reply_is_in_flight_until_its_gate_opens() {
    let gate = Gate::new();
    let fake = start(Script::always(Reply::text("x").held_by(&gate))).await;
    let request = says("hello");
    let acting = async {
        fake.wait_for_requests(1).await.unwrap();
        gate.wait_for_held(1).await.unwrap();
        assert_eq!((fake.in_flight(), gate.held()), (1, 1));
        gate.open();
    };
    let (answer, ()) = tokio::join!(text(&fake, &request), acting);
    assert_eq!(answer, "x");
    fake.wait_until_idle().await.unwrap();
    assert_eq!((fake.in_flight(), fake.peak_in_flight(), gate.held()), (0, 1, 0));
    // An open gate holds nothing back.
    assert_eq!(text(&fake, &request).await, "x");
    assert_eq!(fake.abandoned(), 0);
}

/// Reads a stream until it pauses at `gate`, and returns what came before and what came after.
async fn paused_at(deltas: usize) -> (String, String) {
    let gate = Gate::new();
    let reply = Reply::text("0123456789abcdef0123456789abcdef").held_after_deltas(deltas, &gate);
    let fake = start(Script::always(reply)).await;
    let mut response = post(&client(), &fake, &streaming(says("x"))).send().await.unwrap();
    gate.wait_for_held(1).await.unwrap();
    let mut before = String::new();
    // What was sent before the pause has an end that is known: nothing else can come.
    let marker = match deltas {
        0 => "event: message_start",
        1 => "event: content_block_delta",
        _ => "event: message_delta",
    };
    while !(before.contains(marker) && before.ends_with("\n\n")) {
        before.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert_eq!(fake.in_flight(), 1);
    gate.open();
    (before, response.text().await.unwrap())
}

#[tokio::test]
async fn a_stream_can_be_held_after_any_delta() {
    let count = |text: &str| text.matches("event: content_block_delta").count();
    for (deltas, before_count, after_count) in [(0, 0, 2), (1, 1, 1), (99, 2, 0)] {
        let (before, after) = paused_at(deltas).await;
        assert_eq!((count(&before), count(&after)), (before_count, after_count), "{before}");
        assert!(after.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
    }
}

#[tokio::test]
async fn a_hold_within_a_stream_holds_a_whole_document_too() {
    let gate = Gate::new();
    let fake = start(Script::always(Reply::text("x").held_after_deltas(1, &gate))).await;
    let acting = async {
        gate.wait_for_held(1).await.unwrap();
        gate.open();
    };
    let request = says("hello");
    let ((status, _), ()) = tokio::join!(ask(&fake, &request), acting);
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_client_that_leaves_in_mid_stream_is_noticed() {
    let gate = Gate::new();
    let fake = start(Script::always(Reply::text("some text").held_after_deltas(1, &gate))).await;
    let mut response = post(&client(), &fake, &streaming(says("x"))).send().await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    gate.wait_for_held(1).await.unwrap();
    drop(response);
    fake.wait_until_idle().await.unwrap();
    assert_eq!((fake.abandoned(), gate.held()), (1, 0));
}

#[tokio::test]
async fn a_client_that_leaves_before_the_first_byte_is_noticed() {
    let slow = Reply::text("x").latency(Duration::from_secs(3600));
    let fake = start(Script::always(slow)).await;
    let client = client();
    let call = post(&client, &fake, &says("x")).send();
    tokio::select! {
        _ = call => panic!("the reply takes an hour"),
        arrived = fake.wait_for_requests(1) => arrived.unwrap(),
    }
    fake.wait_until_idle().await.unwrap();
    assert_eq!(fake.abandoned(), 1);
}

#[tokio::test]
async fn latency_and_token_delay_take_at_least_their_time() {
    let reply = Reply::text("four").and_tool_call("L", json!({}));
    let reply = reply.latency(Duration::from_millis(30)).token_delay(Duration::from_millis(20));
    let fake = start(Script::always(reply)).await;
    let started = std::time::Instant::now();
    let response = post(&client(), &fake, &streaming(says("x"))).send().await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(30));
    response.text().await.unwrap();
    // Three deltas: two of text, one of the call.
    assert!(started.elapsed() >= Duration::from_millis(70));
}

#[tokio::test]
async fn shutting_down_ends_replies_that_are_held() {
    let gate = Gate::new();
    let fake = start(Script::always(Reply::text("x").held_by(&gate))).await;
    let address = fake.address();
    let client = client();
    let call = post(&client, &fake, &says("x")).send();
    let stopping = async {
        gate.wait_for_held(1).await.unwrap();
        fake.shutdown().await;
        assert_eq!(gate.held(), 0);
    };
    let (answer, ()) = tokio::join!(call, stopping);
    assert!(answer.is_err());
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn dropping_the_server_ends_its_connections() {
    let gate = Gate::new();
    let fake = start(Script::always(Reply::text("x").held_by(&gate))).await;
    let client = client();
    let call = post(&client, &fake, &says("x")).send();
    let dropping = async {
        gate.wait_for_held(1).await.unwrap();
        drop(fake);
    };
    let (answer, ()) = tokio::join!(call, dropping);
    assert!(answer.is_err());
}
