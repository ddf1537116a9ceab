//! What is asked of the model besides an answer: how hard to think, and in which form to answer.

use super::encode::{call, request, result, thinking};
use posse_agent::Request;
use posse_model::wire::{Dialect, EffortStyle, Target, TopEffort, Wire, Written, anthropic};
use posse_protocol::{Effort, Message, Part, Role};
use serde_json::{Value, json};
use std::sync::Arc;

fn body(request: &Request, dialect: &Dialect) -> Value {
    let target = Target { model: "claude-test", dialect, written: &Written::default() };
    serde_json::from_slice(&anthropic::encode(request, target).unwrap()).unwrap()
}

fn styled(effort: EffortStyle, top_effort: TopEffort) -> Dialect {
    Dialect { effort, top_effort, ..Dialect::default() }
}

/// What is said about thinking and about the answer.
fn check(
    effort: Option<Effort>,
    max_tokens: u64,
    dialect: &Dialect,
    thinking: Value,
    output: Value,
) {
    let request = Request { effort, max_tokens, ..request(vec![Message::user("a")]) };
    let body = body(&request, dialect);
    let found = (body["thinking"].clone(), body["output_config"].clone());
    assert_eq!(found, (thinking, output), "{effort:?} {max_tokens}");
}

#[test]
fn a_budget_for_thinking_leaves_room_for_the_answer() {
    let dialect = styled(EffortStyle::ThinkingBudget, TopEffort::High);
    let check = |effort: Option<Effort>, max_tokens: u64, budget: Option<u64>| {
        let thinking = budget.map(|tokens| json!({"type": "enabled", "budget_tokens": tokens}));
        check(effort, max_tokens, &dialect, thinking.unwrap_or_default(), Value::Null);
    };
    check(None, 64_000, None);
    check(Some(Effort::Low), 64_000, Some(2_048));
    check(Some(Effort::Medium), 64_000, Some(8_192));
    check(Some(Effort::High), 64_000, Some(16_384));
    check(Some(Effort::Max), 64_000, Some(31_999));
    check(Some(Effort::Max), 8_192, Some(6_144));
    check(Some(Effort::Low), 1_368, Some(1_026));
    check(Some(Effort::Low), 1_364, None);
    check(Some(Effort::Max), 1, None);
}

#[test]
fn a_level_of_thinking_is_named() {
    let check = |effort: Effort, top: TopEffort, level: &str| {
        let dialect = styled(EffortStyle::ThinkingLevel, top);
        let adaptive = json!({"type": "adaptive", "display": "summarized"});
        check(Some(effort), 100, &dialect, adaptive, json!({"effort": level}));
    };
    check(Effort::Low, TopEffort::High, "low");
    check(Effort::Medium, TopEffort::High, "medium");
    check(Effort::High, TopEffort::Max, "high");
    check(Effort::Max, TopEffort::High, "high");
    check(Effort::Max, TopEffort::Xhigh, "xhigh");
    check(Effort::Max, TopEffort::Max, "max");
}

#[test]
fn a_model_that_binds_its_reasoning_is_told_to_drop_what_no_longer_fits() {
    let level = styled(EffortStyle::ThinkingLevel, TopEffort::Max);
    assert_eq!(Wire::Anthropic.headers(&level), []);
    let bound = Dialect { bound_thinking: true, ..level };
    let thinking = json!({"type": "adaptive", "display": "summarized",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    check(Some(Effort::Low), 100, &bound, thinking.clone(), json!({"effort": "low"}));
    check(None, 100, &bound, thinking, Value::Null);
    let header = ("anthropic-beta", "thinking-binding-controls-2026-08-01");
    assert_eq!(Wire::Anthropic.headers(&bound), [header]);
    assert_eq!(Wire::Gemini.headers(&bound), []);
}

#[test]
fn nothing_is_said_of_thinking_where_nobody_asked() {
    let level = styled(EffortStyle::ThinkingLevel, TopEffort::Max);
    check(None, 100, &level, Value::Null, Value::Null);
    check(Some(Effort::Max), 9_000, &Dialect::default(), Value::Null, Value::Null);
}

#[test]
fn no_budget_is_given_amid_calls_that_were_made_without_thinking() {
    let dialect = styled(EffortStyle::ThinkingBudget, TopEffort::High);
    let asks = |parts: Vec<Part>, wire: Option<&str>, then: Part| {
        let mut reply = Message::new(Role::Assistant, parts);
        reply.wire = wire.map(str::to_owned);
        let messages = vec![Message::user("a"), reply, Message::new(Role::User, vec![then])];
        let effort = Some(Effort::High);
        let request = Request { effort, max_tokens: 9_000, ..request(messages) };
        !body(&request, &dialect)["thinking"].is_null()
    };
    let made = || call("c", json!({}));
    let done = || result("c", vec![Part::text("r")], false);
    let redacted = Part::Opaque {
        wire: "anthropic".to_owned(),
        value: json!({"type": "redacted_thinking", "data": "x"}),
    };
    assert!(asks(vec![thinking(Some("s")), made()], None, done()));
    assert!(asks(vec![redacted, Part::text("so"), made()], Some("anthropic"), done()));
    assert!(asks(vec![Part::text("an answer")], None, Part::text("b")));
    assert!(!asks(vec![made()], None, done()));
    assert!(!asks(vec![Part::text("so"), thinking(Some("s")), made()], None, done()));
    assert!(!asks(vec![thinking(Some("s")), made()], Some("gemini"), done()));
    let level = styled(EffortStyle::ThinkingLevel, TopEffort::High);
    let messages = vec![
        Message::user("a"),
        Message::new(Role::Assistant, vec![made()]),
        Message::new(Role::User, vec![done()]),
    ];
    let request = Request { effort: Some(Effort::High), ..request(messages) };
    assert_eq!(body(&request, &level)["thinking"]["type"], "adaptive");
}

#[test]
fn reasoning_goes_back_before_the_call_it_led_to() {
    let dialect = styled(EffortStyle::ThinkingBudget, TopEffort::High);
    let parts = vec![
        thinking(Some("s1")),
        Part::text("first"),
        call("c1", json!({})),
        thinking(Some("s2")),
        call("c2", json!({})),
    ];
    let results = vec![result("c1", vec![], false), result("c2", vec![], false)];
    let messages = vec![
        Message::user("a"),
        Message::from_model("anthropic", parts),
        Message::new(Role::User, results),
    ];
    let effort = Some(Effort::Low);
    let body = body(&Request { effort, max_tokens: 9_000, ..request(messages) }, &dialect);
    let kinds: Vec<&str> = body["messages"][1]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "thinking", "tool_use"]);
    assert_eq!(body["thinking"]["budget_tokens"], 2_048);
}

