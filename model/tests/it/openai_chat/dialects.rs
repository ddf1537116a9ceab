//! What differs from vendor to vendor in a request.

use super::transcripts::{
    assistant, call, image, messages_for, reply_of, request, result, results_of, sent,
};
use posse_agent::Request;
use posse_model::wire::{CallIds, Dialect, EffortStyle, OutputCap, TopEffort};
use posse_protocol::{Effort, Message, Part, Role};
use serde_json::{Value, json};
use std::sync::Arc;

/// The body of a request to a vendor of this dialect, but for its messages.
fn head(change: impl FnOnce(&mut Request), dialect: Dialect) -> Value {
    let mut request = request(vec![]);
    change(&mut request);
    let mut body = sent(&request, &dialect);
    for key in ["model", "messages", "stream"] {
        body.as_object_mut().unwrap().shift_remove(key);
    }
    body
}

#[test]
fn the_cap_and_the_wish_for_usage_have_the_names_of_the_vendor() {
    let dialect = Dialect {
        output_cap: OutputCap::MaxCompletionTokens,
        stream_usage: false,
        ..Dialect::default()
    };
    assert_eq!(head(|_| {}, dialect), json!({"max_completion_tokens": 1000}));
    let plain = json!({"max_tokens": 1000, "stream_options": {"include_usage": true}});
    assert_eq!(head(|_| {}, Dialect::default()), plain);
}

#[test]
fn effort_is_told_in_the_way_of_the_vendor() {
    let check = |style: EffortStyle, top_effort: TopEffort, expected: [Value; 4]| {
        let efforts = [Effort::Low, Effort::Medium, Effort::High, Effort::Max];
        for (effort, mut expected) in efforts.into_iter().zip(expected) {
            let dialect =
                Dialect { effort: style, top_effort, stream_usage: false, ..Dialect::default() };
            expected["max_tokens"] = json!(1000);
            assert_eq!(head(|request| request.effort = Some(effort), dialect), expected);
        }
    };
    let named = |name: &str| json!({"reasoning_effort": name});
    let expected = |top: &str| ["low", "medium", "high", top].map(named);
    check(EffortStyle::ReasoningEffort, TopEffort::High, expected("high"));
    check(EffortStyle::ReasoningEffort, TopEffort::Xhigh, expected("xhigh"));
    check(EffortStyle::ReasoningEffort, TopEffort::Max, expected("max"));
    let nested = |name: &str| json!({"reasoning": {"effort": name}});
    let expected = ["low", "medium", "high", "xhigh"].map(nested);
    check(EffortStyle::Reasoning, TopEffort::Xhigh, expected);
    let switch = |name: &str| json!({"thinking": {"type": name}});
    let expected = ["disabled", "enabled", "enabled", "enabled"].map(switch);
    check(EffortStyle::ThinkingSwitch, TopEffort::High, expected);
    let expected = [false, true, true, true].map(|thinks| json!({"enable_thinking": thinks}));
    check(EffortStyle::EnableThinking, TopEffort::High, expected);
    for style in [EffortStyle::None, EffortStyle::ThinkingBudget, EffortStyle::ThinkingLevel] {
        check(style, TopEffort::Max, [json!({}), json!({}), json!({}), json!({})]);
    }
}

#[test]
fn the_form_of_the_answer_is_told_to_vendors_that_take_it() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let ask = |request: &mut Request| request.output_schema = Some(Arc::new(schema.clone()));
    let takes = Dialect { output_schema: true, ..Dialect::default() };
    let json_schema = json!({"name": "answer", "schema": schema, "strict": false});
    let expected = json!({"type": "json_schema", "json_schema": json_schema});
    assert_eq!(head(ask, takes)["response_format"], expected);
    assert_eq!(head(ask, Dialect::default()).get("response_format"), None);
}

