//! What holds on every wire.

use crate::client::{client, start};
use crate::wires::{Call, Form, Heard, MODEL, Talk, client_of, folded, heard};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, Usage, When, Wire};
use serde_json::{Value, json};
use std::time::Duration;

/// Checks that `reply` is heard as `expected` on every wire, whole and in pieces.
async fn check(reply: Reply, expected: impl Fn(Wire) -> Heard) {
    for wire in Wire::ALL {
        let fake = start(Script::always(reply.clone())).await;
        let talk = Talk::saying(wire, "hello");
        let document = talk.document(&fake).await;
        let mut found = heard(wire, &document);
        let expected = expected(wire);
        // What it costs is not what is asked here.
        found.input = expected.input;
        found.output = expected.output;
        found.reasoning = expected.reasoning;
        assert_eq!(found, expected, "{}: {document}", wire.name());
        assert_eq!(talk.streamed(&fake).await, document, "{}", wire.name());
    }
}

/// The wire's own words for a reply that calls tools, and for one that ends.
fn stop(wire: Wire) -> (String, String) {
    let (calls, ends) = client_of(wire).stops();
    (calls.to_owned(), ends.to_owned())
}

/// The id that a call gets where the script gives none.
fn id(wire: Wire, index: usize) -> Option<String> {
    client_of(wire).id(index)
}

const TEXT: &str = "Grüße, \"world\" 🦀\n\twith a line that is long enough for several pieces";

#[tokio::test]
async fn a_text_comes_whole_and_in_pieces() {
    check(Reply::text(TEXT), |wire| Heard {
        text: TEXT.to_owned(),
        stop: stop(wire).1,
        ..Heard::default()
    })
    .await;
}

#[tokio::test]
async fn several_tool_calls_come_with_their_inputs() {
    let input =
        json!({"file_path": "a\\\"b\n\u{1}é漢.rs", "depth": -1.5e3, "all": [true, null, {}]});
    let reply = Reply::text("I look.")
        .and_tool_call("Read", input.clone())
        .and_tool_call("List", json!({}))
        .and_tool_call_with_id("call-7", "Grep", json!({"pattern": "x"}));
    check(reply, |wire| {
        let call = |id: Option<String>, name: &str, input: Value| Call {
            id,
            name: name.to_owned(),
            input,
        };
        Heard {
            text: "I look.".to_owned(),
            calls: vec![
                call(id(wire, 0), "Read", input.clone()),
                call(id(wire, 1), "List", json!({})),
                call(Some("call-7".to_owned()), "Grep", json!({"pattern": "x"})),
            ],
            stop: stop(wire).0,
            ..Heard::default()
        }
    })
    .await;
}

#[tokio::test]
async fn thinking_comes_apart_from_what_is_said() {
    let reply = Reply::thinking("First I think for a while.")
        .and_text("Then I speak, ")
        .and_thinking("Then again.")
        .and_text("twice.");
    check(reply, |wire| Heard {
        text: "Then I speak, twice.".to_owned(),
        thinking: "First I think for a while.Then again.".to_owned(),
        stop: stop(wire).1,
        ..Heard::default()
    })
    .await;
    check(Reply::thinking("only"), |wire| Heard {
        thinking: "only".to_owned(),
        stop: stop(wire).1,
        ..Heard::default()
    })
    .await;
}

#[tokio::test]
async fn a_reply_may_be_empty() {
    check(Reply::empty(), |wire| Heard { stop: stop(wire).1, ..Heard::default() }).await;
}

