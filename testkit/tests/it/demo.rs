//! The demo that is built in.

use crate::client::{ask, body, start};
use posse_testkit::Script;
use serde_json::{Value, json};

/// Plays an agent against the demo until it calls no tool, and returns the names of the tools it
/// called in each turn and the last text.
async fn play(tools: &[&str]) -> (Vec<Vec<String>>, String) {
    let fake = start(Script::demo()).await;
    let mut messages = vec![json!({"role": "user", "content": "What is in this folder?"})];
    let mut called = Vec::new();
    loop {
        let mut request = body(Value::Array(messages.clone()));
        let tool = |name: &&str| json!({"name": name, "input_schema": {"type": "object"}});
        request["tools"] = tools.iter().map(tool).collect();
        let (status, document) = ask(&fake, &request).await;
        assert_eq!(status, 200, "{document}");
        let content = document["content"].as_array().unwrap();
        messages.push(json!({"role": "assistant", "content": content}));
        let calls: Vec<&Value> =
            content.iter().filter(|block| block["type"] == "tool_use").collect();
        if calls.is_empty() {
            return (called, content[0]["text"].as_str().unwrap().to_owned());
        }
        called.push(calls.iter().map(|call| call["name"].as_str().unwrap().to_owned()).collect());
        let results: Vec<Value> = calls
            .iter()
            .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "4f2a first"}))
            .collect();
        messages.push(json!({"role": "user", "content": results}));
    }
}

#[tokio::test]
async fn the_demo_explores_a_folder_and_says_that_it_is_one() {
    let (called, last) = play(&["List", "Glob", "Read", "Grep", "Bash"]).await;
    let expected: [&[&str]; 4] = [&["List", "Glob", "Glob"], &["Read"], &["Grep"], &["Bash"]];
    assert_eq!(called, expected);
    for part in [
        "scripted demo",
        "fake model",
        "> What is in this folder?",
        "4f2a first",
        "works without a key, too",
    ] {
        assert!(last.contains(part), "{part:?} is missing in {last}");
    }
}

#[tokio::test]
async fn the_demo_calls_no_shell_where_none_is_offered() {
    let (called, _) = play(&["List", "Glob", "Read", "Grep"]).await;
    assert_eq!(called.last().unwrap(), &["Glob"]);
}

#[tokio::test]
async fn the_demo_has_an_answer_to_whatever_follows() {
    let fake = start(Script::demo()).await;
    let (status, document) = ask(&fake, &crate::client::after("x", 9, "r")).await;
    assert_eq!(status, 200);
    assert!(document["content"][0]["text"].as_str().unwrap().contains("demo is over"));
}
