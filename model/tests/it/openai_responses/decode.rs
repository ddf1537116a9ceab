//! Replies from streams, and from documents.

use super::transcripts::{
    PLAIN, PRICE, RICH, RICH_ITEMS, added, call, completed, delta, done, message, read,
    read_chunks, read_document, read_events, shown_text, stream,
};
use posse_model::fault::Kind;
use posse_model::sse::Event;
use posse_model::wire::openai_responses::Decoder;
use posse_model::wire::{Decode, Progress};
use posse_protocol::{Delta, Stop, Usage, Usd};
use serde_json::{Value, json};

/// Reads a reply of one call that ended with these arguments and returns its input.
fn input_of(arguments: Value) -> Value {
    let mut item = call("c", "");
    item["arguments"] = arguments;
    let reply = read_events(&[done(0, item), completed()]).unwrap();
    reply.message.tool_calls().next().unwrap().input.clone()
}

/// The usage of a reply with these counts.
fn usage_of(counts: &Value) -> Usage {
    let end = json!({"type": "response.completed", "response": {"usage": counts}});
    let usage = read_events(&[end]).unwrap().usage;
    Usage { cost: Usd::ZERO, ..usage }
}

#[test]
fn a_reply_has_its_usage_cost_stop_tier_and_id() {
    let reply = read(RICH).unwrap();
    assert_eq!(reply.stop, Stop::ToolUse);
    assert_eq!(reply.request_id.as_deref(), Some("resp_1"));
    assert_eq!(reply.service_tier.as_deref(), Some("default"));
    assert_eq!(reply.message.wire.as_deref(), Some("openai-responses"));
    let mut usage = Usage {
        input_tokens: 12,
        cache_read_tokens: 5_600,
        cache_write_tokens: 340,
        output_tokens: 89,
        reasoning_tokens: 64,
        ..Usage::default()
    };
    usage.cost = PRICE.of(&usage);
    assert_eq!(reply.usage, usage);
}

#[test]
fn the_start_of_a_reply_says_what_its_end_leaves_out() {
    let start =
        json!({"type": "response.created", "response": {"id": "resp_9", "service_tier": "flex"}});
    let reply = read_events(&[start, completed()]).unwrap();
    assert_eq!(reply.request_id.as_deref(), Some("resp_9"));
    assert_eq!(reply.service_tier.as_deref(), Some("flex"));
}

#[test]
fn counts_are_taken_apart_and_never_fail() {
    let check = |counts: Value, expected: [u64; 5]| {
        let [input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens] =
            expected;
        let expected = Usage {
            input_tokens,
            cache_read_tokens,
            cache_write_tokens,
            output_tokens,
            reasoning_tokens,
            ..Usage::default()
        };
        assert_eq!(usage_of(&counts), expected, "{counts}");
    };
    check(Value::Null, [0; 5]);
    check(json!({}), [0; 5]);
    check(json!({"input_tokens": 7, "output_tokens": 3}), [7, 0, 0, 3, 0]);
    let cached = json!({"cached_tokens": 4, "cache_write_tokens": 2});
    check(json!({"input_tokens": 10, "input_tokens_details": cached}), [4, 4, 2, 0, 0]);
    let all = json!({"cached_tokens": 99, "cache_write_tokens": 99});
    check(json!({"input_tokens": 10, "input_tokens_details": all}), [0, 10, 0, 0, 0]);
    let none = json!({"cached_tokens": null});
    let null =
        json!({"input_tokens": 5, "input_tokens_details": none, "output_tokens_details": null});
    check(null, [5, 0, 0, 0, 0]);
    let reasoning = json!({"reasoning_tokens": 50});
    check(json!({"output_tokens": 9, "output_tokens_details": reasoning}), [0, 0, 0, 9, 9]);
    let most = u64::from(u32::MAX);
    check(json!({"input_tokens": u64::MAX, "output_tokens": 1e300}), [most, 0, 0, most, 0]);
    check(json!({"input_tokens": -5, "output_tokens": 2.0}), [0, 0, 0, 2, 0]);
}

