//! Tool calls in all the ways vendors send them.

use super::transcripts::{body_of, read, reply_of};
use posse_model::fault::Kind;
use posse_protocol::ToolCall;
use serde_json::{Value, json};

/// The calls of a reply whose deltas have these lists of pieces.
fn calls_of(pieces: &[Value], reason: &str) -> Vec<ToolCall> {
    let deltas: Vec<Value> = pieces.iter().map(|piece| json!({"tool_calls": piece})).collect();
    reply_of(&deltas, reason).message.tool_calls().cloned().collect()
}

/// Reads these pieces and expects calls with these ids, names and arguments.
fn check(pieces: &[Value], expected: &[(&str, &str, Value)]) {
    let calls = calls_of(pieces, "tool_calls");
    let found: Vec<(&str, &str, Value)> =
        calls.iter().map(|call| (&*call.id.0, &*call.name, call.input.clone())).collect();
    assert_eq!(found, expected);
}

/// The arguments of one call whose arguments come in these pieces.
fn input_of(arguments: &[&str], reason: &str) -> Option<Value> {
    let piece = |arguments: &&str| json!([{"index": 0, "function": {"arguments": arguments}}]);
    let mut pieces = vec![json!([{"index": 0, "id": "c", "function": {"name": "Read"}}])];
    pieces.extend(arguments.iter().map(piece));
    calls_of(&pieces, reason).into_iter().next().map(|call| call.input)
}

#[test]
fn pieces_with_an_index_are_put_together_by_it() {
    check(
        &[
            json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "Read", "arguments": ""}}]),
            json!([{"index": 1, "id": "b", "type": "function", "function": {"name": "Bash", "arguments": "{"}}]),
            json!([{"index": 0, "function": {"arguments": "{\"x\":"}}]),
            json!([{"index": 1, "function": {"arguments": "}"}}, {"index": 0, "function": {"arguments": "1}"}}]),
        ],
        &[("a", "Read", json!({"x": 1})), ("b", "Bash", json!({}))],
    );
}

#[test]
fn id_and_name_may_come_with_every_piece() {
    let piece = |id: &str, arguments: &str| json!([{"index": 0, "id": id, "function": {"name": "Read", "arguments": arguments}}]);
    check(&[piece("a", "{\"x\""), piece("a", ":1}")], &[("a", "Read", json!({"x": 1}))]);
    let nameless = |id: &str, arguments: &str| json!([{"index": 0, "id": id, "function": {"name": "", "arguments": arguments}}]);
    check(&[piece("a", "{\"x\""), nameless("b", ":1}")], &[("a", "Read", json!({"x": 1}))]);
    check(&[nameless("", ""), piece("a", "{}")], &[("a", "Read", json!({}))]);
    let repeated = json!([{"index": 0, "function": {"name": "Read", "arguments": "}"}}]);
    check(&[piece("a", "{"), repeated], &[("a", "Read", json!({}))]);
}

#[test]
fn pieces_without_an_index_are_put_together_by_id_or_follow_the_last() {
    check(
        &[
            json!([{"id": "a", "function": {"name": "Read", "arguments": "{\"x\":"}}]),
            json!([{"function": {"arguments": "1}"}}]),
            json!([{"id": "b", "function": {"name": "Read", "arguments": "{\"y\":"}}]),
            json!([{"id": "b", "index": null, "function": {"name": "Read", "arguments": "2"}}]),
            json!([{"index": "odd", "function": {"arguments": "}"}}]),
        ],
        &[("a", "Read", json!({"x": 1})), ("b", "Read", json!({"y": 2}))],
    );
}

