//! Webhooks against a real receiver: signed, the same id at every attempt, given up and brought
//! back, and never to an address that they must not reach.

use crate::bench::{Bench, eventually, within};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posse::webhooks::{
    AddressPolicy, Answered, Delivery, DeliveryFilter, DeliveryState, EventKind, Revival, Runs,
};
use posse::{Runtime, RuntimeConfig, Webhook};
use posse_testkit::{Answer, Conversation, Gate, Received, Receiver, Reply, Rule, Script, When};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;

const KEY: [u8; 32] = *b"a key of thirty-two bytes, no mo";
const OTHER_KEY: [u8; 24] = *b"another, of twenty-four.";

fn secret(key: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(key))
}

/// HMAC-SHA256 as RFC 2104 has it, made of the hash alone.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let hash = |pad: u8, rest: &[u8]| {
        let mut hash = Sha256::new();
        hash.update(block.map(|byte| byte ^ pad));
        hash.update(rest);
        hash.finalize().to_vec()
    };
    hash(0x5c, &hash(0x36, text))
}

/// Checks what a receiver should check: that one of the signatures is `key`'s.
#[track_caller]
fn assert_signed(request: &Received, key: &[u8]) {
    let header = |name: &str| request.header(name).unwrap_or_else(|| panic!("no {name}"));
    let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
    let mut text = format!("{id}.{at}.").into_bytes();
    text.extend_from_slice(&request.raw);
    let expected = format!("v1,{}", STANDARD.encode(hmac(key, &text)));
    let signatures = header("webhook-signature");
    assert!(signatures.split(' ').any(|it| it == expected), "{signatures} is not {expected}");
    assert_eq!(header("content-type"), "application/json");
}

fn hook(receiver: &Receiver) -> Webhook {
    let url = format!("{}/posse?token=hidden", receiver.url());
    let hook = Webhook::new("ci", &url, AddressPolicy::Private).unwrap();
    let mut hook = hook.with_secret(&secret(&KEY)).unwrap();
    hook.schedule = vec![Duration::from_millis(2); 2];
    hook
}

async fn bench(webhooks: Vec<Webhook>) -> Bench {
    let script = Script::always(Reply::text("the answer"));
    Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.webhooks = webhooks;
        config
    })
    .await
}

async fn deliveries(runtime: &Runtime) -> Vec<Delivery> {
    runtime.deliveries(&DeliveryFilter::default()).await.unwrap()
}

/// Waits until the only delivery is in this state.
async fn until(runtime: &Runtime, state: DeliveryState) -> Delivery {
    eventually(async || deliveries(runtime).await.iter().any(|it| it.state == state)).await;
    let mut all = deliveries(runtime).await;
    assert_eq!(all.len(), 1, "{all:?}");
    all.pop().unwrap()
}

fn body(request: &Received) -> Value {
    serde_json::from_slice(&request.raw).unwrap()
}

#[tokio::test]
async fn a70_the_end_of_a_run_is_told_once_signed_and_in_the_documented_form() {
    let receiver = Receiver::start([]).await.unwrap();
    let bench = bench(vec![hook(&receiver)]).await;
    let run = bench.start("x").await;
    within(run.outcome()).await.unwrap();
    let delivery = until(&bench.runtime, DeliveryState::Delivered).await;
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    assert_signed(&received[0], &KEY);
    assert_eq!(received[0].header("webhook-id"), Some(delivery.id.as_str()));
    assert_eq!(received[0].path, "/posse?token=hidden");
    let mut told = body(&received[0]);
    let log = bench.log(run.id()).await;
    assert_eq!(delivery.seq, log.last().unwrap().seq);
    assert_eq!(delivery.created_at, log.last().unwrap().at);
    let timestamp = told["timestamp"].as_str().unwrap();
    assert!(timestamp.ends_with('Z') && timestamp.contains('T'), "{timestamp}");
    let data = told["data"].as_object_mut().unwrap();
    assert!(data.remove("worked_ms").is_some());
    assert!(data["usage"]["input_tokens"].as_u64().unwrap() > 0, "{data:?}");
    assert!(data["cost_usd"].as_f64().unwrap() > 0.0, "{data:?}");
    data.remove("usage");
    data.remove("cost_usd");
    let run = run.id().to_string();
    let expected = json!({
        "run": run, "root": run, "parent": null, "agent": "general-purpose", "label": "",
        "outcome": "completed", "reason": null, "text": "the answer", "text_cut": 0,
        "tool_calls": 0, "uncertain_cost_usd": 0.0,
    });
    assert_eq!((told["type"].as_str(), &told["data"]), (Some("run.completed"), &expected));
    bench.runtime.shutdown().await;
}

