//! What a run takes over from another: as it was sent, or so that another agent can follow it.

use crate::world::{Dice, World};
use posse_agent::protocol::*;
use posse_agent::{Fork, Form, SEPARATOR_HEADING, Transcript, fork, separator};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

fn may_call() -> Vec<String> {
    vec!["Read".to_owned(), "Grep".to_owned()]
}

fn seen(path: &str, hash: usize) -> SeenFile {
    SeenFile { path: path.to_owned(), hash: hash.to_string(), extra: Extra::default() }
}

/// A run that began with `messages` and has done nothing yet.
fn begun_with(messages: Vec<Message>) -> Transcript {
    let forked = Forked {
        from: RunId::from_u128(9),
        at: Seq(3),
        messages,
        seen: Vec::new(),
        guise: None,
        extra: Extra::default(),
    };
    let agent = AgentSpec::new("a".parse().unwrap());
    let started = RunStarted {
        forked: Some(Box::new(forked)),
        ..RunStarted::new(agent, "test/model", Grant::default())
    };
    let mut transcript = Transcript::default();
    transcript.apply(Seq(1), &Event::from(started));
    transcript
}

fn call(id: &str, name: &str, input: Value) -> Part {
    let signed = [("signed".to_owned(), json!("by the provider"))];
    let extra = Extra::from(serde_json::Map::from_iter(signed));
    Part::ToolCall(ToolCall { id: id.into(), name: name.into(), input, extra })
}

fn result(id: &str, text: &str) -> Part {
    let (call, parts) = (id.into(), vec![Part::text(text)]);
    Part::ToolResult(ToolResult { call, parts, is_error: false, extra: Extra::default() })
}

fn thinking() -> Part {
    let signature = Some("signed".to_owned());
    Part::Thinking(Thinking { text: "hm".into(), signature, extra: Extra::default() })
}

fn opaque() -> Part {
    Part::Opaque { wire: "other".into(), value: json!({"type": "server_tool_use"}) }
}

fn model(parts: Vec<Part>) -> Message {
    Message::from_model("other", parts)
}

fn answers(parts: Vec<Part>) -> Message {
    Message::new(Role::User, parts)
}

/// One line for each part, to compare with.
fn shown(messages: &[Message]) -> Vec<String> {
    let line = |role: Role, part: &Part| match part {
        Part::Text(text) => format!("{role:?}: {}", text.text),
        Part::ToolCall(call) => format!("{role:?} calls {} as {}", call.name, call.id.0),
        Part::ToolResult(result) => format!("{role:?} answers {}", result.call.0),
        other => format!("{role:?} {other:?}"),
    };
    let lines = messages.iter().map(|message| {
        let parts = message.parts.iter().map(|part| line(message.role, part));
        parts.collect::<Vec<_>>().join(" | ")
    });
    lines.collect()
}

/// Normalises `messages` and compares, the separator left out.
fn check(messages: Vec<Message>, expected: &[&str]) {
    let fork = fork(&begun_with(messages), Form::Normalised, None, &may_call());
    let (last, taken) = fork.messages.split_last().unwrap();
    assert!(last.text().starts_with(SEPARATOR_HEADING), "{last:?}");
    assert_eq!(shown(taken), expected);
}

#[test]
fn e1_nothing_and_a_prompt_are_two_messages_of_which_the_first_names_the_tools() {
    for form in [Form::Verbatim, Form::Normalised] {
        let parent = World::new(false, Limits::default());
        let taken = fork(&parent.transcript, form, None, &may_call());
        let mut child = begun_with(taken.messages);
        child.apply(Seq(2), &Event::MessageReceived(MessageReceived::user("look for it")));
        let messages = child.messages();
        assert_eq!(messages.len(), 2);
        assert!(messages.iter().all(|message| message.role == Role::User));
        assert!(messages[0].text().contains("Read, Grep."), "{}", messages[0].text());
        assert_eq!(messages[1].text(), "look for it");
    }
}

