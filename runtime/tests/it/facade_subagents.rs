//! `posse::subagents`: registering, executing, and errors that are errors.

use crate::bench::{Bench, eventually, within};
use posse::query::Message;
use posse::store::Filter;
use posse::subagents::{
    DelegationStrategy, Failure, Subagent, SubagentCall, SubagentConfig, SubagentError,
    SubagentExecutor,
};
use posse::{Keys, Outcome, RunRow, Runtime, RuntimeConfig};
use posse_testkit::{Conversation, FakeModel, Gate, Reply, Rule, Script, When};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn reviewer() -> Subagent {
    Subagent {
        name: "code-reviewer".into(),
        description: "Reviews code".into(),
        instructions: "Look for bugs.".into(),
        allowed_tools: vec!["Read".into(), "Grep".into()],
        max_turns: None,
        model: None,
    }
}

/// An executor in a folder of its own, on a fake model, with a database that stays.
struct Desk {
    fake: FakeModel,
    folder: TempDir,
    executor: SubagentExecutor,
}

impl Desk {
    async fn new(script: Script) -> Self {
        Desk::with(script, DelegationStrategy::Auto).await
    }

    async fn with(script: Script, strategy: DelegationStrategy) -> Self {
        let fake = FakeModel::start(script).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let executor = SubagentExecutor::new(strategy)
            .with_home(config(&fake, folder.path()))
            .in_folder(folder.path().join("work"));
        Desk { fake, folder, executor }
    }

    async fn executing(script: Script, subagent: Subagent) -> Self {
        let mut desk = Desk::new(script).await;
        desk.executor.register(subagent).unwrap();
        desk
    }

    fn work(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// The runs in the database, as another process sees them.
    async fn rows(&self) -> Vec<RunRow> {
        let runtime = Runtime::open(config(&self.fake, self.folder.path())).await.unwrap();
        let rows = runtime.list(&Filter::default()).await.unwrap();
        runtime.shutdown().await;
        rows
    }
}

fn config(fake: &FakeModel, folder: &Path) -> RuntimeConfig {
    {
        let mut config: RuntimeConfig = RuntimeConfig::new(folder.join("runs.db"), keys(fake));
        config.models.model = Some("anthropic/claude-sonnet-4-5".into());
        config.scheduling.recovery = posse::Recovery::Wait;
        config
    }
}

fn keys(fake: &FakeModel) -> Keys {
    Keys::default().with("ANTHROPIC_API_KEY", "test").with("ANTHROPIC_BASE_URL", fake.url())
}

fn kinds(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["type"].as_str().unwrap()).collect()
}

fn failed(error: &SubagentError) -> &Failure {
    error.failure().unwrap_or_else(|| panic!("{error:?}"))
}

#[test]
fn a1_a_name_is_registered_once_and_the_first_stays() {
    let mut executor = SubagentExecutor::new(DelegationStrategy::Manual);
    executor.register(reviewer()).unwrap();
    for name in ["code-reviewer", "Code-Reviewer"] {
        let second = Subagent { name: name.into(), description: "Other".into(), ..reviewer() };
        let error = executor.register(second).unwrap_err();
        assert_eq!(error, SubagentError::AlreadyExists(name.into()));
    }
    assert_eq!(executor.list_subagents(), ["code-reviewer"]);
    assert!(executor.has_subagent("CODE-reviewer") && !executor.has_subagent("other"));
    assert_eq!(executor.strategy(), &DelegationStrategy::Manual);
}

#[tokio::test]
async fn a1_the_first_definition_is_the_one_that_is_executed() {
    let mut desk = Desk::executing(Script::always(Reply::text("fine")), reviewer()).await;
    let second = Subagent { instructions: "Praise everything.".into(), ..reviewer() };
    desk.executor.register(second).unwrap_err();
    within(desk.executor.execute("code-reviewer", "look")).await.unwrap();
    assert!(desk.fake.last_request().system().contains("Look for bugs."));
}

