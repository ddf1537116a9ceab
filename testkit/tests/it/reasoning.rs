//! Reasoning that comes back: unchanged, in its place, and signed by whom it should be.

use crate::client::start;
use crate::wires::Talk;
use posse_testkit::{FakeModel, Reply, Script, Wire};
use serde_json::{Value, json};

/// The wires that sign reasoning.
const SIGNING: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiResponses, Wire::Gemini];

fn script() -> Script {
    Script::turns([
        Reply::thinking("Where to look?").and_text("So.").and_tool_call("Read", json!({"a": 1})),
        Reply::thinking("And now?").and_tool_call("Read", json!({"a": 2})),
        Reply::text("done"),
    ])
}

/// A conversation whose model thinks.
fn talk(wire: Wire) -> Talk {
    let talk = Talk::saying(wire, "go").tool("Read");
    match wire {
        Wire::Anthropic => talk.with("thinking", json!({"type": "enabled", "budget_tokens": 1024})),
        _ => talk,
    }
}

/// The conversation after the first call was answered, as it should be.
async fn called(fake: &FakeModel, wire: Wire) -> Talk {
    let talk = talk(wire);
    let reply = talk.streamed(fake).await;
    talk.reply(&reply).results(&reply, "ok")
}

/// The list of blocks, items or parts that the first reply consists of.
fn blocks(talk: &mut Talk) -> &mut Vec<Value> {
    match talk.wire {
        Wire::Anthropic => talk.items[1]["content"].as_array_mut().unwrap(),
        Wire::Gemini => talk.items[1]["parts"].as_array_mut().unwrap(),
        Wire::OpenAiChat | Wire::OpenAiResponses => &mut talk.items,
    }
}

/// Where in that list the reasoning is: on Gemini, the text that bears its signature.
fn place(wire: Wire) -> usize {
    match wire {
        Wire::Anthropic => 0,
        _ => 1,
    }
}

#[tokio::test]
async fn reasoning_that_comes_back_as_it_was_passes() {
    for wire in SIGNING {
        let fake = start(script()).await;
        let talk = called(&fake, wire).await;
        let reply = talk.document(&fake).await;
        let talk = talk.reply(&reply).results(&reply, "ok");
        assert_eq!(talk.heard(&fake).await.text, "done");
        // Also to a server that has not said it, as after a restart.
        assert_eq!(talk.heard(&start(script()).await).await.text, "done");
    }
}

