//! Which rule answers which request.

use crate::client::{after, ask, body, client, error, post, says, start, text};
use posse_testkit::{FakeModel, Reply, Rule, Script, StartError, When};
use serde_json::{Value, json};

/// Checks that `when` fits `request` exactly if `fits` says so.
async fn check(when: When, request: &Value, fits: bool) {
    let script = Script::new()
        .rule(Rule::when(when).reply(Reply::text("fits")))
        .rule(Rule::when(When::any()).reply(Reply::text("other")));
    let fake = start(script).await;
    let expected = if fits { "fits" } else { "other" };
    assert_eq!(text(&fake, request).await, expected, "{request}");
}

#[tokio::test]
async fn user_texts_are_found_first_and_last() {
    let chat = body(json!([
        {"role": "user", "content": "alpha"},
        {"role": "assistant", "content": "beta"},
        {"role": "user", "content": [{"type": "text", "text": "gamma"}]},
    ]));
    check(When::any().first_user_contains("alp"), &chat, true).await;
    check(When::any().first_user_contains("gamma"), &chat, false).await;
    check(When::any().last_user_contains("gam"), &chat, true).await;
    check(When::any().last_user_contains("alpha"), &chat, false).await;
    check(When::any().any_message_contains("beta"), &chat, true).await;
    check(When::any().any_message_contains("delta"), &chat, false).await;
    check(When::any().last_user_matches("^ga.*a$"), &chat, true).await;
    check(When::any().first_user_matches("^ga"), &chat, false).await;
    check(When::any().any_message_matches("^b[e]ta$"), &chat, true).await;
}

#[tokio::test]
async fn the_last_user_text_stays_when_tool_results_follow() {
    let called = after("alpha", 2, "result 42");
    check(When::any().last_user_contains("alpha"), &called, true).await;
    check(When::any().last_tool_result_contains("42"), &called, true).await;
    check(When::any().last_tool_result_matches(r"^result \d+$"), &called, true).await;
    check(When::any().any_message_contains("result"), &called, true).await;
    check(When::any().last_tool_result_contains(""), &says("alpha"), false).await;
}

