//! Replies from streams.

use super::errors::check_fault;
use super::transcripts::{PLAIN, RICH, read, read_chunks, read_document, reply_of, stream};
use posse_model::fault::Kind;
use posse_model::sse::Event;
use posse_model::wire::gemini::Decoder;
use posse_model::wire::{Decode, Progress};
use posse_protocol::{Delta, Part, Stop, Usage, Usd};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The ids and arguments of the calls in a reply of `parts`.
fn calls_of(parts: Value, finish_reason: &str) -> Vec<(String, Value)> {
    let reply = read(&reply_of(parts, finish_reason)).unwrap();
    reply.message.tool_calls().map(|call| (call.id.0.clone(), call.input.clone())).collect()
}

#[test]
fn a_reply_has_its_usage_cost_stop_and_id() {
    let reply = read(RICH).unwrap();
    assert_eq!(reply.stop, Stop::ToolUse);
    assert_eq!(reply.request_id.as_deref(), Some("mAitaLmkHPPlz7IPvtfUqQ4"));
    assert_eq!(reply.service_tier.as_deref(), Some("ON_DEMAND"));
    assert_eq!(reply.message.wire.as_deref(), Some("gemini"));
    let expected = Usage {
        input_tokens: 352 + 8,
        cache_read_tokens: 5_600,
        output_tokens: 61 + 29,
        reasoning_tokens: 29,
        cost: Usd(360 * 3_000 + 5_600 * 300 + 90 * 15_000),
        ..Usage::default()
    };
    assert_eq!(reply.usage, expected);
}

#[test]
fn what_is_shown_is_text_and_thoughts_as_they_come() {
    let (reply, shown) = read_chunks([RICH.as_bytes()]);
    assert!(reply.is_ok());
    let thinking = |text: &str| Delta::Thinking { text: text.to_owned() };
    let text = |text: &str| Delta::Text { text: text.to_owned() };
    let expected = [
        thinking("First, "),
        thinking("look."),
        thinking("Then."),
        text("It is warm — "),
        text("très "),
        text("chaud 🌡"),
        text("."),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn parts_of_a_text_are_one_text_whatever_they_carry() {
    assert_eq!(read(RICH).unwrap().message.text(), "It is warm — très chaud 🌡.");
    let parts = json!([
        {"text": "{\"a\": \"b", "thoughtSignature": "cw=="},
        {"text": "c\"}"},
        {"thoughtSignature": "ZQ=="},
    ]);
    assert_eq!(read(&reply_of(parts, "STOP")).unwrap().message.text(), "{\"a\": \"bc\"}");
}

#[test]
fn text_on_both_sides_of_a_call_is_two_texts() {
    let parts = json!([{"text": "a"}, {"functionCall": {"name": "Read"}}, {"text": "b"}]);
    let reply = read(&reply_of(parts, "STOP")).unwrap();
    assert_eq!(reply.message.parts.len(), 3);
    assert_eq!((reply.message.text().as_str(), reply.stop), ("a\nb", Stop::ToolUse));
}

#[test]
fn usage_is_split_whatever_is_missing() {
    let check = |counts: Value, input: u64, cached: u64, output: u64, reasoning: u64| {
        let chunk = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": counts});
        let usage = read(&stream(&[chunk])).unwrap().usage;
        let found = (
            usage.input_tokens,
            usage.cache_read_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
        );
        assert_eq!(found, (input, cached, output, reasoning), "{counts}");
        assert_eq!(usage.cache_write_tokens, 0);
    };
    check(Value::Null, 0, 0, 0, 0);
    check(json!({}), 0, 0, 0, 0);
    check(json!({"promptTokenCount": 10}), 10, 0, 0, 0);
    check(json!({"promptTokenCount": 10, "cachedContentTokenCount": 10}), 0, 10, 0, 0);
    check(json!({"promptTokenCount": 10, "cachedContentTokenCount": 99}), 0, 10, 0, 0);
    check(json!({"promptTokenCount": 10, "toolUsePromptTokenCount": 4}), 14, 0, 0, 0);
    check(json!({"candidatesTokenCount": 3, "thoughtsTokenCount": 4}), 0, 0, 7, 4);
    check(json!({"candidatesTokenCount": null, "thoughtsTokenCount": 4}), 0, 0, 4, 4);
    let most = u64::from(u32::MAX);
    check(json!({"promptTokenCount": u64::MAX}), most, 0, 0, 0);
}

#[test]
fn counts_are_sums_so_far_and_never_go_back() {
    let count = |thoughts: u64, candidates: u64| json!({"usageMetadata": {"thoughtsTokenCount": thoughts, "candidatesTokenCount": candidates}});
    let end = json!({"candidates": [{"finishReason": "STOP"}]});
    let usage = read(&stream(&[count(5, 0), count(9, 1), end, count(0, 7)])).unwrap().usage;
    assert_eq!((usage.output_tokens, usage.reasoning_tokens), (16, 9));
}

#[test]
fn reasons_to_finish_are_told_apart() {
    let check = |reason: &str, stop: Stop| {
        let reply = read(&reply_of(json!([{"text": "so far"}]), reason)).unwrap();
        assert_eq!(reply.stop, stop);
        assert_eq!(reply.message.text(), "so far");
    };
    check("STOP", Stop::End);
    check("MAX_TOKENS", Stop::MaxTokens);
    for reason in ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"] {
        check(reason, Stop::Refusal);
    }
    for reason in ["LANGUAGE", "OTHER", "TOO_MANY_TOOL_CALLS", "SOMETHING_NEW"] {
        check(reason, Stop::Other(reason.to_owned()));
    }
}

#[test]
fn a_prompt_that_is_blocked_is_a_refusal() {
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 7}});
    let reply = read(&stream(&[blocked])).unwrap();
    assert_eq!((reply.stop, reply.message.parts.len()), (Stop::Refusal, 0));
    assert_eq!(reply.usage.input_tokens, 7);
    let harmless = json!({"promptFeedback": {"safetyRatings": []}});
    check_fault(&[harmless], Kind::Cut, "without a finishReason");
}

