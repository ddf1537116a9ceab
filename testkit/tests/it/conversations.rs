//! Conversations: the reply follows from the request alone.

use crate::client::{after, ask, error, says, start, text};
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use serde_json::{Value, json};

#[tokio::test]
async fn each_turn_has_its_reply_however_often_it_is_asked() {
    let replies = [Reply::text("zero"), Reply::text("one"), Reply::text("two")];
    let fake = start(Script::turns(replies)).await;
    for (turn, expected) in [(0, "zero"), (2, "two"), (1, "one"), (1, "one"), (0, "zero")] {
        assert_eq!(text(&fake, &after("go", turn, "r")).await, expected);
    }
}

#[tokio::test]
async fn a_server_that_only_counts_turns_answers_alike_and_checks_nothing() {
    let replies = || [Reply::text("zero"), Reply::text("turn {{turn}}"), Reply::text("two")];
    let fake = start(Script::turns(replies()).turns_only()).await;
    let checking = start(Script::turns(replies())).await;
    for turn in [0, 2, 1, 0] {
        let mut request = after("go", turn, "r");
        assert_eq!(text(&fake, &request).await, text(&checking, &request).await);
        request["max_tokens"] = json!(0);
        assert_eq!(ask(&fake, &request).await.0, 200);
        assert_eq!(ask(&checking, &request).await.0, 400);
    }
    let message = error(&fake, &json!({"messages": 1}), 400, "invalid_request_error").await;
    assert!(message.contains("expected a sequence"), "{message}");
}

#[tokio::test]
async fn conversations_are_told_apart_by_their_first_message() {
    let conversation = |name: &str| {
        Conversation::when(When::any().first_user_contains(name))
            .reply(Reply::text(&format!("{name} begins")))
            .reply(Reply::text(&format!("{name} ends")))
    };
    let script =
        Script::new().conversation(conversation("left")).conversation(conversation("right"));
    let fake = start(script).await;
    assert_eq!(text(&fake, &says("go right")).await, "right begins");
    assert_eq!(text(&fake, &says("go left")).await, "left begins");
    assert_eq!(text(&fake, &after("go right", 1, "r")).await, "right ends");
    assert_eq!(text(&fake, &after("go left", 1, "r")).await, "left ends");
}

#[tokio::test]
async fn a_turn_beyond_the_last_reply_is_left_to_the_next_rule() {
    let conversation = || Conversation::when(When::any()).reply(Reply::text("only"));
    let fake = start(Script::new().conversation(conversation())).await;
    let message = error(&fake, &after("go", 1, "r"), 400, "invalid_request_error").await;
    let reason = "conversation 1: fits, but has replies only for turns 0 to 0";
    assert!(message.contains(reason), "{message}");

    let rest = Rule::when(When::any()).reply(Reply::text("rest"));
    let fake = start(Script::new().conversation(conversation()).rule(rest)).await;
    assert_eq!(text(&fake, &after("go", 1, "r")).await, "rest");
}

#[tokio::test]
async fn tool_ids_follow_from_the_place_and_stay_when_asked_again() {
    let calls = || Reply::tool_call("Read", json!({})).and_tool_call("List", json!({}));
    let fake = start(Script::turns([calls(), calls()])).await;
    let ids = async |request: &Value| {
        let (_, document) = ask(&fake, request).await;
        [document["content"][0]["id"].clone(), document["content"][1]["id"].clone()]
    };
    for _ in 0..2 {
        assert_eq!(ids(&after("go", 1, "r")).await, ["toolu_1_0", "toolu_1_1"]);
        assert_eq!(ids(&after("go", 0, "r")).await, ["toolu_0_0", "toolu_0_1"]);
    }
}

#[tokio::test]
async fn a_tool_id_is_never_one_that_the_transcript_holds() {
    let fake = start(Script::always(Reply::tool_call("Read", json!({})))).await;
    // As after a compaction that kept the last call but not the messages before it.
    let mut request = after("summary", 1, "r");
    request["messages"][1]["content"][0]["id"] = json!("toolu_1_0");
    request["messages"][2]["content"][0]["tool_use_id"] = json!("toolu_1_0");
    let (_, document) = ask(&fake, &request).await;
    assert_eq!(document["content"][0]["id"], "toolu_1_0_1");
}
