//! Replies from streams.

use super::transcripts::{PLAIN, RICH, read, read_chunks, reply_of, stream};
use posse_model::fault::Kind;
use posse_protocol::{Delta, Part, Stop, Usage, Usd};
use serde_json::{Value, json};

const START: &str = r#"{"type":"message_start","message":{}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;
const TEXT_0: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const TOOL_0: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"Read","input":{}}}"#;
const STOP_0: &str = r#"{"type":"content_block_stop","index":0}"#;

fn json_delta(index: usize, partial_json: &str) -> String {
    let delta = json!({"type": "input_json_delta", "partial_json": partial_json});
    json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
}

/// Reads a stream of these events and expects a fault of `kind` whose reason has `words`.
fn check_fault(events: &[&str], kind: Kind, words: &str) {
    let fault = read(&stream(events)).unwrap_err();
    assert_eq!(fault.kind, kind, "{fault:?}");
    assert!(fault.reason.contains(words), "{fault:?}");
}

/// Reads a reply of one tool block with these arguments and returns the arguments of the call.
fn input_of(arguments: &[&str], stop_reason: &str) -> Option<Value> {
    let deltas: Vec<String> = arguments.iter().map(|piece| json_delta(0, piece)).collect();
    let mut events = vec![TOOL_0];
    events.extend(deltas.iter().map(String::as_str));
    events.push(STOP_0);
    let reply = read(&reply_of(&events, stop_reason)).unwrap();
    reply.message.tool_calls().next().map(|call| call.input.clone())
}

#[test]
fn a_reply_has_its_usage_cost_stop_and_id() {
    let reply = read(RICH).unwrap();
    let cost = Usd(12 * 3_000 + 340 * 3_750 + 5_600 * 300 + 89 * 15_000);
    assert_eq!(reply.stop, Stop::ToolUse);
    assert_eq!(reply.request_id.as_deref(), Some("msg_1"));
    assert_eq!(reply.service_tier.as_deref(), Some("standard"));
    assert_eq!(reply.message.wire.as_deref(), Some("anthropic"));
    let expected = Usage {
        input_tokens: 12,
        cache_read_tokens: 5_600,
        cache_write_tokens: 340,
        output_tokens: 89,
        cost,
        ..Usage::default()
    };
    assert_eq!(reply.usage, expected);
}

#[test]
fn what_is_shown_is_text_and_reasoning_as_it_comes() {
    let (reply, shown) = read_chunks([RICH.as_bytes()]);
    assert!(reply.is_ok());
    let thinking = |text: &str| Delta::Thinking { text: text.to_owned() };
    let text = Delta::Text { text: "It is warm — très chaud 🌡.".to_owned() };
    assert_eq!(shown, [thinking("First, "), thinking("look."), text]);
}

#[test]
fn text_in_the_start_of_a_block_is_shown_and_kept() {
    let start = TEXT_0.replace(r#""text":"""#, r#""text":"Hi""#);
    let (reply, shown) = read_chunks([reply_of(&[&start, STOP_0], "end_turn").as_bytes()]);
    assert_eq!(reply.unwrap().message.text(), "Hi");
    assert_eq!(shown, [Delta::Text { text: "Hi".to_owned() }]);
}

#[test]
fn missing_and_absurd_usage_counts_but_never_fails() {
    let usage = read(&reply_of(&[], "end_turn")).unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (0, 1));
    let usage = read(&stream(&[START, STOP])).unwrap().usage;
    assert_eq!(usage, Usage::default());
    let absurd = format!(
        r#"{{"type":"message_start","message":{{"usage":{{"input_tokens":{0},"output_tokens":{0},"cache_read_input_tokens":null}}}}}}"#,
        u64::MAX
    );
    let usage = read(&stream(&[&absurd, STOP])).unwrap().usage;
    assert_eq!(usage.input_tokens, u64::from(u32::MAX));
}

#[test]
fn stop_reasons_are_told_apart() {
    let check = |reason: &str, stop: Stop| {
        assert_eq!(read(&reply_of(&[], reason)).unwrap().stop, stop);
    };
    check("end_turn", Stop::End);
    check("stop_sequence", Stop::End);
    check("tool_use", Stop::ToolUse);
    check("max_tokens", Stop::MaxTokens);
    check("model_context_window_exceeded", Stop::MaxTokens);
    check("refusal", Stop::Refusal);
    check("pause_turn", Stop::Other("pause_turn".to_owned()));
}