#[test]
fn what_is_shown_is_text_and_reasoning_as_it_comes() {
    let (reply, shown) = read_chunks([RICH.as_bytes()]);
    assert!(reply.is_ok());
    let thinking = |text: &str| Delta::Thinking { text: text.to_owned() };
    let text = |text: &str| Delta::Text { text: text.to_owned() };
    let expected = [
        thinking("First, "),
        thinking("look."),
        thinking("\n\nThen act."),
        text("It is warm — "),
        text("très \"chaud\" 🌡."),
        text("More."),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn what_no_delta_told_is_shown_at_the_end() {
    let check = |events: &[Value], expected: &str| {
        let (reply, shown) = read_chunks([stream(events).as_bytes()]);
        assert_eq!(reply.unwrap().message.text(), "Hello, world.");
        assert_eq!(shown_text(&shown), expected);
    };
    let whole = done(0, message("m", "Hello, world."));
    let open = added(0, message("m", ""));
    let some = delta("output_text", 0, "Hello");
    let other = delta("output_text", 0, "Bye");
    let all = json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hello, world."});
    check(&[whole.clone(), completed()], "Hello, world.");
    check(&[open.clone(), some.clone(), whole.clone(), completed()], "Hello, world.");
    check(&[open.clone(), some.clone(), all.clone(), whole.clone(), completed()], "Hello, world.");
    check(&[open.clone(), some.clone(), all.clone(), completed()], "Hello, world.");
    check(&[open, other, whole.clone(), completed()], "Bye");
    check(&[some, whole, completed()], "Hello, world.");
}

#[test]
fn reasoning_that_no_delta_told_is_shown_at_the_end() {
    let piece = |text: &str| json!({"type": "summary_text", "text": text});
    let item = json!({"type": "reasoning", "id": "rs", "summary": [piece("One."), piece("Two.")]});
    let (_, shown) = read_chunks([stream(&[done(0, item), completed()]).as_bytes()]);
    let thinking = |text: &str| Delta::Thinking { text: text.to_owned() };
    assert_eq!(shown, [thinking("One."), thinking("\n\nTwo.")]);
}

#[test]
fn a_raw_train_of_thought_is_shown_and_kept() {
    let content = json!([{"type": "reasoning_text", "text": "Hm. Yes."}]);
    let item = json!({"type": "reasoning", "id": "rs", "summary": [], "content": content});
    let events = [
        added(0, json!({"type": "reasoning", "id": "rs", "summary": []})),
        delta("reasoning_text", 0, "Hm. "),
        delta("reasoning_text", 0, "Yes."),
        done(0, item),
        completed(),
    ];
    let (reply, shown) = read_chunks([stream(&events).as_bytes()]);
    let thinking = |text: &str| Delta::Thinking { text: text.to_owned() };
    assert_eq!(shown, [thinking("Hm. "), thinking("Yes.")]);
    let parts = serde_json::to_value(reply.unwrap().message.parts).unwrap();
    let expected =
        json!([{"type": "thinking", "text": "Hm. Yes.", "item": {"id": "rs", "summary": []}}]);
    assert_eq!(parts, expected);
}

#[test]
fn a_reply_that_never_streamed_is_read_the_same_way() {
    let output: Value = serde_json::from_str(RICH_ITEMS).unwrap();
    let usage = json!({"input_tokens": 5_952, "output_tokens": 89,
        "input_tokens_details": {"cached_tokens": 5_600, "cache_write_tokens": 340},
        "output_tokens_details": {"reasoning_tokens": 64}});
    let body = json!({"id": "resp_1", "object": "response", "status": "completed", "error": null,
        "output": output, "service_tier": "default", "usage": usage});
    let (reply, shown) = read_document(&body);
    assert_eq!(reply, read(RICH));
    assert_eq!(shown_text(&shown), "It is warm — très \"chaud\" 🌡.More.");
}

#[test]
fn a_document_that_is_no_reply_says_why() {
    let check = |body: Value, kind: Kind, words: &str| {
        let fault = read_document(&body).0.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault:?}");
        assert!(fault.reason.contains(words), "{fault:?}");
    };
    check(json!({"object": "response"}), Kind::Malformed, "without output");
    check(json!([]), Kind::Malformed, "cannot be read");
    check(json!({"output": [{}]}), Kind::Malformed, "without a type");
    check(json!({"status": "in_progress", "output": []}), Kind::Cut, "in_progress");
    check(json!({"status": "cancelled", "output": []}), Kind::Cut, "cancelled");
    let error = json!({"code": "server_error", "message": "oops"});
    check(json!({"error": error}), Kind::Overloaded(None), "oops");
    check(
        json!({"status": "failed", "error": error, "output": []}),
        Kind::Overloaded(None),
        "oops",
    );
}

#[test]
fn a_reply_ends_for_what_is_in_it() {
    let stop = |item: Value| read_events(&[done(0, item), completed()]).unwrap().stop;
    assert_eq!(stop(message("m", "Hi")), Stop::End);
    assert_eq!(stop(call("c", "{}")), Stop::ToolUse);
    let refusal = json!([{"type": "refusal", "refusal": "No."}]);
    let refused = json!({"type": "message", "id": "m", "role": "assistant", "content": refusal});
    assert_eq!(stop(refused.clone()), Stop::Refusal);
    let both = read_events(&[done(0, refused), done(1, call("c", "{}")), completed()]).unwrap();
    assert_eq!(both.stop, Stop::ToolUse);
    assert_eq!(both.message.text(), "No.");
    assert_eq!(read_events(&[completed()]).unwrap().stop, Stop::End);
}

#[test]
fn arguments_become_a_value_or_stay_raw() {
    let check = |arguments: Value, input: Value| assert_eq!(input_of(arguments), input);
    check(json!("{\"a\":1}"), json!({"a": 1}));
    check(json!(""), json!({}));
    check(Value::Null, json!({}));
    check(json!({"a": 1}), json!({"a": 1}));
    check(json!("[1]"), json!([1]));
    check(json!("{\"a\": nope}"), json!("{\"a\": nope}"));
    check(json!("{\"a\":1} trailing"), json!("{\"a\":1} trailing"));
    let deep = "[".repeat(100_000);
    check(json!(deep), json!(deep));
}

#[test]
fn a_large_argument_in_small_pieces_is_read_in_one_pass() {
    let arguments = json!({"content": "x".repeat(200_000)}).to_string();
    let mut events = vec![added(0, call("c", ""))];
    let pieces = arguments.as_bytes().chunks(20).map(|piece| std::str::from_utf8(piece).unwrap());
    events.extend(pieces.map(|piece| delta("function_call_arguments", 0, piece)));
    events.push(json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": arguments}));
    events.push(completed());
    let reply = read_events(&events).unwrap();
    let input = &reply.message.tool_calls().next().unwrap().input;
    assert_eq!(input.to_string(), arguments);
}

#[test]
fn only_what_moves_the_reply_counts_as_progress() {
    let mut decoder = Decoder::default();
    let mut check = |event: &Value, expected: Progress| {
        let data = event.to_string().into_bytes();
        let progress = decoder.event(&Event { name: b"", data: data.into() }, &|_| {}).unwrap();
        assert_eq!(progress, expected, "{event}");
    };
    let kind = |kind: &str| json!({"type": kind, "response": {"id": "r"}, "output_index": 0});
    check(&kind("response.queued"), Progress::Moved);
    check(&kind("response.created"), Progress::None);
    check(&kind("response.in_progress"), Progress::None);
    check(&kind("keepalive"), Progress::None);
    check(&kind("response.something_new"), Progress::None);
    check(&added(0, message("m", "")), Progress::Moved);
    check(&added(0, message("m", "")), Progress::None);
    check(&delta("output_text", 0, ""), Progress::None);
    check(&delta("output_text", 0, "a"), Progress::Moved);
    check(&delta("function_call_arguments", 0, "a"), Progress::None);
    check(&kind("response.content_part.done"), Progress::Moved);
    check(&done(0, message("m", "a")), Progress::Moved);
    check(&delta("output_text", 0, "late"), Progress::None);
    check(&kind("response.code_interpreter_call_code.delta"), Progress::Moved);
    check(&completed(), Progress::Complete);
    check(&added(1, message("n", "")), Progress::Complete);
}

#[test]
fn a_stream_without_its_end_is_cut_wherever_it_stops() {
    for (position, _) in RICH.match_indices("\n\n") {
        let (body, _) = RICH.split_at(position);
        let fault = read(body).unwrap_err();
        assert_eq!(fault.kind, Kind::Cut, "after {position} bytes");
    }
    assert_eq!(read("").unwrap_err().reason, "it ended before it began");
}

#[test]
fn event_names_may_be_missing_or_say_nothing() {
    let renamed = |name: &str| -> String {
        let lines = RICH.lines().filter_map(|line| match line.starts_with("event:") {
            true if name.is_empty() => None,
            true => Some(format!("event: {name}\n")),
            false => Some(format!("{line}\n")),
        });
        lines.collect()
    };
    assert_eq!(read(&renamed("")), read(RICH));
    assert_eq!(read(&renamed("message")), read(RICH));
}

#[test]
fn what_gateways_add_changes_nothing() {
    let added = format!("data: [DONE]\n\nevent: ping\ndata: not JSON\n\n{PLAIN}");
    assert_eq!(read(&added), read(PLAIN));
    let after = format!("{PLAIN}data: [DONE]\n\n{RICH}");
    assert_eq!(read(&after), read(PLAIN));
}