#[test]
fn calls_that_are_all_called_the_first_are_told_apart() {
    let whole = |id: &str, name: &str, arguments: &str| json!([{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]);
    check(
        &[
            whole("a", "Read", "{\"x\":1}"),
            whole("b", "Read", "{\"x\":"),
            json!([{"index": 0, "function": {"arguments": "2}"}}]),
            whole("a", "Read", ""),
        ],
        &[("a", "Read", json!({"x": 1})), ("b", "Read", json!({"x": 2}))],
    );
    let calls = calls_of(&[whole("", "Read", "{}"), whole("", "Bash", "{}")], "stop");
    assert_eq!(calls.iter().map(|call| &*call.name).collect::<Vec<_>>(), ["Read", "Bash"]);
}

#[test]
fn whole_calls_may_have_objects_for_arguments() {
    check(
        &[json!([
            {"id": "a", "function": {"name": "Read", "arguments": {"z": 1, "a": 2}}},
            {"id": "b", "function": {"name": "Bash", "arguments": null}},
            {"id": "c", "function": {"name": "Bash"}},
            {"id": "d", "function": {"name": "Bash", "arguments": "null"}},
        ])],
        &[
            ("a", "Read", json!({"z": 1, "a": 2})),
            ("b", "Bash", json!({})),
            ("c", "Bash", json!({})),
            ("d", "Bash", json!({})),
        ],
    );
}

#[test]
fn calls_without_an_id_get_one_that_is_theirs_alone() {
    let pieces = [json!([
        {"function": {"name": "Read", "arguments": "{}"}},
        {"id": "", "function": {"name": "Read", "arguments": "{}"}},
        {"id": "x", "index": 7, "function": {"name": "Read", "arguments": "{}"}},
        {"id": "x", "index": 8, "function": {"name": "Read", "arguments": "{}"}},
    ])];
    let ids = |pieces: &[Value]| -> Vec<String> {
        calls_of(pieces, "stop").into_iter().map(|call| call.id.0).collect()
    };
    let found = ids(&pieces);
    assert_eq!(found.len(), 4);
    assert_eq!(found.iter().collect::<std::collections::HashSet<_>>().len(), 4, "{found:?}");
    assert_eq!(found[2], "x");
    assert!(found.iter().all(|id| !id.is_empty() && id.len() <= 40), "{found:?}");
    assert_eq!(ids(&pieces), found);
    let body = body_of(&[json!({"tool_calls": pieces[0]})], "stop")
        .replace("\"id\":\"c\"", "\"id\":\"d\"");
    let other: Vec<String> =
        read(&body).unwrap().message.tool_calls().map(|call| call.id.0.clone()).collect();
    assert_ne!(other[0], found[0], "another reply has other ids");
}

#[test]
fn arguments_in_pieces_become_one_value() {
    assert_eq!(input_of(&["{\"a\"", ":1", "}"], "tool_calls"), Some(json!({"a": 1})));
    assert_eq!(input_of(&[], "tool_calls"), Some(json!({})));
    assert_eq!(input_of(&["", " "], "stop"), Some(json!({})));
    let text = "x".repeat(200_000);
    let arguments = format!("{{\"content\":\"{text}\"}}");
    let pieces: Vec<&str> =
        arguments.as_bytes().chunks(20).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    assert_eq!(input_of(&pieces, "tool_calls"), Some(json!({"content": text})));
}

#[test]
fn arguments_that_are_not_json_are_kept_as_raw_text() {
    assert_eq!(input_of(&["{\"a\": nope}"], "tool_calls"), Some(json!("{\"a\": nope}")));
    assert_eq!(input_of(&["{\"a\":1} trailing"], "stop"), Some(json!("{\"a\":1} trailing")));
    assert_eq!(input_of(&["[1]"], "stop"), Some(json!([1])));
    let deep = "[".repeat(100_000);
    assert_eq!(input_of(&[&deep], "tool_calls"), Some(json!(deep)));
}

#[test]
fn a_call_that_was_cut_off_is_dropped() {
    for reason in ["length", "content_filter", "something_new"] {
        assert_eq!(input_of(&["{\"path\":\"/etc"], reason), None);
        assert_eq!(input_of(&[], reason), None);
        assert_eq!(input_of(&["{\"path\":\"/etc\"}"], reason), Some(json!({"path": "/etc"})));
    }
    let pieces = [json!([
        {"index": 0, "id": "a", "function": {"name": "Read", "arguments": "{\"x\":1}"}},
        {"index": 1, "id": "b", "function": {"name": "Read", "arguments": "{\"x\":"}},
    ])];
    let calls = calls_of(&pieces, "length");
    assert_eq!(calls.iter().map(|call| &*call.id.0).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_call_without_a_name_is_malformed_and_one_without_anything_is_none() {
    let empty = json!([{"index": 4, "id": "e", "function": {"name": "", "arguments": ""}}]);
    let named = json!([{"index": 0, "id": "a", "function": {"name": "Read", "arguments": "{}"}}]);
    check(&[named, empty], &[("a", "Read", json!({}))]);
    let nameless =
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]});
    let fault = read(&body_of(&[nameless], "tool_calls")).unwrap_err();
    assert_eq!(fault.kind, Kind::Malformed);
    assert!(fault.reason.contains("without a name"), "{fault:?}");
}

#[test]
fn indices_may_be_anything_and_calls_are_not_without_end() {
    let far = |index: u64| json!([{"index": index, "id": index.to_string(), "function": {"name": "Read", "arguments": "{}"}}]);
    check(
        &[far(4_000_000_000), far(u64::MAX)],
        &[("4000000000", "Read", json!({})), (&u64::MAX.to_string(), "Read", json!({}))],
    );
    let many: Vec<Value> = (0..10_001).map(|index| json!({"tool_calls": far(index)})).collect();
    assert_eq!(reply_of(&many[..10_000], "stop").message.tool_calls().count(), 10_000);
    let fault = read(&body_of(&many, "stop")).unwrap_err();
    assert_eq!(fault.kind, Kind::Malformed);
    assert!(fault.reason.contains("more than 10000 tool calls"), "{fault:?}");
}