#[test]
fn arguments_in_pieces_become_one_value() {
    assert_eq!(input_of(&["{\"a\"", ":1", "}"], "tool_use"), Some(json!({"a": 1})));
    assert_eq!(input_of(&[], "tool_use"), Some(json!({})));
    assert_eq!(input_of(&[""], "end_turn"), Some(json!({})));
}

#[test]
fn arguments_that_are_not_json_are_kept_as_raw_text() {
    assert_eq!(input_of(&["{\"a\": nope}"], "tool_use"), Some(json!("{\"a\": nope}")));
    assert_eq!(input_of(&["{\"a\":1} trailing"], "tool_use"), Some(json!("{\"a\":1} trailing")));
    let deep = "[".repeat(100_000);
    assert_eq!(input_of(&[&deep], "tool_use"), Some(json!(deep)));
}

#[test]
fn a_call_that_the_output_cap_cut_off_is_dropped() {
    assert_eq!(input_of(&["{\"path\":\"/etc"], "max_tokens"), None);
    assert_eq!(input_of(&[], "max_tokens"), None);
    assert_eq!(input_of(&["{\"path\":\"/etc"], "refusal"), None);
    assert_eq!(input_of(&["{\"path\":\"/etc"], "model_context_window_exceeded"), None);
    assert_eq!(input_of(&["{\"path\":\"/etc"], "pause_turn"), None);
    assert_eq!(input_of(&["{\"path\":\"/etc\"}"], "max_tokens"), Some(json!({"path": "/etc"})));
}

#[test]
fn a_call_whose_block_never_stopped_is_dropped_if_the_reply_was_cut_short_or_makes_it_a_fault() {
    let arguments = json_delta(0, "{\"path\":\"/etc\"}");
    let reply = read(&reply_of(&[TOOL_0, &arguments], "max_tokens")).unwrap();
    assert_eq!(reply.message.parts, []);
    for whole in ["tool_use", "end_turn"] {
        let fault = read(&reply_of(&[TOOL_0, &arguments], whole)).unwrap_err();
        assert_eq!(fault.kind, Kind::Cut, "{whole}");
    }
}

#[test]
fn a_signature_whose_block_never_stopped_is_dropped() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm","signature":"half"}}"#;
    let reply = read(&reply_of(&[start], "max_tokens")).unwrap();
    let [Part::Thinking(thinking)] = &reply.message.parts[..] else { panic!("{reply:?}") };
    assert_eq!((thinking.text.as_str(), &thinking.signature), ("hm", &None));
}

#[test]
fn a_stream_without_message_stop_is_cut_wherever_it_ends() {
    for (position, _) in RICH.match_indices("\n\n") {
        let (body, rest) = RICH.split_at(position);
        let fault = read(body).map(|_| rest).unwrap_err();
        assert_eq!(fault.kind, Kind::Cut, "after {position} bytes");
    }
}

#[test]
fn errors_inside_a_stream_are_told_apart_by_their_type() {
    let check = |kind: &str, message: &str, expected: Kind| {
        let error = json!({"type": "error", "error": {"type": kind, "message": message}});
        check_fault(&[START, TEXT_0, &error.to_string()], expected, message);
    };
    check("overloaded_error", "Overloaded", Kind::Overloaded(None));
    check("api_error", "Internal server error", Kind::Overloaded(None));
    check("rate_limit_error", "slow down", Kind::RateLimited(None));
    check("authentication_error", "invalid x-api-key", Kind::Unauthorised);
    check("permission_error", "not yours", Kind::Unauthorised);
    let too_long = "prompt is too long: 210000 tokens > 200000 maximum";
    check("invalid_request_error", too_long, Kind::ContextOverflow);
    check("invalid_request_error", "tools.0: bad schema", Kind::Rejected);
    check("something_new", "what", Kind::Rejected);
}