/// The schema that is sent for an answer.
fn sent_schema(schema: Value, dialect: &Dialect) -> Option<Value> {
    let output_schema = Some(Arc::new(schema));
    let request = Request { output_schema, ..request(vec![Message::user("a")]) };
    let mut body = body(&request, dialect);
    let format = body["output_config"]["format"].take();
    assert!(format.is_null() || format["type"] == "json_schema");
    format.get("schema").cloned()
}

#[test]
fn a_schema_for_the_answer_is_sent_where_it_is_taken() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let mut closed = schema.clone();
    closed["additionalProperties"] = false.into();
    let takes = Dialect { output_schema: true, ..Dialect::default() };
    assert_eq!(sent_schema(schema.clone(), &Dialect::default()), None);
    assert_eq!(sent_schema(schema.clone(), &takes), Some(closed));
    let both = Dialect { effort: EffortStyle::ThinkingLevel, ..takes };
    let request = Request {
        effort: Some(Effort::Low),
        output_schema: Some(Arc::new(schema)),
        ..request(vec![Message::user("a")])
    };
    let output = body(&request, &both)["output_config"].clone();
    assert_eq!((output["effort"].as_str(), output["format"].is_object()), (Some("low"), true));
}

#[test]
fn a_schema_is_put_into_the_words_the_provider_knows() {
    let takes = Dialect { output_schema: true, ..Dialect::default() };
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "description": "d",
        "properties": {
            "minimum": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
            "list": {"type": "array", "minItems": 3, "maxItems": 9, "items": {"$ref": "#/$defs/item"}},
            "some": {"type": "array", "minItems": 1, "items": {"type": "string", "format": "date"}},
            "either": {"oneOf": [{"type": "null"}, {"type": "string", "format": "odd", "pattern": "^a"}]},
            "fixed": {"const": 1},
        },
        "$defs": {"item": {"type": ["object", "null"], "properties": {"k": {"enum": ["a", "b"]}}}},
        "required": ["list"],
    });
    let expected = json!({
        "type": "object",
        "description": "d",
        "properties": {
            "minimum": {"type": "integer", "default": 2},
            "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "some": {"type": "array", "minItems": 1, "items": {"type": "string", "format": "date"}},
            "either": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "fixed": {"const": 1},
        },
        "$defs": {"item": {"type": ["object", "null"], "properties": {"k": {"enum": ["a", "b"]}},
            "additionalProperties": false}},
        "required": ["list"],
        "additionalProperties": false,
    });
    assert_eq!(sent_schema(schema, &takes), Some(expected));
}

#[test]
fn a_schema_the_provider_cannot_take_is_not_sent() {
    let takes = Dialect { output_schema: true, ..Dialect::default() };
    let refused = |schema: Value| assert_eq!(sent_schema(schema.clone(), &takes), None, "{schema}");
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    refused(json!(true));
    refused(json!({"type": "array", "items": {"type": "string"}}));
    refused(json!({"type": "object"}));
    refused(json!({"type": "object", "additionalProperties": {"type": "string"}}));
    refused(json!({"type": "object", "properties": {}, "additionalProperties": true}));
    refused(object(json!({"map": {"type": "object"}})));
    refused(object(json!({"any": true})));
    refused(object(json!({"again": {"$ref": "#"}})));
    refused(json!({"allOf": [object(json!({})), object(json!({}))]}));
    let tree = object(json!({"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}));
    refused(json!({"$ref": "#/$defs/tree", "$defs": {"tree": tree}}));
    let to = |name: &str| object(json!({"next": {"$ref": format!("#/$defs/{name}")}}));
    refused(json!({"$ref": "#/$defs/a", "$defs": {"a": to("b"), "b": to("a")}}));
    let twice = json!({"$ref": "#/$defs/a", "$defs": {"a": to("b"), "b": object(json!({}))}});
    assert!(sent_schema(twice, &takes).is_some());
}