#[tokio::test]
async fn raw_objects_come_as_they_are() {
    for (wire, raw, place) in [
        (Wire::Anthropic, json!({"type": "redacted_thinking", "data": "x"}), "/content/0"),
        (
            Wire::OpenAiChat,
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}),
            "/choices/0/message",
        ),
        (
            Wire::OpenAiResponses,
            json!({"id": "ws_1", "type": "web_search_call", "status": "completed"}),
            "/output/0",
        ),
        (
            Wire::Gemini,
            json!({"executableCode": {"language": "PYTHON", "code": "1"}}),
            "/candidates/0/content/parts/0",
        ),
    ] {
        let fake = start(Script::always(Reply::empty().and_raw(raw.clone()).and_text("so"))).await;
        let talk = Talk::saying(wire, "hello");
        let document = talk.document(&fake).await;
        for (key, value) in raw.as_object().unwrap() {
            assert_eq!(&document.pointer(place).unwrap()[key], value, "{document}");
        }
        assert_eq!(heard(wire, &document).text, "so");
        assert_eq!(talk.streamed(&fake).await, document);
    }
}

#[tokio::test]
async fn the_stop_reason_is_what_the_script_says() {
    for (wire, word) in [
        (Wire::Anthropic, "max_tokens"),
        (Wire::OpenAiChat, "length"),
        (Wire::OpenAiResponses, "max_output_tokens"),
        (Wire::Gemini, "MAX_TOKENS"),
    ] {
        let fake = start(Script::always(Reply::text("cut of").stop_reason(word))).await;
        let talk = Talk::saying(wire, "hello");
        let document = talk.document(&fake).await;
        assert_eq!(heard(wire, &document).stop, word);
        assert_eq!(talk.streamed(&fake).await, document);
    }
}

#[tokio::test]
async fn usage_is_what_the_script_claims() {
    let usage = Usage {
        input_tokens: Some(7),
        output_tokens: Some(9),
        cache_creation_input_tokens: Some(11),
        cache_read_input_tokens: Some(13),
        reasoning_tokens: Some(5),
    };
    for wire in Wire::ALL {
        let fake = start(Script::always(Reply::text("so").usage(usage))).await;
        let talk = Talk::saying(wire, "hello");
        let document = talk.document(&fake).await;
        let found = heard(wire, &document);
        let input = match wire {
            // There, what is written counts as input like any other.
            Wire::Gemini => [18, 13, 0],
            _ => [7, 13, 11],
        };
        assert_eq!((found.input, found.output, found.reasoning), (input, 9, 5), "{document}");
        assert_eq!(talk.streamed(&fake).await["usage"], document["usage"]);
    }
}

#[tokio::test]
async fn usage_is_computed_where_the_script_says_nothing() {
    for wire in Wire::ALL {
        let fake = start(Script::always(Reply::thinking("12345678").and_text("äöüäö"))).await;
        let long = Talk::saying(wire, &"word".repeat(100)).heard(&fake).await;
        let short = Talk::saying(wire, "word").heard(&fake).await;
        assert_eq!(long.input[0] - short.input[0], 99, "{}", wire.name());
        assert_eq!((long.output, long.reasoning), (4, 2), "{}", wire.name());
    }
}

