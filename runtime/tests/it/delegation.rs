//! Handing work to children: isolation, results, refusals, waiting, resuming.

use crate::bench::{Bench, eventually, within};
use posse::protocol::{Caller, CancelScope, Context, DelegationStrategy, Event, Outcome, Record};
use posse::store::{Filter, Kin};
use posse::{AgentSpec, Limits, RunHandle, RunId, RunRow, RunSpec, Status};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use serde_json::{Value, json};

/// A call of `Task`.
pub fn task(agent: &str, prompt: &str) -> Value {
    json!({"description": format!("do {prompt}"), "prompt": prompt, "subagent_type": agent})
}

/// A main agent that makes `calls` at first and says `done` when they are answered.
pub fn main_agent(calls: impl IntoIterator<Item = Value>) -> Conversation {
    let reply =
        calls.into_iter().fold(Reply::empty(), |reply, call| reply.and_tool_call("Task", call));
    let when = When::any().first_user_contains("lead");
    Conversation::when(when).reply(reply).reply(Reply::text("done"))
}

fn child(prompt: &str, replies: impl IntoIterator<Item = Reply>) -> Conversation {
    let conversation = Conversation::when(When::any().first_user_contains(prompt));
    replies.into_iter().fold(conversation, Conversation::reply)
}

pub async fn children(bench: &Bench, run: RunId) -> Vec<RunRow> {
    let filter = Filter { kin: Kin::ChildrenOf(run), ..Filter::default() };
    let mut rows = bench.runtime.list(&filter).await.unwrap();
    rows.sort_by_key(|row| row.id);
    rows
}

async fn completed(run: &RunHandle) -> String {
    let outcome = within(run.outcome()).await.unwrap();
    assert!(outcome.is_completed(), "{outcome}");
    outcome.text().to_owned()
}

/// The results in a log, in order, and whether each is an error.
fn results(log: &[Record]) -> Vec<(String, bool)> {
    log.iter()
        .filter_map(|record| match &record.event {
            Event::ToolFinished(it) => Some((it.output.joined_text(), it.output.is_error)),
            _ => None,
        })
        .collect()
}

/// The model's window has 200,000 tokens; what six children say in 100 KiB each is taken for more.
#[tokio::test]
async fn i8_results_that_do_not_fit_together_are_shortened_and_once_more_if_the_provider_says_so() {
    let prompts: Vec<String> = (0..6).map(|index| format!("look at {index}")).collect();
    let too_long = Reply::error(400, "prompt is too long: 204918 tokens > 200000 maximum");
    let second = When::any().first_user_contains("lead").turn(1);
    let mut script = Script::new()
        .rule(Rule::when(second.clone()).reply(too_long).once())
        .conversation(main_agent(prompts.iter().map(|prompt| task("explore", prompt))));
    for prompt in &prompts {
        script = script.conversation(child(prompt, [Reply::text(&"word ".repeat(24_000))]));
    }
    let bench = Bench::new(script).await;
    let run = bench.start("lead the way").await;
    assert_eq!(completed(&run).await, "done");
    let sizes = bench.fake.requests_where(&second).into_iter().map(|request| {
        let shown = request.tool_results();
        assert!(shown.iter().all(|result| result.contains("bytes left out; resume run ")));
        shown.iter().map(String::len).sum::<usize>()
    });
    let sizes: Vec<usize> = sizes.collect();
    assert!(sizes.len() == 2 && sizes[0] < 480_000 && sizes[1] < 240_000, "{sizes:?}");
    let log = bench.log(run.id()).await;
    assert!(results(&log).iter().all(|(text, _)| text.len() > 100_000), "the log has it whole");
}

