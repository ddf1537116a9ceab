//! A tool of a host is a type and a line. What its `ToolSpec` says of its calls decides what rules mean
//! by them, which files it may use, what it is granted and how it is shown. Nothing else knows it.

use crate::bench::{eventually, within};
use posse::RunRights;
use posse::agents::tools_of;
use posse::protocol::{
    About, Approval, Effect, Event, Grant, Mode, Profile, Record, Seq, ToolOutput, ToolSpec,
};
use posse::{
    AgentCatalog, AgentSpec, Answer, Keys, RunHandle, RunSpec, Runtime, RuntimeConfig, Tool,
    ToolContext,
};
use posse_testkit::{FakeModel, Reply, Script};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Writes a note to a file.
struct SaveNote(ToolSpec);

impl SaveNote {
    fn new() -> Self {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let spec = ToolSpec::new("save_note", "Saves a note", Effect::Write, schema);
        SaveNote(spec.about(About::File("path".into())).aliases(&["note"]))
    }
}

#[async_trait::async_trait]
impl Tool for SaveNote {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: Value, _: &ToolContext) -> Answer {
        match std::fs::write(input["path"].as_str().unwrap_or_default(), "a note") {
            Ok(()) => ToolOutput::text("saved").into(),
            Err(error) => ToolOutput::error(error.to_string()).into(),
        }
    }
}

/// Puts something into force somewhere.
struct Deploy(ToolSpec);

impl Deploy {
    fn new() -> Self {
        let spec = ToolSpec::new("deploy", "Deploys", Effect::Network, json!({"type": "object"}));
        Deploy(spec.about(About::Text("target".into())).shown("{version} to {target}"))
    }
}

#[async_trait::async_trait]
impl Tool for Deploy {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Answer {
        ToolOutput::text("deployed").into()
    }
}

/// Counts what is below a folder, without asking anybody about the files.
struct Count(ToolSpec);

#[async_trait::async_trait]
impl Tool for Count {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: Value, _: &ToolContext) -> Answer {
        ToolOutput::text(format!("counted {}", input["folder"].as_str().unwrap_or("?"))).into()
    }
}

/// A workspace, and a runtime with the tools.
struct Place {
    runtime: Runtime,
    folder: TempDir,
    _fake: FakeModel,
}