#[tokio::test]
async fn every_matcher_finds_its_part_of_the_request() {
    for wire in Wire::ALL {
        let told = Reply::thinking("hm").and_tool_call("Read", json!({"path": "a.txt"}));
        let fake = start(Script::always(told)).await;
        let talk = Talk::saying(wire, "first thing").system("be kind").tool("Read").tool("List");
        let call = talk.document(&fake).await;
        let talk = talk.user("and more");
        let talk = Talk { items: talk.items[..1].to_vec(), ..talk };
        let talk = talk.reply(&call).results(&call, "found it").user("last thing");

        let path = talk.path(Form::Document);
        let holds = [
            When::any().wire(wire),
            When::any().turn(1),
            When::any().model(MODEL),
            When::any().tool_offered("List"),
            When::any().header("Content-Type", "json"),
            When::any().first_user_contains("first"),
            When::any().last_user_matches("^last thing$"),
            When::any().last_tool_result_matches("^found it$"),
            When::any().any_message_contains("found"),
            When::any().system_contains("kind"),
            When::any().body_contains("\"last thing\""),
            When::any().path_contains(&path),
            match wire {
                Wire::Gemini => When::any().field("/generationConfig/maxOutputTokens", json!(100)),
                _ => When::any().field("/model", json!(MODEL)),
            },
        ];
        let fails = [
            When::any().wire(Wire::ALL[usize::from(wire == Wire::ALL[0])]),
            When::any().turn(0),
            When::any().model("fake"),
            When::any().tool_offered("Write"),
            When::any().header("x-team", ""),
            When::any().first_user_contains("last"),
            When::any().last_user_contains("found"),
            When::any().last_tool_result_contains("first"),
            When::any().any_message_contains("kind"),
            When::any().system_contains("thing"),
            When::any().body_matches("never"),
            When::any().path_matches("^/other"),
            When::any().field("/no/such/place", json!(null)),
        ];
        for when in holds {
            let fake = start(Script::new().rule(Rule::when(when).reply(Reply::text("yes")))).await;
            assert_eq!(talk.heard(&fake).await.text, "yes", "{}", wire.name());
        }
        for when in fails {
            let fake = start(Script::new().rule(Rule::when(when).reply(Reply::text("no")))).await;
            let message = talk.error(&fake, 400).await;
            assert!(message.contains("rule 1: ") && message.contains("does not hold"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_conversation_with_tools_goes_to_its_end() {
    for wire in Wire::ALL {
        let script = Script::new().conversation(
            Conversation::when(When::any().first_user_contains("explore"))
                .reply(Reply::thinking("Where?").and_tool_call("List", json!({"path": "{{turn}}"})))
                .reply(
                    Reply::text("Two at once.")
                        .and_tool_call("Read", json!({"path": "{{last_tool_result}}"}))
                        .and_tool_call("Read", json!({"path": "b"})),
                )
                .reply(Reply::text("{{turn}}: {{last_user}}, {{last_tool_result}}")),
        );
        let fake = start(script).await;
        let mut talk = Talk::saying(wire, "explore").tool("List").tool("Read");
        for (calls, result) in [(1, "a.txt"), (2, "content")] {
            let reply = talk.streamed(&fake).await;
            assert_eq!(heard(wire, &reply).calls.len(), calls, "{}: {reply}", wire.name());
            talk = talk.reply(&reply).results(&reply, result);
        }
        let document = talk.document(&fake).await;
        assert_eq!(heard(wire, &document).text, "2: explore, content", "{}", wire.name());
        fake.assert_nothing_refused();
    }
}

#[tokio::test]
async fn a_stream_can_be_held_in_its_middle() {
    for wire in Wire::ALL {
        let gate = Gate::new();
        let fake = start(Script::always(Reply::text(TEXT).held_after_deltas(2, &gate))).await;
        let client = client();
        let mut response =
            Talk::saying(wire, "x").request(&client, &fake, Form::Stream).send().await.unwrap();
        gate.wait_for_held(1).await.unwrap();
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains("with a") {
            text.extend_from_slice(&response.chunk().await.unwrap().unwrap());
        }
        let so_far = String::from_utf8(text.clone()).unwrap();
        assert!(!so_far.contains("several"), "{}: {so_far}", wire.name());
        gate.open();
        while let Some(chunk) = response.chunk().await.unwrap() {
            text.extend_from_slice(&chunk);
        }
        let document = folded(wire, &String::from_utf8(text).unwrap());
        assert_eq!(heard(wire, &document).text, TEXT);
    }
}

#[tokio::test]
async fn latency_is_that_of_the_script() {
    for wire in Wire::ALL {
        let reply = Reply::text("1234567890").latency(Duration::from_millis(30));
        let fake = start(Script::always(reply.token_delay(Duration::from_millis(20)))).await;
        let before = std::time::Instant::now();
        let document = Talk::saying(wire, "x").streamed(&fake).await;
        assert_eq!(heard(wire, &document).text, "1234567890");
        assert!(before.elapsed() >= Duration::from_millis(50), "{}", wire.name());
    }
}