#[test]
fn errors_of_proxies_are_understood() {
    let check = |data: &str, expected: Kind, words: &str| check_fault(&[data], expected, words);
    let named = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
    check(named, Kind::RateLimited(None), "slow down");
    check(r#"{"error":{"message":"gone"}}"#, Kind::Overloaded(None), "gone");
    check(r#"{"error":"upstream is gone"}"#, Kind::Overloaded(None), "upstream is gone");
    check(r#"{"type":"error","error":{"odd":1}}"#, Kind::Overloaded(None), "odd");
    check(r#"{"type":"error"}"#, Kind::Malformed, "an error event cannot be read");
}

#[test]
fn what_is_said_about_a_reply_stays_with_it() {
    let dropped = json!([{"type": "thinking_dropped", "path": "messages.1.content.0",
        "reason": "prefix_binding_mismatch"}]);
    let details = json!({"type": "refusal", "category": "cyber"});
    let start = json!({"type": "message_start", "message": {"input_transformations": dropped}});
    let end = json!({"type": "message_delta",
        "delta": {"stop_reason": "refusal", "stop_details": details}});
    let reply = read(&stream(&[&start.to_string(), &end.to_string(), STOP])).unwrap();
    let extra = serde_json::to_value(&reply.message.extra).unwrap();
    assert_eq!(extra, json!({"input_transformations": dropped, "stop_details": details}));
    let nothing = json!({"type": "message_start", "message": {"input_transformations": []}});
    let reply = read(&stream(&[&nothing.to_string(), STOP])).unwrap();
    assert!(reply.message.extra.is_empty());
}

#[test]
fn reasoning_is_counted_as_a_part_of_the_output() {
    let usage = |output: u64, thinking: u64| {
        let details = json!({"thinking_tokens": thinking});
        let counts = json!({"output_tokens": output, "output_tokens_details": details});
        let end = json!({"type": "message_delta", "delta": {}, "usage": counts}).to_string();
        read(&stream(&[START, &end, STOP])).unwrap().usage
    };
    assert_eq!((usage(90, 60).output_tokens, usage(90, 60).reasoning_tokens), (90, 60));
    assert_eq!(usage(90, 99).reasoning_tokens, 90);
}

#[test]
fn what_the_wire_does_not_allow_is_malformed() {
    let bad = |events: &[&str], words: &str| check_fault(events, Kind::Malformed, words);
    bad(&["{nope"], "an event cannot be read");
    bad(&["5"], "an event cannot be read");
    bad(&[START, START], "a second message_start");
    bad(&[TEXT_0], "before message_start");
    bad(&[STOP], "before message_start");
    bad(&[START, &TEXT_0.replace(":0", ":1")], "block 1 starts in place of 0");
    bad(&[START, TEXT_0, TEXT_0], "block 0 starts in place of 1");
    bad(&[START, STOP_0], "block 0, which is not open");
    bad(&[START, TEXT_0, STOP_0, STOP_0], "block 0, which is not open");
    bad(&[START, TEXT_0, &json_delta(3, "")], "block 3, which is not open");
    bad(&[START, TEXT_0, &json_delta(0, "{}")], "input_json_delta for block 0");
    bad(&[START, &TOOL_0.replace(r#""id":"c","#, "")], "without id or name");
    bad(&[START, r#"{"type":"content_block_start","index":0,"content_block":{}}"#], "a type");
    let number =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}"#;
    bad(&[START, TEXT_0, number], "cannot be read");
}

#[test]
fn events_after_message_stop_change_nothing() {
    let body = format!("{PLAIN}data: [DONE]\n\n{PLAIN}");
    assert_eq!(read(&body), read(PLAIN));
}

#[test]
fn event_names_may_be_missing() {
    let nameless: String = RICH
        .lines()
        .filter(|line| !line.starts_with("event:"))
        .fold(String::new(), |body, line| body + line + "\n");
    assert_eq!(read(&nameless), read(RICH));
}

#[test]
fn a_large_argument_in_small_pieces_is_read_in_one_pass() {
    let text = "x".repeat(200_000);
    let arguments = format!("{{\"content\":\"{text}\"}}");
    let pieces: Vec<&str> =
        arguments.as_bytes().chunks(20).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    assert_eq!(input_of(&pieces, "tool_use"), Some(json!({"content": text})));
}