#[test]
fn a_schema_is_a_rule_only_if_it_leaves_nothing_open() {
    let strict = |schema: Value| {
        let dialect = Dialect { output_schema: true, ..Dialect::default() };
        let ask = |request: &mut Request| request.output_schema = Some(Arc::new(schema));
        head(ask, dialect)["response_format"]["json_schema"]["strict"] == true
    };
    let object = |properties: Value, required: Value| {
        json!({"type": "object", "properties": properties, "required": required,
               "additionalProperties": false})
    };
    let inner = object(json!({"x": {"type": ["number", "null"]}}), json!(["x"]));
    assert!(strict(object(json!({}), json!([]))));
    assert!(strict(object(
        json!({"a": {"type": "array", "items": inner}, "b": {"anyOf": [inner, {"enum": [1]}]}}),
        json!(["b", "a"]),
    )));
    let mut recursive = object(json!({"next": {"$ref": "#/$defs/node"}}), json!(["next"]));
    recursive["$defs"] = json!({"node": inner});
    assert!(strict(recursive));

    let open = json!({"type": "object", "properties": {}, "required": []});
    assert!(!strict(open.clone()));
    assert!(!strict(object(json!({"a": open}), json!(["a"]))));
    assert!(!strict(object(json!({"a": {"type": "string"}}), json!([]))));
    assert!(!strict(object(json!({"a": {"type": "string", "default": "x"}}), json!(["a"]))));
    assert!(!strict(object(json!({"a": {"oneOf": []}}), json!(["a"]))));
    assert!(!strict(object(json!({"a": {"properties": {}}}), json!(["a"]))));
    assert!(!strict(object(json!({"a": {"$ref": "http://example.com"}}), json!(["a"]))));
    assert!(!strict(object(json!({"a": true}), json!(["a"]))));
    assert!(!strict(json!({"type": "array", "items": {"type": "string"}})));
    assert!(!strict(json!("object")));
    let mut choice = object(json!({}), json!([]));
    choice["anyOf"] = json!([inner]);
    assert!(!strict(choice));
    let deep = (0..20)
        .fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    assert!(!strict(object(json!({"a": deep}), json!(["a"]))));
}

/// A transcript with a call, its result, and a word of the user after it.
fn steered() -> Vec<Message> {
    vec![
        Message::user("go"),
        assistant(vec![call("toolu_01ABCDEFGHIJ", json!({})), call("aB3dE6gH9", json!({}))]),
        Message::new(
            Role::User,
            vec![
                result("aB3dE6gH9", vec![Part::text("2")], false),
                result("toolu_01ABCDEFGHIJ", vec![Part::text("1")], false),
                Part::text("and?"),
            ],
        ),
    ]
}