#[tokio::test]
async fn c1_a_child_s_first_request_holds_its_own_instructions_and_one_message() {
    let script = Script::new()
        .conversation(main_agent([task("explore", "look around")]))
        .conversation(child("look around", [Reply::text("auth is in src/auth")]));
    let bench = Bench::new(script).await;
    let run = bench.start("lead the way").await;
    assert_eq!(completed(&run).await, "done");
    let asked = bench.fake.requests_where(&When::any().first_user_contains("look around"));
    assert_eq!(asked.len(), 1);
    let first = &asked[0];
    let messages = first.body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["content"].as_array().unwrap().len(), 1);
    assert_eq!(messages[0]["content"][0]["text"], "look around");
    assert!(!first.body.to_string().contains("lead the way"));
    // C2: the tool that delegates is not among the child's, whatever its definition says.
    assert!(!first.tools().contains(&"Task".to_owned()));
    let overhead = first.body.to_string().len() - "look around".len();
    assert!(overhead <= 4 * 1024, "an explore child's first request has {overhead} bytes");
    // The parent sees the result and nothing else.
    let last = bench.fake.last_request();
    let result = last.tool_results().pop().unwrap();
    for part in ["auth is in src/auth", "agent=\"explore\"", "outcome=\"completed\""] {
        assert!(result.contains(part), "{result}");
    }
    let mut log = bench.kinds(run.id()).await;
    // A fast child ends before its parent has noted that it waits.
    log[6..8].sort_unstable();
    let expected = [
        "run_started",
        "message_received",
        "model_called",
        "model_replied",
        "tool_started",
        "child_started",
        "tool_finished",
        "tool_pending",
        "model_called",
        "model_replied",
        "run_finished",
    ];
    assert_eq!(log, expected);
    bench.fake.assert_nothing_refused();
}

#[tokio::test]
async fn several_tasks_of_one_reply_run_side_by_side_and_keep_their_order() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(main_agent(["a", "b", "c"].map(|it| task("general-purpose", it))))
        .rule(posse_testkit::Rule::when(When::any()).reply(Reply::text("I did it").held_by(&gate)));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    within(gate.wait_for_held(3)).await.unwrap();
    // The parent waits, says for what, and holds no slot.
    eventually(async || bench.runtime.executing() == 3).await;
    let row = bench.runtime.find(&run.id().to_string()).await.unwrap();
    assert_eq!(row.status, Status::Waiting);
    assert!(row.state.note.contains("[general-purpose] do c"), "{}", row.state.note);
    gate.open();
    completed(&run).await;
    let rows = children(&bench, run.id()).await;
    assert_eq!(
        rows.iter().map(|row| row.about.title.as_str()).collect::<Vec<_>>(),
        ["do a", "do b", "do c"]
    );
    let told = bench.fake.last_request().tool_results();
    for (row, result) in rows.iter().zip(told) {
        assert!(result.contains(&row.id.to_string()), "{result}");
    }
}

#[tokio::test]
async fn nested_fan_outs_finish_with_one_slot() {
    let lead = |prompt: &str| {
        let calls = ["x", "y", "z"].map(|it| task("lead", &format!("{prompt}{it}")));
        let reply =
            calls.into_iter().fold(Reply::empty(), |reply, call| reply.and_tool_call("Task", call));
        let pattern = format!("^{prompt}$");
        Conversation::when(When::any().first_user_matches(&pattern))
            .reply(reply)
            .reply(Reply::text(&format!("{prompt} is done")))
    };
    let mut script = Script::new().conversation(lead("go"));
    for one in ["x", "y", "z"] {
        script = script.conversation(lead(&format!("go{one}")));
    }
    let script = script.rule(posse_testkit::Rule::when(When::any()).reply(Reply::text("leaf")));
    let bench = Bench::with(script, |mut config| {
        let mut lead = AgentSpec::new("lead".parse().unwrap());
        lead.children.max_depth = Some(2);
        config.definitions.agents.set(lead);
        config.scheduling.max_concurrent = 1;
        config
    })
    .await;
    let spec = RunSpec { agent: "lead".parse().unwrap(), ..bench.spec("go") };
    let run = bench.runtime.start(spec).await.unwrap();
    assert_eq!(completed(&run).await, "go is done");
    let tree = run.tree().await.unwrap();
    assert_eq!(tree.len(), 13);
    assert!(tree.iter().all(|row| row.state.outcome.as_deref() == Some("completed")));
    assert_eq!(bench.fake.peak_in_flight(), 1);
    // D7: at the bottom nobody is offered anyone.
    let leaves = bench.fake.requests_where(&When::any().first_user_matches("^go..$"));
    assert_eq!(leaves.len(), 9);
    assert!(leaves.iter().all(|leaf| !leaf.tools().contains(&"Task".to_owned())));
}

