//! Tokens, as vendors count them.

use super::transcripts::{chunk, end, read, stream};
use posse_protocol::Usage;
use serde_json::{Value, json};

/// The usage of a stream with these further events, its cost left out.
fn usage_of(events: &[Value]) -> Usage {
    let mut all = vec![chunk(json!({"content": "x"})), end("stop")];
    all.extend(events.iter().map(Value::to_string));
    all.push("[DONE]".to_owned());
    Usage { cost: Default::default(), ..read(&stream(&all)).unwrap().usage }
}

/// Expects these counts: input, read from the cache, written to it, output, reasoning.
fn check(usage: Value, expected: [u64; 5]) {
    let found = usage_of(&[json!({"choices": [], "usage": usage})]);
    assert_eq!(counts(&found), expected, "{usage}");
}

fn counts(usage: &Usage) -> [u64; 5] {
    [
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
    ]
}

#[test]
fn counts_are_taken_apart_for_every_vendor() {
    // OpenAI: what was cached is part of the prompt, reasoning part of the completion.
    check(
        json!({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
            "prompt_tokens_details": {"cached_tokens": 80, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 30}}),
        [20, 80, 0, 50, 30],
    );
    // DeepSeek.
    check(
        json!({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
            "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}),
        [36, 64, 0, 50, 0],
    );
    // OpenRouter and Qwen tell what was written to the cache.
    for name in ["cache_write_tokens", "cache_creation_input_tokens"] {
        check(
            json!({"prompt_tokens": 100, "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 60, (name): 30}}),
            [10, 60, 30, 5, 0],
        );
    }
    // Moonshot.
    check(
        json!({"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": 4}),
        [6, 4, 0, 1, 0],
    );
    // xAI counts reasoning beside the completion.
    check(
        json!({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135,
            "completion_tokens_details": {"reasoning_tokens": 94}}),
        [32, 0, 0, 103, 94],
    );
    check(
        json!({"prompt_tokens": 10120, "completion_tokens": 1499, "total_tokens": 14428,
            "prompt_tokens_details": {"cached_tokens": 128},
            "completion_tokens_details": {"reasoning_tokens": 280}}),
        [9992, 128, 0, 1779, 280],
    );
    // A proxy that counts what was cached beside the prompt.
    check(
        json!({"prompt_tokens": 10, "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 500}}),
        [10, 500, 0, 1, 0],
    );
}

#[test]
fn missing_and_absurd_counts_never_fail() {
    check(json!(null), [0; 5]);
    check(json!({}), [0; 5]);
    check(json!({"prompt_tokens": null, "prompt_tokens_details": null}), [0; 5]);
    check(
        json!({"prompt_tokens": 3.7, "completion_tokens": -2, "total_tokens": "many"}),
        [3, 0, 0, 0, 0],
    );
    let cap = u64::from(u32::MAX);
    check(
        json!({"prompt_tokens": u64::MAX, "completion_tokens": 1e300, "total_tokens": u64::MAX,
            "prompt_tokens_details": {"cached_tokens": u64::MAX, "cache_write_tokens": u64::MAX},
            "completion_tokens_details": {"reasoning_tokens": u64::MAX}}),
        [cap, cap, cap, cap, cap],
    );
    assert_eq!(counts(&usage_of(&[])), [0; 5]);
}

#[test]
fn counts_are_found_wherever_a_vendor_puts_them() {
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 2});
    let places = [
        json!({"choices": [], "usage": usage}),
        json!({"choices": [], "x_groq": {"id": "req", "usage": usage}}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]}),
        json!({"choices": [{"index": 0, "delta": {"content": ""}}], "usage": usage}),
    ];
    for place in &places {
        assert_eq!(counts(&usage_of(std::slice::from_ref(place))), [7, 0, 0, 2, 0], "{place}");
    }
    assert_eq!(counts(&usage_of(&places)), [7, 0, 0, 2, 0]);
}

#[test]
fn counts_that_grow_with_every_chunk_are_sums() {
    let event = |completion: u64| json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": completion}});
    let last = json!({"choices": [], "usage": null});
    assert_eq!(counts(&usage_of(&[event(1), event(2), event(9), last])), [7, 0, 0, 9, 0]);
}
