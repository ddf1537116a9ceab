//! Replies from streams and documents.

use super::transcripts::{
    PLAIN, RICH, body_of, chunk, end, read, read_chunks, read_document, reply_of, stream,
};
use posse_model::fault::Kind;
use posse_model::sse::Event;
use posse_model::wire::{Progress, Wire};
use posse_protocol::{Delta, Part, Stop, Usage, Usd};
use serde_json::{Value, json};

fn thinking(text: &str) -> Delta {
    Delta::Thinking { text: text.to_owned() }
}

fn text(text: &str) -> Delta {
    Delta::Text { text: text.to_owned() }
}

/// What each event does to the reply.
fn progress_of(events: &[&str]) -> Vec<Progress> {
    let mut decoder = Wire::OpenaiChat.decoder();
    let step = |data: &&str| {
        let event = Event { name: b"", data: data.as_bytes().into() };
        decoder.event(&event, &|_| {}).unwrap()
    };
    events.iter().map(step).collect()
}

#[test]
fn a_reply_has_its_usage_cost_stop_and_id() {
    let reply = read(RICH).unwrap();
    assert_eq!(reply.stop, Stop::ToolUse);
    assert_eq!(reply.request_id.as_deref(), Some("gen-1"));
    assert_eq!(reply.service_tier.as_deref(), Some("standard"));
    assert_eq!(reply.message.wire.as_deref(), Some("openai-chat"));
    let expected = Usage {
        input_tokens: 12,
        cache_read_tokens: 5_600,
        cache_write_tokens: 340,
        output_tokens: 89,
        reasoning_tokens: 20,
        cost: Usd(12 * 3_000 + 340 * 3_750 + 5_600 * 300 + 89 * 15_000),
        ..Usage::default()
    };
    assert_eq!(reply.usage, expected);
}

#[test]
fn what_is_shown_is_text_and_reasoning_as_it_comes() {
    let (reply, shown) = read_chunks([RICH.as_bytes()]);
    assert!(reply.is_ok());
    let texts = [text("It is warm — "), text("très chaud 🌡.")];
    let expected: Vec<Delta> =
        [thinking("First, "), thinking("look.")].into_iter().chain(texts).collect();
    assert_eq!(shown, expected);
}

#[test]
fn a_reply_has_its_parts_in_order() {
    let reply = read(RICH).unwrap().message;
    let [Part::Thinking(thinking), Part::Text(text), Part::ToolCall(first), Part::ToolCall(second)] =
        &reply.parts[..]
    else {
        panic!("{reply:?}");
    };
    assert_eq!((thinking.text.as_str(), &thinking.signature), ("First, look.", &None));
    assert_eq!(text.text, "It is warm — très chaud 🌡.");
    assert_eq!((first.name.as_str(), &first.input), ("Read", &json!({"path": "café"})));
    assert_eq!(
        (second.name.as_str(), &second.input),
        ("Bash", &json!({"command": "ls é", "a": 1}))
    );
}

#[test]
fn reasoning_has_many_names_and_is_told_once() {
    let check = |delta: Value| {
        let (reply, shown) =
            read_chunks([body_of(&[delta, json!({"content": "x"})], "stop").as_bytes()]);
        let reply = reply.unwrap();
        let [Part::Thinking(found), Part::Text(_)] = &reply.message.parts[..] else {
            panic!("{reply:?}");
        };
        assert_eq!(found.text, "hm");
        assert_eq!(shown, [thinking("hm"), text("x")]);
    };
    check(json!({"reasoning_content": "hm"}));
    check(json!({"reasoning": "hm"}));
    check(json!({"reasoning": "hm", "reasoning_content": "hm"}));
    check(json!({"reasoning": "hm", "reasoning_content": ""}));
    check(json!({"reasoning": {"odd": 1}, "reasoning_content": "hm", "content": null}));
    check(json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}));
    check(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]}));
    check(
        json!({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),
    );
    check(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}));
    check(json!({"content": [{"type": "thinking", "thinking": "hm"}]}));
}