#[tokio::test]
async fn a_signature_that_was_changed_is_refused() {
    for (wire, key, part) in [
        (Wire::Anthropic, "signature", "messages.1.content.0: Invalid `signature` in `thinking`"),
        (Wire::OpenAiResponses, "encrypted_content", "could not be verified"),
        (Wire::Gemini, "thoughtSignature", "Corrupted thought signature."),
    ] {
        let fake = start(script()).await;
        let mut talk = called(&fake, wire).await;
        let signature = &mut blocks(&mut talk)[place(wire)][key];
        *signature = json!(signature.as_str().unwrap().replace("ZmFrZ", "ZmFrz"));
        let message = talk.error(&fake, 400).await;
        assert!(message.contains(part), "{message}");
        // Nor does one pass that another provider gave.
        blocks(&mut talk)[place(wire)][key] = json!("Zm9yZWlnbg==");
        let message = talk.error(&fake, 400).await;
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn a_text_that_was_changed_under_its_signature_is_refused() {
    let fake = start(script()).await;
    let mut talk = called(&fake, Wire::Anthropic).await;
    blocks(&mut talk)[0]["thinking"] = json!("Where to hide?");
    assert!(talk.error(&fake, 400).await.contains("Invalid `signature`"));

    let mut talk = called(&fake, Wire::OpenAiResponses).await;
    blocks(&mut talk)[1]["summary"][0]["text"] = json!("Where to hide?");
    assert!(talk.error(&fake, 400).await.contains("could not be verified"));
    // A summary may be left out: the content has it.
    blocks(&mut talk)[1]["summary"] = json!([]);
    talk.document(&fake).await;
}

#[tokio::test]
async fn reasoning_may_not_be_left_out_of_the_turn_under_way() {
    for (wire, part) in [
        (Wire::Anthropic, "blocks in the latest assistant message cannot be modified"),
        (Wire::OpenAiResponses, "without its required 'reasoning' item"),
    ] {
        let fake = start(script()).await;
        let mut talk = called(&fake, wire).await;
        blocks(&mut talk).remove(place(wire));
        let message = talk.error(&fake, 400).await;
        assert!(message.contains(part), "{message}");
    }
    // On Gemini, calls need what they were given with; texts do not.
    let fake = start(Script::turns([
        Reply::thinking("hm").and_tool_call("Read", json!({"b": 1, "a": 2})),
        Reply::text("done"),
    ]))
    .await;
    let mut talk = called(&fake, Wire::Gemini).await;
    let call = blocks(&mut talk).pop().unwrap();
    blocks(&mut talk)[0] = json!({"functionCall": {"name": "Read", "args": {"a": 2, "b": 1}}});
    let message = talk.error(&fake, 400).await;
    let part = "is missing a thought_signature in functionCall parts";
    assert!(message.contains(part) && message.contains("`default_api:Read` , position 2"));
    // Thoughts may go, and members may change their order.
    let signature = &call["thoughtSignature"];
    blocks(&mut talk)[0]["thoughtSignature"] = signature.clone();
    assert_eq!(talk.heard(&fake).await.text, "done");
}

#[tokio::test]
async fn a_call_that_was_never_signed_may_be_excused() {
    let fake = start(Script::turns([
        Reply::tool_call("Read", json!({})),
        Reply::thinking("hm").and_tool_call("Read", json!({"a": 1})),
        Reply::text("done"),
    ]))
    .await;
    let mut talk = called(&fake, Wire::Gemini).await;
    let excuse = json!("skip_thought_signature_validator");
    blocks(&mut talk)[0]["thoughtSignature"] = excuse.clone();
    let reply = talk.document(&fake).await;
    let mut talk = talk.reply(&reply).results(&reply, "ok");
    assert_eq!(talk.heard(&fake).await.text, "done");
    // One that was signed may not.
    talk.items[3]["parts"][1]["thoughtSignature"] = excuse;
    assert!(talk.error(&fake, 400).await.contains("missing a thought_signature"));
}

#[tokio::test]
async fn reasoning_may_not_be_moved() {
    let fake = start(script()).await;
    let mut talk = called(&fake, Wire::Anthropic).await;
    blocks(&mut talk).swap(0, 1);
    let message = talk.error(&fake, 400).await;
    assert!(message.starts_with("messages.1.content.1: `thinking`"), "{message}");
    blocks(&mut talk).swap(1, 2);
    let message = talk.error(&fake, 400).await;
    assert!(message.contains("final block in an assistant message cannot be `thinking`"));

    let mut talk = called(&fake, Wire::OpenAiResponses).await;
    let items = blocks(&mut talk);
    items.swap(1, 2);
    assert!(talk.error(&fake, 400).await.contains("without its required 'reasoning'"));
    blocks(&mut talk).swap(2, 3);
    let message = talk.error(&fake, 400).await;
    assert!(message.contains("was provided without its required following item"), "{message}");
}

#[tokio::test]
async fn reasoning_of_turns_that_are_over_may_be_left_out() {
    for wire in SIGNING {
        let fake = start(script()).await;
        let talk = called(&fake, wire).await;
        let reply = talk.document(&fake).await;
        let mut talk = talk.reply(&reply).results(&reply, "ok");
        if wire == Wire::Gemini {
            talk = talk.user("and now?");
        }
        match wire {
            Wire::Gemini => {
                for part in blocks(&mut talk) {
                    part.as_object_mut().unwrap().remove("thoughtSignature");
                }
            }
            _ => drop(blocks(&mut talk).remove(place(wire))),
        }
        assert_eq!(talk.heard(&fake).await.text, "done", "{}", wire.name());
    }
}

#[tokio::test]
async fn who_does_not_think_on_may_leave_reasoning_out() {
    let fake = start(script()).await;
    for (wire, key, value) in [
        (Wire::Anthropic, "thinking", json!({"type": "disabled"})),
        (Wire::OpenAiResponses, "include", json!([])),
    ] {
        let mut talk = called(&fake, wire).await.with(key, value);
        blocks(&mut talk).remove(place(wire));
        talk.document(&fake).await;
    }
}

#[tokio::test]
async fn signatures_of_the_script_are_known() {
    for wire in SIGNING {
        let reply = Reply::empty().and_signed_thinking("hm", "b3du");
        let reply = reply.and_tool_call("Read", json!({}));
        let fake = start(Script::turns([reply, Reply::text("done")])).await;
        let talk = called(&fake, wire).await;
        assert_eq!(talk.heard(&fake).await.text, "done", "{}", wire.name());
    }
    let redacted = json!({"type": "redacted_thinking", "data": "c2VjcmV0"});
    let raw = json!({"type": "thinking", "thinking": "hm", "signature": "cmF3"});
    let reply = Reply::empty().and_raw(redacted).and_raw(raw).and_tool_call("Read", json!({}));
    let fake = start(Script::turns([reply, Reply::text("done")])).await;
    let mut talk = called(&fake, Wire::Anthropic).await;
    assert_eq!(talk.heard(&fake).await.text, "done");
    blocks(&mut talk)[0]["data"] = json!("b3RoZXI=");
    assert!(talk.error(&fake, 400).await.contains("cannot be modified"));
}

#[tokio::test]
async fn what_is_not_stored_is_not_found() {
    let fake = start(script()).await;
    let mut talk = called(&fake, Wire::OpenAiResponses).await;
    blocks(&mut talk)[1].as_object_mut().unwrap().remove("encrypted_content");
    let message = talk.clone().with("include", json!([])).error(&fake, 404).await;
    assert!(message.contains("Items are not persisted when `store` is set to false"), "{message}");
    talk.with("include", json!([])).with("store", json!(true)).document(&fake).await;
}

#[tokio::test]
async fn replies_that_look_the_same_are_not_mixed_up() {
    // Two runs that share a server, in step with each other.
    let think = |what: &str| {
        Reply::thinking(&format!("{what}: {{{{last_user}}}}")).and_tool_call("Read", json!({}))
    };
    let fake = start(Script::turns([think("one"), think("two"), Reply::text("done")])).await;
    let mut talks = Vec::new();
    for name in ["left", "right"] {
        let mut talk = talk(Wire::Anthropic);
        talk.items[0]["content"] = json!(name);
        let reply = talk.document(&fake).await;
        talks.push(talk.reply(&reply).results(&reply, "ok"));
    }
    for talk in talks {
        let reply = talk.document(&fake).await;
        let talk = talk.reply(&reply).results(&reply, "ok");
        assert_eq!(talk.heard(&fake).await.text, "done");
    }
}