#[tokio::test]
async fn c8_what_cannot_be_started_is_an_error_result_and_the_parent_goes_on() {
    let calls = [
        (task("nobody", "x"), "there is no agent `nobody`; there are: "),
        (task("a b", "x"), "is not an agent name"),
        (json!({"description": "d", "prompt": "x"}), "`subagent_type` is missing"),
        (task("explore", "  "), "the prompt is empty"),
        (
            json!({"description": "d", "prompt": "x", "subagent_type": "explore", "model": "acme/x"}),
            "acme",
        ),
        (
            json!({"description": "d", "prompt": "x", "subagent_type": "explore",
                   "output_schema": {"type": 5}}),
            "output schema cannot be used",
        ),
        (json!({"prompt": "x", "resume": "01jzzzzzzzzzzzzzzzzzzzzzzz"}), "was not started by you"),
        // Posse tells an agent nothing of runs that others have started.
        (json!({"prompt": "x", "resume": "merger"}), "matches `merger`"),
        (json!({"prompt": 5}), "the arguments cannot be used"),
    ];
    let script = Script::new().conversation(main_agent(calls.clone().map(|(call, _)| call)));
    let script = script.rule(
        posse_testkit::Rule::when(When::any().first_user_contains("other")).reply(Reply::text("x")),
    );
    let bench = Bench::new(script).await;
    let label = "merger with ACME".to_owned();
    let other = RunSpec { label, ..bench.spec("other") };
    completed(&bench.runtime.start(other).await.unwrap()).await;
    let run = bench.start("lead").await;
    assert_eq!(completed(&run).await, "done");
    let told = bench.fake.last_request().tool_results();
    assert!(!told.join(" ").contains("ACME"), "{told:?}");
    assert_eq!(told.len(), calls.len());
    for ((call, expected), text) in calls.iter().zip(&told) {
        assert!(text.contains(expected), "{call}: {text}");
    }
    let all = results(&bench.log(run.id()).await);
    assert!(all.iter().all(|(_, is_error)| *is_error));
    assert!(children(&bench, run.id()).await.is_empty());
}

#[tokio::test]
async fn every_sibling_s_result_is_kept_whatever_becomes_of_the_others() {
    let script = Script::new()
        .conversation(main_agent(
            ["good", "refused", "broken", "endless"].map(|it| task("worker", it)),
        ))
        .conversation(child("good", [Reply::text("all good")]))
        .conversation(child("refused", [Reply::text("no").stop_reason("refusal")]))
        .conversation(child("broken", [Reply::error(400, "your request is bad")]))
        .rule(
            posse_testkit::Rule::when(When::any().first_user_contains("endless"))
                .reply(Reply::text("half").and_tool_call("List", json!({"path": "."}))),
        );
    let bench = Bench::with(script, |config| {
        let limits = Limits { turns: Some(3), ..Limits::default() };
        config
            .definitions
            .agents
            .set(AgentSpec { limits, ..AgentSpec::new("worker".parse().unwrap()) });
        config
    })
    .await;
    let run = bench.start("lead").await;
    assert_eq!(completed(&run).await, "done");
    let told = bench.fake.last_request().tool_results();
    let expected = [
        ("outcome=\"completed\"", "all good"),
        ("outcome=\"failed\"", "refused to answer"),
        ("outcome=\"failed\"", "your request is bad"),
        // C5: one that never stops is stopped, and says at which limit.
        ("outcome=\"stopped\"", "stopped at its limit of turns. What it had so far:\nhalf"),
    ];
    assert_eq!(told.len(), 4);
    for ((outcome, text), told) in expected.iter().zip(&told) {
        assert!(told.contains(outcome) && told.contains(text), "{told}");
    }
}

