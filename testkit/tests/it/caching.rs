//! Prompt caching: what `usage` says is true for what was sent.

use crate::client::start;
use crate::wires::{Heard, Talk, heard};
use posse_testkit::{FakeModel, Gate, Reply, Rule, Script, Usage, When, Wire};
use serde_json::{Value, json};

/// A text of this many tokens.
fn long(tokens: usize) -> String {
    "word".repeat(tokens)
}

fn script() -> Script {
    let read = || Reply::text("I look.").and_tool_call("Read", json!({"path": "a.txt"}));
    Script::turns([read(), read(), read(), Reply::text("done")])
}

/// A content block with a mark.
fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A request to Anthropic with this system prompt and these messages of the user.
fn request(system: Value, users: &[Value]) -> Talk {
    let talk = Talk::new(Wire::Anthropic).with("system", system);
    let items = users.iter().map(|content| json!({"role": "user", "content": [content]}));
    Talk { items: items.collect(), ..talk }
}

async fn input(fake: &FakeModel, talk: &Talk) -> [u64; 3] {
    talk.heard(fake).await.input
}

#[tokio::test]
async fn a_conversation_reads_what_it_wrote_a_turn_before() {
    for wire in Wire::ALL {
        let fake = start(script()).await;
        let mut talk = Talk::saying(wire, "go").system(&long(2000)).tool("Read");
        if wire == Wire::Anthropic {
            talk = talk.with("cache_control", json!({"type": "ephemeral"}));
        }
        let mut before: Option<Heard> = None;
        for turn in 0..3 {
            let reply = talk.document(&fake).await;
            let found = heard(wire, &reply);
            let [_, read, written] = found.input;
            match (before, wire) {
                (None, _) => assert_eq!(read, 0, "{}", wire.name()),
                // All that was there is read, to the token.
                (Some(before), Wire::Anthropic) => {
                    assert_eq!(read, before.input.iter().sum::<u64>());
                    assert!(written > 0 && found.input[0] == 0, "{:?}", found.input);
                }
                // All but what does not fill a step.
                (Some(before), _) => {
                    let whole: u64 = before.input.iter().sum();
                    assert_eq!(read, whole / 128 * 128, "{} {turn}", wire.name());
                }
            }
            before = Some(found);
            talk = talk.reply(&reply).results(&reply, &long(300));
        }
    }
}

#[tokio::test]
async fn the_parts_of_a_prompt_add_up_to_it() {
    for wire in Wire::ALL {
        let (cached, plain) = (start(script()).await, start(script().without_cache()).await);
        let mut talk = Talk::saying(wire, "go").system(&long(900)).tool("Read");
        if wire == Wire::Anthropic {
            talk = talk.with("cache_control", json!({"type": "ephemeral"}));
        }
        for turn in 0..3 {
            let reply = talk.document(&cached).await;
            let whole = input(&plain, &talk).await;
            assert_eq!(whole[1..], [0, 0]);
            let parts = heard(wire, &reply).input;
            assert_eq!(parts.iter().sum::<u64>(), whole[0], "{} {turn}", wire.name());
            talk = talk.reply(&reply).results(&reply, &long(100 + turn * 37));
        }
    }
}

#[tokio::test]
async fn prefixes_are_cached_where_they_are_marked() {
    let fake = start(Script::always(Reply::text("so"))).await;
    let system = json!([marked(text(&long(1500)))]);
    let ask = text(&long(500));
    // The word for who speaks is a token too.
    let unmarked = request(json!(long(1500)), std::slice::from_ref(&ask));
    assert_eq!(input(&fake, &unmarked).await, [2001, 0, 0]);
    let first = request(system.clone(), std::slice::from_ref(&ask));
    assert_eq!(input(&fake, &first).await, [501, 0, 1500]);
    assert_eq!(input(&fake, &first).await, [501, 1500, 0]);
    let both = request(system.clone(), &[marked(ask.clone())]);
    assert_eq!(input(&fake, &both).await, [0, 1500, 501]);
    // The mark has moved on, and what it marked before is read.
    let next = request(system, &[ask.clone(), marked(text("more"))]);
    assert_eq!(input(&fake, &next).await, [0, 2001, 1]);
    // Another system prompt: nothing is the same any more.
    let other = request(json!([marked(text(&long(1501)))]), &[ask]);
    assert_eq!(input(&fake, &other).await, [501, 0, 1501]);
}

#[tokio::test]
async fn tools_stand_before_everything_else() {
    let fake = start(Script::always(Reply::text("so"))).await;
    let tool = |name: &str| json!({"name": name, "description": long(1200), "input_schema": {"type": "object"}});
    let with = |tools: Value| {
        request(json!([marked(text(&long(100)))]), &[text("go")]).with("tools", tools)
    };
    let [_, read, written] = input(&fake, &with(json!([marked(tool("a"))]))).await;
    assert!(read == 0 && written > 1300);
    // The marked tool is read; the system prompt behind the new one is not.
    let grown = with(json!([marked(tool("a")), tool("b")]));
    let [_, read, written] = input(&fake, &grown).await;
    assert!(read > 1200 && read < 1300 && written > 1300, "{read} {written}");
    let swapped = with(json!([marked(tool("b")), tool("a")]));
    assert_eq!(input(&fake, &swapped).await[1], 0);
}