#[test]
fn e1_the_separator_says_what_is_not_available() {
    let verbatim = separator(&may_call(), Form::Verbatim).text();
    assert!(verbatim.contains("Any other tool shown to you is not available"), "{verbatim}");
    let normalised = separator(&[], Form::Normalised).text();
    assert!(normalised.contains("You may call no tool."), "{normalised}");
}

#[test]
fn e3_a_reply_that_is_only_a_call_the_child_cannot_make_becomes_a_line() {
    let bash = call("1", "Bash", json!({"command": "git status", "description": "Look"}));
    check(
        vec![Message::user("go"), model(vec![bash]), answers(vec![result("1", "clean")])],
        &["User: go", "Assistant: [used Bash: git status]"],
    );
}

#[test]
fn e3_pairs_the_child_could_make_itself_are_kept_and_stay_together() {
    let said = model(vec![
        thinking(),
        Part::text("both"),
        call("1", "Read", json!({"file_path": "a"})),
        call("2", "Bash", json!({"command": "make"})),
        opaque(),
        call("3", "Grep", json!({"pattern": "x"})),
    ]);
    let results = vec![result("1", "text"), result("2", "made"), result("3", "found")];
    check(
        vec![Message::user("go"), said, answers(results), model(vec![Part::text("done")])],
        &[
            "User: go",
            "Assistant: both | Assistant: [used Bash: make] | Assistant calls Read as 1 | \
             Assistant calls Grep as 3",
            "User answers 1 | User answers 3",
            "Assistant: done",
        ],
    );
}

#[test]
fn e3_orphans_of_both_kinds_are_dropped() {
    check(
        vec![
            answers(vec![result("0", "of nothing"), Part::text("go")]),
            model(vec![call("1", "Read", json!({})), call("2", "Bash", json!({}))]),
            Message::user("hurry"),
            model(vec![thinking()]),
            model(vec![Part::text("sorry"), call("3", "Read", json!({}))]),
            answers(vec![result("3", "ok"), result("4", "of nothing")]),
        ],
        &[
            "User: go",
            "User: hurry",
            "Assistant: sorry | Assistant calls Read as 3",
            "User answers 3",
        ],
    );
}

#[test]
fn e3_a_line_says_what_was_done_and_is_short() {
    let line = |input: Value, is_error: bool| {
        let mut parts = vec![result("1", "x")];
        if let Part::ToolResult(result) = &mut parts[0] {
            result.is_error = is_error;
        }
        let messages = vec![model(vec![call("1", "Odd", input)]), answers(parts)];
        fork(&begun_with(messages), Form::Normalised, None, &may_call()).messages[0].text()
    };
    assert_eq!(line(json!({}), false), "[used Odd]");
    assert_eq!(line(json!({"count": 3}), false), "[used Odd: {\"count\":3}]");
    assert_eq!(
        line(json!({"n": 3, "a": "two\n  lines"}), true),
        "[used Odd: two lines, which failed]"
    );
    assert_eq!(line(json!("not an object"), false), "[used Odd: not an object]");
    let long = line(json!({"a": "né ".repeat(10_000)}), false);
    assert!(long.chars().count() < 140 && long.ends_with("…]"), "{long}");
}

#[test]
fn e3_nothing_that_is_signed_for_another_context_is_kept() {
    let said = vec![Part::text("a"), call("1", "Read", json!({"file_path": "a"}))];
    let messages = vec![model(said), answers(vec![result("1", "b")])];
    let fork = fork(&begun_with(messages), Form::Normalised, None, &may_call());
    assert_eq!(fork.messages[0].wire, None);
    let text = serde_json::to_string(&fork.messages).unwrap();
    assert!(!text.contains("signed"), "{text}");
}

#[test]
fn e4_a_blank_message_is_removed_and_plain_ones_are_unchanged() {
    check(
        vec![
            Message::user("   "),
            Message::user("  keep my spaces \n"),
            Message::user("\n\t"),
            model(vec![Part::text("said ")]),
        ],
        &["User:   keep my spaces \n", "Assistant: said "],
    );
}