#[tokio::test]
async fn strategies_differ_in_what_the_model_is_sent() {
    for (strategy, offered, urged) in [
        (DelegationStrategy::Auto, true, true),
        (DelegationStrategy::ToolCall, true, false),
        (DelegationStrategy::Manual, false, false),
    ] {
        let bench = Bench::new(Script::always(Reply::text("done"))).await;
        let spec = RunSpec { strategy: Some(strategy), ..bench.spec("use the explore agent") };
        let run = bench.runtime.start(spec).await.unwrap();
        completed(&run).await;
        let sent = bench.fake.last_request();
        assert_eq!(sent.tools().contains(&"Task".to_owned()), offered, "{strategy:?}");
        assert_eq!(sent.system().contains("Hand work to a specialist"), urged, "{strategy:?}");
        let tools = sent.body["tools"].to_string();
        assert_eq!(tools.contains("- explore: "), offered, "the tool says who there is");
        // Whoever asks for an agent by name is understood, where there is someone to hand it to.
        let hinted = sent.last_user().contains("The user asks for the agent `explore`");
        assert_eq!(hinted, offered, "{strategy:?}");
    }
}

#[tokio::test]
async fn host_code_delegates_whatever_the_strategy() {
    let bench = Bench::new(Script::always(Reply::text("done"))).await;
    let strategy = Some(DelegationStrategy::Manual);
    let session = RunSpec { session: true, prompt: None, strategy, ..bench.spec("") };
    let session = bench.runtime.start(session).await.unwrap();
    let below = |agent: &str, parent: RunId| RunSpec {
        agent: agent.parse().unwrap(),
        parent: Some(Caller::of_run(parent)),
        ..bench.spec("look")
    };
    let child = bench.runtime.start(below("explore", session.id())).await.unwrap();
    completed(&child).await;
    let row = bench.runtime.find(&child.id().to_string()).await.unwrap();
    assert_eq!(
        (row.family.parent, row.family.root, row.family.depth),
        (Some(session.id()), session.id(), 1)
    );
    // Nobody waits for it, so nothing is told of its end.
    assert_eq!(bench.kinds(session.id()).await, ["run_started", "child_started"]);
    let outside =
        RunSpec { workspace: bench.folder.path().to_owned(), ..below("explore", session.id()) };
    let error = bench.runtime.start(outside).await.err().unwrap().to_string();
    assert!(error.contains("is outside of"), "{error}");
}

#[tokio::test]
async fn f1_whoever_stands_at_the_greatest_depth_starts_nobody_and_is_told_both_numbers() {
    let script =
        Script::new().conversation(main_agent([task("explore", "look")])).conversation(child(
            "look",
            [Reply::tool_call("Task", task("explore", "more")), Reply::text("alone, then")],
        ));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let below = children(&bench, run.id()).await;
    assert_eq!((below.len(), below[0].family.depth), (1, 1));
    let asked = bench.fake.count();
    let (told, failed) = results(&bench.log(below[0].id).await).remove(0);
    for part in ["`Task` cannot be called", "stands at depth 1", "no deeper than 1"] {
        assert!(failed && told.contains(part), "{part}: {told}");
    }
    // The host is told the same for whoever may not.
    let parent = Some(Caller::of_run(below[0].id));
    let spec = RunSpec { agent: "explore".parse().unwrap(), parent, ..bench.spec("more") };
    let error = bench.runtime.start(spec).await.err().unwrap().to_string();
    assert!(error.contains("stands at depth 1"), "{error}");
    assert!(error.contains("no deeper than 1"), "{error}");
    assert!(children(&bench, below[0].id).await.is_empty());
    assert_eq!(bench.fake.count(), asked, "nobody was asked anything");
}

