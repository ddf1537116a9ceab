//! Replies that were stopped before the model had ended them.

use super::transcripts::{added, call, completed, delta, done, incomplete, message, read_events};
use posse_model::fault::Kind;
use posse_protocol::{Part, Stop};
use serde_json::{Value, json};

/// The calls of a reply that was stopped after these events.
fn calls_of(events: &[Value]) -> Vec<Value> {
    let mut events = events.to_vec();
    events.push(incomplete("max_output_tokens"));
    let reply = read_events(&events).unwrap();
    assert_eq!(reply.stop, Stop::MaxTokens);
    reply.message.tool_calls().map(|call| call.input.clone()).collect()
}

#[test]
fn reasons_are_told_apart() {
    let check = |reason: &str, stop: Stop| {
        assert_eq!(read_events(&[incomplete(reason)]).unwrap().stop, stop);
    };
    check("max_output_tokens", Stop::MaxTokens);
    check("max_tokens", Stop::MaxTokens);
    check("content_filter", Stop::Refusal);
    check("new\nreason", Stop::Other("new reason".to_owned()));
    let silent = json!({"type": "response.incomplete", "response": {"incomplete_details": null}});
    assert_eq!(read_events(&[silent]).unwrap().stop, Stop::Other("incomplete".to_owned()));
}

#[test]
fn a_reply_ends_as_its_event_says_unless_its_status_is_worse() {
    let mut end = incomplete("max_output_tokens");
    end["type"] = json!("response.completed");
    assert_eq!(read_events(&[end]).unwrap().stop, Stop::MaxTokens);
    let end = |kind: &str, status: &str| {
        let response = json!({"status": status, "error": {"code": "server_error"}});
        read_events(&[json!({"type": kind, "response": response})])
    };
    for status in ["splendid", "in_progress", "completed"] {
        assert_eq!(end("response.completed", status).unwrap().stop, Stop::End);
        let failed = end("response.failed", status).unwrap_err();
        assert_eq!(failed.kind, Kind::Overloaded(None));
    }
    assert_eq!(end("response.completed", "failed").unwrap_err().kind, Kind::Overloaded(None));
    assert_eq!(end("response.completed", "cancelled").unwrap_err().kind, Kind::Cut);
    assert_eq!(end("response.cancelled", "in_progress").unwrap_err().kind, Kind::Cut);
}

#[test]
fn a_call_that_is_not_done_is_dropped_and_makes_a_reply_that_claims_to_be_whole_a_fault() {
    let open = added(0, call("c", ""));
    let arguments = delta("function_call_arguments", 0, "{\"path\":\"/etc\"}");
    assert_eq!(calls_of(&[open.clone(), arguments.clone()]), [] as [Value; 0]);
    let all = json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{}"});
    assert_eq!(calls_of(&[open.clone(), arguments.clone(), all]), [] as [Value; 0]);
    let fault = read_events(&[open, arguments, completed()]).unwrap_err();
    assert_eq!(fault.kind, Kind::Cut);
}

#[test]
fn a_call_that_was_cut_off_is_dropped_and_a_whole_one_is_kept() {
    let check = |arguments: &str, status: Value, kept: bool| {
        let mut item = call("c", arguments);
        item["status"] = status;
        assert_eq!(calls_of(&[done(0, item)]).len(), usize::from(kept), "{arguments}");
    };
    check("{\"path\":\"/etc", json!("incomplete"), false);
    check("{\"path\":\"/etc", json!("completed"), false);
    check("", json!("completed"), false);
    check("[1]", Value::Null, false);
    check("{\"path\":\"/etc\"}", json!("incomplete"), false);
    check("{\"path\":\"/etc\"}", json!("in_progress"), false);
    check("{\"path\":\"/etc\"}", json!("completed"), true);
    check("{\"path\":\"/etc\"}", Value::Null, true);
    let mut cut = call("c", "{}");
    cut["status"] = json!("incomplete");
    assert_eq!(read_events(&[done(0, cut), completed()]).unwrap_err().kind, Kind::Cut);
}

#[test]
fn text_so_far_is_kept_with_its_sources() {
    let open = json!({"type": "message", "id": "m", "role": "assistant", "status": "in_progress", "content": []});
    let source = json!({"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0, "annotation": {"url": "u"}});
    let events = [
        added(0, open),
        delta("output_text", 0, "So "),
        source,
        delta("output_text", 0, "far"),
        incomplete("max_output_tokens"),
    ];
    let reply = read_events(&events).unwrap();
    let expected = json!([{"type": "text", "text": "So far", "annotations": [{"url": "u"}],
        "item": {"id": "m", "role": "assistant", "status": "incomplete"}}]);
    assert_eq!(serde_json::to_value(&reply.message.parts).unwrap(), expected);
}

#[test]
fn a_refusal_so_far_is_kept_as_one() {
    let events = [
        added(0, message("m", "")),
        delta("refusal", 0, "I can"),
        delta("refusal", 0, "not"),
        incomplete("content_filter"),
    ];
    let reply = read_events(&events).unwrap();
    assert_eq!(reply.stop, Stop::Refusal);
    assert_eq!(reply.message.text(), "I cannot");
    let extra = serde_json::to_value(&reply.message.parts[0]).unwrap();
    assert_eq!(extra["refusal"], json!(true));
}

#[test]
fn reasoning_that_was_cut_off_has_no_signature() {
    let open = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "half"});
    let summary = delta("reasoning_summary_text", 0, "hm");
    let mut ended = open.clone();
    ended["status"] = json!("incomplete");
    ended["summary"] = json!([{"type": "summary_text", "text": "hm"}]);
    for events in [vec![added(0, open.clone()), summary], vec![added(0, open), done(0, ended)]] {
        for end in [incomplete("max_output_tokens"), completed()] {
            let reply = read_events(&[events.clone(), vec![end]].concat()).unwrap();
            let [Part::Thinking(thinking)] = &reply.message.parts[..] else { panic!("{reply:?}") };
            assert_eq!((thinking.text.as_str(), &thinking.signature), ("hm", &None));
        }
    }
}

#[test]
fn an_item_nobody_knows_is_dropped_unless_it_is_whole() {
    let item = |status: &str| json!({"type": "web_search_call", "id": "ws", "status": status});
    let parts = |events: Vec<Value>| {
        let events = [events, vec![incomplete("max_output_tokens")]].concat();
        read_events(&events).unwrap().message.parts.len()
    };
    assert_eq!(parts(vec![added(0, item("in_progress"))]), 0);
    assert_eq!(parts(vec![done(0, item("in_progress"))]), 0);
    assert_eq!(parts(vec![done(0, item("completed"))]), 1);
    assert_eq!(parts(vec![done(0, item("failed"))]), 1);
}