#[test]
fn the_end_of_the_stream_is_the_end_and_nothing_before_it() {
    let mut decoder = Decoder::default();
    let mut take = |chunk: Value| {
        let data = Cow::Owned(chunk.to_string().into_bytes());
        decoder.event(&Event { name: b"", data }, &|_| {}).unwrap()
    };
    let text = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}}]});
    let end =
        json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]});
    let bare_end = json!({"candidates": [{"finishReason": "STOP"}]});
    let counts = json!({"usageMetadata": {"candidatesTokenCount": 3}});
    assert_eq!(take(text("a")), Progress::Moved);
    assert_eq!(take(text("")), Progress::None);
    assert_eq!(take(json!({})), Progress::None);
    assert_eq!(take(json!({"novel": 1})), Progress::None);
    assert_eq!(take(json!({"candidates": null, "responseId": "r"})), Progress::None);
    assert_eq!(take(end), Progress::Moved);
    assert_eq!(take(bare_end), Progress::None);
    assert_eq!(take(counts.clone()), Progress::Moved);
    assert_eq!(take(counts), Progress::None);
    assert_eq!(take(text("b")), Progress::Moved);
}

#[test]
fn a_proxy_may_say_that_it_is_done() {
    let body = format!("{PLAIN}data: [DONE]\n\ndata: {{nope\n\n");
    assert_eq!(read(&body), read(PLAIN));
    let early = "data: {\"candidates\":[]}\n\ndata: [DONE]\n\n";
    assert_eq!(read(early).unwrap_err().kind, Kind::Cut);
}

#[test]
fn a_stream_without_a_reason_to_finish_is_cut_wherever_it_ends() {
    let events: Vec<&str> = RICH.split_inclusive("\n\n").collect();
    let end = events.iter().position(|event| event.contains("finishReason")).unwrap();
    for count in 0..=end {
        let fault = read(&events[..count].concat()).unwrap_err();
        assert_eq!(fault.kind, Kind::Cut, "after {count} events");
    }
}

#[test]
fn a_stream_that_ends_after_the_reason_needs_no_counts() {
    let without: Vec<&str> = RICH.split_inclusive("\n\n").collect();
    let body = without[..without.len() - 1].concat();
    let reply = read(&body).unwrap();
    assert_eq!((reply.stop, reply.usage.output_tokens), (Stop::ToolUse, 89));
}

#[test]
fn calls_without_an_id_get_one_that_no_other_call_has() {
    let ids = |body: &str| -> Vec<String> {
        read(body).unwrap().message.tool_calls().map(|call| call.id.0.clone()).collect()
    };
    let made = "posse_mAitaLmkHPPlz7IPvtfUqQ4";
    assert_eq!(ids(RICH), ["fc-1", &format!("{made}_0"), &format!("{made}_1")]);
    let other = RICH.replace("mAitaLmkHPPlz7IPvtfUqQ4", "another");
    assert_eq!(ids(&other), ["fc-1", "posse_another_0", "posse_another_1"]);
    let odd = ids(&RICH.replace("mAitaLmkHPPlz7IPvtfUqQ4", "with space/and:more"));
    let plain = |id: &String| id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    assert!(odd.iter().all(|id| plain(id) && id.len() <= 40), "{odd:?}");
}

#[test]
fn without_the_id_of_a_reply_its_words_and_counts_make_the_ids() {
    let reply = |prompt: u64, path: &str| {
        let part = json!({"functionCall": {"name": "Read", "args": {"path": path}}});
        let candidate = json!({"content": {"parts": [part]}, "finishReason": "STOP"});
        let chunk =
            json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": prompt}});
        let reply = read(&stream(&[chunk])).unwrap();
        reply.message.tool_calls().next().unwrap().id.0.clone()
    };
    assert_eq!(reply(10, "a"), reply(10, "a"));
    assert_ne!(reply(10, "a"), reply(11, "a"));
    assert_ne!(reply(10, "a"), reply(10, "b"));
}