#[tokio::test]
async fn f13_what_cannot_be_started_leaves_nothing_behind() {
    let bench = Bench::new(Script::always(Reply::text("done"))).await;
    let run = bench.start("lead").await;
    completed(&run).await;
    let before = bench.kinds(run.id()).await;
    let asked = bench.fake.count();
    // It is found to be sound, and refused when it is stored: its parent has ended.
    let parent = Some(Caller::of_run(run.id()));
    let key = Some("once".to_owned());
    let spec =
        RunSpec { agent: "explore".parse().unwrap(), parent, key: key.clone(), ..bench.spec("x") };
    let error = bench.runtime.start(spec).await.err().unwrap().to_string();
    assert!(error.contains("has ended"), "{error}");
    let all = bench.runtime.list(&Filter::default()).await.unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(bench.kinds(run.id()).await, before, "its parent knows of nobody");
    assert_eq!(bench.fake.count(), asked);
    eventually(async || bench.runtime.executing() == 0).await;
    // Its key is free.
    let again = bench.runtime.start(RunSpec { key, ..bench.spec("y") }).await.unwrap();
    completed(&again).await;
    assert_eq!(bench.fake.count(), asked + 1);
}

#[tokio::test]
async fn a_child_that_has_ended_goes_on_from_where_it_was() {
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(Reply::tool_call("Task", task("explore", "look")))
                .reply(Reply::tool_call(
                    "Task",
                    json!({"description": "more", "prompt": "and now?", "resume": "{{last_run}}"}),
                ))
                .reply(Reply::text("{{last_tool_result}}")),
        )
        .conversation(child(
            "look",
            [Reply::text("found it"), Reply::text("still there"), Reply::text("as before")],
        ));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    let said = completed(&run).await;
    assert!(said.contains("still there") && !said.contains("found it"), "{said}");
    let rows = children(&bench, run.id()).await;
    assert_eq!(rows.len(), 1);
    let last = bench.fake.requests_where(&When::any().first_user_contains("look")).pop().unwrap();
    assert_eq!(last.body["messages"].as_array().unwrap().len(), 3);
    assert_eq!(last.last_user(), "and now?");
    // A person goes on with it later, and the parent, which has ended, is told nothing.
    let before = bench.kinds(run.id()).await;
    bench.runtime.send(rows[0].id, "once more").await.unwrap();
    let outcome = within(bench.runtime.handle(rows[0].id).outcome()).await.unwrap();
    assert!(outcome.is_completed());
    assert_eq!(bench.kinds(run.id()).await, before);
}

#[tokio::test]
async fn only_one_s_own_children_that_have_ended_go_on() {
    let script = Script::new().conversation(child("theirs", [Reply::text("theirs")])).conversation(
        Conversation::when(When::any().first_user_contains("lead"))
            .reply(Reply::text("whom?"))
            .reply(Reply::tool_call("Task", json!({"prompt": "x", "resume": "{{last_user}}"})))
            .reply(Reply::text("{{last_tool_result}}")),
    );
    let bench = Bench::new(script).await;
    let theirs = bench.start("theirs").await;
    completed(&theirs).await;
    let spec = bench.spec("lead");
    let run = bench.runtime.start(RunSpec { session: true, ..spec }).await.unwrap();
    within(run.at_rest()).await.unwrap();
    bench.runtime.send(run.id(), theirs.id().to_string()).await.unwrap();
    let row = within(run.at_rest()).await.unwrap();
    assert_eq!(row.status, Status::Waiting);
    let told = results(&bench.log(run.id()).await);
    assert!(told.iter().all(|(text, is_error)| *is_error && text.contains("no task was started")));
    assert!(told.len() == 1, "{told:?}");
}

