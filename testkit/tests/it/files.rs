//! Scripts as TOML files.

use crate::client::{after, ask, client, says, start, text};
use crate::wires::{Form, Talk};
use posse_testkit::{Script, Wire};
use serde_json::json;

#[tokio::test]
async fn a_file_says_what_a_builder_says() {
    let script = Script::parse(
        r#"
        [[rule]]
        when = { last_user_contains = "busy", header = { x-api-key = "test" } }
        once = true
        [[rule.reply]]
        status = 529
        message = "come back"
        headers = { retry-after = "2" }

        [[conversation]]
        when = { first_user_matches = "(?i)explore", model = "fake-1" }
        [[conversation.reply]]
        thinking = "hm"
        signature = "sig"
        text = "Looking."
        tool_calls = [
            { name = "Read", input = { path = "src", depth = 2, also = [1.5, true, "{{turn}}"] } },
            { id = "own", name = "List" },
        ]
        stop_reason = "pause_turn"
        usage = { input_tokens = 5, cache_read_input_tokens = 6 }
        [[conversation.reply]]
        blocks = [
            { text = "first" },
            { thinking = "then" },
            { tool_call = { name = "Grep", input = { pattern = "x" } } },
            { raw = { type = "redacted_thinking", data = "x" } },
        ]

        [[rule]]
        reply = [{ text = "one" }, { text = "two", latency_ms = 1, token_delay_ms = 1 }]
        times = 2
        "#,
    )
    .unwrap();
    let fake = start(script).await;

    let (status, document) = ask(&fake, &says("busy? explore!")).await;
    assert_eq!((status, &document["error"]["message"]), (529, &json!("come back")));

    let (_, document) = ask(&fake, &says("busy? explore!")).await;
    let input = r#"{"path":"src","depth":2,"also":[1.5,true,"0"]}"#;
    assert_eq!(document["content"][2]["input"].to_string(), input);
    assert_eq!(
        document["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "toolu_0_0", "name": "Read",
             "input": {"path": "src", "depth": 2, "also": [1.5, true, "0"]}},
            {"type": "tool_use", "id": "own", "name": "List", "input": {}},
        ])
    );
    assert_eq!(document["stop_reason"], "pause_turn");
    assert_eq!(document["usage"]["input_tokens"], 5);
    assert_eq!(document["usage"]["cache_read_input_tokens"], 6);

    let (_, document) = ask(&fake, &after("Explore", 1, "r")).await;
    let kinds: Vec<_> =
        document["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "thinking", "tool_use", "redacted_thinking"]);

    assert_eq!(text(&fake, &says("else")).await, "one");
    assert_eq!(text(&fake, &says("else")).await, "two");
    let (_, document) = ask(&fake, &says("else")).await;
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains("conversation on line 10: "), "{message}");
    assert!(message.contains("rule on line 30: fits, but is spent after 2 uses"), "{message}");
}

