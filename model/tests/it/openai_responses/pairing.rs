//! Every call has its output, wherever its result came from.

use super::encode::{assistant, call, input_of, result, user};
use posse_protocol::{CallId, Extra, Message, Part, Text, Thinking, ToolCall};
use serde_json::{Map, Value, json};

/// Encodes `messages` and expects these entries, each as a short word.
fn check(messages: Vec<Message>, expected: &[&str]) {
    let input = input_of(messages);
    let words =
        input.as_array().unwrap().iter().map(|entry| match entry["type"].as_str().unwrap() {
            "message" => entry["content"][0]["text"].as_str().unwrap().to_owned(),
            "function_call" => format!("call {}", entry["call_id"].as_str().unwrap()),
            "function_call_output" => {
                let (id, output) = (&entry["call_id"], &entry["output"]);
                format!("{} = {}", id.as_str().unwrap(), output.as_str().unwrap())
            }
            other => other.to_owned(),
        });
    assert_eq!(words.collect::<Vec<_>>(), expected);
}

fn calls(ids: &[&str]) -> Message {
    assistant(ids.iter().map(|id| call(id, json!({}))).collect())
}

#[test]
fn results_follow_their_calls_in_the_order_of_the_calls() {
    check(
        vec![
            Message::user("go"),
            calls(&["a", "b"]),
            Message::user("meanwhile"),
            user(vec![result("b", "2"), Part::text("and"), result("a", "1")]),
            assistant(vec![Part::text("done")]),
        ],
        &["go", "call a", "call b", "a = 1", "b = 2", "meanwhile", "and", "done"],
    );
}

#[test]
fn calls_of_several_messages_in_a_row_are_answered_together() {
    check(
        vec![
            calls(&["a"]),
            assistant(vec![Part::text("also")]),
            calls(&["b"]),
            user(vec![result("a", "1"), result("b", "2")]),
        ],
        &["call a", "also", "call b", "a = 1", "b = 2"],
    );
}

#[test]
fn a_call_without_a_result_is_told_so_and_a_result_without_a_call_is_shown() {
    let missing = "a = Error: no result was recorded";
    let stray = "(The result of an earlier call:)";
    check(vec![calls(&["a"])], &["call a", missing]);
    check(
        vec![
            user(vec![result("x", "0")]),
            calls(&["a"]),
            Message::user("?"),
            calls(&["b"]),
            user(vec![result("a", "1"), result("b", "2")]),
        ],
        &[stray, "call a", missing, "?", "call b", "b = 2", stray],
    );
    let input = input_of(vec![user(vec![result("x", "0"), result("y", " ")])]);
    let text = |text: &str| json!({"type": "input_text", "text": text});
    assert_eq!(input[0]["content"], json!([text(stray), text("0")]));
}

#[test]
fn calls_that_share_an_id_get_a_result_each() {
    check(
        vec![calls(&["a", "a"]), user(vec![result("a", "1"), result("a", "2"), result("a", "3")])],
        &["call a", "call a", "a = 1", "a = 2", "(The result of an earlier call:)"],
    );
}

#[test]
fn arguments_that_are_no_object_are_wrapped_into_one() {
    let input = |input: Value| {
        input_of(vec![assistant(vec![call("c", input)])])[0]["arguments"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(input(json!({"a": 1})), r#"{"a":1}"#);
    assert_eq!(input(json!("{\"path\":")), r#"{"raw_input":"{\"path\":"}"#);
    assert_eq!(input(Value::Null), r#"{"raw_input":null}"#);
}

#[test]
fn words_of_another_wire_are_sent_and_its_signatures_are_not() {
    let extra = || {
        let fields = json!({"item": {"id": "x"}, "citations": [1], "refusal": true});
        Extra::from(fields.as_object().unwrap().clone())
    };
    let long = "c".repeat(100);
    let signature = Some("sig".to_owned());
    let name = "functions.Read file".to_owned();
    let opaque = |wire: &str| Part::Opaque { wire: wire.to_owned(), value: json!({"type": "x"}) };
    let parts = vec![
        Part::Thinking(Thinking { text: "hm".to_owned(), signature, extra: extra() }),
        Part::Text(Text { text: "one".to_owned(), extra: extra() }),
        Part::Text(Text { text: " ".to_owned(), extra: extra() }),
        Part::Text(Text { text: "two".to_owned(), extra: Extra::default() }),
        opaque("anthropic"),
        opaque("openai-responses"),
        Part::ToolCall(ToolCall {
            id: CallId(long.clone()),
            name,
            input: json!({}),
            extra: extra(),
        }),
    ];
    let input =
        input_of(vec![Message::from_model("anthropic", parts), user(vec![result(&long, "done")])]);
    let text = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let id = input[1]["call_id"].clone();
    assert!(id.as_str().unwrap().len() <= 64 && id != "");
    let expected = json!([
        {"type": "message", "role": "assistant", "content": [text("one"), text("two")]},
        {"type": "function_call", "call_id": id, "name": "functions_Read_file", "arguments": "{}"},
        {"type": "function_call_output", "call_id": id, "output": "done"},
    ]);
    assert_eq!(input, expected);
}

#[test]
fn names_that_are_empty_or_too_long_are_replaced_if_another_wire_made_them() {
    let name = |wire: &str, name: &str| {
        let (id, name, extra) = ("c".into(), name.to_owned(), Extra::default());
        let call = Part::ToolCall(ToolCall { id, name, input: Map::new().into(), extra });
        input_of(vec![Message::from_model(wire, vec![call])])[0]["name"].clone()
    };
    assert_eq!(name("anthropic", ""), "unknown");
    assert_eq!(name("anthropic", &"é".repeat(80)), "_".repeat(64));
    assert_eq!(name("anthropic", "mcp__a-b"), "mcp__a-b");
    assert_eq!(name("openai-responses", "a.b"), "a.b");
}

#[test]
fn another_turn_only_adds_to_the_bytes() {
    let mut messages = vec![Message::user("start")];
    let mut before: Option<String> = None;
    for turn in 0..6 {
        let body =
            String::from_utf8(super::encode::encode(&super::encode::request(messages.clone())))
                .unwrap();
        let prefix = body.strip_suffix("]}").unwrap().to_owned();
        assert!(before.is_none_or(|before| prefix.starts_with(&before)), "{body}");
        before = Some(prefix);
        let id = format!("c{turn}");
        let signed = super::encode::thinking(Some("s"));
        messages.push(assistant(vec![signed, Part::text("so"), call(&id, json!({"n": turn}))]));
        messages.push(user(vec![result(&id, "r"), Part::text("note")]));
        if turn % 2 == 0 {
            messages.push(Message::user("steer"));
        }
    }
}
