//! What a provider sent goes back as it was.

use super::encode::{encode, input_of, request, result, user};
use super::transcripts::{
    RICH, RICH_ITEMS, completed, done, incomplete, message, read, read_events,
};
use posse_protocol::{Message, Part};
use serde_json::{Value, json};

/// The entries that are sent back for a reply, before the outputs of its calls.
fn sent_back(reply: Message) -> Value {
    let results = reply.tool_calls().map(|call| result(&call.id.0, "done"));
    let results: Vec<Part> = results.chain([Part::text("go on")]).collect();
    let count = results.len();
    let mut input = input_of(vec![reply, user(results)]);
    let entries = input.as_array_mut().unwrap();
    entries.truncate(entries.len() - count);
    input
}

/// Reads a reply of these items and expects that they go back just so.
fn check(items: Value) {
    let ends = (0..).zip(items.as_array().unwrap()).map(|(index, item)| done(index, item.clone()));
    let reply = read_events(&ends.chain([completed()]).collect::<Vec<_>>()).unwrap();
    assert_eq!(sent_back(reply.message), items);
}

/// A message that items can follow.
fn tail() -> Value {
    let mut tail = message("msg_9", "So.");
    tail["status"] = json!("completed");
    tail
}

#[test]
fn a_reply_is_sent_back_item_by_item_with_every_field() {
    let expected: Value = serde_json::from_str(RICH_ITEMS).unwrap();
    assert_eq!(sent_back(read(RICH).unwrap().message), expected);
}

#[test]
fn a_stored_reply_is_sent_back_just_the_same() {
    let reply = read(RICH).unwrap().message;
    let stored = serde_json::to_string(&reply).unwrap();
    let restored: Message = serde_json::from_str(&stored).unwrap();
    assert_eq!(restored, reply);
    assert_eq!(encode(&request(vec![restored])), encode(&request(vec![reply])));
}

#[test]
fn the_text_of_reasoning_is_stored_once() {
    let summary = json!([{"type": "summary_text", "text": "Once upon."}]);
    let item =
        json!({"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "e"});
    let reply = read_events(&[done(0, item), completed()]).unwrap();
    let stored = serde_json::to_string(&reply.message).unwrap();
    assert_eq!(stored.matches("Once upon.").count(), 1, "{stored}");
}

#[test]
fn reasoning_of_any_shape_goes_back_as_it_came() {
    let summary = |text: &str| json!({"type": "summary_text", "text": text});
    let content = |text: &str| json!({"type": "reasoning_text", "text": text});
    let noted = json!({"type": "summary_text", "text": "a", "note": 1});
    let shapes = [
        json!({"summary": []}),
        json!({"summary": [summary("a")]}),
        json!({"summary": [summary("")]}),
        json!({"summary": [summary("a"), summary("b")]}),
        json!({"summary": [noted]}),
        json!({"summary": [summary("a")], "content": []}),
        json!({"summary": [], "content": [content("c")]}),
        json!({"summary": [], "content": [content("c"), content("d")]}),
        json!({"summary": [summary("a")], "content": [content("c")]}),
        json!({"summary": [summary("a"), summary("b")], "content": [content("c")]}),
        json!({"summary": [], "status": "completed", "novel": {"x": 1}}),
    ];
    for shape in shapes {
        let mut item = json!({"type": "reasoning", "id": "rs", "encrypted_content": "e"});
        item.as_object_mut().unwrap().extend(shape.as_object().unwrap().clone());
        check(json!([item, tail()]));
    }
}

#[test]
fn reasoning_without_a_summary_gets_an_empty_one() {
    let content =
        json!([{"type": "reasoning_text", "text": "c"}, {"type": "reasoning_text", "text": "d"}]);
    let item = json!({"type": "reasoning", "content": content, "encrypted_content": "e"});
    let reply = read_events(&[done(0, item.clone()), done(1, tail()), completed()]).unwrap();
    let mut expected = item;
    expected["summary"] = json!([]);
    assert_eq!(sent_back(reply.message)[0], expected);
}

#[test]
fn messages_of_any_shape_go_back_as_they_came() {
    let text = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let contents = [
        json!([text("")]),
        json!([text("a"), text("b")]),
        json!([text("a"), {"type": "refusal", "refusal": "No."}]),
        json!([{"type": "refusal", "refusal": "No.", "novel": 1}]),
        json!([text("a"), {"type": "novel_content", "x": [1]}, text("b")]),
        json!([{"type": "output_text", "text": "a", "annotations": [{"u": 1}], "logprobs": [{"t": 1}]}]),
    ];
    for content in contents {
        let message = json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "phase": "final_answer", "content": content});
        check(json!([message]));
        check(json!([message, tail(), message]));
    }
}

