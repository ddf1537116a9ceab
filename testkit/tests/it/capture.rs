//! What a test can see of the requests that came.

use crate::client::{client, start};
use crate::wires::{Form, Talk};
use posse_testkit::{Reply, Rule, Script, When, Wire};
use serde_json::json;

#[tokio::test]
async fn a_request_is_read_in_the_words_of_its_wire() {
    for wire in Wire::ALL {
        let fake = start(Script::turns([
            Reply::tool_call("Read", json!({})).and_tool_call("List", json!({})),
            Reply::text("done"),
        ]))
        .await;
        let talk = Talk::saying(wire, "first").system("be kind").tool("Read").tool("List");
        let reply = talk.document(&fake).await;
        let talk = talk.reply(&reply).results(&reply, "found");
        talk.document(&fake).await;

        let first = fake.request(1);
        assert_eq!((first.wire, first.status, first.turn()), (Some(wire), Some(200), 0));
        assert_eq!(first.tool_results(), [""; 0]);
        let second = fake.last_request();
        assert_eq!((second.number, second.turn()), (2, 1));
        assert_eq!((second.model(), second.system()), ("fake-1".into(), "be kind".into()));
        assert_eq!(second.tools(), ["Read", "List"]);
        assert_eq!((second.first_user(), second.last_user()), ("first".into(), "first".into()));
        assert_eq!(second.tool_results(), ["found", "found"]);
        assert!(second.fits(&When::any().turn(1)) && !second.fits(&When::any().turn(0)));
        let found = fake.requests_where(&When::any().last_tool_result_contains("found"));
        assert_eq!(found.iter().map(|request| request.number).collect::<Vec<_>>(), [2]);
        fake.assert_nothing_refused();
    }
}

#[tokio::test]
async fn what_is_no_request_to_a_model_says_nothing() {
    let fake = start(Script::always(Reply::text("x"))).await;
    client().get(format!("{}/v1/models", fake.url())).send().await.unwrap();
    let request = fake.request(1);
    assert_eq!((request.wire, request.status), (None, Some(200)));
    assert_eq!((request.model(), request.turn()), (String::new(), 0));
    assert!(!request.fits(&When::any()));
}

#[tokio::test]
async fn requests_are_counted_by_wire_status_and_model() {
    let busy = Rule::when(When::any()).reply(Reply::error(529, "busy")).once();
    let known = Rule::when(When::any().body_contains("known")).reply(Reply::text("x"));
    let fake = start(Script::new().rule(busy).rule(known)).await;
    for (wire, text) in [
        (Wire::Anthropic, "known"),
        (Wire::OpenAiChat, "known"),
        (Wire::OpenAiChat, "unforeseen"),
        (Wire::Gemini, "known"),
    ] {
        Talk::saying(wire, text).ask(&fake).await;
    }
    let other = Talk { model: "other".to_owned(), ..Talk::saying(Wire::Gemini, "known") };
    other.ask(&fake).await;
    client().get(format!("{}/nowhere", fake.url())).send().await.unwrap();
    let counts = fake.counts();
    let wires = Wire::ALL.map(|wire| counts.wire(wire));
    assert_eq!(wires, [1, 2, 0, 2]);
    let statuses: Vec<_> = counts.statuses().collect();
    assert_eq!(statuses, [(200, 3), (400, 1), (404, 1), (529, 1)]);
    assert_eq!((counts.status(200), counts.status(418)), (3, 0));
    assert_eq!(counts.models().collect::<Vec<_>>(), [("fake-1", 4), ("other", 1)]);
    assert_eq!((counts.model("other"), counts.model("none")), (1, 0));
    assert_eq!((fake.refused(), counts.faults()), (1, 0));
}

#[tokio::test]
async fn answers_that_a_fault_spoils_have_no_status() {
    let fake = start(Script::always(Reply::text("x").fault("reset-before-headers"))).await;
    let talk = Talk::saying(Wire::Anthropic, "x");
    assert!(talk.request(&client(), &fake, Form::Document).send().await.is_err());
    assert_eq!((fake.counts().faults(), fake.counts().statuses().count()), (1, 0));
    assert_eq!(fake.request(1).status, None);
}

#[tokio::test]
#[should_panic(expected = "request 2: the script has no reply to this request")]
async fn a_refusal_is_told_with_its_reason() {
    let script = Script::new().rule(Rule::when(When::any().turn(0)).reply(Reply::text("x")));
    let fake = start(script).await;
    let talk = Talk::saying(Wire::OpenAiResponses, "x");
    let reply = talk.document(&fake).await;
    fake.assert_nothing_refused();
    talk.reply(&reply).user("y").ask(&fake).await;
    fake.assert_nothing_refused();
}

#[tokio::test]
async fn an_error_that_the_script_gives_is_no_refusal() {
    let fake = start(Script::always(Reply::error(400, "as scripted"))).await;
    Talk::saying(Wire::Gemini, "x").ask(&fake).await;
    assert_eq!(fake.refused(), 1);
    fake.assert_nothing_refused();
}

#[tokio::test]
#[should_panic(expected = "there is no request 1: the fake model has captured 0")]
async fn a_request_that_did_not_come_is_missed() {
    start(Script::always(Reply::text("x"))).await.request(1);
}
