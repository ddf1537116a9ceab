//! Providers that do not number, name or finish their items as they should.

use super::transcripts::{
    added, call, completed, delta, done, message, read_chunks, read_events, shown_text, stream,
};
use posse_model::fault::Kind;
use posse_protocol::{Part, Stop};
use serde_json::{Value, json};

/// Reads these events, and a complete end, and expects these texts and call ids, in order.
fn check(events: &[Value], expected: &[&str]) {
    let events = [events, &[completed()]].concat();
    let reply = read_events(&events).unwrap();
    let said = reply.message.parts.iter().map(|part| match part {
        Part::Text(text) => text.text.clone(),
        Part::Thinking(thinking) => thinking.text.clone(),
        Part::ToolCall(call) => call.id.to_string(),
        other => panic!("{other:?}"),
    });
    assert_eq!(said.collect::<Vec<_>>(), expected);
}

fn without_index(mut event: Value) -> Value {
    event.as_object_mut().unwrap().shift_remove("output_index");
    event
}

fn reasoning(text: &str) -> Value {
    json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
}

#[test]
fn items_are_put_into_the_order_of_their_numbers() {
    check(
        &[
            added(4_000_000_000, message("c", "")),
            added(1, message("b", "")),
            added(0, message("a", "")),
            delta("output_text", 4_000_000_000, "last"),
            done(1, message("b", "second")),
            done(4_000_000_000, message("c", "last")),
            done(0, message("a", "first")),
        ],
        &["first", "second", "last"],
    );
}

#[test]
fn items_that_all_have_one_number_stay_in_the_order_they_came() {
    check(
        &[
            added(0, reasoning("")),
            done(0, reasoning("hm")),
            added(0, message("m", "")),
            delta("output_text", 0, "Hi"),
            done(0, message("m", "Hi")),
            added(0, call("c1", "")),
            added(0, call("c2", "")),
            done(0, call("c1", "{}")),
            done(0, call("c2", "{}")),
        ],
        &["hm", "Hi", "c1", "c2"],
    );
    check(
        &[
            added(0, reasoning("")),
            added(0, message("", "")),
            done(0, reasoning("hm")),
            done(0, message("", "Hi")),
        ],
        &["hm", "Hi"],
    );
}

#[test]
fn items_without_a_number_find_their_place() {
    let events = [
        added(0, message("a", "")),
        delta("output_text", 0, "on"),
        done(0, message("a", "one")),
        done(0, message("a", "one")),
        added(0, message("b", "")),
        delta("output_text", 0, "two"),
        done(0, call("c", "{}")),
        done(0, message("b", "two")),
    ];
    check(&events.map(without_index), &["one", "two", "c"]);
}

#[test]
fn an_item_whose_id_changes_is_one_item() {
    check(
        &[
            added(0, message("a", "")),
            delta("output_text", 0, "Hi"),
            done(0, message("b", "Hi")),
            added(1, call("c", "")),
            done(1, call("d", "{}")),
        ],
        &["Hi", "d"],
    );
}

#[test]
fn items_that_all_have_one_id_and_one_number_stay_apart() {
    let named = |item: Value| {
        let mut item = item;
        item["id"] = json!("same");
        item
    };
    check(
        &[
            added(0, named(reasoning(""))),
            done(0, named(reasoning("hm"))),
            added(0, named(message("", ""))),
            done(0, named(message("", "Hi"))),
            added(0, named(call("c1", ""))),
            done(0, named(call("c1", "{}"))),
            added(0, named(call("c2", ""))),
            done(0, named(call("c2", "{}"))),
        ],
        &["hm", "Hi", "c1", "c2"],
    );
}

#[test]
fn an_empty_id_is_none() {
    let nameless = |text: &str| [added(0, message("", "")), done(0, message("", text))];
    check(&[nameless("one"), nameless("two")].concat(), &["one", "two"]);
}

#[test]
fn what_comes_twice_is_shown_once() {
    let events = [done(0, message("m", "Hi")), done(0, message("m", "Hi")), completed()];
    let (_, shown) = read_chunks([stream(&events).as_bytes()]);
    assert_eq!(shown_text(&shown), "Hi");
}

#[test]
fn events_that_come_twice_count_once() {
    let bare = json!({"type": "message", "content": [{"type": "output_text", "text": "bare"}]});
    check(
        &[
            added(0, message("m", "")),
            added(0, message("m", "")),
            done(0, message("m", "Hi")),
            done(0, message("m", "Hi")),
            added(0, message("m", "")),
            delta("output_text", 0, "late"),
            done(1, bare.clone()),
            done(1, bare),
        ],
        &["Hi", "bare"],
    );
}