#[tokio::test]
async fn a_file_can_tell_wires_paths_and_fields_apart() {
    let script = Script::parse(
        r#"
        models = ["local-1"]
        keys = false

        [[rule]]
        when = { wire = "openai-responses", field = { "/reasoning/effort" = "high", "/n" = 2 } }
        reply = [{ text = "hard", usage = { output_tokens = 9, reasoning_tokens = 4 } }]

        [[rule]]
        when = { path_contains = "/vendor/", path_matches = "completions$" }
        reply = [{ text = "vendor" }]

        [[rule]]
        when = { wire = "openai-responses" }
        reply = [{ text = "soft" }]
        "#,
    )
    .unwrap();
    let fake = start(script).await;
    let talk = Talk { key: String::new(), ..Talk::saying(Wire::OpenAiResponses, "x") };
    assert_eq!(talk.heard(&fake).await.text, "soft");
    let hard = talk.with("reasoning", json!({"effort": "high"})).with("n", json!(2));
    let heard = hard.heard(&fake).await;
    assert_eq!((heard.text.as_str(), heard.output, heard.reasoning), ("hard", 9, 4));
    let talk = Talk::saying(Wire::OpenAiChat, "x");
    let message = talk.error(&fake, 400).await;
    let part = r#"wire = "openai-responses" does not hold"#;
    assert!(
        message.contains(part) && message.contains(r#"path_contains = "/vendor/""#),
        "{message}"
    );
    let request = client().post(format!("{}/vendor/v1/chat/completions", fake.url()));
    let response = request.body(talk.body(Form::Document).to_string()).send().await.unwrap();
    assert!(response.text().await.unwrap().contains("vendor"));
}

#[tokio::test]
async fn rules_and_conversations_are_tried_in_the_order_of_the_file() {
    let rule = "[[rule]]\nreply = [{ text = \"rule\" }]\n";
    let conversation = "[[conversation]]\nreply = [{ text = \"conversation\" }]\n";
    for (file, first) in [
        (format!("{rule}{conversation}"), "rule"),
        (format!("{conversation}{rule}"), "conversation"),
    ] {
        let fake = start(Script::parse(&file).unwrap()).await;
        assert_eq!(text(&fake, &says("x")).await, first);
    }
}

/// Checks that `file` is refused at `line`, for a reason that contains `part`.
fn check_refused(file: &str, line: usize, part: &str) {
    let error = Script::parse(file).unwrap_err();
    assert_eq!(error.line, line, "{error}");
    assert!(error.reason.contains(part), "{error}");
    assert!(error.to_string().starts_with(&format!("line {line} of the script: ")), "{error}");
}

#[test]
fn a_mistake_is_named_with_its_line() {
    check_refused("[[rule]\n", 1, "");
    check_refused("\n[[rules]]\n", 2, "unknown field `rules`");
    check_refused("[[rule]]\n[[rule.reply]]\ntxt = \"x\"\n", 3, "unknown field `txt`");
    check_refused(
        "[[rule]]\nreply = [{ text = \"x\" }]\n\n[rule.when]\nturns = 1\n",
        5,
        "unknown field `turns`",
    );
    check_refused("[[rule]]\nwhen = { turn = -1 }\nreply = [{ text = \"x\" }]\n", 2, "");
    check_refused("[[rule]]\nreply = [{ text = 3 }]\n", 2, "expected a string");
    check_refused(
        "[[rule]]\n[[rule.reply]]\ntool_calls = [{ input = {} }]\n",
        3,
        "missing field `name`",
    );
    check_refused(
        "[[rule]]\n[[rule.reply]]\nblocks = [{ txt = \"x\" }]\n",
        3,
        "unknown variant `txt`",
    );
    check_refused(
        "[[rule]]\n[[rule.reply]]\ntext = \"x\"\nusage = { input = 1 }\n",
        4,
        "unknown field `input`",
    );
}

#[test]
fn a_contradiction_is_named_with_its_line() {
    check_refused("\n[[rule]]\nonce = true\n", 2, "no reply");
    check_refused("\n\n[[conversation]]\n", 3, "no reply");
    let reply = |keys: &str| format!("[[rule]]\n\n[[rule.reply]]\n{keys}\n");
    check_refused(&reply("latency_ms = 5"), 3, "says nothing");
    check_refused(&reply("status = 500\ntext = \"x\""), 3, "has no content");
    check_refused(&reply("status = 200"), 3, "no HTTP error");
    check_refused(&reply("text = \"x\"\nerror_type = \"y\""), 3, "give its status too");
    check_refused(&reply("text = \"x\"\nblocks = []"), 3, "one or the other");
    check_refused(&reply("text = \"x\"\nsignature = \"s\""), 3, "give thinking too");
    check_refused(
        &reply("text = \"x\"\nheaders = { connection = \"close\" }"),
        3,
        "set by the server",
    );
    check_refused(&reply("blocks = [{ raw = [1] }]"), 3, "a raw block is an object, and [1]");
    check_refused("\ncache = false\ncache_minimum = 5\n", 2, "exclude each other");
    let rule = |keys: &str| format!("[[rule]]\n{keys}\nreply = [{{ text = \"x\" }}]\n");
    let known = "known are anthropic, openai-chat, openai-responses, gemini";
    check_refused(&rule("when = { wire = \"telegraph\" }"), 2, known);
    check_refused(&rule("when = { field = { effort = 1 } }"), 2, "is no JSON pointer");
    check_refused(&rule("when = { path_matches = \"(\" }"), 2, "no regular expression");
    check_refused(&rule("times = 0"), 2, "no rule");
    check_refused(&rule("times = 2\nonce = true"), 2, "exclude each other");
    check_refused(&rule("when = { system_matches = \"(\" }"), 2, "no regular expression");
}

#[test]
fn the_scripts_of_the_guide_can_be_played() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guides/fake-model.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let blocks = guide.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let scripts: Vec<&str> = blocks.filter(|block| block.contains("[[")).collect();
    assert_eq!(scripts.len(), 2);
    for script in scripts {
        Script::parse(script).unwrap();
    }
}