#[test]
fn items_nobody_knows_go_back_in_their_place() {
    let novel = json!({"type": "custom_tool_call", "call_id": "x", "input": "y", "nothing": null});
    let call = json!({"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c", "name": "Read", "arguments": "{}", "namespace": "n"});
    let compaction = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "z"});
    check(json!([compaction, novel, tail(), novel, call, novel]));
}

#[test]
fn arguments_go_back_as_they_were_written() {
    for arguments in ["{}", "{ }", "{\"a\": 1}", "{\"a\":1.50,\"b\":1e3}", "{\"a\":\"\\u00e9\\/\"}"]
    {
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "Read", "arguments": arguments});
        check(json!([call]));
    }
}

#[test]
fn arguments_that_were_changed_go_back_as_they_are_now() {
    let call =
        json!({"type": "function_call", "call_id": "c", "name": "Read", "arguments": "{\"a\": 1}"});
    let mut message = read_events(&[done(0, call), completed()]).unwrap().message;
    let [Part::ToolCall(call)] = &mut message.parts[..] else { panic!("{message:?}") };
    call.input = json!({"a": 2});
    assert_eq!(sent_back(message)[0]["arguments"], "{\"a\":2}");
}

#[test]
fn keys_go_back_in_the_order_they_came() {
    let item = r#"{"type":"novel","z":1,"a":{"y":1,"b":2},"m":null}"#;
    let event = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    let reply = read(&format!("data: {event}\n\ndata: {}\n\n", completed())).unwrap();
    assert_eq!(sent_back(reply.message).to_string(), format!("[{item}]"));
}

#[test]
fn fields_that_are_null_are_not_sent_back() {
    let item = json!({"type": "message", "id": "m", "role": "assistant", "phase": null, "content": [{"type": "output_text", "text": "a", "logprobs": null}]});
    let reply = read_events(&[done(0, item), completed()]).unwrap();
    let content = json!([{"type": "output_text", "text": "a", "annotations": []}]);
    let expected = json!([{"type": "message", "id": "m", "role": "assistant", "content": content}]);
    assert_eq!(sent_back(reply.message), expected);
}

#[test]
fn without_their_reasoning_items_go_back_without_their_ids() {
    let unsigned = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let call = json!({"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c", "name": "Read", "arguments": "{}"});
    let reply = read_events(&[done(0, unsigned), done(1, tail()), done(2, call), completed()]);
    let text = json!([{"type": "output_text", "text": "So.", "annotations": []}]);
    let expected = json!([
        {"type": "message", "role": "assistant", "status": "completed", "content": text},
        {"type": "function_call", "status": "completed", "call_id": "c", "name": "Read", "arguments": "{}"},
    ]);
    assert_eq!(sent_back(reply.unwrap().message), expected);
}

#[test]
fn reasoning_whose_call_was_cut_off_is_not_sent_back() {
    let signed =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"});
    let cut = json!({"type": "function_call", "status": "incomplete", "call_id": "c", "name": "Read", "arguments": "{"});
    let events = [done(0, tail()), done(1, signed), done(2, cut), incomplete("max_output_tokens")];
    let reply = read_events(&events).unwrap();
    assert_eq!(sent_back(reply.message), json!([tail()]));
}

#[test]
fn the_role_of_a_message_is_the_one_it_came_with() {
    let mut odd = tail();
    odd["role"] = json!("developer");
    check(json!([odd]));
    let bare = json!({"type": "message", "content": "Just text."});
    let reply = read_events(&[done(0, bare), completed()]).unwrap();
    let content = json!([{"type": "output_text", "text": "Just text.", "annotations": []}]);
    let expected = json!([{"type": "message", "role": "assistant", "content": content}]);
    assert_eq!(sent_back(reply.message), expected);
}

#[test]
fn what_the_host_adds_of_this_wire_is_sent_in_its_place() {
    let value = json!({"type": "computer_call_output", "call_id": "x"});
    let opaque = Part::Opaque { wire: "openai-responses".to_owned(), value: value.clone() };
    let said = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let input = input_of(vec![user(vec![Part::text("a"), opaque, Part::text("b")])]);
    assert_eq!(input, json!([said("a"), value, said("b")]));
}