#[tokio::test]
async fn c10_cancelling_a_run_reaches_everything_below_it() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(main_agent(["a", "b"].map(|it| task("lead", it))))
        .conversation(child(
            "a",
            [Reply::tool_call("Task", task("explore", "deep")), Reply::text("never")],
        ))
        .rule(posse_testkit::Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let bench = Bench::with(script, |config| {
        let mut agent = AgentSpec::new("lead".parse().unwrap());
        agent.children.max_depth = Some(3);
        config.definitions.agents.set(agent);
        config
    })
    .await;
    let spec = RunSpec { agent: "lead".parse().unwrap(), ..bench.spec("lead") };
    let run = bench.runtime.start(spec).await.unwrap();
    within(gate.wait_for_held(2)).await.unwrap();
    bench.runtime.cancel(run.id(), "me", CancelScope::Run).await.unwrap();
    let outcome = within(run.outcome()).await.unwrap();
    assert!(matches!(&outcome, Outcome::Cancelled { by, .. } if by == "me"), "{outcome}");
    for row in run.tree().await.unwrap() {
        let outcome = within(bench.runtime.handle(row.id).outcome()).await.unwrap();
        assert_eq!(outcome.kind(), "cancelled", "{}", row.about.title);
    }
    assert_eq!(run.tree().await.unwrap().len(), 4);
    assert_eq!(bench.fake.abandoned(), 2);
    // Nothing starts below it any more.
    let parent = Some(Caller::of_run(run.id()));
    let late = bench.runtime.start(RunSpec { parent, ..bench.spec("late") }).await;
    assert!(late.err().unwrap().to_string().contains("has ended"));
}

#[tokio::test]
async fn a_stopped_turn_of_a_session_takes_its_children_along() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(main_agent([task("explore", "slow")]))
        .conversation(child("slow", [Reply::text("late").held_by(&gate)]));
    let bench = Bench::new(script).await;
    let spec = RunSpec { session: true, ..bench.spec("lead") };
    let run = bench.runtime.start(spec).await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.cancel(run.id(), "me", CancelScope::Turn).await.unwrap();
    let rows = children(&bench, run.id()).await;
    let outcome = within(bench.runtime.handle(rows[0].id).outcome()).await.unwrap();
    assert_eq!(outcome.kind(), "cancelled");
    within(run.at_rest()).await.unwrap();
    bench.runtime.send(run.id(), "go on").await.unwrap();
    within(run.at_rest()).await.unwrap();
    let log = bench.log(run.id()).await;
    // The stopped call has one answer that counts: that it was stopped, or what its child came to.
    let told = bench.fake.last_request().tool_results();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("cancelled"), "{told:?}");
    assert_eq!(log.last().unwrap().event.kind(), "model_replied");
}

#[tokio::test]
async fn a_parent_and_its_children_go_on_after_the_runtime_is_gone() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(main_agent(["a", "b"].map(|it| task("explore", it))))
        .conversation(child("a", [Reply::text("a is done")]))
        .conversation(child("b", [Reply::text("b is done").held_by(&gate)]));
    let mut bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    within(gate.wait_for_held(1)).await.unwrap();
    let one = bench.runtime.handle(children(&bench, run.id()).await[0].id);
    completed(&one).await;
    bench.runtime.shutdown().await;
    gate.open();
    bench.reopen().await;
    let run = bench.runtime.handle(run.id());
    assert_eq!(completed(&run).await, "done");
    let told = results(&bench.log(run.id()).await);
    assert_eq!(told.len(), 2, "each result once: {told:?}");
}

