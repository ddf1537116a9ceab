//! `posse::query`: one call, a stream of messages that ends.

use crate::bench::{eventually, within};
use crate::facade_subagents::home_in;
use futures_util::StreamExt;
use posse::ModelChoice;
use posse::protocol::{Delta, Usd};
use posse::query::{AgentDefinition, DefinedRights, Message, Query, QueryOptions};
use posse::store::Filter;
use posse::subagents::DelegationStrategy;
use posse::{Error, Keys, Limits, Recovery, RunRow, RunSpec, Runtime, RuntimeConfig};
use posse_testkit::{Conversation, FakeModel, Gate, Reply, Rule, Script, When};
use serde_json::json;
use std::time::Duration;
use tempfile::TempDir;

/// A fake model, a folder to work in, and options that lead to both.
struct Desk {
    fake: FakeModel,
    folder: TempDir,
}

impl Desk {
    async fn new(script: Script) -> Self {
        let fake = FakeModel::start(script).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Desk { fake, folder }
    }

    fn keys(&self) -> Keys {
        Keys::default()
            .with("ANTHROPIC_API_KEY", "test")
            .with("ANTHROPIC_BASE_URL", self.fake.url())
    }

    /// In a temporary home.
    fn options(&self) -> QueryOptions {
        QueryOptions {
            model: Some("anthropic/claude-sonnet-4-5".into()),
            workspace: self.folder.path().join("work"),
            home: self.keys().into(),
            ..QueryOptions::default()
        }
    }

    fn config(&self) -> RuntimeConfig {
        {
            let mut config: RuntimeConfig =
                RuntimeConfig::new(self.folder.path().join("runs.db"), self.keys());
            config.scheduling.recovery = Recovery::Wait;
            config.scheduling.shutdown_after = Duration::from_millis(100);
            config
        }
    }

    /// In a home whose database stays.
    fn lasting(&self) -> QueryOptions {
        QueryOptions { home: self.config().into(), ..self.options() }
    }

    async fn rows(&self) -> Vec<RunRow> {
        let runtime = Runtime::open(self.config()).await.unwrap();
        let rows = runtime.list(&Filter::default()).await.unwrap();
        runtime.shutdown().await;
        rows
    }
}

fn reviewer() -> AgentDefinition {
    AgentDefinition {
        description: "Expert code reviewer".into(),
        prompt: "You are a senior code reviewer.".into(),
        rights: DefinedRights::to_call(["Read", "Grep"]),
        ..AgentDefinition::default()
    }
}

/// All messages, and that there is none after the last.
async fn all(mut query: Query) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Some(message) = within(query.next()).await {
        messages.push(message.unwrap());
    }
    assert!(query.next().await.is_none(), "an end is an end");
    messages
}

fn kinds(messages: &[Message]) -> Vec<String> {
    let tag = |message: &Message| serde_json::to_value(message).unwrap()["type"].clone();
    messages.iter().map(|message| tag(message).as_str().unwrap().to_owned()).collect()
}

fn task(agent: &str, prompt: &str) -> serde_json::Value {
    json!({"description": "a part", "prompt": prompt, "subagent_type": agent})
}

#[tokio::test]
async fn a9_the_agents_of_a_one_shot_query_reach_the_model() {
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("check my change"))
                .reply(Reply::tool_call("Task", task("code-reviewer", "Review auth.rs")))
                .reply(Reply::text("Review complete: {{last_tool_result}}")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("Found 3 issues")));
    let desk = Desk::new(script).await;
    let agents = [("code-reviewer".to_owned(), reviewer())].into();
    let options = QueryOptions { agents, ..desk.options() };
    let messages = all(posse::query("check my change", options).await.unwrap()).await;
    let first = desk.fake.request(1);
    assert!(first.tools().contains(&"Task".to_owned()));
    let line = "- code-reviewer: Expert code reviewer";
    assert!(first.body["tools"].to_string().contains(line), "the tool lists them");
    assert!(first.system().contains("Hand work to a specialist"), "and the system prompt urges");
    assert!(!first.body.to_string().contains("- main: "), "nobody hands work to itself");
    let child = &desk.fake.requests_where(&When::any().first_user_contains("auth.rs"))[0];
    assert!(child.system().starts_with("You are a senior code reviewer."), "{}", child.system());
    assert_eq!(child.tools(), ["Read", "Grep"]);
    assert_eq!(child.body["messages"].as_array().unwrap().len(), 1);
    let Some(Message::Result(summary)) = messages.last() else { panic!("{messages:?}") };
    assert!(summary.text().contains("Found 3 issues"), "{}", summary.text());
    assert_eq!((summary.children, summary.tool_calls), (1, 1));
    desk.fake.assert_nothing_refused();
}