#[tokio::test]
async fn a2_an_unknown_name_is_not_found_and_nothing_is_launched() {
    let desk = Desk::executing(Script::always(Reply::text("fine")), reviewer()).await;
    let error = desk.executor.execute("nobody", "look").await.unwrap_err();
    assert_eq!(error, SubagentError::NotFound("nobody".into()));
    assert_eq!(error.to_string(), "there is no subagent `nobody`; register it first");
    assert_eq!(desk.fake.count(), 0);
    assert!(!desk.folder.path().join("runs.db").exists(), "not even a database was opened");
}

#[tokio::test]
async fn a4_the_prompt_is_the_description_and_then_the_instructions() {
    let desk = Desk::executing(Script::always(Reply::text("fine")), reviewer()).await;
    let output = within(desk.executor.execute("code-reviewer", "Review auth.rs")).await.unwrap();
    let sent = desk.fake.last_request();
    let expected = "Reviews code\n\nInstructions:\nLook for bugs.";
    assert_eq!(reviewer().system_prompt(), expected);
    assert!(sent.system().starts_with(&format!("{expected}\n")), "{}", sent.system());
    assert_eq!(sent.body["messages"].as_array().unwrap().len(), 1);
    assert_eq!(sent.last_user(), "Review auth.rs");
    assert_eq!((output.subagent_name.as_str(), output.text()), ("code-reviewer", "fine"));
    assert_eq!(kinds(&output.messages), ["started", "assistant", "result"]);
    assert_eq!(output.messages[2]["outcome"]["output"], "fine");
    assert_eq!(output.summary.turns, 1);
    assert!(output.summary.cost > posse::protocol::Usd::ZERO);
    desk.fake.assert_nothing_refused();
}

#[tokio::test]
async fn a6_a_call_is_executed_when_it_has_an_output_even_an_empty_one() {
    let mut call = SubagentCall::new("code-reviewer", "look");
    assert!(!call.is_executed());
    let empty = SubagentCall { output: Some(String::new()), ..call.clone() };
    assert!(empty.is_executed());
    let desk = Desk::executing(Script::always(Reply::text("fine")), reviewer()).await;
    within(desk.executor.execute_call(&mut call)).await.unwrap();
    assert_eq!(call.output.as_deref(), Some("fine"));
    let again = desk.executor.execute_call(&mut call).await.unwrap_err();
    assert!(matches!(&again, SubagentError::InvalidInput(why) if why.contains("before")));
    assert_eq!(desk.fake.count(), 1);
}

#[test]
fn a_config_refuses_a_second_subagent_of_the_same_name() {
    let mut config = SubagentConfig::new(DelegationStrategy::ToolCall);
    config.add_subagent(reviewer()).unwrap();
    let second = Subagent { description: "Other".into(), ..reviewer() };
    let error = config.add_subagent(second.clone()).unwrap_err();
    assert_eq!(error, SubagentError::AlreadyExists("code-reviewer".into()));
    assert_eq!(config.get_subagent("CODE-REVIEWER"), Some(&reviewer()));
    assert_eq!(config.get_subagent("nobody"), None);
    assert_eq!(config.to_map()["code-reviewer"], reviewer());
    // It survives a file, and what a file smuggles in is found when it is used.
    let text = serde_json::to_string(&config).unwrap();
    let mut read: SubagentConfig = serde_json::from_str(&text).unwrap();
    assert_eq!(read, config);
    let executor = SubagentExecutor::from_config(read.clone()).unwrap();
    assert_eq!(executor.strategy(), &DelegationStrategy::ToolCall);
    assert_eq!(executor.list_subagents(), ["code-reviewer"]);
    read.subagents.push(second);
    let error = SubagentExecutor::from_config(read).unwrap_err();
    assert_eq!(error, SubagentError::AlreadyExists("code-reviewer".into()));
}