impl Place {
    /// A runtime whose model calls the tools like this, all in one reply.
    async fn new(calls: &[(&str, Value)], adjust: impl FnOnce(&mut RuntimeConfig)) -> Place {
        let reply = calls.iter().fold(Reply::text("calling"), |reply, (tool, input)| {
            reply.and_tool_call(tool, input.clone())
        });
        let fake = FakeModel::start(Script::turns([reply, Reply::text("done")])).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in ["work/notes/private", "work/src", "outside"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let keys = Keys::default()
            .with("ANTHROPIC_API_KEY", "test")
            .with("ANTHROPIC_BASE_URL", fake.url());
        let count = ToolSpec::new("count", "Counts", Effect::Read, json!({"type": "object"}));
        let runtime = Runtime::builder(folder.path().join("runs.db"))
            .keys(keys)
            .default_model("anthropic/claude-sonnet-4-5")
            .tool(SaveNote::new())
            .tool(Deploy::new())
            .tool(Count(count.about(About::Tree("folder".into()))))
            .with(|config| config.scheduling.shutdown_after = Duration::from_millis(300))
            .with(adjust)
            .open()
            .await
            .unwrap();
        Place { runtime, folder, _fake: fake }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    async fn start(&self, agent: &str) -> RunHandle {
        let spec = RunSpec::new(agent.parse().unwrap(), "go", self.work());
        self.runtime.start(spec).await.unwrap()
    }

    async fn log(&self, run: &RunHandle) -> Vec<Record> {
        self.runtime.read(run.id(), Seq::ZERO, usize::MAX).await.unwrap()
    }

    async fn grant(&self, run: &RunHandle) -> Grant {
        match &self.log(run).await[0].event {
            Event::RunStarted(started) => started.grant.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// What the calls of a run of `agent` gave, in their order.
    async fn results(&self, agent: &str) -> Vec<String> {
        let run = self.start(agent).await;
        assert!(within(run.outcome()).await.unwrap().is_completed());
        let mut results: Vec<(String, String)> = Vec::new();
        for record in self.log(&run).await {
            if let Event::ToolFinished(finished) = record.event {
                results.push((finished.call.0.clone(), finished.output.joined_text()));
            }
        }
        results.sort();
        results.into_iter().map(|(_, text)| text).collect()
    }
}

#[track_caller]
fn check(results: &[String], expected: &[&str]) {
    assert_eq!(results.len(), expected.len(), "{results:#?}");
    for (result, says) in results.iter().zip(expected) {
        assert!(result.contains(says), "{result} says not: {says}");
    }
}

fn note(path: &str) -> (&str, Value) {
    ("save_note", json!({"path": path}))
}

fn deploy(target: &str) -> (&str, Value) {
    ("deploy", json!({"target": target, "version": 7}))
}

#[tokio::test]
async fn rules_are_about_what_the_calls_are_about() {
    let calls = [
        note("notes/a.md"),
        note("src/a.md"),
        note("notes/private/a.md"),
        deploy("staging 7"),
        deploy("Staging EU"),
        deploy("production"),
    ];
    let place = Place::new(&calls, |config| {
        config.permissions.mode = Mode::Ask;
        let rules = &mut config.permissions.rules;
        rules.allow = ["note(notes/**)", "deploy(staging:*)"].map(str::to_owned).to_vec();
        // A rule for every tool that changes files is one for the host's too.
        rules.deny = ["Edit(notes/private/**)", "deploy(staging eu)"].map(str::to_owned).to_vec();
    })
    .await;
    let expected = [
        "saved",
        "no person can answer",
        "`Edit(notes/private/**)` denies",
        "deployed",
        "`deploy(staging eu)` denies",
        "no person can answer",
    ];
    check(&place.results("general-purpose").await, &expected);
    assert!(place.work().join("notes/a.md").exists());
    assert!(!place.work().join("src/a.md").exists());
}

#[tokio::test]
async fn a_rule_that_the_calls_cannot_be_held_against_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Runtime::builder(folder.path().join("runs.db"))
        .tool(Deploy::new())
        .with(|config| config.permissions.rules.deny = vec!["deploy( :*)".to_owned()])
        .open()
        .await;
    let Err(error) = opened else { panic!("it is opened") };
    assert!(error.to_string().contains("it names no text"), "{error}");
}

#[tokio::test]
async fn a_path_leads_to_no_file_that_our_own_tools_could_not_use() {
    let calls = [
        note("notes/a.md"),
        note("../outside/a.md"),
        note("away/a.md"),
        note("open/a.md"),
        note(".git/hooks/pre-commit"),
        ("save_note", json!({"path": ["notes/b.md"]})),
        ("count", json!({"folder": "src"})),
        ("count", json!({})),
    ];
    let place = Place::new(&calls, |config| {
        config.permissions.rules.allow = vec!["save_note".to_owned()];
        config.permissions.rules.deny =
            ["Edit(notes/private/**)", "Read(/secret/**)"].map(str::to_owned).to_vec();
    })
    .await;
    let work = place.work();
    std::os::unix::fs::symlink(place.folder.path().join("outside"), work.join("away")).unwrap();
    std::os::unix::fs::symlink("notes/private", work.join("open")).unwrap();
    std::fs::create_dir_all(work.join(".git/hooks")).unwrap();
    let counted = format!("counted {}", work.join("src").display());
    let expected = [
        "saved",
        "outside",
        "outside",
        "`Edit(notes/private/**)` denies",
        "run or obeyed outside",
        "`path` must be one path",
        &counted,
        "rules deny some of what is below it",
    ];
    check(&place.results("general-purpose").await, &expected);
    // It was given the absolute path: the folder of this process is another.
    assert!(work.join("notes/a.md").exists());
    for missing in ["outside/a.md", "work/notes/private/a.md", "work/.git/hooks/pre-commit"] {
        assert!(!place.folder.path().join(missing).exists(), "{missing}");
    }
}

#[tokio::test]
async fn a_grant_narrows_the_tool_and_says_what_it_is() {
    let place = Place::new(&[note("notes/a.md"), note("src/a.md")], |config| {
        config.permissions.rules.allow = vec!["save_note".to_owned()];
        let mut agents = AgentCatalog::built_in();
        let tools = |names: &[&str]| Some(names.iter().map(|it| (*it).to_owned()).collect());
        for (name, tools) in [
            ("writer", tools(&["save_note"])),
            ("keeper", tools(&["save_note(notes/**)"])),
            ("looker", tools(&["count"])),
        ] {
            let mut agent = AgentSpec::new(name.parse().unwrap());
            (agent.rights.tools, agent.rights.mode) = (tools, Some(Mode::AcceptEdits));
            agents.set(agent);
        }
        config.permissions.mode = Mode::AcceptEdits;
        config.definitions.agents = agents.into();
    })
    .await;
    let expected = ["saved", "it may be called as save_note(notes/**) says"];
    check(&place.results("keeper").await, &expected);
    let writer = place.grant(&place.start("writer").await).await;
    assert_eq!(writer.profile(), Profile::WorkspaceWrite);
    // What may not change every file may not do it with a command either.
    let keeper = place.grant(&place.start("keeper").await).await;
    assert_eq!(keeper.profile(), Profile::ReadOnly);
    let looker = place.grant(&place.start("looker").await).await;
    assert_eq!(looker.profile(), Profile::ReadOnly);
    // Whoever reads the log knows how a call is shown, without the host.
    let known = tools_of(&writer);
    let line = |(tool, input): (&str, Value)| {
        known.iter().find(|facts| facts.answers_to(tool)).and_then(|facts| facts.line(&input))
    };
    assert_eq!(line(note("notes/a.md")).as_deref(), Some("notes/a.md"));
    assert_eq!(line(("note", json!({"path": "b"}))).as_deref(), Some("b"));
    assert_eq!(line(deploy("staging")).as_deref(), Some("7 to staging"));
}

#[tokio::test]
async fn a_person_is_asked_about_the_very_file() {
    let place = Place::new(&[note("notes/a.md")], |_| {}).await;
    let spec = RunSpec::new("general-purpose".parse().unwrap(), "go", place.work());
    let spec = RunSpec {
        rights: RunRights { mode: Some(Mode::Ask), attended: true, ..RunRights::default() },
        ..spec
    };
    let run = place.runtime.start(spec).await.unwrap();
    eventually(async || !place.runtime.questions(None).await.unwrap().is_empty()).await;
    let question = place.runtime.questions(None).await.unwrap().remove(0);
    assert!(question.tool.changes_files());
    let rule = question.asked.rule.clone().unwrap();
    assert_eq!(rule, "save_note(/notes/a.md)");
    let (call, digest) = (question.asked.call.clone(), question.asked.digest.clone());
    let answer = Approval::Run { rule };
    place.runtime.decide(run.id(), call, &digest, answer, "me").await.unwrap();
    assert!(within(run.outcome()).await.unwrap().is_completed());
    assert!(place.work().join("notes/a.md").exists());
}

/// A folder that is not there hides no way out.
#[tokio::test]
async fn a_path_behind_a_missing_folder_leads_nowhere_else() {
    let calls = [
        note("no/../../outside/made"),
        note("no/../made"),
        note("notes/../kept"),
        note("new/kept"),
    ];
    let place = Place::new(&calls, |_| {}).await;
    std::fs::create_dir(place.work().join("new")).unwrap();
    let results = place.results("general-purpose").await;
    assert!(!place.folder.path().join("outside/made").exists(), "{results:?}");
    assert!(!place.work().join("made").exists(), "{results:?}");
    assert!(place.work().join("kept").exists(), "{results:?}");
    assert!(place.work().join("new/kept").exists(), "{results:?}");
}

/// A worker without a tool of the run gives it back to the queue and says so; a worker with it executes the run.
#[tokio::test]
async fn a_worker_without_a_tool_leaves_the_run_to_others() {
    let on_a_machine = |config: &mut RuntimeConfig, labels: &[&str]| {
        config.scheduling.worker.host = "one".to_owned();
        config.scheduling.worker.stays = true;
        config.scheduling.worker.labels = labels.iter().map(|it| (*it).to_owned()).collect();
    };
    let place = Place::new(&[deploy("here")], |config| on_a_machine(config, &[])).await;
    let needs = "later".to_owned();
    let agent = "general-purpose".parse().unwrap();
    let spec = RunSpec { needs, ..RunSpec::new(agent, "go", place.work()) };
    let run = place.runtime.start(spec).await.unwrap();
    let keys = Keys::default()
        .with("ANTHROPIC_API_KEY", "test")
        .with("ANTHROPIC_BASE_URL", place._fake.url());
    let worker = |is_with_tools: bool| {
        let mut builder = Runtime::builder(place.folder.path().join("runs.db"))
            .keys(keys.clone())
            .default_model("anthropic/claude-sonnet-4-5");
        if is_with_tools {
            let count = ToolSpec::new("count", "Counts", Effect::Read, json!({"type": "object"}));
            let count = Count(count.about(About::Tree("folder".into())));
            builder = builder.tool(SaveNote::new()).tool(Deploy::new()).tool(count);
        }
        builder.with(|config| on_a_machine(config, &["later"])).open()
    };
    let without = worker(false).await.unwrap();
    let row = async || without.find(&run.id().to_string()).await.unwrap();
    eventually(async || {
        let row = row().await;
        row.work.epoch > 0 && row.work.owner.is_none()
    })
    .await;
    // Others hear of a worker when it renews its lease.
    eventually(async || {
        let why = without.why_nobody_takes(&row().await).await.unwrap();
        why.is_some_and(|why| why.contains("has the tools") && why.contains("deploy"))
    })
    .await;
    let with = worker(true).await.unwrap();
    assert!(within(run.outcome()).await.unwrap().is_completed());
    assert_eq!(without.why_nobody_takes(&row().await).await.unwrap(), None);
    for runtime in [with, without] {
        runtime.shutdown().await;
    }
}