#[tokio::test]
async fn a_tool_result_is_no_longer_last_once_the_assistant_spoke() {
    let mut spoke = after("alpha", 1, "result 42");
    let messages = spoke["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "done"}));
    messages.push(json!({"role": "user", "content": "thanks"}));
    check(When::any().last_tool_result_contains("42"), &spoke, false).await;
    check(When::any().any_message_contains("42"), &spoke, true).await;
    // A message that steers may follow the results on its own.
    let mut steered = after("alpha", 1, "result 42");
    let message = json!({"role": "user", "content": "hurry"});
    steered["messages"].as_array_mut().unwrap().push(message);
    check(When::any().last_tool_result_contains("42"), &steered, true).await;
}

#[tokio::test]
async fn system_model_tools_turn_and_body_are_looked_at() {
    let mut request = after("alpha", 3, "r");
    request["system"] =
        json!([{"type": "text", "text": "You review"}, {"type": "text", "text": "code"}]);
    request["tools"] = json!([{"name": "Bash", "input_schema": {"type": "object"}}]);
    check(When::any().system_contains("review"), &request, true).await;
    check(When::any().system_matches("review\ncode$"), &request, true).await;
    check(When::any().system_contains("alpha"), &request, false).await;
    check(When::any().model("fake-1"), &request, true).await;
    check(When::any().model("fake"), &request, false).await;
    check(When::any().tool_offered("Bash"), &request, true).await;
    check(When::any().tool_offered("Ba"), &request, false).await;
    check(When::any().turn(3), &request, true).await;
    check(When::any().turn(2), &request, false).await;
    check(When::any().body_contains(r#""max_tokens":100"#), &request, true).await;
    check(When::any().body_matches(r#""max_tokens":\s*9"#), &request, false).await;
    request["system"] = json!("as one text");
    check(When::any().system_contains("one"), &request, true).await;
}

#[tokio::test]
async fn headers_are_looked_at_without_regard_to_case_of_their_names() {
    let when = When::any().header("Anthropic-Beta", "interleaved");
    let script = Script::new().rule(Rule::when(when).reply(Reply::text("beta")));
    let fake = start(script).await;
    let request = post(&client(), &fake, &says("x")).header("anthropic-beta", "a,interleaved-1");
    assert_eq!(request.send().await.unwrap().status(), 200);
    assert_eq!(ask(&fake, &says("x")).await.0, 400);
}

#[tokio::test]
async fn all_conditions_must_hold() {
    let both = When::any().last_user_contains("a").turn(0).model("fake-1");
    check(both.clone(), &says("abc"), true).await;
    check(both.clone().last_user_contains("z"), &says("abc"), false).await;
    check(both.turn(1), &says("abc"), false).await;
}

#[tokio::test]
async fn replies_come_in_turn_and_the_last_one_repeats() {
    let rule = Rule::when(When::any()).reply(Reply::text("one")).reply(Reply::text("two"));
    let fake = start(Script::new().rule(rule)).await;
    for expected in ["one", "two", "two"] {
        assert_eq!(text(&fake, &says("x")).await, expected);
    }
}

#[tokio::test]
async fn a_spent_rule_leaves_requests_to_the_next() {
    let script = Script::new()
        .rule(Rule::when(When::any()).reply(Reply::error(529, "busy")).once())
        .rule(Rule::when(When::any()).reply(Reply::text("a")).reply(Reply::text("b")).times(3))
        .rule(Rule::when(When::any()).reply(Reply::text("end")));
    let fake = start(script).await;
    error(&fake, &says("x"), 529, "overloaded_error").await;
    for expected in ["a", "b", "b", "end", "end"] {
        assert_eq!(text(&fake, &says("x")).await, expected);
    }
}

#[tokio::test]
async fn a_request_that_no_rule_fits_is_told_why() {
    let script = Script::new()
        .rule(Rule::when(When::any().last_user_contains("hello")).reply(Reply::text("x")))
        .rule(Rule::when(When::any()).reply(Reply::text("x")).once());
    let fake = start(script).await;
    text(&fake, &says("first")).await;
    let long = "word ".repeat(200);
    let message = error(&fake, &says(&long), 400, "invalid_request_error").await;
    for part in [
        "the script has no reply to this request",
        "turn 0",
        "model \"fake-1\"",
        "of role user: \"word word",
        "rule 1: last_user_contains = \"hello\" does not hold",
        "rule 2: fits, but is spent after 1 uses",
        "Add a rule",
    ] {
        assert!(message.contains(part), "{part:?} is missing in {message}");
    }
    assert!(message.len() < 700, "{message}");
    let message = error(&fake, &after("a", 1, "the result"), 400, "invalid_request_error").await;
    assert!(message.contains("a tool result: \"the result\""), "{message}");
}

#[tokio::test]
async fn a_script_that_cannot_be_played_does_not_start() {
    let refused = async |script: Script, part: &str| {
        let error = FakeModel::start(script).await.unwrap_err();
        assert!(matches!(error, StartError::Script { .. }));
        assert!(error.to_string().contains(part), "{error}");
    };
    let reply = || Reply::text("x");
    let pattern = Rule::when(When::any().system_matches("(")).reply(reply());
    refused(Script::new().rule(pattern), "rule 1: system_matches = \"(\" is no regular").await;
    refused(Script::new().rule(Rule::when(When::any())), "rule 1: it has no reply").await;
    refused(Script::always(Reply::error(200, "x")), "status 200 is no HTTP error").await;
    refused(Script::always(reply().header("a b", "x")), "is no name for a header").await;
    refused(Script::always(reply().header("x", "a\r\nb: c")), "control character").await;
    refused(Script::always(reply().header("Content-Length", "1")), "set by the server").await;
    let conditional = Rule::when(When::any().last_user_contains("x")).reply(reply());
    refused(Script::new().rule(conditional).turns_only(), "rule 1: it needs the words").await;
    for quoting in [Reply::text("{{last_user}}"), Reply::tool_call("A", json!("{{last_run}}"))] {
        refused(Script::always(quoting).turns_only(), "rule 1: it needs the words").await;
    }
}