#[test]
fn what_cannot_be_used_is_refused_when_it_is_registered_or_added() {
    let named = |name: &str| Subagent { name: name.into(), ..reviewer() };
    let long = "a".repeat(65);
    let cases = [
        (named(""), "is not an agent name"),
        (named("two words"), "is not an agent name"),
        (named("../etc"), "is not an agent name"),
        (named("a\nInstructions"), "is not an agent name"),
        (named(&long), "is not an agent name"),
        (named("Main"), "the name of the agent that leads"),
        (Subagent { description: " ".into(), ..reviewer() }, "no description"),
        (Subagent { instructions: "\n".into(), ..reviewer() }, "no instructions"),
        (Subagent { allowed_tools: Vec::new(), ..reviewer() }, "may call no tools"),
        (Subagent { max_turns: Some(0), ..reviewer() }, "may make no turns"),
    ];
    for (subagent, expected) in cases {
        let mut executor = SubagentExecutor::new(DelegationStrategy::Auto);
        let mut config = SubagentConfig::new(DelegationStrategy::Auto);
        let refusals = [executor.register(subagent.clone()), config.add_subagent(subagent)];
        for refused in refusals {
            let SubagentError::InvalidInput(why) = refused.unwrap_err() else { panic!() };
            assert!(why.contains(expected), "{why}");
        }
        assert!(executor.list_subagents().is_empty() && config.subagents.is_empty());
    }
}

#[tokio::test]
async fn an_empty_input_is_refused_before_anything_starts() {
    let desk = Desk::executing(Script::always(Reply::text("fine")), reviewer()).await;
    for input in ["", " \n\t"] {
        for refused in [
            desk.executor.execute("code-reviewer", input).await.err(),
            desk.executor.query(input).await.err(),
        ] {
            let SubagentError::InvalidInput(why) = refused.unwrap() else { panic!() };
            assert!(why.contains("is empty; say what to do"), "{why}");
        }
    }
    assert_eq!(desk.fake.count(), 0);
}

#[tokio::test]
async fn tools_outside_the_list_are_neither_offered_nor_executed() {
    let write = json!({"file_path": "stolen.txt", "content": "x"});
    let script = Script::turns([
        Reply::tool_call("Write", write).and_tool_call("Read", json!({"file_path": "a.txt"})),
        Reply::text("{{last_tool_result}}"),
    ]);
    let desk = Desk::executing(script, reviewer()).await;
    std::fs::write(desk.work("a.txt"), "the file").unwrap();
    let output = within(desk.executor.execute("code-reviewer", "go")).await.unwrap();
    assert_eq!(desk.fake.request(1).tools(), ["Read", "Grep"]);
    assert!(!desk.work("stolen.txt").exists());
    let kinds = kinds(&output.messages);
    assert_eq!(
        kinds,
        ["started", "assistant", "tool_result", "tool_result", "assistant", "result"]
    );
    let mut results: Vec<(&str, bool)> = output.messages[2..4]
        .iter()
        .map(|it| (it["tool"].as_str().unwrap(), it["output"]["is_error"] == true))
        .collect();
    results.sort_unstable();
    assert_eq!(results, [("Read", false), ("Write", true)]);
    let told = desk.fake.last_request().tool_results();
    assert!(told[0].contains("`Write` is outside what this agent was granted"), "{told:?}");
    assert!(told[1].contains("the file"), "{told:?}");
}

#[tokio::test]
async fn all_tools_do_not_include_handing_on() {
    let all = Subagent { allowed_tools: vec!["*".into()], ..reviewer() };
    let desk = Desk::executing(Script::always(Reply::text("fine")), all).await;
    within(desk.executor.execute("code-reviewer", "use the explore agent")).await.unwrap();
    let sent = desk.fake.last_request();
    assert!(sent.tools().contains(&"Write".to_owned()));
    assert!(!sent.tools().contains(&"Task".to_owned()));
    assert!(!sent.system().contains("explore"), "{}", sent.system());
}