#[tokio::test]
async fn a_receiver_in_trouble_is_told_again_under_the_same_id_with_the_same_words() {
    let receiver = Receiver::start([500, 503, 204].map(Answer::status)).await.unwrap();
    let bench = bench(vec![hook(&receiver)]).await;
    within(bench.start("x").await.outcome()).await.unwrap();
    let delivery = until(&bench.runtime, DeliveryState::Delivered).await;
    assert_eq!((delivery.attempts, delivery.note.as_str()), (3, "204"));
    let received = receiver.received();
    assert_eq!(received.len(), 3);
    for request in &received {
        assert_signed(request, &KEY);
        assert_eq!(request.header("webhook-id"), Some(delivery.id.as_str()));
        assert_eq!(request.raw, received[0].raw);
    }
    bench.runtime.shutdown().await;
}

#[tokio::test]
async fn after_the_last_attempt_it_is_dead_until_someone_brings_it_back() {
    let answers = [500, 500, 500, 200].map(Answer::status);
    let receiver = Receiver::start(answers).await.unwrap();
    let bench = bench(vec![hook(&receiver)]).await;
    within(bench.start("x").await.outcome()).await.unwrap();
    let dead = until(&bench.runtime, DeliveryState::Dead).await;
    assert_eq!((dead.attempts, receiver.received().len()), (3, 3));
    assert_eq!(dead.note, "500; that was the last attempt");
    let nobody = Revival::One("msg_unknown".to_owned());
    assert!(bench.runtime.retry_deliveries(&nobody).await.unwrap().is_empty());
    let back = bench.runtime.retry_deliveries(&Revival::One(dead.id.clone())).await.unwrap();
    assert_eq!(back.len(), 1);
    bench.runtime.flush_webhooks().await;
    let delivered = until(&bench.runtime, DeliveryState::Delivered).await;
    assert_eq!((&delivered.id, delivered.attempts), (&dead.id, 1));
    let received = receiver.received();
    assert_eq!(received.len(), 4);
    assert_eq!(received[3].raw, received[0].raw);
    bench.runtime.shutdown().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_given_up_at_once() {
    let receiver = Receiver::start([Answer::status(410)]).await.unwrap();
    let bench = bench(vec![hook(&receiver)]).await;
    within(bench.start("x").await.outcome()).await.unwrap();
    let dead = until(&bench.runtime, DeliveryState::Dead).await;
    assert_eq!((dead.attempts, receiver.received().len()), (1, 1));
    assert!(dead.note.starts_with("410"), "{}", dead.note);
    bench.runtime.shutdown().await;
}

#[tokio::test]
async fn a_receiver_can_ask_for_time() {
    let busy = Answer::status(429).with_header("retry-after", "3600");
    let receiver = Receiver::start([busy]).await.unwrap();
    let bench = bench(vec![hook(&receiver)]).await;
    within(bench.start("x").await.outcome()).await.unwrap();
    eventually(async || deliveries(&bench.runtime).await.iter().any(|it| it.note == "429")).await;
    let waiting = until(&bench.runtime, DeliveryState::Due).await;
    assert!(waiting.due_at >= waiting.created_at + 3_600_000, "{waiting:?}");
    bench.runtime.shutdown().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Receiver::start([]).await.unwrap();
    let moved = Answer::status(307).with_header("location", &elsewhere.url());
    let receiver = Receiver::start([moved]).await.unwrap();
    let bench = bench(vec![hook(&receiver)]).await;
    within(bench.start("x").await.outcome()).await.unwrap();
    let dead = until(&bench.runtime, DeliveryState::Dead).await;
    assert!(dead.note.starts_with("307"), "{}", dead.note);
    assert!(elsewhere.received().is_empty());
    bench.runtime.shutdown().await;
}

#[tokio::test]
async fn a_name_that_means_this_machine_is_not_spoken_to_unless_that_is_allowed() {
    let receiver = Receiver::start([]).await.unwrap();
    let port = receiver.url().rsplit(':').next().unwrap().to_owned();
    let url = format!("https://localhost:{port}/hidden");
    let refused = Webhook::new("ci", &url, AddressPolicy::Public).unwrap();
    let mut refused = refused.with_secret(&secret(&KEY)).unwrap();
    refused.schedule = Vec::new();
    let bench = bench(vec![refused]).await;
    within(bench.start("x").await.outcome()).await.unwrap();
    let dead = until(&bench.runtime, DeliveryState::Dead).await;
    assert!(dead.note.contains("localhost is not spoken to: "), "{}", dead.note);
    assert!(!dead.note.contains("hidden"), "{}", dead.note);
    let trial = bench.runtime.test_webhook("ci").await.unwrap();
    assert!(matches!(trial.answered, Answered::Nothing(_)), "{trial:?}");
    assert!(receiver.received().is_empty());
    bench.runtime.shutdown().await;
}

#[tokio::test]
async fn secrets_can_be_replaced_while_both_are_in_use() {
    let receiver = Receiver::start([]).await.unwrap();
    let hook = hook(&receiver).with_secret(&secret(&OTHER_KEY)).unwrap();
    let bench = bench(vec![hook]).await;
    let trial = bench.runtime.test_webhook("ci").await.unwrap();
    assert_eq!(trial.answered, Answered::Accepted(204));
    let received = receiver.received();
    assert_signed(&received[0], &KEY);
    assert_signed(&received[0], &OTHER_KEY);
    assert_eq!(body(&received[0])["type"], "posse.test");
    assert_eq!(received[0].header("webhook-id"), Some(trial.id.as_str()));
    assert!(deliveries(&bench.runtime).await.is_empty(), "a test is no delivery");
    let unknown = bench.runtime.test_webhook("cd").await.unwrap_err().to_string();
    assert_eq!(unknown, "there is no webhook `cd`; there are: ci");
    bench.runtime.shutdown().await;
}

#[tokio::test]
async fn a_webhook_hears_of_the_runs_and_ends_it_asked_for() {
    let (roots, all) = (Receiver::start([]).await.unwrap(), Receiver::start([]).await.unwrap());
    let failures = Receiver::start([]).await.unwrap();
    let named = |name: &str, receiver: &Receiver| {
        let hook = Webhook::new(name, &receiver.url(), AddressPolicy::Private).unwrap();
        hook.with_secret(&secret(&KEY)).unwrap()
    };
    let mut webhooks =
        vec![named("roots", &roots), named("all", &all), named("failures", &failures)];
    webhooks[1].runs = Runs::All;
    webhooks[2].events = vec![EventKind::Failed];
    let task = json!({"description": "look", "prompt": "a part", "subagent_type": "explore"});
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("whole"))
                .reply(Reply::tool_call("Task", task))
                .reply(Reply::text("both")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("a part of it")));
    let bench = Bench::with(script, |config| {
        let mut config: RuntimeConfig = config;
        config.webhooks = webhooks;
        config
    })
    .await;
    let run = bench.start("the whole").await;
    within(run.outcome()).await.unwrap();
    all.wait_for_requests(2).await.unwrap();
    roots.wait_for_requests(1).await.unwrap();
    bench.runtime.shutdown().await;
    let told: Vec<Value> = all.received().iter().map(body).collect();
    let child = told.iter().find(|it| it["data"]["agent"] == "explore").unwrap();
    let root = run.id().to_string();
    assert_eq!((&child["data"]["root"], &child["data"]["parent"]), (&json!(root), &json!(root)));
    assert_eq!(child["data"]["text"], "a part of it");
    assert_eq!(roots.received().len(), 1);
    assert_eq!(body(&roots.received()[0])["data"]["text"], "both");
    assert!(failures.received().is_empty());
}