#[test]
fn details_of_reasoning_grow_by_index_and_stay_apart_by_type_and_id() {
    let detail = |detail: Value| json!({"reasoning_details": [detail]});
    let reply = reply_of(
        &[
            detail(
                json!({"type": "reasoning.text", "index": 0, "id": "a", "text": "1", "signature": null}),
            ),
            detail(json!({"type": "reasoning.text", "index": 1, "text": "x"})),
            detail(json!({"type": "reasoning.text", "index": 0, "text": "2", "format": "f"})),
            detail(
                json!({"type": "reasoning.text", "index": 0, "id": "a", "signature": "s", "text": null}),
            ),
            detail(json!({"type": "reasoning.text", "index": 0, "id": "b", "text": "3"})),
            detail(json!({"type": "reasoning.encrypted", "index": 0, "data": "d"})),
            detail(json!({"type": "reasoning.encrypted", "index": 0, "data": "e"})),
            detail(json!({"type": "reasoning.summary", "summary": "s"})),
            detail(json!({"type": "reasoning.summary", "summary": "t"})),
        ],
        "stop",
    );
    let [Part::Thinking(thinking)] = &reply.message.parts[..] else { panic!("{reply:?}") };
    let expected = json!([
        {"type": "reasoning.text", "index": 0, "id": "a", "text": "12", "signature": "s", "format": "f"},
        {"type": "reasoning.text", "index": 1, "text": "x"},
        {"type": "reasoning.text", "index": 0, "id": "b", "text": "3"},
        {"type": "reasoning.encrypted", "index": 0, "data": "d"},
        {"type": "reasoning.encrypted", "index": 0, "data": "e"},
        {"type": "reasoning.summary", "summary": "st"},
    ]);
    let kept: Vec<_> = thinking.extra.iter().collect();
    assert_eq!(kept, [(&"reasoning_details".to_owned(), &expected)]);
    assert_eq!(thinking.text, "1x23st");
}

#[test]
fn stop_reasons_are_told_apart() {
    let check = |reason: &str, stop: Stop| {
        assert_eq!(reply_of(&[json!({"content": "x"})], reason).stop, stop, "{reason}");
    };
    check("stop", Stop::End);
    check("eos", Stop::End);
    check("tool_calls", Stop::ToolUse);
    check("function_call", Stop::ToolUse);
    check("length", Stop::MaxTokens);
    check("model_length", Stop::MaxTokens);
    check("content_filter", Stop::Refusal);
    check("sensitive", Stop::Refusal);
    check("abort", Stop::Other("abort".to_owned()));
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "Read"}}]});
    assert_eq!(reply_of(&[call], "stop").stop, Stop::ToolUse);
}

#[test]
fn a_refusal_keeps_its_words() {
    let deltas = [json!({"refusal": "I can't "}), json!({"refusal": "do that.", "content": null})];
    let reply = reply_of(&deltas, "stop");
    assert_eq!(reply.stop, Stop::Refusal);
    assert_eq!(reply.message.text(), "I can't do that.");
    let reply = reply_of(&[json!({"refusal": "", "content": "Sure."})], "stop");
    assert_eq!(reply.stop, Stop::End);
}

#[test]
fn sources_are_kept_with_the_text_or_in_its_stead() {
    let with = |content: &str| {
        let mut event: Value = serde_json::from_str(&chunk(json!({"content": content}))).unwrap();
        event["citations"] = json!(["https://a", "https://b"]);
        let mut earlier: Value = serde_json::from_str(&chunk(json!({}))).unwrap();
        earlier["citations"] = json!(["https://a"]);
        let events = [earlier.to_string(), event.to_string(), end("stop")];
        let reply = read(&stream(&events)).unwrap();
        let [Part::Text(text)] = &reply.message.parts[..] else { panic!("{reply:?}") };
        let kept: Vec<_> =
            text.extra.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(kept, [("citations".to_owned(), json!(["https://a", "https://b"]))]);
        text.text.clone()
    };
    assert_eq!(with("See."), "See.");
    assert_eq!(with(""), "");
}

#[test]
fn a_stream_is_complete_after_its_reason_and_cut_before() {
    let reason = RICH.find("\"finish_reason\":\"tool_calls\"").unwrap();
    for (position, _) in RICH.match_indices("\n\n") {
        let body = format!("{}\n\n", &RICH[..position]);
        match read(&body) {
            Ok(reply) => {
                assert!(position > reason, "after {position} bytes");
                assert_eq!(reply.message, read(RICH).unwrap().message);
            }
            Err(fault) => {
                assert!(position < reason, "after {position} bytes");
                assert_eq!(fault.kind, Kind::Cut, "{fault:?}");
            }
        }
    }
    assert_eq!(read("").unwrap_err().kind, Kind::Cut);
    assert_eq!(read("data: [DONE]\n\n").unwrap_err().kind, Kind::Cut);
}

#[test]
fn a_vendor_that_never_says_why_it_stopped_is_believed_at_its_end() {
    let call = |arguments: &str| json!({"tool_calls": [{"id": "c", "function": {"name": "Read", "arguments": arguments}}]});
    let done = |delta: Value| read(&stream(&[chunk(delta), "[DONE]".to_owned()]));
    let reply = done(json!({"content": "Hi."})).unwrap();
    assert_eq!((reply.stop, reply.message.text()), (Stop::End, "Hi.".to_owned()));
    let reply = done(call("{\"a\":1}")).unwrap();
    assert_eq!((reply.stop, reply.message.tool_calls().count()), (Stop::ToolUse, 1));
    assert_eq!(done(call("{\"a\":")).unwrap().message.parts, []);
    assert_eq!(done(json!({})).unwrap_err().kind, Kind::Cut);
    assert_eq!(done(json!({"reasoning": "hm"})).unwrap_err().kind, Kind::Cut);
}