#[tokio::test]
async fn a_tool_that_does_not_exist_and_a_model_that_cannot_be_had_are_errors() {
    let misspelt = Subagent { allowed_tools: vec!["Raed".into()], ..reviewer() };
    let desk = Desk::executing(Script::always(Reply::text("fine")), misspelt).await;
    let error = within(desk.executor.execute("code-reviewer", "go")).await.unwrap_err();
    assert!(error.to_string().contains("Raed"), "{error}");
    let foreign = Subagent { model: Some("acme/one".into()), ..reviewer() };
    let other = Desk::executing(Script::always(Reply::text("fine")), foreign).await;
    let error = within(other.executor.execute("code-reviewer", "go")).await.unwrap_err();
    assert!(failed(&error).reason.contains("there is no vendor `acme`"), "{error}");
    assert!(failed(&error).summary.is_none());
    assert_eq!((desk.fake.count(), other.fake.count()), (0, 0));
}

#[tokio::test]
async fn the_limit_of_turns_is_an_error_that_says_so_and_keeps_what_was_said() {
    let endless = Reply::text("half").and_tool_call("Grep", json!({"pattern": "x"}));
    let limited = Subagent { max_turns: Some(3), ..reviewer() };
    let desk = Desk::executing(Script::always(endless), limited).await;
    let error = within(desk.executor.execute("code-reviewer", "go")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "subagent `code-reviewer` stopped at its limit of turns, after 3 without an answer; raise \
         `max_turns`, or give it less to do"
    );
    assert_eq!(desk.fake.count(), 3);
    let failure = failed(&error);
    let summary = failure.summary.as_ref().unwrap();
    assert_eq!((summary.outcome.kind(), summary.text()), ("stopped", "half"));
    assert_eq!(kinds(&failure.messages).iter().filter(|it| **it == "assistant").count(), 3);
    assert_eq!(kinds(&failure.messages).last(), Some(&"result"));
}

#[tokio::test]
async fn an_error_of_the_backend_is_an_error_and_the_messages_are_kept() {
    let script = Script::turns([
        Reply::text("Looking.").and_tool_call("Grep", json!({"pattern": "x"})),
        Reply::error(400, "your request is bad"),
    ]);
    let desk = Desk::executing(script, reviewer()).await;
    let error = within(desk.executor.execute("code-reviewer", "go")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("subagent `code-reviewer` failed: "), "{text}");
    assert!(text.contains("your request is bad"), "{text}");
    let failure = failed(&error);
    assert_eq!(kinds(&failure.messages), ["started", "assistant", "tool_result", "result"]);
    let outcome = &failure.summary.as_ref().unwrap().outcome;
    assert!(matches!(outcome, Outcome::Failed { partial, .. } if partial == "Looking."));
}

#[tokio::test]
async fn executions_run_side_by_side() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("{{last_user}} is fine").held_by(&gate));
    let desk = Desk::executing(script, reviewer()).await;
    let files = ["a.rs", "b.rs", "c.rs"];
    let all = files.map(|file| desk.executor.execute("code-reviewer", file));
    let open = async {
        gate.wait_for_held(3).await.unwrap();
        gate.open();
    };
    let (outputs, ()) =
        within(async { tokio::join!(futures_util::future::join_all(all), open) }).await;
    let texts: Vec<String> =
        outputs.into_iter().map(|output| output.unwrap().text().to_owned()).collect();
    assert_eq!(texts, ["a.rs is fine", "b.rs is fine", "c.rs is fine"]);
    assert_eq!(desk.fake.peak_in_flight(), 3);
}

#[tokio::test]
async fn one_who_is_registered_later_is_executed_too() {
    let mut desk = Desk::executing(Script::always(Reply::text("fine")), reviewer()).await;
    within(desk.executor.execute("code-reviewer", "go")).await.unwrap();
    desk.executor.register(Subagent { name: "writer".into(), ..reviewer() }).unwrap();
    let main = within(desk.executor.query("lead")).await.unwrap();
    within(main.result()).await.unwrap();
    let sent = desk.fake.last_request();
    assert!(sent.body["tools"].to_string().contains("- writer: Reviews code"));
    within(desk.executor.execute("writer", "go")).await.unwrap();
    within(desk.executor.execute("Code-Reviewer", "go")).await.unwrap();
    let mut agents: Vec<String> =
        desk.rows().await.into_iter().map(|row| row.about.agent).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["code-reviewer", "code-reviewer", "main", "writer"]);
}

