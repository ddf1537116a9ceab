//! Properties of the fold and of `next_step`, over logs as runs make them.

use crate::world::{Dice, World};
use posse_agent::protocol::*;
use posse_agent::{Step, Transcript, next_step};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

fn limits() -> impl Strategy<Value = Limits> {
    let maybe = |range: std::ops::Range<u32>| proptest::option::weighted(0.3, range);
    let work = (maybe(1..8), maybe(1..8), maybe(1..400), maybe(1..900));
    let spending = (maybe(200..4_000), maybe(50..900), maybe(1_000..40_000));
    (work, spending).prop_map(|((turns, tool_calls, wall, written), (input, output, cost))| {
        Limits {
            turns,
            tool_calls,
            input_tokens: input.map(u64::from),
            output_tokens: output.map(u64::from),
            cost: cost.map(|cost| Usd(cost.into())),
            wall_ms: wall.map(u64::from),
            written_bytes: written.map(u64::from),
            extra: Extra::default(),
        }
    })
}

fn worlds() -> impl Strategy<Value = World> {
    (any::<bool>(), limits(), proptest::collection::vec(any::<u8>(), 0..160)).prop_map(
        |(session, limits, rolls)| {
            let mut world = World::new(session, limits);
            let mut dice = Dice::new(&rolls);
            while world.play(&mut dice) && world.records.len() < 400 {}
            world
        },
    )
}

/// In what the model is sent, every call stands before exactly one result, in call order, in the
/// very next message; and there is no other result.
fn check_pairs(messages: &[Arc<Message>], open_at_end: bool) {
    let last_reply = messages.iter().rposition(|message| message.role == Role::Assistant);
    for (index, message) in messages.iter().enumerate() {
        let calls: Vec<&CallId> = message.tool_calls().map(|call| &call.id).collect();
        let next = messages.get(index + 1);
        let results: Vec<&CallId> = next.map(|next| results_of(next)).unwrap_or_default();
        match (message.role, last_reply == Some(index) && open_at_end) {
            (Role::Assistant, true) => {}
            (Role::Assistant, false) => assert_eq!(calls, results, "{messages:#?}"),
            (Role::User, _) => assert!(calls.is_empty() && results.is_empty()),
        }
    }
    assert_eq!(messages.first().map(|message| results_of(message).len()).unwrap_or(0), 0);
}