#[test]
fn events_after_the_end_change_nothing() {
    let body = format!("{PLAIN}{RICH}");
    assert_eq!(read(&body), read(PLAIN));
}

#[test]
fn only_what_is_new_counts_as_progress() {
    use Progress::{Complete, Moved, None};
    let role = chunk(json!({"role": "assistant", "content": ""}));
    let empty_call = chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}));
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":5}}"#;
    let events = [
        (role.as_str(), Moved),
        (&role, None),
        ("", None),
        ("{}", None),
        (r#"{"type":"ping"}"#, None),
        (r#"{"choices":null}"#, None),
        (r#"{"choices":[]}"#, None),
        (&chunk(Value::Null), None),
        (&chunk(json!({"content": "a"})), Moved),
        (&chunk(json!({"reasoning": "a"})), Moved),
        (&empty_call, None),
        (&chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]})), Moved),
        (usage, Moved),
        (usage, None),
        (&end("stop"), Moved),
        (&end("stop"), None),
        (" [DONE]", Complete),
        (&role, Complete),
    ];
    let (data, expected): (Vec<&str>, Vec<Progress>) = events.into_iter().unzip();
    assert_eq!(progress_of(&data), expected);
}

#[test]
fn a_document_is_the_same_reply_as_a_stream() {
    let streamed = read(RICH).unwrap();
    let message = json!({
        "role": "assistant",
        "content": "It is warm — très chaud 🌡.",
        "refusal": null,
        "reasoning": "First, look.",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "First, look.", "format": "anthropic-claude-v1",
             "index": 0, "signature": "EqQBCgIYAh=="},
            {"type": "reasoning.encrypted", "data": "EmwKAhgB", "z": 1, "a": null, "index": 1}],
        "annotations": [{"type": "url_citation",
            "url_citation": {"url": "https://example.com", "title": "Weather"}}],
        "tool_calls": [
            {"id": "toolu_1", "type": "function",
             "function": {"name": "Read", "arguments": "{\"path\":\"café\"}"},
             "extra_content": {"google": {"thought_signature": "c2ln"}}},
            {"id": "toolu_2", "type": "function",
             "function": {"name": "Bash", "arguments": "{\"command\":\"ls é\",\"a\":1}"}}],
    });
    let usage = json!({"prompt_tokens": 5952, "completion_tokens": 89, "total_tokens": 6041,
        "prompt_tokens_details": {"cached_tokens": 5600, "cache_write_tokens": 340},
        "completion_tokens_details": {"reasoning_tokens": 20}});
    let document = json!({"id": "gen-1", "object": "chat.completion", "service_tier": "standard",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": usage});
    let (reply, shown) = read_document(&document.to_string());
    assert_eq!(reply.unwrap(), streamed);
    assert_eq!(shown, [thinking("First, look."), text("It is warm — très chaud 🌡.")]);
}

#[test]
fn a_document_that_is_none_is_malformed() {
    let check = |body: &str, words: &str| {
        let fault = read_document(body).0.unwrap_err();
        assert_eq!(fault.kind, Kind::Malformed, "{fault:?}");
        assert!(fault.reason.contains(words), "{fault:?}");
    };
    check("<html>", "cannot be read");
    check("{}", "it has no message");
    check(r#"{"choices":[]}"#, "it has no message");
}

#[test]
fn what_the_wire_does_not_allow_is_malformed() {
    let check = |data: &str| {
        let fault = read(&stream(&[data])).unwrap_err();
        assert_eq!(fault.kind, Kind::Malformed, "{fault:?}");
        assert!(fault.reason.contains("a chunk cannot be read"), "{fault:?}");
    };
    check("{nope");
    check("5");
    check(r#"{"choices":{}}"#);
    check(r#"{"choices":[5]}"#);
    check(&chunk(json!({"content": 5})));
    check(&chunk(json!({"content": [5]})));
    check(&chunk(json!({"tool_calls": "none"})));
    check("{\"choices\":[{\"delta\":{\"content\":\"\\ud83c\"}}]}");
}

#[test]
fn a_delta_counts_where_the_message_so_far_is_sent_beside_it() {
    let event = |delta: &str, so_far: &str| {
        json!({"choices": [{"delta": {"content": delta}, "message": {"content": so_far}}]})
            .to_string()
    };
    let events = [event("a", "a"), event("b", "ab"), end("stop")];
    assert_eq!(read(&stream(&events)).unwrap().message.text(), "ab");
    let whole = json!({"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]});
    assert_eq!(read(&stream(&[whole.to_string()])).unwrap().message.text(), "ab");
}