#[tokio::test]
async fn an_execution_that_nobody_waits_for_is_cancelled() {
    let gate = Gate::new();
    let script = Script::always(Reply::text("late").held_by(&gate));
    let desk = Desk::executing(script, reviewer()).await;
    let execution = desk.executor.execute("code-reviewer", "go");
    tokio::select! {
        _ = execution => panic!("it is held"),
        held = gate.wait_for_held(1) => held.unwrap(),
    }
    eventually(async || desk.rows().await[0].state.outcome.is_some()).await;
    let row = desk.rows().await.pop().unwrap();
    assert_eq!(row.state.outcome.as_deref(), Some("cancelled"));
    assert!(row.state.note.contains("the host program, which does not wait"), "{}", row.state.note);
    assert_eq!(desk.fake.abandoned(), 1);
}

#[tokio::test]
async fn an_execution_dropped_before_its_run_is_stored_leaves_nothing_at_work() {
    let gate = Gate::new();
    let bench = Bench::new(Script::always(Reply::text("late").held_by(&gate))).await;
    let auto = DelegationStrategy::Auto;
    let mut executor =
        SubagentExecutor::with_runtime(bench.runtime.clone(), auto).in_folder(bench.work());
    executor.register(reviewer()).unwrap();
    let taken_up = async {
        while bench.runtime.executing() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = executor.execute("code-reviewer", "go") => panic!("it is held"),
        () = taken_up => {}
    }
    eventually(async || {
        let rows = bench.runtime.list(&Filter::default()).await.unwrap();
        let is_cancelled = |row: &RunRow| row.state.outcome.as_deref() == Some("cancelled");
        rows.first().is_some_and(is_cancelled) && bench.runtime.executing() == 0
    })
    .await;
}

#[tokio::test]
async fn the_strategy_decides_what_a_main_agent_is_offered_and_told() {
    for (strategy, offered, urged) in [
        (DelegationStrategy::Auto, true, true),
        (DelegationStrategy::ToolCall, true, false),
        (DelegationStrategy::Manual, false, false),
    ] {
        let mut desk = Desk::with(Script::always(Reply::text("done")), strategy).await;
        desk.executor.register(reviewer()).unwrap();
        let main = within(desk.executor.query("lead")).await.unwrap();
        assert_eq!(within(main.result()).await.unwrap().text(), "done");
        let sent = desk.fake.last_request();
        assert_eq!(sent.tools().contains(&"Task".to_owned()), offered, "{strategy:?}");
        let urges = sent.system().contains("Hand work to a specialist");
        assert_eq!(urges, urged, "{strategy:?}");
        let tools = sent.body["tools"].to_string();
        assert_eq!(tools.contains("- code-reviewer: Reviews code"), offered, "{strategy:?}");
        // Whom nobody registered is not on offer.
        assert!(!tools.contains("- explore: ") && !tools.contains("- main: "), "{tools}");
    }
}

#[tokio::test]
async fn a_main_agent_hands_work_to_the_registered() {
    let task = json!({"description": "review it", "prompt": "Review auth.rs",
                      "subagent_type": "code-reviewer"});
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(Reply::tool_call("Task", task))
                .reply(Reply::text("{{last_tool_result}}")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("two bugs")));
    let desk = Desk::executing(script, reviewer()).await;
    let mut main = within(desk.executor.query("lead")).await.unwrap();
    let mut delegated = Vec::new();
    let summary = loop {
        match within(main.next()).await.unwrap().unwrap() {
            Message::Delegated { agent, label, .. } => delegated.push(format!("{agent} {label}")),
            Message::Result(summary) => break summary,
            _ => {}
        }
    };
    assert_eq!(delegated, ["code-reviewer review it"]);
    assert!(summary.text().contains("two bugs"), "{}", summary.text());
    assert_eq!(summary.children, 1);
    let child = &desk.fake.requests_where(&When::any().first_user_contains("auth.rs"))[0];
    assert_eq!(child.tools(), ["Read", "Grep"]);
    assert!(child.system().starts_with("Reviews code\n\nInstructions:\n"), "{}", child.system());
}