#[tokio::test]
async fn what_a_request_writes_can_be_read_once_its_answer_has_begun() {
    for wire in Wire::ALL {
        let gate = Gate::new();
        let held = Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)).once();
        let fake =
            start(Script::new().rule(held).rule(Rule::when(When::any()).reply(Reply::text("so"))));
        let fake = fake.await;
        let mut talk = Talk::saying(wire, "go").system(&long(2000));
        if wire == Wire::Anthropic {
            talk = talk.with("cache_control", json!({"type": "ephemeral"}));
        }
        let beside = async {
            gate.wait_for_held(1).await.unwrap();
            let early = input(&fake, &talk).await;
            gate.open();
            early
        };
        let (first, early) = tokio::join!(input(&fake, &talk), beside);
        assert_eq!((first[1], early[1]), (0, 0), "{}", wire.name());
        assert!(input(&fake, &talk).await[1] >= 1920, "{}", wire.name());
    }
}

#[tokio::test]
async fn short_prompts_are_not_cached_unless_the_script_says_so() {
    let rule = "[[rule]]\nreply = [{ text = \"so\" }]\n";
    for wire in Wire::ALL {
        let mut talk = Talk::saying(wire, "go").system(&long(512));
        if wire == Wire::Anthropic {
            talk = talk.with("cache_control", json!({"type": "ephemeral"}));
        }
        for (settings, from) in [("", 0), ("cache = true\n", 0), ("cache_minimum = 100\n", 512)] {
            let fake = start(Script::parse(&format!("{settings}{rule}")).unwrap()).await;
            talk.document(&fake).await;
            let read = input(&fake, &talk).await[1];
            assert!(read >= from && (from > 0 || read == 0), "{} {settings}{read}", wire.name());
        }
    }
}

#[tokio::test]
async fn the_cache_can_be_turned_off() {
    let file = "cache = false\n[[rule]]\nreply = [{ text = \"so\" }]\n";
    for wire in Wire::ALL {
        let fake = start(Script::parse(file).unwrap()).await;
        let mut talk = Talk::saying(wire, "go").system(&long(2000));
        if wire == Wire::Anthropic {
            talk = talk.with("cache_control", json!({"type": "ephemeral"}));
        }
        for _ in 0..2 {
            assert_eq!(input(&fake, &talk).await[1..], [0, 0], "{}", wire.name());
        }
    }
}

#[tokio::test]
async fn keys_and_models_do_not_share_a_cache() {
    for wire in Wire::ALL {
        let fake = start(Script::always(Reply::text("so"))).await;
        let mut talk = Talk::saying(wire, "go").system(&long(2000));
        if wire == Wire::Anthropic {
            talk = talk.with("cache_control", json!({"type": "ephemeral"}));
        }
        assert_eq!(input(&fake, &talk).await[1], 0);
        let other_key = Talk { key: "other".to_owned(), ..talk.clone() };
        assert_eq!(input(&fake, &other_key).await[1], 0);
        let other_model = Talk { model: "fake-2".to_owned(), ..talk.clone() };
        assert_eq!(input(&fake, &other_model).await[1], 0);
        assert!(input(&fake, &talk).await[1] >= 1920);
    }
}

#[tokio::test]
async fn what_the_script_claims_replaces_what_the_cache_says() {
    let claim = Usage { input_tokens: Some(7), ..Usage::default() };
    let fake = start(Script::turns([Reply::text("so").usage(claim)])).await;
    let talk = request(json!([marked(text(&long(1500)))]), &[text("go")]);
    for _ in 0..2 {
        assert_eq!(input(&fake, &talk).await, [7, 0, 0]);
    }
}

#[tokio::test]
async fn an_error_writes_nothing() {
    let once = posse_testkit::Rule::when(posse_testkit::When::any());
    let script = Script::new()
        .rule(once.clone().reply(Reply::error(529, "busy")).once())
        .rule(once.reply(Reply::text("so")));
    let fake = start(script).await;
    let talk = request(json!([marked(text(&long(1500)))]), &[text("go")]);
    assert_eq!(talk.ask(&fake).await.0, 529);
    assert_eq!(input(&fake, &talk).await[1], 0);
}

#[tokio::test]
async fn what_is_kept_for_an_hour_is_told_apart() {
    let fake = start(Script::always(Reply::text("so"))).await;
    let mut system = text(&long(1500));
    system["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    let talk = request(json!([system]), &[marked(text(&long(99)))]);
    let document = talk.document(&fake).await;
    let expected = json!({"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 1500});
    assert_eq!(document["usage"]["cache_creation"], expected);
}

#[tokio::test]
async fn marks_that_the_real_api_refuses_are_refused() {
    let fake = start(Script::always(Reply::text("so"))).await;
    let part = |number: usize| marked(text(&format!("part {number}")));
    let five: Vec<Value> = (0..4).map(part).collect();
    let talk = request(json!([marked(text("s"))]), &five);
    let message = talk.error(&fake, 400).await;
    assert!(message.contains("A maximum of 4 blocks with cache_control may be provided. Found 5."));
    let mut hour = text("x");
    hour["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    let talk = request(json!([marked(text("s"))]), &[hour.clone()]);
    assert!(talk.error(&fake, 400).await.contains("must not come after a ttl='5m'"));
    hour["cache_control"]["ttl"] = json!("1d");
    let talk = request(json!([hour.clone()]), &[text("x")]);
    assert!(talk.error(&fake, 400).await.contains("ttl: Input should be '5m' or '1h'"));
    hour["cache_control"] = json!({"type": "forever"});
    let talk = request(json!([hour]), &[text("x")]);
    assert!(talk.error(&fake, 400).await.contains("Input should be 'ephemeral'"));
    let thinking = marked(json!({"type": "thinking", "thinking": "x", "signature": "x"}));
    let mut talk = request(json!("s"), &[text("x")]);
    talk.items.push(json!({"role": "assistant", "content": [thinking, text("y")]}));
    assert!(talk.error(&fake, 400).await.contains("thinking.cache_control: Extra inputs"));
}