#[test]
fn e6_a_fork_that_leaves_too_little_of_the_window_does_not_fit() {
    let transcript = begun_with(vec![Message::user("x".repeat(30_000))]);
    let fork = fork(&transcript, Form::Verbatim, None, &may_call());
    assert!((10_000..11_000).contains(&fork.tokens), "{}", fork.tokens);
    assert!(!fork.fits(fork.tokens));
    assert!(!fork.fits(fork.tokens * 10 / 6 - 100));
    assert!(fork.fits(fork.tokens * 10 / 6 + 200));
}

/// What the provider counted is better than what we guess.
#[test]
fn e6_the_size_goes_by_what_the_provider_counted() {
    let mut world = World::new(true, Limits::default());
    world.say(&"x".repeat(300_000));
    world.reply_with_calls(0);
    // The world's provider counts 40 tokens a message and 20 for the reply.
    let whole = fork(&world.transcript, Form::Verbatim, None, &[]);
    assert!((100..110).contains(&whole.tokens), "{}", whole.tokens);
}

#[test]
fn the_last_turns_begin_where_someone_spoke() {
    let read = || call("1", "Read", json!({"file_path": "a"}));
    let messages = vec![
        Message::user("summary"),
        model(vec![Part::text("one")]),
        Message::user("two"),
        Message::user("and"),
        model(vec![read()]),
        answers(vec![result("1", "text")]),
        model(vec![Part::text("three")]),
    ];
    let transcript = begun_with(messages.clone());
    for (form, turns, expected) in [
        (Form::Verbatim, 0, 0),
        (Form::Verbatim, 1, 5),
        (Form::Normalised, 1, 5),
        (Form::Verbatim, 2, 7),
        (Form::Normalised, 9, 7),
    ] {
        let fork = fork(&transcript, form, Some(turns), &may_call());
        assert_eq!(fork.messages.len(), expected + 1, "{form:?} {turns}");
        let taken = &fork.messages[..expected];
        assert_eq!(shown(taken), shown(&messages[7 - expected..]));
    }
}

#[test]
fn the_call_that_asks_for_the_fork_is_not_taken_over_and_its_siblings_see_the_same() {
    let mut world = World::new(true, Limits::default());
    let saw = |path, hash| ToolOutput { seen: vec![seen(path, hash)], ..ToolOutput::text("x") };
    world.reply_with_calls(1);
    world.finish_call("call-1".into(), Ending::Returned, saw("a", 1));
    let sent = world.transcript.messages();
    world.reply_with_calls(3);
    let first = fork(&world.transcript, Form::Normalised, None, &may_call());
    world.start_call("call-2".into(), true);
    world.finish_call("call-2".into(), Ending::Returned, saw("a", 2));
    world.say("meanwhile");
    world.leave_pending("call-3".into());
    let second = fork(&world.transcript, Form::Normalised, None, &may_call());
    assert_eq!(first, second);
    assert_eq!(first.seen, [seen("a", 1)], "nor what its siblings have read");
    let verbatim = fork(&world.transcript, Form::Verbatim, None, &may_call());
    let sent: Vec<Message> = sent.iter().map(|message| Message::clone(message)).collect();
    assert_eq!(verbatim.messages[..sent.len()], sent);
    assert_eq!(verbatim.messages.len(), sent.len() + 1);
    assert_eq!(verbatim.at, first.at);
}

#[test]
fn what_a_run_at_rest_said_last_is_taken_over() {
    let mut world = World::new(true, Limits::default());
    world.reply_with_calls(1);
    world.finish_call("call-1".into(), Ending::Returned, ToolOutput::text("x"));
    world.say("not seen yet");
    let taken = fork(&world.transcript, Form::Verbatim, None, &[]).messages;
    assert_eq!(taken.len(), 4, "prompt, reply, its result, separator");
    world.reply_with_calls(0);
    let taken = fork(&world.transcript, Form::Verbatim, None, &[]).messages;
    assert_eq!(taken[4].role, Role::Assistant);
}