#[tokio::test]
async fn subagents_of_the_host_s_own_runtime_are_agents_of_it() {
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().first_user_contains("lead"))
                .reply(Reply::tool_call(
                    "Task",
                    json!({"description": "d", "prompt": "part", "subagent_type": "code-reviewer"}),
                ))
                .reply(Reply::text("{{last_tool_result}}")),
        )
        .rule(Rule::when(When::any()).reply(Reply::text("two bugs")));
    let bench = Bench::new(script).await;
    let auto = DelegationStrategy::Auto;
    let on_runtime =
        || SubagentExecutor::with_runtime(bench.runtime.clone(), auto).in_folder(bench.work());
    let (mut executor, mut other) = (on_runtime(), on_runtime());
    executor.register(reviewer()).unwrap();
    let taken = other.register(reviewer()).unwrap_err();
    assert_eq!(taken, SubagentError::AlreadyExists("code-reviewer".into()));
    assert!(!other.has_subagent("code-reviewer"));
    let output = within(executor.execute("code-reviewer", "go")).await.unwrap();
    assert_eq!(output.text(), "two bugs");
    let row = bench.runtime.find(&output.summary.run.to_string()).await.unwrap();
    assert_eq!(row.about.agent, "code-reviewer");
    // Anyone's run on it may call the subagent, and the executor's end is not the runtime's.
    executor.shutdown().await;
    let run = bench.start("lead").await;
    let outcome = within(run.outcome()).await.unwrap();
    assert!(outcome.text().contains("two bugs"), "{outcome}");
    let main = within(on_runtime().query("lead")).await.unwrap();
    assert!(within(main.result()).await.unwrap().text().contains("two bugs"));
}

#[tokio::test]
async fn a_temporary_home_is_gone_after_the_shutdown() {
    let writer = Subagent { allowed_tools: vec!["Write".into()], ..reviewer() };
    for explicitly in [true, false] {
        let fake = FakeModel::start(Script::always(Reply::text("fine"))).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut executor = SubagentExecutor::new(DelegationStrategy::Auto)
            .with_home(keys(&fake))
            .in_folder(folder.path());
        executor.register(writer.clone()).unwrap();
        within(executor.execute("code-reviewer", "go")).await.unwrap();
        let home = home_in(&fake.last_request().system());
        assert!(home.exists());
        if explicitly {
            within(executor.shutdown()).await;
            assert!(!home.exists(), "{}", home.display());
        } else {
            drop(executor);
            eventually(async || !home.exists()).await;
        }
        fake.shutdown().await;
    }
}

/// The folder that a system prompt betrays: a run that may write is told of its scratch folder.
pub fn home_in(system: &str) -> PathBuf {
    let line = system.lines().find_map(|line| line.strip_prefix("Scratch folder")).unwrap();
    let scratch = PathBuf::from(line.split_once(": ").unwrap().1);
    scratch.ancestors().nth(2).unwrap().to_owned()
}

#[cfg(feature = "offline")]
#[tokio::test]
async fn without_keys_and_configuration_the_offline_model_answers() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("README.md"),
        "# Kettle\n\nKettle is a program that boils water for everyone who asks for it.\n",
    )
    .unwrap();
    let offline = Subagent {
        allowed_tools: ["Read", "Glob", "Grep", "List"].map(str::to_owned).to_vec(),
        model: Some("offline/planner".into()),
        ..reviewer()
    };
    let mut executor = SubagentExecutor::new(DelegationStrategy::Auto).in_folder(folder.path());
    executor.register(offline).unwrap();
    let output = within(executor.execute("code-reviewer", "What does this project do?")).await;
    let output = output.unwrap();
    assert!(output.text().contains("boils water"), "{}", output.text());
    assert_eq!(output.messages[0]["model"], "offline/planner");
    within(executor.shutdown()).await;
}
