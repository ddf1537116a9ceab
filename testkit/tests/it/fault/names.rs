//! Faults by name: in Rust, in files, in the reference, and when they are wrong.

use posse_testkit::{FakeModel, Fault, Needs, Reply, Rule, Script, StartError, When, Wire};
use std::collections::HashSet;

#[test]
fn names_are_distinct_and_told_in_one_line() {
    let mut names = HashSet::new();
    for fault in Fault::all() {
        let name = fault.name();
        assert!(names.insert(name), "{name} is there twice");
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(name.bytes().all(plain), "{name}");
        let about = fault.about();
        assert!(!about.is_empty() && !about.contains('\n') && !about.ends_with('.'), "{name}");
        assert!(Wire::ALL.iter().any(|wire| fault.concerns(*wire)), "{name}");
        assert!(std::ptr::eq(Fault::named(name).unwrap(), fault));
    }
    assert!(names.len() >= 45, "{}", names.len());
}

#[test]
fn an_unknown_name_is_answered_with_near_ones() {
    let error = Fault::named("reset-after-tex").unwrap_err();
    assert_eq!(error.near[0], "reset-after-text");
    assert_eq!(error.near.len(), 3);
    assert!(error.to_string().starts_with("there is no fault `reset-after-tex`; near ones: "));
}

async fn refused(script: Script) -> String {
    match FakeModel::start(script).await {
        Err(StartError::Script { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_does_not_start_with_a_fault_that_cannot_be_done() {
    let reason = refused(Script::always(Reply::text("x").fault("nonsense"))).await;
    assert!(reason.contains("rule 1: there is no fault `nonsense`"), "{reason}");
    let reason = refused(Script::always(Reply::text("x").fault("reset-in-arguments"))).await;
    assert!(reason.contains("spoils a tool call, and the reply has none"), "{reason}");
    let one_call = Reply::tool_call("Bash", serde_json::json!({}));
    let reason = refused(Script::always(one_call.fault("duplicate-index"))).await;
    assert!(reason.contains("two tool calls"), "{reason}");
    let when = When::any().turn(0);
    let rule = Rule::when(when).reply(Reply::text("x").fault("reset-unread"));
    let reason = refused(Script::new().rule(rule)).await;
    assert!(reason.contains("reset-unread comes before the request is read"), "{reason}");
    let reason = refused(Script::turns([Reply::text("x").fault("cut-unread")])).await;
    assert!(reason.contains("rule without conditions"), "{reason}");
    let paced = Reply::text("x").token_delay(std::time::Duration::from_millis(1)).fault("crlf");
    let reason = refused(Script::always(paced)).await;
    assert!(reason.contains("pace of its own"), "{reason}");
}

#[test]
fn files_name_faults_and_mistakes_are_told_with_their_line() {
    let file = |fault: &str| format!("[[rule]]\n[[rule.reply]]\nfault = \"{fault}\"\n");
    assert!(Script::parse(&file("overloaded")).is_ok(), "a refusal needs no content");
    let error = Script::parse(&file("overlode")).unwrap_err();
    assert_eq!(error.line, 2);
    assert!(error.reason.contains("near ones: overloaded"), "{}", error.reason);
    let error = Script::parse(&file("reset-after-text")).unwrap_err();
    assert!(error.reason.contains("spoils a text"), "{}", error.reason);
}

/// The row of the reference for this fault.
fn row(fault: &Fault) -> String {
    let concerned: Vec<Wire> = Wire::ALL.into_iter().filter(|wire| fault.concerns(*wire)).collect();
    let usual = fault.expectation(concerned[0]);
    let mut then = usual.to_string();
    for wire in concerned.iter().filter(|wire| fault.expectation(**wire) != usual) {
        then.push_str(&format!("; on {}: {}", wire.name(), fault.expectation(*wire)));
    }
    let wires = match concerned.len() {
        4 => "all".to_owned(),
        _ => concerned.iter().map(|wire| wire.name()).collect::<Vec<_>>().join(", "),
    };
    let needs = match fault.needs() {
        Needs::Nothing => "",
        Needs::Text => "a text",
        Needs::Call => "a call",
        Needs::TwoCalls => "two calls",
    };
    format!("| `{}` | {} | {then} | {needs} | {wires} |", fault.name(), fault.about())
}

#[test]
fn the_reference_lists_every_fault() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/faults.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    let found: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted: Vec<String> = Fault::all().map(row).collect();
    let missing: Vec<&str> =
        wanted.iter().map(String::as_str).filter(|row| !found.contains(row)).collect();
    assert!(missing.is_empty(), "the reference lacks these rows:\n{}", missing.join("\n"));
    assert_eq!(found, wanted, "the reference has rows for what is no fault, or another order");
}