/// A log as runs make them, with tools of several names, reasoning, blocks of the provider and
/// messages in which there is nothing to see.
fn logs() -> impl Strategy<Value = Vec<Record>> {
    let rolls = proptest::collection::vec(any::<u8>(), 0..160);
    (any::<bool>(), rolls).prop_map(|(session, rolls)| {
        let mut world = World::new(session, Limits::default());
        let mut dice = Dice::new(&rolls);
        while world.play(&mut dice) && world.records.len() < 300 {}
        let mut records = world.records;
        for (index, record) in records.iter_mut().enumerate() {
            match &mut record.event {
                Event::ModelReplied(replied) => vary(&mut replied.message, index),
                Event::MessageReceived(received) if index % 4 == 3 => {
                    received.message = Message::user(" \n");
                }
                Event::ToolFinished(finished) => {
                    finished.output.seen.push(seen(&format!("file {}", index % 3), index));
                }
                _ => {}
            }
        }
        records
    })
}

fn vary(message: &mut Message, seed: usize) {
    message.wire = Some("other".into());
    for (index, part) in message.parts.iter_mut().enumerate() {
        if let Part::ToolCall(call) = part {
            call.name = ["Read", "Bash", "Grep", "Task"][(seed + index) % 4].into();
        }
    }
    if seed.is_multiple_of(3) {
        message.parts.insert(0, thinking());
    }
    if seed.is_multiple_of(5) {
        message.parts.push(opaque());
    }
    if seed.is_multiple_of(7) {
        message.parts.retain(|part| !matches!(part, Part::Text(_)));
    }
}

/// Messages in any order, with calls and results that need not belong together.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    let id = prop::sample::select(vec!["1", "2", "3"]);
    let text = prop::sample::select(vec!["", "  ", "a", " b\n", "é"]);
    let name = prop::sample::select(vec!["Read", "Grep", "Bash", ""]);
    let user_part =
        prop_oneof![text.clone().prop_map(Part::text), id.clone().prop_map(|id| result(id, "r")),];
    let model_part = prop_oneof![
        text.prop_map(Part::text),
        (id, name).prop_map(|(id, name)| call(id, name, json!({"a": "b"}))),
        Just(thinking()),
        Just(opaque()),
    ];
    let user = proptest::collection::vec(user_part, 0..4).prop_map(answers);
    let assistant = proptest::collection::vec(model_part, 0..4).prop_map(model);
    proptest::collection::vec(prop_oneof![user, assistant], 0..12)
}

fn calls_and_results(message: &Message) -> (Vec<&CallId>, Vec<&CallId>) {
    let calls = message.tool_calls().map(|call| &call.id).collect();
    let results = message.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(&result.call),
        _ => None,
    });
    (calls, results.collect())
}

/// What every normalised fork promises.
fn check_normalised(fork: &Fork) {
    let mut expected: Vec<&CallId> = Vec::new();
    for message in &fork.messages {
        let (calls, results) = calls_and_results(message);
        assert_eq!(results, expected, "{:#?}", fork.messages);
        assert!(calls.is_empty() || message.role == Role::Assistant);
        assert!(!message.parts.is_empty());
        assert!(message.tool_calls().all(|call| may_call().contains(&call.name)));
        for part in &message.parts {
            match part {
                Part::Text(text) => assert!(!text.text.trim().is_empty()),
                Part::Thinking(_) | Part::Opaque { .. } => panic!("kept: {part:?}"),
                _ => {}
            }
        }
        expected = calls;
    }
    assert_eq!(expected, Vec::<&CallId>::new());
}

