//! Skills: who has which, what models are told of them and when, and what they cannot do.

use crate::bench::{Bench, within};
use crate::delegation::{children, main_agent, task};
use posse::RunRights;
use posse::agents::{Level, Sources as AgentSources};
use posse::protocol::{Context, Event, Grant, RunStarted, SkillRules};
use posse::skills::{LiveSkills, SkillCatalog, Source, Sources};
use posse::{
    AgentChildren, AgentRights, AgentSpec, AgentStart, LiveCatalog, RunHandle, RunId, RunSpec,
    config,
};
use posse_testkit::{Conversation, Gate, Reply, Script, When};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Where skills are kept in a test.
struct Shelf {
    folder: TempDir,
}

impl Shelf {
    fn new() -> Self {
        Shelf { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// A skill of the user's with this body.
    fn with(self, name: &str, description: &str, body: &str) -> Self {
        let head = format!("name: {name}\ndescription: {description}\n");
        put(&self.path().join("user"), name, &head, body);
        self
    }

    fn sources(&self) -> Sources {
        let settings =
            config::Sources { user: Some(self.path().join("config.toml")), ..Default::default() };
        let user_folders = vec![self.path().join("user")];
        Sources { user_folders, settings, ..Sources::default() }
    }

    fn live(&self) -> LiveSkills {
        LiveSkills::load(self.sources())
    }
}

fn knowing<const N: usize>(skills: [&str; N]) -> AgentStart {
    AgentStart { skills: skills.map(str::to_owned).to_vec(), ..AgentStart::default() }
}

/// Writes a skill into `folder`, and says where it is.
fn put(folder: &Path, name: &str, head: &str, body: &str) -> PathBuf {
    let skill = folder.join(name);
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), format!("---\n{head}---\n\n{body}\n")).unwrap();
    skill
}

fn call(skill: &str, arguments: &str) -> Reply {
    Reply::tool_call("Skill", json!({"skill": skill, "arguments": arguments}))
}

/// An agent that makes these calls, one after the other, and then ends.
fn calling(calls: impl IntoIterator<Item = Reply>) -> Script {
    let script = Conversation::when(When::any());
    let script = calls.into_iter().fold(script, Conversation::reply);
    Script::new().conversation(script.reply(Reply::text("done")))
}

async fn bench(script: Script, live: LiveSkills) -> Bench {
    Bench::with(script, |mut config| {
        config.definitions.skills = live;
        config
    })
    .await
}

async fn done(run: &RunHandle) {
    let outcome = within(run.outcome()).await.unwrap();
    assert!(outcome.is_completed(), "{outcome}");
}

async fn started(bench: &Bench, run: RunId) -> RunStarted {
    match bench.log(run).await.swap_remove(0).event {
        Event::RunStarted(started) => Arc::unwrap_or_clone(started),
        other => panic!("{other:?}"),
    }
}

/// What the calls of a run gave, in order.
async fn results(bench: &Bench, run: RunId) -> Vec<String> {
    let log = bench.log(run).await;
    let results = log.iter().filter_map(|record| match &record.event {
        Event::ToolFinished(it) => Some(it.output.joined_text()),
        _ => None,
    });
    results.collect()
}

fn names(grant: &Grant) -> Vec<&str> {
    grant.skills.iter().map(|skill| skill.name.as_str()).collect()
}