#[tokio::test]
async fn of_two_processes_on_one_database_one_sends_each() {
    let receiver = Receiver::start([]).await.unwrap();
    let bench = bench(vec![hook(&receiver)]).await;
    let other = Runtime::open(bench.config.clone()).await.unwrap();
    let mut runs = Vec::new();
    for index in 0..12 {
        let runtime = if index % 2 == 0 { &bench.runtime } else { &other };
        runs.push(runtime.start(bench.spec("x")).await.unwrap());
    }
    for run in &runs {
        within(run.outcome()).await.unwrap();
    }
    eventually(async || {
        let all = deliveries(&bench.runtime).await;
        all.len() == 12 && all.iter().all(|it| it.state == DeliveryState::Delivered)
    })
    .await;
    let received = receiver.received();
    let mut ids: Vec<&str> = received.iter().filter_map(|it| it.header("webhook-id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((received.len(), ids.len()), (12, 12));
    bench.runtime.shutdown().await;
    other.shutdown().await;
}

#[tokio::test]
async fn what_nobody_could_sign_is_kept_and_sent_by_a_process_that_can() {
    let receiver = Receiver::start([]).await.unwrap();
    let unsigned = Webhook::new("ci", &receiver.url(), AddressPolicy::Private).unwrap();
    let mut bench = bench(vec![unsigned]).await;
    within(bench.start("x").await.outcome()).await.unwrap();
    bench.runtime.flush_webhooks().await;
    let waiting = until(&bench.runtime, DeliveryState::Due).await;
    assert_eq!(waiting.attempts, 0);
    let error = bench.runtime.test_webhook("ci").await.unwrap_err().to_string();
    assert!(error.contains("has no secret"), "{error}");
    bench.runtime.shutdown().await;
    assert!(receiver.received().is_empty());
    bench.config.webhooks = vec![hook(&receiver)];
    bench.reopen().await;
    let delivered = until(&bench.runtime, DeliveryState::Delivered).await;
    assert_eq!(delivered.id, waiting.id);
    assert_signed(&receiver.received()[0], &KEY);
    bench.runtime.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_sends_what_it_still_owes_and_waits_for_nobody_longer_than_it_may() {
    let receiver = Receiver::start([]).await.unwrap();
    let mut bench = bench(vec![hook(&receiver)]).await;
    within(bench.start("x").await.outcome()).await.unwrap();
    bench.runtime.shutdown().await;
    assert_eq!(receiver.received().len(), 1);
    let gate = Gate::new();
    let silent = Receiver::start([Answer::status(204).held_by(&gate)]).await.unwrap();
    bench.config.webhooks = vec![hook(&silent)];
    bench.reopen().await;
    within(bench.start("x").await.outcome()).await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    within(bench.runtime.shutdown()).await;
}

#[tokio::test]
async fn two_webhooks_of_one_name_are_refused() {
    let receiver = Receiver::start([]).await.unwrap();
    let bench = bench(Vec::new()).await;
    let webhooks = vec![hook(&receiver), hook(&receiver)];
    let error = Runtime::open({
        let mut config: RuntimeConfig = bench.config.clone();
        config.webhooks = webhooks;
        config
    })
    .await
    .err();
    assert!(error.unwrap().to_string().contains("two webhooks `ci`"));
    bench.runtime.shutdown().await;
}