#[test]
fn an_id_that_is_there_twice_is_kept_once() {
    let parts = json!([
        {"functionCall": {"id": "a", "name": "Read"}},
        {"functionCall": {"id": "a", "name": "Read"}},
        {"functionCall": {"id": "posse_1", "name": "Read"}},
        {"functionCall": {"id": "", "name": "Read"}},
    ]);
    let ids: Vec<String> = calls_of(parts, "STOP").into_iter().map(|(id, _)| id).collect();
    let distinct: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!((ids[0].as_str(), distinct.len()), ("a", 4));
    assert!(ids[1..].iter().all(|id| id.starts_with("posse_") && id != "posse_1"), "{ids:?}");
}

#[test]
fn arguments_are_kept_whatever_they_are() {
    let input = |args: Value, reason: &str| {
        let parts = json!([{"functionCall": {"id": "c", "name": "Read", "args": args}}]);
        calls_of(parts, reason).pop().map(|(_, input)| input)
    };
    assert_eq!(input(json!({"a": 1}), "STOP"), Some(json!({"a": 1})));
    assert_eq!(input(Value::Null, "STOP"), Some(json!({})));
    assert_eq!(input(json!("{raw"), "STOP"), Some(json!("{raw")));
    assert_eq!(input(json!([1]), "STOP"), Some(json!([1])));
    assert_eq!(input(json!({"a": 1}), "MAX_TOKENS"), Some(json!({"a": 1})));
    assert_eq!(input(json!("{raw"), "MAX_TOKENS"), None);
    assert_eq!(input(Value::Null, "SAFETY"), None);
}

#[test]
fn only_the_first_candidate_is_read() {
    let candidate = |index: u64, text: &str| json!({"index": index, "content": {"parts": [{"text": text}]}, "finishReason": "STOP"});
    let chunk = json!({"candidates": [candidate(1, "no"), candidate(0, "yes")]});
    assert_eq!(read(&stream(&[chunk])).unwrap().message.text(), "yes");
}

#[test]
fn what_is_said_about_a_reply_stays_with_it() {
    let extra = serde_json::to_value(&read(RICH).unwrap().message.extra).unwrap();
    let expected = json!({
        "citationMetadata": [{"citationSources": [{"startIndex": 0, "uri": "https://example.com"}]}],
        "groundingMetadata": [{"webSearchQueries": ["weather"]}],
    });
    assert_eq!(extra, expected);
}

#[test]
fn a_document_gives_the_same_reply_as_its_stream() {
    let chunks: Vec<Value> = RICH
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let list = Value::Array(chunks.clone()).to_string();
    assert_eq!(read_document(&list), read_chunks([RICH.as_bytes()]));

    let parts: Vec<Value> = chunks
        .iter()
        .filter_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array())
        .flatten()
        .cloned()
        .collect();
    let mut whole = chunks.last().unwrap().clone();
    let candidate = &mut whole["candidates"][0];
    candidate["content"]["parts"] = parts.into();
    candidate["finishReason"] = "STOP".into();
    candidate["citationMetadata"] = chunks[5]["candidates"][0]["citationMetadata"].clone();
    whole["responseId"] = chunks[0]["responseId"].clone();
    whole["usageMetadata"]["trafficType"] = "ON_DEMAND".into();
    assert_eq!(read_document(&whole.to_string()), read_chunks([RICH.as_bytes()]));
}

#[test]
fn a_document_may_be_an_error_or_nothing() {
    let error = json!([{"error": {"code": 429, "message": "quota"}}]).to_string();
    assert_eq!(read_document(&error).0.unwrap_err().kind, Kind::RateLimited(None));
    assert_eq!(read_document("{}").0.unwrap_err().kind, Kind::Cut);
    assert_eq!(read_document("<html>").0.unwrap_err().kind, Kind::Malformed);
    let empty = json!({"candidates": [{"finishReason": "STOP"}]}).to_string();
    let reply = read_document(&empty).0.unwrap();
    assert_eq!((reply.message.parts, reply.stop), (Vec::<Part>::new(), Stop::End));
}

#[test]
fn a_long_text_in_small_chunks_is_one_part() {
    let chunk = json!({"candidates": [{"content": {"parts": [{"text": "twenty bytes of text"}]}}]});
    let mut chunks = vec![chunk; 10_000];
    chunks.push(json!({"candidates": [{"finishReason": "STOP"}]}));
    let reply = read(&stream(&chunks)).unwrap();
    let [Part::Text(text)] = &reply.message.parts[..] else { panic!("not one text") };
    assert_eq!((text.text.len(), text.extra.is_empty()), (200_000, true));
}