fn results_of(message: &Message) -> Vec<&CallId> {
    let results = message.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(&result.call),
        _ => None,
    });
    results.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_gets_exactly_one_result_in_what_the_model_sees(world in worlds()) {
        for end in 1..=world.records.len() {
            let transcript = Transcript::of(&world.records[..end]);
            let step = next_step(&transcript, &world.bounds);
            let messages = transcript.messages();
            let ready = matches!(step, Step::CallModel { .. } | Step::Compact);
            check_pairs(&messages, !ready);
            if ready {
                let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
                prop_assert_eq!(roles.first(), Some(&Role::User));
                prop_assert_eq!(roles.last(), Some(&Role::User));
            }
        }
    }

    #[test]
    fn the_loop_answers_no_call_twice(world in worlds()) {
        let mut answers: HashMap<&CallId, u32> = HashMap::new();
        for record in &world.records {
            if let Event::ToolFinished(finished) = &record.event {
                *answers.entry(&finished.call).or_default() += 1;
            }
        }
        prop_assert!(answers.values().all(|count| *count == 1), "{:?}", answers);
    }

    /// Of the calls that nobody runs any more, those that had begun for good are interrupted and
    /// the others are stopped.
    #[test]
    fn no_call_that_may_have_had_its_effect_is_called_stopped(world in worlds()) {
        let mut begun: HashSet<&CallId> = HashSet::new();
        for record in &world.records {
            match &record.event {
                Event::ToolStarted(started) if !started.repeatable => _ = begun.insert(&started.call),
                Event::ToolPending(pending) => _ = begun.remove(&pending.call),
                Event::ToolFinished(finished) => match finished.ending {
                    Ending::Stopped => prop_assert!(!begun.contains(&finished.call)),
                    Ending::Interrupted => prop_assert!(begun.contains(&finished.call)),
                    _ => {}
                },
                _ => {}
            }
        }
    }

    #[test]
    fn nothing_follows_a_finish_but_a_message_or_an_archiving(world in worlds()) {
        let mut transcript = Transcript::default();
        for (index, record) in world.records.iter().enumerate() {
            transcript.apply(record.seq, &record.event);
            let next = world.records.get(index + 1).map(|record| &record.event);
            match record.event {
                Event::RunFinished(_) => prop_assert!(
                    matches!(next, None | Some(Event::MessageReceived(_) | Event::Archived(_))),
                    "{:?}",
                    next
                ),
                Event::Archived(_) => prop_assert_eq!(next, None),
                _ => continue,
            }
            prop_assert!(matches!(next_step(&transcript, &world.bounds), Step::Done(_)));
        }
    }

    #[test]
    fn nothing_starts_that_a_person_was_asked_about_and_did_not_allow(world in worlds()) {
        let mut asked: HashSet<&CallId> = HashSet::new();
        for record in &world.records {
            match &record.event {
                Event::ApprovalAsked(question) => _ = asked.insert(&question.call),
                Event::ApprovalGiven(given) if !matches!(given.answer, Approval::Denied { .. }) => {
                    _ = asked.remove(&given.call);
                }
                Event::ToolStarted(started) => prop_assert!(!asked.contains(&started.call)),
                Event::ToolFinished(finished) if asked.contains(&finished.call) => prop_assert!(
                    matches!(finished.ending, Ending::Refused | Ending::Stopped | Ending::OverLimit),
                    "{:?}",
                    finished
                ),
                _ => {}
            }
        }
    }

    /// Each time it is set to work, by a message, it may spend as much again and no more.
    #[test]
    fn no_run_spends_more_than_it_may(world in worlds()) {
        let Limits { cost, output_tokens, .. } = world.bounds.limits;
        let mut transcript = Transcript::default();
        let mut allowances = 0;
        for record in &world.records {
            transcript.apply(record.seq, &record.event);
            let from_user = matches!(&record.event, Event::MessageReceived(m) if m.from == Sender::User);
            allowances += u64::from(from_user);
            let usage = transcript.usage();
            prop_assert!(cost.is_none_or(|limit| usage.cost.0 <= limit.0 * allowances));
            prop_assert!(output_tokens.is_none_or(|limit| usage.output_tokens <= limit * allowances));
        }
    }

    /// A prefix of what is read back is the prefix, read back.
    #[test]
    fn any_prefix_serialised_and_read_back_decides_the_same(world in worlds()) {
        let text = serde_json::to_string(&world.records).unwrap();
        let back: Vec<Record> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back.len(), world.records.len());
        let (mut one, mut other) = (Transcript::default(), Transcript::default());
        for (record, same) in world.records.iter().zip(&back) {
            one.apply(record.seq, &record.event);
            other.apply(same.seq, &same.event);
            prop_assert_eq!(next_step(&one, &world.bounds), next_step(&other, &world.bounds));
            prop_assert_eq!(one.messages(), other.messages());
        }
    }

    #[test]
    fn folding_in_parts_equals_folding_at_once(world in worlds(), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(world.records.len());
        let mut parts = Transcript::of(&world.records[..cut]);
        for record in &world.records[cut..] {
            parts.apply(record.seq, &record.event);
        }
        let whole = Transcript::of(&world.records);
        prop_assert_eq!(format!("{parts:?}"), format!("{whole:?}"));
    }

    /// What others append may fall before or after what the owner appends: nothing depends on it.
    #[test]
    fn a_message_during_a_call_folds_after_the_reply_wherever_it_stands(rolls in proptest::collection::vec(any::<u8>(), 1..20)) {
        let build = |message_first: bool| {
            let mut world = World::new(true, Limits::default());
            let called = ModelCalled { reserved: Usage::default(), purpose: Purpose::Turn, model: String::new(), share: None, extra: Extra::default() };
            world.push(Event::ModelCalled(called));
            let seen = world.transcript.seq();
            if message_first {
                world.say("during");
            }
            world.model_reply(seen, &mut Dice::new(&rolls));
            if !message_first {
                world.say("during");
            }
            world
        };
        let (before, after) = (build(true), build(false));
        let texts = |world: &World| -> Vec<String> { world.transcript.messages().iter().map(|m| m.role_and_text()).collect() };
        let strip = |texts: Vec<String>| -> Vec<String> { texts.into_iter().map(|text| text.split("text ").next().unwrap_or_default().to_owned()).collect() };
        prop_assert_eq!(strip(texts(&before)), strip(texts(&after)));
    }

    #[test]
    fn every_run_comes_to_rest_once_nobody_disturbs_it(world in worlds(), rolls in proptest::collection::vec(3u8..8, 600)) {
        let mut world = world;
        let mut dice = Dice::new(&rolls);
        for _ in 0..200 {
            if matches!(world.next(), Step::Wait | Step::Done(_)) {
                return Ok(());
            }
            world.step(&mut dice);
        }
        // Two calls a turn, for ever, without a limit: that is a run at work, not a stuck one.
        let limited = world.bounds.limits.turns.is_some();
        prop_assert!(!limited, "still not at rest: {:?}", world.next());
    }
}

trait RoleAndText {
    fn role_and_text(&self) -> String;
}

impl RoleAndText for Arc<Message> {
    fn role_and_text(&self) -> String {
        format!("{:?} {}", self.role, self.text())
    }
}

#[test]
fn after_archiving_nothing_is_done() {
    let mut world = World::new(false, Limits::default());
    let outcome = Outcome::completed("");
    world.push(Event::RunFinished(RunFinished {
        outcome,
        worked_ms: 0,
        changes: None,
        extra: Extra::default(),
    }));
    world.push(Event::Archived(Archived::default()));
    assert!(matches!(world.next(), Step::Done(_)));
}