#[tokio::test]
async fn a_fork_takes_the_conversation_over() {
    for (agent, context) in [("twin", Context::Fork), ("other", Context::Fork)] {
        let script = Script::new()
            .conversation(
                Conversation::when(When::any().body_matches("\"lead\"(?s:.)*").turn(0))
                    .reply(Reply::tool_call("List", json!({"path": "."}))),
            )
            .rule(
                posse_testkit::Rule::when(When::any().last_user_contains("your part"))
                    .reply(Reply::text("forked")),
            )
            .rule(
                posse_testkit::Rule::when(When::any().turn(1))
                    .reply(Reply::tool_call("Task", task(agent, "your part"))),
            )
            .rule(posse_testkit::Rule::when(When::any()).reply(Reply::text("done")));
        let bench = Bench::with(script, |config| {
            for name in ["twin", "other"] {
                let mut agent = AgentSpec::new(name.parse().unwrap());
                agent.start.context = context;
                agent.instructions = name.to_owned();
                agent.rights.tools = (name == "other").then(|| vec!["Read".to_owned()]);
                config.definitions.agents.set(agent);
            }
            config
        })
        .await;
        bench.write("notes.txt", "hello");
        let spec = RunSpec { agent: "twin".parse().unwrap(), ..bench.spec("lead") };
        let run = bench.runtime.start(spec).await.unwrap();
        assert_eq!(completed(&run).await, "done", "{agent}");
        let forked =
            bench.fake.requests_where(&When::any().last_user_contains("your part")).pop().unwrap();
        let parent = &bench.fake.requests()[1];
        let same = |part: &str| forked.body[part] == parent.body[part];
        assert_eq!(same("system") && same("tools"), agent == "twin");
        let text = forked.body["messages"].to_string();
        assert!(text.contains("lead"), "{text}");
        assert_eq!(text.contains("tool_use"), agent == "twin", "{text}");
        if agent == "twin" {
            // All that the parent had sent stands there as it was, but for the marks of the cache.
            let unmarked = |value: &Value| value.to_string().replace(MARK, "");
            let sent = unmarked(&parent.body["messages"]);
            let whole = unmarked(&forked.body["messages"]);
            let sent = sent.trim_end_matches("]}]");
            assert!(whole.starts_with(sent), "{sent}\n{whole}");
        }
    }
}

const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

#[tokio::test]
async fn a_tree_is_watched_as_one() {
    let script = Script::new()
        .conversation(main_agent(["a", "b"].map(|it| task("explore", it))))
        .rule(posse_testkit::Rule::when(When::any()).reply(Reply::text("leaf")));
    let bench = Bench::new(script).await;
    let run = bench.start("lead").await;
    let mut events = run.tree_events(posse::Seq::ZERO);
    let mut ends = Vec::new();
    while let Some(update) = within(events.next()).await {
        if let (run, posse::Update::Event(record)) = update.unwrap()
            && matches!(record.event, Event::RunFinished(_))
        {
            ends.push(run);
        }
    }
    assert_eq!(ends.len(), 3);
    assert_eq!(ends.last(), Some(&run.id()));
}

#[tokio::test]
async fn an_agent_that_no_file_holds_is_there_for_whoever_goes_on_with_the_run() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(Reply::tool_call("Task", task("poet", "a verse")).held_by(&gate))
                .reply(Reply::text("done")),
        )
        .rule(posse_testkit::Rule::when(When::any()).reply(Reply::text("a rose")));
    let mut bench = Bench::with(script, |config| {
        let poet = "poet".parse().unwrap();
        let instructions = "You write verse.".to_owned();
        config.definitions.agents.set(AgentSpec { instructions, ..AgentSpec::new(poet) });
        config
    })
    .await;
    let run = bench.start("lead").await;
    within(gate.wait_for_held(1)).await.unwrap();
    bench.runtime.shutdown().await;
    bench.config.definitions.agents = posse::AgentCatalog::built_in().into();
    gate.open();
    bench.reopen().await;
    assert_eq!(completed(&bench.runtime.handle(run.id())).await, "done");
    let verse = bench.fake.requests_where(&When::any().system_contains("You write verse."));
    assert_eq!(verse.len(), 1);
}