#[tokio::test]
async fn a_stream_begins_tells_and_ends_with_exactly_one_result() {
    let script = Script::turns([
        Reply::text("Let me look.").and_tool_call("Read", json!({"file_path": "a.txt"})),
        Reply::text("It says hello."),
    ]);
    let desk = Desk::new(script).await;
    std::fs::write(desk.folder.path().join("work/a.txt"), "hello").unwrap();
    let query = posse::query("What does a.txt say?", desk.options()).await.unwrap();
    let run = query.run();
    let messages = all(query).await;
    let whole: Vec<Message> =
        messages.iter().filter(|it| !matches!(it, Message::Delta(_))).cloned().collect();
    assert_eq!(
        kinds(&whole),
        ["started", "assistant", "tool_result", "assistant", "result"],
        "deltas aside"
    );
    assert_eq!(kinds(&messages)[0], "started", "nothing comes before the beginning");
    let Message::Started(started) = &whole[0] else { panic!() };
    assert_eq!((started.run, started.agent.as_str()), (run, "main"));
    assert_eq!(started.model, "anthropic/claude-sonnet-4-5");
    assert!(started.tools.contains(&"Read".to_owned()));
    assert!(started.agents.iter().any(|agent| agent.as_str() == "explore"));
    let Message::ToolResult { tool, output, .. } = &whole[2] else { panic!() };
    assert_eq!((tool.as_str(), output.is_error), ("Read", false));
    assert!(output.joined_text().contains("hello"));
    let Message::Result(summary) = &whole[4] else { panic!() };
    assert_eq!((summary.run, summary.text()), (run, "It says hello."));
    assert!(summary.outcome.is_completed());
    assert_eq!((summary.turns, summary.tool_calls, summary.children), (2, 1, 0));
    assert!(summary.input_tokens > 0 && summary.output_tokens > 0 && summary.cost > Usd::ZERO);
    // The pieces are the whole.
    let pieces: String = messages
        .iter()
        .filter_map(|message| match message {
            Message::Delta(Delta::Text { text }) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(pieces, "Let me look.It says hello.");
    // As JSON it is plain, and comes back.
    for message in &messages {
        let text = serde_json::to_string(message).unwrap();
        assert_eq!(&serde_json::from_str::<Message>(&text).unwrap(), message);
    }
}

#[tokio::test]
async fn a_query_is_a_stream_like_any_other() {
    let desk = Desk::new(Script::always(Reply::text("done"))).await;
    let query = posse::query("go", desk.options()).await.unwrap();
    let ends = StreamExt::filter(query, |message| {
        std::future::ready(matches!(message, Ok(Message::Result(_))))
    });
    assert_eq!(within(ends.count()).await, 1);
}

#[tokio::test]
async fn what_goes_wrong_in_a_run_is_its_outcome() {
    let desk = Desk::new(Script::always(Reply::error(400, "your request is bad"))).await;
    let query = posse::query("go", desk.options()).await.unwrap();
    let summary = within(query.result()).await.unwrap();
    assert_eq!(summary.outcome.kind(), "failed");
    assert!(summary.outcome.to_string().contains("your request is bad"), "{}", summary.outcome);

    let busy = Reply::text("half").and_tool_call("List", json!({}));
    let desk = Desk::new(Script::always(busy)).await;
    let limits = Limits { turns: Some(2), ..Limits::default() };
    let query = posse::query("go", QueryOptions { limits, ..desk.options() }).await.unwrap();
    let summary = within(query.result()).await.unwrap();
    assert_eq!((summary.outcome.kind(), summary.text(), summary.turns), ("stopped", "half", 2));
}

#[tokio::test]
async fn what_is_wrong_with_a_question_is_an_error_before_anything_starts() {
    let desk = Desk::new(Script::always(Reply::text("done"))).await;
    let agents = |name: &str, definition: AgentDefinition| QueryOptions {
        agents: [(name.to_owned(), definition)].into(),
        ..desk.lasting()
    };
    let fine = ("go", desk.lasting());
    let none = DefinedRights::to_call([""; 0]);
    let cases = [
        (("  ", desk.lasting()), "the prompt is empty"),
        (("go", agents("two words", reviewer())), "is not an agent name"),
        (("go", agents("MAIN", reviewer())), "the name of the agent that leads"),
        (
            ("go", agents("a", AgentDefinition { prompt: " ".into(), ..reviewer() })),
            "agent `a` cannot be used: it has no prompt",
        ),
        (
            ("go", agents("a", AgentDefinition { description: "".into(), ..reviewer() })),
            "agent `a` cannot be used: it has no description",
        ),
        (
            ("go", agents("a", AgentDefinition { rights: none, ..reviewer() })),
            "agent `a` cannot be used: ",
        ),
        (
            ("go", agents("a", AgentDefinition { max_turns: Some(0), ..reviewer() })),
            "agent `a` may make no turns",
        ),
        (
            (
                "go",
                QueryOptions {
                    agents: [("A".into(), reviewer()), ("a".into(), reviewer())].into(),
                    ..desk.lasting()
                },
            ),
            "agent `a` is defined twice",
        ),
        (
            ("go", QueryOptions { agent: Some("nobody".into()), ..desk.lasting() }),
            "there is no agent `nobody`",
        ),
        (
            ("go", QueryOptions { model: Some("acme/x".into()), ..desk.lasting() }),
            "there is no vendor `acme`",
        ),
        (
            ("go", QueryOptions { allowed_tools: Some(vec![]), ..desk.lasting() }),
            "no available tools",
        ),
        (
            ("go", QueryOptions { workspace: "/nowhere/at/all".into(), ..desk.lasting() }),
            "cannot work in /nowhere/at/all",
        ),
        (
            ("go", QueryOptions { workspace: "".into(), ..desk.lasting() }),
            "cannot work in an empty path: name a folder",
        ),
        (("go", QueryOptions { resume: Some(posse::RunId::new()), ..desk.lasting() }), "no run"),
    ];
    for ((prompt, options), expected) in cases {
        let error = within(posse::query(prompt, options)).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    assert!(desk.rows().await.is_empty());
    assert_eq!(desk.fake.count(), 0);
    // None of that stands in the way of the next.
    let query = posse::query(fine.0, fine.1).await.unwrap();
    assert!(within(query.result()).await.unwrap().outcome.is_completed());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_stream_cancels_the_run_and_all_below_it() {
    let gate = Gate::new();
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(Reply::tool_call("Task", task("explore", "slow")))
                .reply(Reply::text("never")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let desk = Desk::new(script).await;
    let mut query = posse::query("lead", desk.lasting()).await.unwrap();
    let started = within(query.next()).await.unwrap().unwrap();
    assert!(matches!(started, Message::Started(_)));
    within(gate.wait_for_held(1)).await.unwrap();
    drop(query);
    eventually(async || desk.rows().await.iter().all(|row| row.state.outcome.is_some())).await;
    let rows = desk.rows().await;
    let outcomes: Vec<_> = rows.iter().map(|row| row.state.outcome.as_deref()).collect();
    assert_eq!(outcomes, [Some("cancelled"), Some("cancelled")]);
    assert_eq!(desk.fake.abandoned(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_home_goes_with_its_query() {
    let gate = Gate::new();
    let script = Script::new()
        .rule(Rule::when(When::any()).reply(Reply::text("done")).once())
        .rule(Rule::when(When::any()).reply(Reply::text("late").held_by(&gate)));
    let desk = Desk::new(script).await;
    let mut query = posse::query("go", desk.options()).await.unwrap();
    loop {
        if let Message::Result(_) = within(query.next()).await.unwrap().unwrap() {
            break;
        }
    }
    // With the result, not only with the stream.
    assert!(!home_in(&desk.fake.request(1).system()).exists());
    let query = posse::query("go", desk.options()).await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    let home = home_in(&desk.fake.request(2).system());
    assert!(home.exists());
    drop(query);
    eventually(async || !home.exists()).await;
    within(desk.fake.wait_until_idle()).await.unwrap();
    assert_eq!(desk.fake.abandoned(), 1);
}

#[tokio::test]
async fn an_earlier_query_goes_on() {
    let script = Script::turns([Reply::text("a bug"), Reply::text("it is fixed")]);
    let desk = Desk::new(script).await;
    let first = posse::query("look", desk.lasting()).await.unwrap();
    let run = first.run();
    assert_eq!(within(first.result()).await.unwrap().text(), "a bug");
    let options = QueryOptions { resume: Some(run), ..desk.lasting() };
    let messages = all(posse::query("fix it", options).await.unwrap()).await;
    let Message::Started(started) = &messages[0] else { panic!() };
    assert_eq!(started.run, run);
    let Some(Message::Result(summary)) = messages.last() else { panic!() };
    assert_eq!((summary.run, summary.text()), (run, "it is fixed"));
    let whole = kinds(&messages).into_iter().filter(|kind| kind != "delta").collect::<Vec<_>>();
    assert_eq!(whole, ["started", "assistant", "result"], "what was told is not told again");
    assert_eq!(desk.fake.last_request().body["messages"].as_array().unwrap().len(), 3);
    assert_eq!(desk.fake.last_request().last_user(), "fix it");
}

#[tokio::test]
async fn unfinished_runs_of_others_are_left_alone() {
    let gate = Gate::new();
    let script = Script::new()
        .rule(
            Rule::when(When::any().first_user_contains("theirs"))
                .reply(Reply::text("late").held_by(&gate)),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("mine")));
    let desk = Desk::new(script).await;
    let runtime = Runtime::open(desk.config()).await.unwrap();
    let spec = RunSpec::new("explore".parse().unwrap(), "theirs", desk.folder.path());
    let model = desk.options().model;
    let theirs = runtime.start(RunSpec { models: ModelChoice::of(model), ..spec }).await.unwrap();
    within(gate.wait_for_held(1)).await.unwrap();
    runtime.shutdown().await;
    let config = {
        let mut config: RuntimeConfig = desk.config();
        config.scheduling.recovery = Recovery::Continue;
        config
    };
    let options = QueryOptions { home: config.into(), ..desk.options() };
    within(posse::query("go", options).await.unwrap().result()).await.unwrap();
    let rows = desk.rows().await;
    let row = rows.iter().find(|row| row.id == theirs.id()).unwrap();
    assert_eq!((row.state.outcome.as_deref(), row.work.epoch), (None, 1), "nobody took it up");
}

#[tokio::test]
async fn a_session_is_not_resumed_by_a_query() {
    let desk = Desk::new(Script::always(Reply::text("done"))).await;
    let runtime = Runtime::open(desk.config()).await.unwrap();
    let spec = RunSpec::new("explore".parse().unwrap(), "hello", desk.folder.path());
    let model = desk.options().model;
    let session = runtime
        .start(RunSpec { session: true, models: ModelChoice::of(model), ..spec })
        .await
        .unwrap();
    within(session.at_rest()).await.unwrap();
    runtime.shutdown().await;
    let options = QueryOptions { resume: Some(session.id()), ..desk.lasting() };
    let error = within(posse::query("go on", options)).await.unwrap_err();
    assert!(matches!(&error, Error::NotNow { reason, .. } if reason.contains("session")));
    assert_eq!(desk.rows().await[0].log.last_seq, session_end(&desk, session.id()).await);
}

/// The last event of a run, which nothing was appended to.
async fn session_end(desk: &Desk, run: posse::RunId) -> posse::Seq {
    let runtime = Runtime::open(desk.config()).await.unwrap();
    let log = runtime.read(run, posse::Seq::ZERO, usize::MAX).await.unwrap();
    runtime.shutdown().await;
    assert_eq!(log.last().unwrap().event.kind(), "model_replied");
    log.last().unwrap().seq
}

#[tokio::test]
async fn options_shape_the_main_agent() {
    let desk = Desk::new(Script::always(Reply::text("done"))).await;
    let options = QueryOptions {
        system_prompt: Some("You write release notes.".into()),
        allowed_tools: Some(vec!["Read".into(), "Task".into()]),
        ..desk.options()
    };
    within(posse::query("go", options.clone()).await.unwrap().result()).await.unwrap();
    let sent = desk.fake.last_request();
    assert!(sent.system().starts_with("You write release notes.\n"), "{}", sent.system());
    assert_eq!(sent.tools(), ["Read", "Task"]);
    let manual = QueryOptions { strategy: DelegationStrategy::Manual, ..options };
    within(posse::query("go", manual).await.unwrap().result()).await.unwrap();
    assert_eq!(desk.fake.last_request().tools(), ["Read"]);
    let explore = QueryOptions { agent: Some("explore".into()), ..desk.options() };
    within(posse::query("go", explore).await.unwrap().result()).await.unwrap();
    assert!(!desk.fake.last_request().tools().contains(&"Write".to_owned()));
}

#[tokio::test]
async fn a_disallowed_tool_is_disallowed_to_everybody() {
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(Reply::tool_call("Task", task("general-purpose", "a part")))
                .reply(Reply::text("done")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("mine")));
    let desk = Desk::new(script).await;
    let disallowed_tools = vec!["Write".to_owned(), "Edit".to_owned()];
    let options = QueryOptions { disallowed_tools, ..desk.options() };
    within(posse::query("lead", options).await.unwrap().result()).await.unwrap();
    assert_eq!(desk.fake.count(), 3);
    for request in desk.fake.requests() {
        let tools = request.tools();
        assert!(tools.contains(&"Read".to_owned()), "{tools:?}");
        assert!(!tools.iter().any(|tool| tool == "Write" || tool == "Edit"), "{tools:?}");
    }
}

#[tokio::test]
async fn what_is_assumed_of_a_definition_is_told_at_the_beginning() {
    let desk = Desk::new(Script::always(Reply::text("done"))).await;
    let odd =
        AgentDefinition { rights: DefinedRights::to_call(["Read", "Teleport"]), ..reviewer() };
    let agents = [("odd".to_owned(), odd), ("fine".to_owned(), reviewer())].into();
    let options = QueryOptions { agents, ..desk.options() };
    let messages = all(posse::query("go", options).await.unwrap()).await;
    let Message::Started(started) = &messages[0] else { panic!() };
    assert_eq!(started.warnings.len(), 1, "{:?}", started.warnings);
    assert!(started.warnings[0].contains("`odd`") && started.warnings[0].contains("Teleport"));
}