/// What a request says about the tool `Skill`.
fn description(body: &Value) -> Option<String> {
    let tools = body["tools"].as_array()?;
    let tool = tools.iter().find(|tool| tool["name"] == "Skill")?;
    Some(tool["description"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_model_is_told_names_first_the_body_on_use_and_files_on_demand() {
    let shelf =
        Shelf::new().with("pdf", "Fills PDF forms", "Fill in $0 with care.\n\nSee more.md.");
    let folder = shelf.path().join("user/pdf");
    std::fs::create_dir(folder.join("scripts")).unwrap();
    std::fs::write(folder.join("more.md"), "the rest of it").unwrap();
    std::fs::write(folder.join("scripts/fill.py"), "fill()").unwrap();
    let more = folder.join("more.md");
    let script = calling([
        call("pdf", "a.pdf"),
        Reply::tool_call("Read", json!({"file_path": more})),
        Reply::tool_call("Write", json!({"file_path": more, "content": "mine"})),
    ]);
    let bench = bench(script, shelf.live()).await;
    let run = bench.start("fill it in").await;
    done(&run).await;
    let requests = bench.fake.requests_where(&When::any());
    let first = &requests[0].body;
    assert!(description(first).unwrap().ends_with("\n\nSkills:\n- pdf: Fills PDF forms"));
    assert!(!first.to_string().contains("with care"), "the body is not there before it is used");
    let results = results(&bench, run.id()).await;
    assert_eq!(
        results[0],
        format!(
            "Skill `pdf`, in the folder {0}.\n\nFill in a.pdf with care.\n\nSee more.md.\n\n\
             Files in {0}, to Read when the skill calls for them:\nmore.md\nscripts/fill.py",
            folder.display()
        )
    );
    assert!(results[1].contains("the rest of it"), "{}", results[1]);
    assert!(results[2].contains("can only be read"), "{}", results[2]);
    assert_eq!(std::fs::read_to_string(&more).unwrap(), "the rest of it");
    let grant = started(&bench, run.id()).await.grant;
    assert_eq!(grant.skills[0].path, folder.display().to_string());
    bench.fake.assert_nothing_refused();
}

#[tokio::test]
async fn without_skills_there_is_no_tool_and_the_log_says_nothing() {
    let bench = bench(calling([]), Shelf::new().live()).await;
    let run = bench.start("x").await;
    done(&run).await;
    assert!(!bench.fake.last_request().tools().contains(&"Skill".to_owned()));
    let log = serde_json::to_value(&bench.log(run.id()).await[0].event).unwrap();
    assert_eq!(log["grant"].get("skills"), None, "{log}");
    let old: Grant = serde_json::from_value(json!({"tools": [], "workspace": "/x"})).unwrap();
    assert!(old.skills.is_empty());
}

#[tokio::test]
async fn calls_that_cannot_be_answered_say_why_and_what_there_is() {
    let shelf = Shelf::new().with("pdf", "d", "Do it.").with("gone", "d", "Do it.");
    let gate = Gate::new();
    let script = calling([
        call("nothing", ""),
        Reply::tool_call("Skill", json!({"arguments": 5})),
        call("gone", "").held_by(&gate),
    ]);
    let bench = bench(script, shelf.live()).await;
    let run = bench.start("x").await;
    within(gate.wait_for_held(1)).await.unwrap();
    // What takes the place of a skill later is not read.
    let file = shelf.path().join("user/gone/SKILL.md");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(bench.folder.path().join("secret"), "---\nname: gone\n---\nsecret").unwrap();
    symlink(bench.folder.path().join("secret"), &file).unwrap();
    gate.open();
    done(&run).await;
    let results = results(&bench, run.id()).await;
    assert!(results[0].contains("there is no skill `nothing`; there are:\n- gone: d\n- pdf: d"));
    assert!(results[1].contains("the arguments cannot be used"), "{}", results[1]);
    assert!(results[2].contains("SKILL.md: it is not where it was"), "{}", results[2]);
}

#[tokio::test]
async fn an_agent_knows_its_own_skills_from_the_start_and_is_told_what_is_missing() {
    let shelf = Shelf::new().with("pdf", "Fills forms", "Fill $ARGUMENTS in with care.").with(
        "hidden",
        "Not for it",
        "Hidden.",
    );
    let folder = shelf.path().join("user/pdf");
    std::fs::write(folder.join("more.md"), "the rest of it").unwrap();
    let read = Reply::tool_call("Read", json!({"file_path": folder.join("more.md")}));
    let hidden = shelf.path().join("user/hidden/SKILL.md");
    let script = calling([read, Reply::tool_call("Read", json!({"file_path": hidden}))]);
    let live = shelf.live();
    let bench = Bench::with(script, |mut config| {
        config.definitions.agents.set(AgentSpec {
            instructions: "You fill in forms.".to_owned(),
            rights: AgentRights::to_call(["Read"]),
            start: knowing(["PDF", "word"]),
            children: AgentChildren { max_depth: Some(0), ..AgentChildren::default() },
            ..AgentSpec::new("clerk".parse().unwrap())
        });
        config.definitions.skills = live;
        config
    })
    .await;
    let spec = RunSpec { agent: "clerk".parse().unwrap(), ..bench.spec("go") };
    let run = bench.runtime.start(spec).await.unwrap();
    done(&run).await;
    let first = &bench.fake.requests_where(&When::any())[0];
    let system = first.system();
    let expected = format!(
        "You fill in forms.\n\n# Skill `pdf`\n\nIts files are in {}\n\nFill  in with care.\n\n\
         [You should know the skill `word`, but it is not available here.",
        folder.display()
    );
    assert!(system.starts_with(&expected), "{system}");
    assert_eq!(first.tools(), ["Read"]);
    let results = results(&bench, run.id()).await;
    assert!(results[0].contains("the rest of it"), "{}", results[0]);
    assert!(results[1].contains("outside of the working folder"), "{}", results[1]);
    assert_eq!(names(&started(&bench, run.id()).await.grant), ["pdf"]);
}

#[tokio::test]
async fn a_child_has_its_parent_s_skills_and_one_that_only_looks_has_no_use_for_them() {
    let shelf = Shelf::new().with("pdf", "Fills forms", "Fill in.");
    let script = Script::new()
        .conversation(main_agent([task("general-purpose", "fill"), task("explore", "look")]))
        .conversation(
            Conversation::when(When::any().first_user_contains("fill"))
                .reply(call("pdf", ""))
                .reply(Reply::text("filled")),
        )
        .conversation(
            Conversation::when(When::any().first_user_contains("look")).reply(Reply::text("seen")),
        );
    let bench = bench(script, shelf.live()).await;
    let run = bench.start("lead").await;
    // What comes later is not for runs that have begun.
    let shelf = shelf.with("late", "Too late", "Late.");
    done(&run).await;
    let rows = children(&bench, run.id()).await;
    let filling = started(&bench, rows[0].id).await.grant;
    assert_eq!(names(&filling), ["pdf"]);
    let looking = bench.fake.requests_where(&When::any().first_user_contains("look"));
    assert_eq!(description(&looking[0].body), None);
    assert!(started(&bench, rows[1].id).await.grant.skills.is_empty());
    let filled = bench.fake.requests_where(&When::any().first_user_contains("fill"));
    assert!(filled[1].tool_results()[0].contains("Fill in."));
    drop(shelf);
}

#[tokio::test]
async fn whoever_starts_a_run_says_which_skills_it_has() {
    let shelf = Shelf::new()
        .with("pdf", "d", "x")
        .with("word", "d", "x")
        .with("work-mail", "d", "x")
        .with("work-plan", "d", "x");
    let bench = bench(Script::always(Reply::text("done")), shelf.live()).await;
    put(&bench.work().join("skills"), "own", "description: mine\n", "Mine.");
    let check = async |rules: Value, expected: &[&str]| {
        let skills: SkillRules = serde_json::from_value(rules.clone()).unwrap();
        let spec =
            RunSpec { rights: RunRights { skills, ..RunRights::default() }, ..bench.spec("x") };
        let run = bench.runtime.start(spec).await.unwrap();
        done(&run).await;
        let grant = started(&bench, run.id()).await.grant;
        assert_eq!(names(&grant), expected, "{rules}");
        assert_eq!(grant.allows("Skill"), !expected.is_empty(), "{rules}");
    };
    check(json!({}), &["pdf", "word", "work-mail", "work-plan"]).await;
    check(json!({"inherit": false}), &[]).await;
    check(json!({"allow": ["PDF", "work-*"]}), &["pdf", "work-mail", "work-plan"]).await;
    check(json!({"allow": ["*"], "deny": ["work-*", "pdf"]}), &["word"]).await;
    check(json!({"allow": []}), &[]).await;
    check(json!({"inherit": false, "extraDirs": ["skills"]}), &["own"]).await;
    check(json!({"extraDirs": ["skills"], "allow": ["own", "pdf"]}), &["pdf", "own"]).await;
    check(
        json!({"extra_dirs": [bench.work().join("skills/own")], "deny": ["w*", "pdf"]}),
        &["own"],
    )
    .await;
    assert!(serde_json::from_value::<SkillRules>(json!({"extraDir": []})).is_err());
    let nowhere = SkillRules { extra_dirs: vec!["nowhere".into()], ..SkillRules::default() };
    let spec = RunSpec {
        rights: RunRights { skills: nowhere, ..RunRights::default() },
        ..bench.spec("x")
    };
    let error = bench.runtime.start(spec).await.err().unwrap().to_string();
    assert!(error.contains("the folder of skills nowhere cannot be used"), "{error}");
}

#[tokio::test]
async fn a_run_names_only_folders_of_skills_that_it_can_read() {
    let shelf = Shelf::new().with("pdf", "d", "x");
    let script = Script::always(Reply::text("done"));
    let bench = bench(script, LiveSkills::default()).await;
    let session = RunSpec { session: true, ..bench.spec("hello") };
    let parent = bench.runtime.start(session).await.unwrap();
    put(&bench.work().join("skills"), "own", "description: mine\n", "Mine.");
    symlink(shelf.path().join("user/pdf"), bench.work().join("skills/pdf")).unwrap();
    let below = |folder: &Path| {
        let caller = posse::protocol::Caller::of_run(parent.id());
        let skills = SkillRules { extra_dirs: vec![folder.to_owned()], ..SkillRules::default() };
        RunSpec {
            parent: Some(caller),
            rights: RunRights { skills, ..RunRights::default() },
            ..bench.spec("x")
        }
    };
    let outside = shelf.path().join("user");
    for (folder, says) in [
        (outside.as_path(), "a run can only name folders in"),
        (Path::new("../.."), "a run can only name folders in"),
        (Path::new("skills"), "it leads to"),
    ] {
        let error = bench.runtime.start(below(folder)).await.err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    }
    let child = bench.runtime.start(below(Path::new("skills/own"))).await.unwrap();
    done(&child).await;
    assert_eq!(names(&started(&bench, child.id()).await.grant), ["own"]);
}

#[tokio::test]
async fn what_the_settings_deny_is_denied_to_everyone_even_to_runs_that_have_begun() {
    let shelf = Shelf::new().with("pdf", "d", "Do it.").with("danger", "d", "x");
    let settings = shelf.path().join("config.toml");
    std::fs::write(&settings, "[skills]\ndeny = [\"dang*\"]\n").unwrap();
    let live = shelf.live();
    let gate = Gate::new();
    let script = calling([call("danger", "").held_by(&gate), call("pdf", "")]);
    let bench = bench(script, live.clone()).await;
    let run = bench.start("x").await;
    assert_eq!(names(&started(&bench, run.id()).await.grant), ["pdf"]);
    within(gate.wait_for_held(1)).await.unwrap();
    std::fs::write(&settings, "[skills]\nallow = [\"danger\"]\n").unwrap();
    live.refresh();
    gate.open();
    done(&run).await;
    let results = results(&bench, run.id()).await;
    assert!(results[0].contains("there is no skill `danger`"), "{}", results[0]);
    assert!(results[1].contains("the settings deny the skill `pdf` now"), "{}", results[1]);
    assert_eq!(bench.runtime.skills().entry("pdf").map(|entry| entry.is_denied), Some(true));
}

#[tokio::test]
async fn a_project_s_skill_does_not_take_the_place_of_one_that_the_user_s_agent_knows() {
    let shelf = Shelf::new().with("release", "d", "The user's way.");
    let mut sources = shelf.sources();
    let project = shelf.path().join("project");
    sources.working_folder = Some(project.clone());
    let theirs = project.join(".posse/skills");
    put(&theirs, "release", "description: d\n", "The project's way.");
    put(&theirs, "style", "description: d\n", "The project's style.");
    let agents = project.join(".posse/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let definition = "---\ndescription: d\nskills: release\n---\nTheirs.";
    std::fs::write(agents.join("theirs.md"), definition).unwrap();
    let catalog = LiveCatalog::load(AgentSources {
        working_folder: Some(project.clone()),
        ..AgentSources::default()
    });
    catalog.set(AgentSpec {
        start: knowing(["release", "style"]),
        ..AgentSpec::new("mine".parse().unwrap())
    });
    let live = LiveSkills::load(sources);
    let bench = Bench::with(calling([call("release", "")]), |mut config| {
        config.definitions.skills = live;
        config.definitions.agents = catalog;
        config
    })
    .await;
    for (agent, says, not) in [
        ("mine", "The user's way.", "The project's way."),
        ("theirs", "The project's way.", "The user's way."),
    ] {
        let spec = RunSpec { agent: agent.parse().unwrap(), ..bench.spec("x") };
        let run = bench.runtime.start(spec).await.unwrap();
        done(&run).await;
        let last = bench.fake.last_request();
        assert!(last.system().contains(says) && !last.system().contains(not), "{agent}");
        let loaded = results(&bench, run.id()).await;
        assert!(loaded[0].contains(says), "one name means one skill to a run");
        assert_eq!(last.system().contains("The project's style."), agent == "mine");
    }
}

#[tokio::test]
async fn a_twin_that_takes_over_a_conversation_is_shown_the_same_skills() {
    let shelf = Shelf::new().with("pdf", "d", "Do it.");
    let script = Script::new()
        .conversation(
            Conversation::when(When::any().last_user_contains("your part"))
                .reply(Reply::text("my part")),
        )
        .conversation(main_agent([task("twin", "your part")]));
    let live = shelf.live();
    let bench = Bench::with(script, |mut config| {
        config.definitions.agents.set(AgentSpec {
            description: "Twin".to_owned(),
            rights: AgentRights::to_call(["Skill", "Task"]),
            start: AgentStart { context: Context::Fork, ..AgentStart::default() },
            ..AgentSpec::new("twin".parse().unwrap())
        });
        config.definitions.skills = live;
        config
    })
    .await;
    let spec = RunSpec { agent: "twin".parse().unwrap(), ..bench.spec("lead") };
    let run = bench.runtime.start(spec).await.unwrap();
    done(&run).await;
    let child = &children(&bench, run.id()).await[0];
    let forked = started(&bench, child.id).await.forked.unwrap();
    assert!(forked.guise.is_some(), "it reads its parent's cache");
    let requests = bench.fake.requests_where(&When::any());
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"]);
}

fn problems(catalog: &SkillCatalog, level: Level) -> Vec<String> {
    let found = catalog.problems().iter().filter(|problem| problem.level == level);
    found.map(ToString::to_string).collect()
}

#[test]
fn the_nearest_skill_of_a_name_is_meant_and_the_others_are_shadowed() {
    let shelf = Shelf::new().with("pdf", "the user's", "x").with("only", "d", "x");
    let root = shelf.path();
    let repo = root.join("repo");
    std::fs::create_dir_all(repo.join(".git")).unwrap();
    put(&repo.join(".claude/skills"), "pdf", "description: the project's\n", "x");
    put(&repo.join("near/.posse/skills"), "PDF", "description: the nearest\n", "x");
    put(&root.join("plugins/office/skills"), "pdf", "description: the plugin's\n", "x");
    put(&root.join("more"), "pdf", "description: the last\n", "x");
    put(&root.join("plugins/not a name/skills"), "x", "description: d\n", "x");
    let settings = format!("[skills]\nextra_dirs = [\"{}\"]\n", root.join("more").display());
    std::fs::write(root.join("config.toml"), settings).unwrap();
    let sources = Sources {
        working_folder: Some(repo.join("near")),
        plugin_folders: vec![root.join("plugins")],
        ..shelf.sources()
    };
    let catalog = LiveSkills::load(sources).current();
    let errors = problems(&catalog, Level::Error);
    assert!(errors.len() == 1 && errors[0].contains("`not a name:x` cannot name a skill"));
    let used: Vec<(&str, &str)> =
        catalog.iter().map(|skill| (skill.name.as_str(), skill.description.as_str())).collect();
    assert_eq!(used, [("office:pdf", "the plugin's"), ("only", "d"), ("PDF", "the nearest")]);
    let shadowed: Vec<&str> = catalog
        .entries()
        .iter()
        .filter(|entry| matches!(entry.shadowed_by, Some(Source::Project { .. })))
        .map(|entry| entry.source.kind())
        .collect();
    assert_eq!(shadowed, ["project", "user", "extra folder"]);
}

#[test]
fn what_cannot_be_used_is_said_with_its_place_and_hides_no_others() {
    let shelf = Shelf::new().with("good", "d", "x");
    let user = shelf.path().join("user");
    put(&user, "no-name", "name: no good\ndescription: d\n", "x");
    put(&user, "empty", "description: d\n", "");
    put(&user, "good-again", "name: Good\ndescription: d\n", "x");
    let large = put(&user, "large", "description: d\n", "x").join("SKILL.md");
    std::fs::write(&large, "x".repeat(300_000)).unwrap();
    let binary = put(&user, "binary", "description: d\n", "x").join("SKILL.md");
    std::fs::write(&binary, [b'a', 0xff]).unwrap();
    let linked = user.join("linked");
    std::fs::create_dir(&linked).unwrap();
    std::fs::write(shelf.path().join("notes.md"), "---\ndescription: d\n---\nx").unwrap();
    symlink(shelf.path().join("notes.md"), linked.join("SKILL.md")).unwrap();
    let catalog = shelf.live().current();
    let errors = problems(&catalog, Level::Error).join("\n");
    for says in [
        "no-name/SKILL.md:2:7: error: `no good` is not the name of a skill",
        "empty/SKILL.md:4:1: error: there is no text below the front matter",
        "good-again/SKILL.md: error: there is a skill `Good` already, in ",
        "large/SKILL.md: error: it is larger than the 262144 bytes that are read",
        "binary/SKILL.md: error: it is not UTF-8: byte 2",
        "linked/SKILL.md: error: it is a link to ",
    ] {
        assert!(errors.contains(says), "{says}: {errors}");
    }
    assert_eq!(errors.lines().count(), 6, "{errors}");
    let usable: Vec<&str> = catalog.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(usable, ["good"]);
    // One that cannot be used keeps its name.
    assert!(catalog.entry("empty").is_some_and(|entry| entry.skill.is_none()));
}

#[test]
fn a_project_s_skills_lie_in_it_and_the_user_s_may_be_behind_links() {
    let shelf = Shelf::new().with("real", "d", "x");
    let root = shelf.path();
    let project = root.join("project");
    let theirs = project.join(".posse/skills");
    std::fs::create_dir_all(&theirs).unwrap();
    put(&root.join("secrets"), "keys", "description: d\n", "x");
    symlink(root.join("secrets/keys"), theirs.join("keys")).unwrap();
    put(&project.join("docs"), "inside", "description: d\n", "x");
    symlink("../../docs/inside", theirs.join("inside")).unwrap();
    std::fs::write(project.join("SKILL.md"), "---\nname: all\ndescription: d\n---\nx").unwrap();
    symlink("../..", theirs.join("all")).unwrap();
    symlink(root.join("secrets/keys"), root.join("user/mine")).unwrap();
    let sources = Sources { working_folder: Some(project.clone()), ..shelf.sources() };
    let catalog = LiveSkills::load(sources).current();
    let errors = problems(&catalog, Level::Error).join("\n");
    assert!(errors.contains("keys/SKILL.md: error: it leads to "), "{errors}");
    assert!(errors.contains("all/SKILL.md: error: its folder "), "{errors}");
    let folders: Vec<PathBuf> = catalog.iter().map(|skill| skill.folder.clone()).collect();
    let expected = [project.join("docs/inside"), root.join("secrets/keys"), root.join("user/real")];
    assert_eq!(folders, expected);
    assert!(catalog.entry("keys").is_some_and(|entry| entry.skill.is_none()));
    assert!(catalog.entry("mine").is_some_and(|entry| entry.skill.is_some()));
}

#[test]
fn skills_that_are_for_people_are_listed_and_not_offered() {
    let shelf = Shelf::new();
    let head = "description: d\ndisable-model-invocation: true\nallowed-tools: Bash\n";
    put(&shelf.path().join("user"), "deploy", head, "Deploy.");
    let catalog = shelf.live().current();
    let deploy = catalog.iter().next().unwrap();
    assert!(deploy.is_manual);
    assert_eq!((deploy.allowed_tools.as_slice(), deploy.bytes), (&["Bash".to_owned()][..], 7));
    let notes = problems(&catalog, Level::Note);
    assert!(notes[0].contains("deploy/SKILL.md:4:1: note: `allowed-tools` grants nothing"));
    let agents = LiveCatalog::load(AgentSources::default());
    let agent =
        AgentSpec { start: knowing(["deploy"]), ..AgentSpec::new("clerk".parse().unwrap()) };
    agents.set(agent);
    let missing = catalog.check_agents(&agents.current());
    assert_eq!(missing.len(), 1);
    assert!(missing[0].to_string().contains("the skill `deploy` from the start"), "{missing:?}");
}

#[tokio::test]
async fn tools_that_a_skill_asks_for_are_told_and_never_granted() {
    let shelf = Shelf::new();
    let head = "description: d\nallowed-tools: Write, Bash(git *)\n";
    put(&shelf.path().join("user"), "ship", head, "Ship it.");
    let write = Reply::tool_call("Write", json!({"file_path": "x", "content": "x"}));
    let live = shelf.live();
    let bench = Bench::with(calling([call("ship", "now"), write]), |mut config| {
        config.definitions.agents.set(AgentSpec {
            rights: AgentRights::to_call(["Skill", "Read"]),
            ..AgentSpec::new("looker".parse().unwrap())
        });
        config.definitions.skills = live;
        config
    })
    .await;
    let spec = RunSpec { agent: "looker".parse().unwrap(), ..bench.spec("go") };
    let run = bench.runtime.start(spec).await.unwrap();
    done(&run).await;
    let results = results(&bench, run.id()).await;
    let told = "you may call nothing but: Write, Bash(git *). It grants none of them.";
    assert!(results[0].contains(told), "{}", results[0]);
    assert!(results[0].ends_with("Ship it.\n\nARGUMENTS: now"), "{}", results[0]);
    assert!(!bench.work().join("x").exists(), "{}", results[1]);
}

#[tokio::test]
async fn a_skill_in_use_narrows_what_its_agent_may_call_until_it_has_another_task() {
    let shelf = Shelf::new();
    let head = "description: d\nallowed-tools: Read(docs/**), Write(out/**)\n";
    put(&shelf.path().join("user"), "ship", head, "Ship it.");
    let write = |path: &str| Reply::tool_call("Write", json!({"file_path": path, "content": "x"}));
    let live = shelf.live();
    let script = calling([write("before"), call("ship", ""), write("after"), write("out/a")]);
    let bench = Bench::with(script, |mut config| {
        config.definitions.skills = live;
        config
    })
    .await;
    let run = bench.start("go").await;
    done(&run).await;
    let results = results(&bench, run.id()).await;
    assert!(bench.work().join("before").exists(), "{results:?}");
    assert!(!bench.work().join("after").exists(), "{results:?}");
    assert!(bench.work().join("out/a").exists(), "{results:?}");
    assert!(results[2].contains("outside of what `Write` may be used for here"), "{results:?}");
}