#[test]
fn a_vendor_with_ids_of_nine_characters_gets_such_ids_for_calls_and_results() {
    let dialect = Dialect { call_ids: CallIds::NineAlphanumeric, ..Dialect::default() };
    let sent = messages_for(steered(), &dialect);
    let ids = [&sent[1]["tool_calls"][0]["id"], &sent[1]["tool_calls"][1]["id"]];
    assert_eq!(ids, [&sent[2]["tool_call_id"], &sent[3]["tool_call_id"]]);
    assert_eq!((&sent[2]["content"], &sent[3]["content"]), (&json!("1"), &json!("2")));
    assert_eq!(ids[1], "aB3dE6gH9");
    let made = ids[0].as_str().unwrap();
    assert!(made.len() == 9 && made.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{made}");
    assert_eq!(messages_for(steered(), &dialect)[1]["tool_calls"][0]["id"], made);
}

#[test]
fn an_id_of_another_wire_is_shortened_and_one_of_this_wire_is_not() {
    let long = "x".repeat(64);
    let id_from = |wire: &str| {
        let reply = Message::from_model(wire, vec![call(&long, json!({}))]);
        let messages = vec![Message::user("go"), reply.clone(), results_of(&reply)];
        let sent = messages_for(messages, &Dialect::default());
        assert_eq!(sent[1]["tool_calls"][0]["id"], sent[2]["tool_call_id"]);
        assert_eq!(sent[2]["content"], "done");
        sent[2]["tool_call_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(id_from("openai-chat"), long);
    let made = id_from("gemini");
    assert!(made.starts_with("call_") && made.len() <= 40, "{made}");
}

#[test]
fn a_vendor_that_wants_the_assistant_after_results_gets_a_word_of_it() {
    let dialect = Dialect { assistant_after_results: true, ..Dialect::default() };
    let roles = |messages: Vec<Message>| -> Vec<String> {
        let sent = messages_for(messages, &dialect);
        let roles = sent.as_array().unwrap().iter().map(|message| &message["role"]);
        roles.map(|role| role.as_str().unwrap().to_owned()).collect()
    };
    let expected = ["user", "assistant", "tool", "tool", "assistant", "user"];
    assert_eq!(roles(steered()), expected);
    let mut pictured = steered();
    pictured[2] = Message::new(Role::User, vec![result("aB3dE6gH9", vec![image()], false)]);
    assert_eq!(roles(pictured), expected);
    let mut plain = steered();
    plain[2] = results_of(&plain[1]);
    plain.push(assistant(vec![Part::text("done")]));
    plain.push(Message::user("thanks"));
    let expected = ["user", "assistant", "tool", "tool", "assistant", "user"];
    assert_eq!(roles(plain), expected);
}

#[test]
fn a_vendor_that_wants_reasoning_back_gets_it_with_every_message() {
    let dialect = Dialect { returns_reasoning: true, ..Dialect::default() };
    let tool_call =
        json!([{"index": 0, "id": "c1", "function": {"name": "Read", "arguments": "{}"}}]);
    let thought = reply_of(
        &[
            json!({"reasoning_content": "Let me "}),
            json!({"reasoning_content": "look."}),
            json!({"tool_calls": tool_call}),
        ],
        "tool_calls",
    );
    let hasty = reply_of(&[json!({"tool_calls": tool_call})], "tool_calls");
    let foreign = Message::from_model("anthropic", thought.message.parts.clone());
    for (reply, expected) in
        [(thought.message, "Let me look."), (hasty.message, " "), (foreign, " ")]
    {
        let messages = vec![Message::user("go"), reply.clone(), results_of(&reply)];
        let sent = messages_for(messages.clone(), &dialect);
        assert_eq!(sent[1]["reasoning_content"], expected);
        let sent = messages_for(messages, &Dialect::default());
        assert_eq!(sent[1].get("reasoning_content"), None);
    }
    let answer = assistant(vec![Part::text("It is so.")]);
    let sent = messages_for(vec![Message::user("so?"), answer], &dialect);
    assert_eq!(sent[1]["reasoning_content"], " ");
}

/// The paths of all cache marks, in order.
fn marks(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match key.as_str() {
                    "cache_control" => found.push(path.to_owned()),
                    _ => marks(value, &format!("{path}/{key}"), found),
                }
            }
        }
        Value::Array(list) => {
            for (position, value) in list.iter().enumerate() {
                marks(value, &format!("{path}/{position}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn cache_marks_stand_on_the_system_prompt_and_the_last_ends_of_what_was_said() {
    let dialect = Dialect { cache_marks: true, ..Dialect::default() };
    let mut messages = vec![Message::user("start")];
    let mut last_mark: Option<String> = None;
    let mut before: Vec<Value> = Vec::new();
    for turn in 0..6 {
        let request = Request { system: "s".into(), ..request(messages.clone()) };
        let mut now = sent(&request, &dialect)["messages"].take();
        let mut found = Vec::new();
        marks(&now, "", &mut found);
        assert_eq!(found[0], "/0/content/0");
        assert!(found.len() <= 4, "{found:?}");
        let end = now.as_array().unwrap().len() - 1;
        assert!(found.last().unwrap().starts_with(&format!("/{end}/content/")), "{found:?}");
        assert!(last_mark.is_none_or(|mark| found.contains(&mark)), "{found:?}");
        last_mark = found.last().cloned();
        for message in now.as_array_mut().unwrap() {
            for part in message["content"].as_array_mut().into_iter().flatten() {
                part.as_object_mut().unwrap().shift_remove("cache_control");
            }
        }
        let now = now.as_array().unwrap().clone();
        assert_eq!(now[..before.len()], before[..], "a mark changes nothing but itself");
        before = now;
        let id = format!("c{turn}");
        messages.push(assistant(vec![call(&id, json!({}))]));
        let mut parts = vec![result(&id, vec![Part::text("r")], false)];
        if turn % 2 == 0 {
            parts.push(Part::text("note"));
        }
        messages.push(Message::new(Role::User, parts));
    }
}

#[test]
fn a_marked_result_has_this_form() {
    let dialect = Dialect { cache_marks: true, ..Dialect::default() };
    let mut messages = steered();
    messages[2] = results_of(&messages[1]);
    let part = json!({"type": "text", "text": "done"});
    let mut marked = part.clone();
    marked["cache_control"] = json!({"type": "ephemeral"});
    let sent = messages_for(messages, &dialect);
    let first = json!({"role": "tool", "tool_call_id": "toolu_01ABCDEFGHIJ", "content": [part]});
    assert_eq!(sent[2], first);
    assert_eq!(sent[3], json!({"role": "tool", "tool_call_id": "aB3dE6gH9", "content": [marked]}));
}