#[test]
fn deltas_count_for_an_item_that_never_ended() {
    let piece = |index: u64, more: &str| json!({"type": "response.output_text.delta", "output_index": 1, "content_index": index, "delta": more});
    check(
        &[
            delta("reasoning_summary_text", 0, "hm"),
            added(1, message("m", "")),
            piece(7, "two"),
            piece(u64::MAX, "three"),
            piece(0, "one"),
            delta("function_call_arguments", 2, "{}"),
        ],
        &["hm", "one", "two", "three"],
    );
}

#[test]
fn an_end_that_was_not_told_is_taken_from_the_end_of_the_reply() {
    let output = json!([message("m", "Hello."), call("c", "{}")]);
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": output}});
    let check = |events: &[Value]| {
        let events = [events, std::slice::from_ref(&end)].concat();
        let (reply, shown) = read_chunks([stream(&events).as_bytes()]);
        let reply = reply.unwrap();
        assert_eq!((reply.message.text().as_str(), reply.stop), ("Hello.", Stop::ToolUse));
        assert_eq!(shown_text(&shown), "Hello.");
    };
    check(&[]);
    check(&[added(0, message("m", "")), done(1, call("c", "{}"))]);
    check(&[added(0, message("m", "")), delta("output_text", 0, "Hel"), added(1, call("c", ""))]);
    check(&[added(5, message("m", "")), added(6, call("c", ""))]);
    check(&[added(0, message("other", "")), added(1, call("other", ""))]);
}

#[test]
fn the_end_of_the_reply_does_not_repeat_what_is_done() {
    let output = json!([message("x", "Hello."), reasoning("other"), call("c", "{}")]);
    let end = json!({"type": "response.completed", "response": {"output": output}});
    let events = [done(0, message("m", "Hello.")), added(1, call("c", "")), end];
    let reply = read_events(&events).unwrap();
    assert_eq!(reply.message.text(), "Hello.");
    assert_eq!(reply.message.parts.len(), 2);
    let output = json!([message("m", "Hello."), reasoning("other")]);
    let end = json!({"type": "response.completed", "response": {"output": output}});
    let events = [done(0, message("m", "Hello.")), added(1, call("c", "")), end];
    assert_eq!(read_events(&events).unwrap_err().kind, Kind::Cut);
}

#[test]
fn calls_without_an_id_get_one_and_calls_with_the_same_id_are_told_apart() {
    let nameless = json!({"type": "function_call", "name": "Read", "arguments": "{}"});
    let by_item = json!({"type": "function_call", "id": "fc_9", "call_id": "", "name": "Read", "arguments": "{}"});
    let start = json!({"type": "response.created", "response": {"id": "resp_9"}});
    check(&[start, done(0, nameless), done(1, by_item)], &["call_0_of_resp_9", "fc_9"]);
    let twin = |item: &str| {
        let mut twin = call("c", "{}");
        twin["id"] = json!(item);
        twin
    };
    check(&[done(0, twin("a")), done(1, twin("b")), done(2, twin("d"))], &["c", "c_2", "c_3"]);
}

#[test]
fn what_cannot_be_read_is_malformed() {
    let check = |events: &[Value], words: &str| {
        let fault = read_events(events).unwrap_err();
        assert_eq!(fault.kind, Kind::Malformed, "{fault:?}");
        assert!(fault.reason.contains(words), "{fault:?}");
    };
    check(&[json!("text")], "an event cannot be read");
    check(&[added(0, json!({}))], "without a type");
    check(&[done(0, json!({"type": 5}))], "without a type");
    check(&[done(0, json!({"type": "function_call", "call_id": "c"}))], "without a name");
    check(&[json!({"type": "response.output_item.done", "item": 5})], "output_item.done cannot");
    let mut number = delta("output_text", 0, "");
    number["delta"] = json!(5);
    check(&[number], "a delta cannot be read");
    check(
        &[json!({"type": "response.output_text.delta", "output_index": -1, "delta": "a"})],
        "a delta",
    );
    check(&[json!({"type": "response.completed", "response": 5})], "the end of the reply");
}

#[test]
fn the_number_of_items_and_of_texts_in_one_is_bounded() {
    let items: Vec<Value> = (0..2_000).map(|index| added(index, message("", ""))).collect();
    assert_eq!(read_events(&items).unwrap_err().reason, "a reply of more than 1024 items");
    let text = |index: u64| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": index, "delta": "a"});
    let texts: Vec<Value> = (0..2_000).map(text).collect();
    assert_eq!(read_events(&texts).unwrap_err().reason, "an item of more than 1024 texts");
}