/// The messages that a child sees before its own task.
fn check_folds_first(fork: &Fork) {
    let mut child = begun_with(fork.messages.clone());
    child.apply(Seq(2), &Event::MessageReceived(MessageReceived::user("the task")));
    let seen: Vec<Message> = child.messages().iter().map(|m| Message::clone(m)).collect();
    assert_eq!(seen[..fork.messages.len()], fork.messages);
    assert_eq!(seen[fork.messages.len()..], [Message::user("the task")]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_normalised_fork_of_any_log_has_no_orphans_and_only_calls_the_child_may_make(
        records in logs(),
        turns in proptest::option::of(0u32..4),
    ) {
        let mut transcript = Transcript::default();
        for record in &records {
            transcript.apply(record.seq, &record.event);
            let fork = fork(&transcript, Form::Normalised, turns, &may_call());
            check_normalised(&fork);
            check_folds_first(&fork);
        }
    }

    #[test]
    fn a_normalised_fork_of_any_messages_has_no_orphans_and_keeps_what_was_said(messages in messages()) {
        let normalised = fork(&begun_with(messages.clone()), Form::Normalised, None, &may_call());
        check_normalised(&normalised);
        let texts = |messages: &[Message]| -> Vec<String> {
            let parts = messages.iter().flat_map(|message| &message.parts);
            let texts = parts.filter_map(|part| match part {
                Part::Text(text) if !text.text.trim().is_empty() => Some(text.text.clone()),
                _ => None,
            });
            texts.filter(|text| !text.starts_with('[')).collect()
        };
        prop_assert_eq!(texts(&normalised.messages), texts(&messages));
        let taken = &normalised.messages[..normalised.messages.len() - 1];
        let again = fork(&begun_with(taken.to_vec()), Form::Normalised, None, &may_call());
        prop_assert_eq!(&again.messages, &normalised.messages, "twice changes nothing");
    }

    /// And while calls are open, all of the request that made them.
    #[test]
    fn a_verbatim_fork_is_how_the_next_request_begins(records in logs()) {
        let mut transcript = Transcript::default();
        let (mut sent, mut answered): (Vec<Arc<Message>>, Vec<Arc<Message>>) = Default::default();
        for record in &records {
            transcript.apply(record.seq, &record.event);
            match &record.event {
                Event::ModelCalled(called) if called.purpose == Purpose::Turn => {
                    sent = transcript.messages();
                }
                Event::ModelReplied(_) => answered = sent.clone(),
                _ => {}
            }
            let fork = fork(&transcript, Form::Verbatim, None, &may_call());
            check_folds_first(&fork);
            let taken = &fork.messages[..fork.messages.len() - 1];
            let begins = |whole: &[Arc<Message>]| {
                taken.len() <= whole.len() && taken.iter().zip(whole).all(|(one, other)| *one == **other)
            };
            prop_assert!(begins(&transcript.messages()));
            if transcript.open_calls().next().is_some() {
                prop_assert!(begins(&answered) && taken.len() == answered.len());
            }
        }
    }

    #[test]
    fn the_log_up_to_where_it_was_forked_gives_the_same_fork(
        records in logs(),
        ends in proptest::collection::vec(any::<prop::sample::Index>(), 8),
        turns in proptest::option::of(0u32..4),
    ) {
        for end in ends {
            let transcript = Transcript::of(&records[..=end.index(records.len())]);
            for form in [Form::Verbatim, Form::Normalised] {
                let now = fork(&transcript, form, turns, &may_call());
                let then = Transcript::of(&records[..now.at.0 as usize]);
                let then = fork(&then, form, turns, &may_call());
                prop_assert_eq!((&now.messages, &now.seen, now.at), (&then.messages, &then.seen, then.at));
            }
        }
    }

    #[test]
    fn the_last_turns_are_the_end_of_the_whole_and_begin_with_no_result(
        records in logs(),
        turns in 1u32..4,
    ) {
        let transcript = Transcript::of(&records);
        let whole = fork(&transcript, Form::Verbatim, None, &may_call());
        let part = fork(&transcript, Form::Verbatim, Some(turns), &may_call());
        prop_assert!(whole.messages.ends_with(&part.messages));
        let (_, results) = calls_and_results(&part.messages[0]);
        prop_assert!(results.is_empty());
        prop_assert_eq!(part.messages[0].role, Role::User);
    }
}
