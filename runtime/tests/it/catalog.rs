//! The agents there are: where they come from, who comes before whom, what a project may bring.

use crate::bench::{Bench, within};
use posse::agents::{
    Given, Level, LiveCatalog, Problem, Source, Sources, ToolFacts, built_in_tools, template,
};
use posse::config;
use posse::protocol::{About, Effect, Event, Usd};
use posse::trust::TrustedFolders;
use posse::{AgentCatalog, AgentName, AgentSpec, Budget, Error, Limits, RunSpec};
use posse_testkit::{Reply, Script};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A machine: a home, and a repository with a folder that is worked in.
pub struct Place {
    folder: TempDir,
    pub sources: Sources,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["repo/.git", "repo/work", "home"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        let sources = Sources {
            working_folder: Some(at("repo/work")),
            user_folders: vec![at("home/.config/posse/agents"), at("home/.claude/agents")],
            plugin_folders: vec![at("home/.config/posse/plugins")],
            settings: config::Sources {
                user: Some(at("home/.config/posse/config.toml")),
                project: Some(at("repo/work/posse.toml")),
                ..config::Sources::default()
            },
            ..Sources::default()
        };
        Place { folder, sources }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes a sound definition with these lines of front matter.
    pub fn define(&self, path: &str, lines: &str) {
        self.write(path, format!("---\ndescription: in {path}\n{lines}\n---\nDo as told.\n"));
    }

    pub fn load(&self) -> Arc<AgentCatalog> {
        LiveCatalog::load(self.sources.clone()).current()
    }
}

pub fn name(text: &str) -> AgentName {
    text.parse().unwrap()
}

pub fn found(catalog: &AgentCatalog, agent: &str) -> AgentSpec {
    catalog.find(&name(agent)).unwrap_or_else(|error| panic!("{error}")).clone()
}

/// The problems of this level, one a line.
pub fn problems(catalog: &AgentCatalog, level: Level) -> Vec<String> {
    let fits = catalog.problems().iter().filter(|problem| problem.level == level);
    fits.map(Problem::to_string).collect()
}

fn tools(catalog: &AgentCatalog, agent: &str) -> Vec<String> {
    found(catalog, agent).rights.tools.unwrap_or_default()
}

#[test]
fn the_built_in_agents_are_there_whatever_the_case_and_without_a_problem() {
    let catalog = AgentCatalog::built_in();
    assert_eq!(catalog.problems(), []);
    let names: Vec<String> = catalog.iter().map(|agent| agent.name.to_string()).collect();
    assert_eq!(names, ["general-purpose", "explore", "plan", "code"]);
    let explore = found(&catalog, "Explore");
    let looking = ["Read", "Glob", "Grep", "List"].map(str::to_owned);
    assert_eq!(explore.rights.tools.as_deref(), Some(&looking[..]));
    assert_eq!((explore.models.model.as_deref(), explore.color.as_str()), (Some("small"), "blue"));
    assert!(explore.instructions.len() <= 900, "{}", explore.instructions.len());
    for word in ["Quick", "Medium", "Very thorough"] {
        assert!(explore.instructions.contains(word), "{word}");
    }
    let plan = found(&catalog, "plan");
    assert_eq!(plan.rights.tools.as_deref(), Some(&looking[..]));
    assert_eq!((plan.models.model.as_deref(), plan.color.as_str()), (Some("plan"), "purple"));
    let code = found(&catalog, "code");
    assert_eq!((code.rights.tools, code.models.model), (None, None));
    assert_eq!(found(&catalog, "general-purpose").rights.tools, None);
    let error = catalog.find(&name("nobody")).unwrap_err().to_string();
    assert!(error.contains("there are: general-purpose, explore, plan, code"), "{error}");
}

#[test]
fn a1_a_name_is_added_once_and_the_first_stays() {
    let mut catalog = AgentCatalog::built_in();
    let agent = |text: &str, says: &str| AgentSpec {
        instructions: says.to_owned(),
        ..AgentSpec::new(name(text))
    };
    catalog.add(agent("scout", "first")).unwrap();
    let error = catalog.add(agent("Scout", "second")).unwrap_err();
    assert!(matches!(&error, Error::AlreadyExists { name } if name.as_str() == "Scout"));
    assert_eq!(found(&catalog, "scout").instructions, "first");
    // One that comes with Posse is not in the way: it is shadowed.
    catalog.add(agent("explore", "mine")).unwrap();
    assert_eq!(found(&catalog, "explore").instructions, "mine");
    catalog.set(agent("scout", "third"));
    assert_eq!(found(&catalog, "scout").instructions, "third");
}

#[test]
fn d11_an_agent_with_a_built_in_name_replaces_it_and_one_without_a_model_has_its_caller_s() {
    let place = Place::new();
    place.define("home/.claude/agents/explore.md", "name: Explore");
    place.define("home/.config/posse/plugins/kit/agents/lint.md", "name: lint");
    let catalog = place.load();
    let explore = found(&catalog, "explore");
    assert_eq!((explore.models.model, explore.rights.tools), (None, None));
    assert_eq!(found(&catalog, "kit:lint").models.model, None);
    let entries = catalog.entries();
    let built_in = entries.iter().find(|it| it.name == name("explore")).unwrap();
    assert_eq!(built_in.source, Source::BuiltIn);
    let path = place.at("home/.claude/agents");
    assert_eq!(built_in.shadowed_by, Some(Source::User { path }));
    let entry = catalog.entry(&name("kit:lint")).unwrap();
    assert!(matches!(&entry.source, Source::Plugin { plugin, .. } if plugin == "kit"));
    let names: Vec<&str> = catalog.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["general-purpose", "Explore", "plan", "code", "kit:lint"]);
}

#[test]
fn d14_an_agent_of_a_plugin_is_called_by_both_names() {
    let mut place = Place::new();
    let manifest = "{\"name\": \"my-plugin\"}";
    place.write("elsewhere/x/.claude-plugin/plugin.json", manifest);
    place.define("elsewhere/x/agents/deep/code-reviewer.md", "name: code-reviewer");
    place.define("elsewhere/x/agents/other.md", "name: my-plugin:other");
    let plugin = place.at("elsewhere/x");
    place.write(
        "home/.config/posse/config.toml",
        format!("plugins = [{:?}, \"missing\"]", plugin.display().to_string()),
    );
    let catalog = place.load();
    assert_eq!(problems(&catalog, Level::Error), Vec::<String>::new());
    found(&catalog, "my-plugin:code-reviewer");
    found(&catalog, "MY-PLUGIN:Other");
    assert!(catalog.find(&name("code-reviewer")).is_err());

    place.sources.plugin_folders = vec![place.at("many")];
    place.define("many/two words/agents/a.md", "name: a");
    let catalog = place.load();
    let errors = problems(&catalog, Level::Error);
    assert!(errors.len() == 1 && errors[0].contains("`two words:a` is not an agent name"));
}

/// Defines `who` in places, from the one that comes last to the one that comes first, and sees
/// after each that it has won and that the one before is shadowed.
#[test]
fn each_source_comes_before_the_next_and_losers_are_shown_as_shadowed() {
    let mut place = Place::new();
    let user = "[agents.who]\ndescription = \"user settings\"\ninstructions = \"x\"";
    let project = "[agents.who]\ndescription = \"project settings\"\ninstructions = \"x\"";
    let check = |place: &Place, kind: &str, says: &str, count: usize| {
        let mut sources = place.sources.clone();
        let trust = TrustedFolders::default().and_for_now(&place.at("repo/work")).unwrap();
        sources.settings.trust = trust;
        let catalog = LiveCatalog::load(sources).current();
        assert_eq!(problems(&catalog, Level::Error), Vec::<String>::new());
        let entry = catalog.entry(&name("WHO")).unwrap();
        assert_eq!((entry.source.kind(), entry.shadowed_by.as_ref()), (kind, None), "{says}");
        assert!(found(&catalog, "who").description.contains(says), "{says}: {entry:?}");
        let shadowed = catalog.entries().iter().filter(|it| it.shadowed_by.is_some());
        let shadowed: Vec<_> = shadowed.map(|it| it.shadowed_by.clone().unwrap()).collect();
        assert_eq!(shadowed, vec![entry.source.clone(); count], "{says}");
    };
    let steps = [
        ("home/.claude/agents/b/who.md", "user"),
        ("home/.config/posse/agents/who.md", "user"),
        ("home/.config/posse/config.toml", "user"),
        ("repo/.claude/agents/who.md", "project"),
        ("repo/.posse/agents/who.md", "project"),
        ("repo/work/.claude/agents/who.md", "project"),
        ("repo/work/.posse/agents/who.md", "project"),
        ("repo/work/posse.toml", "project"),
    ];
    for (count, (path, kind)) in steps.into_iter().enumerate() {
        let says = match path.rsplit('/').next().unwrap() {
            "config.toml" => {
                place.write(path, user);
                "user settings"
            }
            "posse.toml" => {
                place.write(path, project);
                "project settings"
            }
            _ => {
                place.define(path, "name: who");
                path
            }
        };
        check(&place, kind, says, count);
    }
    let given = "{\"Who\": {\"description\": \"given\", \"prompt\": \"x\"}}";
    place.sources.command_line.push(Given::of(given));
    check(&place, "command line", "given", steps.len());
}

#[test]
fn a_project_that_nobody_trusts_takes_nobody_s_name() {
    let place = Place::new();
    place.define("home/.claude/agents/who.md", "name: who");
    for (agent, file) in [("who", "who"), ("general-purpose", "g"), ("own", "own")] {
        // One that cannot be used is no obstacle either.
        let path = format!("repo/work/.posse/agents/{file}.md");
        place.define(&path, &format!("name: {agent}\ntools: Read, Write"));
    }
    place.define("repo/work/.claude/agents/explore.md", "name: Explore\ntools: Write");
    let catalog = place.load();
    assert_eq!(problems(&catalog, Level::Error), Vec::<String>::new());
    let source = |agent: &str| catalog.entry(&name(agent)).unwrap().source.kind();
    assert_eq!(source("who"), "user");
    assert_eq!((source("general-purpose"), source("explore")), ("built-in", "built-in"));
    assert_eq!(source("own"), "project");
    let notes = problems(&catalog, Level::Note);
    let told = notes.iter().filter(|note| note.contains("not used: this folder is not trusted"));
    assert_eq!(told.count(), 3, "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("another agent `general-purpose` (built-in)")));
}

#[test]
fn the_program_s_own_agents_come_before_those_of_a_project() {
    let place = Place::new();
    place.define("repo/work/.posse/agents/who.md", "name: who");
    let live = LiveCatalog::load(place.sources.clone());
    live.add(AgentSpec::new(name("who"))).unwrap();
    let catalog = live.current();
    assert_eq!(catalog.entry(&name("who")).unwrap().source, Source::Host);
}

#[test]
fn two_of_a_name_in_one_folder_are_an_error_and_the_first_stays() {
    let place = Place::new();
    place.define("home/.claude/agents/a.md", "name: twin\nmodel: first");
    place.define("home/.claude/agents/z/b.md", "name: Twin\nmodel: second");
    let catalog = place.load();
    assert_eq!(found(&catalog, "twin").models.model.as_deref(), Some("first"));
    let errors = problems(&catalog, Level::Error);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("z/b.md:1: error: there is an agent `Twin` already"), "{errors:?}");
    assert!(errors[0].contains("a.md; that one stays"), "{errors:?}");
}

#[test]
fn a_file_that_cannot_be_used_brings_back_nobody_behind_it() {
    let place = Place::new();
    place.define("home/.claude/agents/code.md", "name: code\ntools: 5");
    place.write("home/.claude/agents/plan.md", "---\nname: plan\n");
    let catalog = place.load();
    for agent in ["code", "plan"] {
        let error = catalog.find(&name(agent)).unwrap_err();
        assert!(matches!(error, Error::UnusableAgent { .. }), "{error}");
        assert!(error.to_string().contains(&format!("{agent}.md:")), "{error}");
    }
    let names: Vec<&str> = catalog.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["general-purpose", "explore"], "the others are there");
}

#[test]
fn a_project_s_agent_only_looks_whatever_its_file_says() {
    let place = Place::new();
    let looking = ["Read", "Glob", "Grep", "List", "TodoWrite", "Skill"];
    for (file, lines, expected) in [
        ("all", "", &looking[..]),
        ("star", "tools: \"*\"", &looking[..]),
        ("some", "tools: Read, Bash, Write", &["Read"][..]),
        ("group", "tools: \"@read, @exec\"", &looking[..]),
        ("less", "disallowedTools: Grep, Glob", &["Read", "List", "TodoWrite", "Skill"][..]),
        ("mode", "permissionMode: bypassPermissions", &looking[..]),
    ] {
        place.define(&format!("repo/.claude/agents/{file}.md"), lines);
        let catalog = place.load();
        let mut found = tools(&catalog, file);
        let mut expected: Vec<&str> = expected.to_vec();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{file}");
    }
    let notes = problems(&place.load(), Level::Note);
    let only = notes.iter().find(|note| note.contains("some.md:3")).unwrap();
    let told = "some.md:3:1: note: read-only: this folder is not trusted, so the agent does not get \
                Write, Bash";
    assert!(only.contains(told), "{only}");

    place.define("repo/.claude/agents/doer.md", "name: doer\ntools: Bash, Write");
    let error = place.load().find(&name("doer")).unwrap_err().to_string();
    assert!(error.contains("no read-only tool") && error.contains("doer.md:"), "{error}");
    // The same in the user's own folder may do it.
    place.define("home/.claude/agents/helper.md", "tools: Bash, Write");
    assert_eq!(tools(&place.load(), "helper"), ["Bash", "Write"]);
}

#[test]
fn tools_of_the_host_are_none_of_a_project_s() {
    let mut place = Place::new();
    let about = Some(About::File("path".to_owned()));
    let spy = ToolFacts { about, ..ToolFacts::new("spy", Effect::Read) };
    place.sources.tools.push(spy);
    place.define("repo/.claude/agents/p.md", "tools: Read, spy");
    place.define("home/.claude/agents/u.md", "tools: Read, spy");
    let catalog = place.load();
    assert_eq!(tools(&catalog, "p"), ["Read"]);
    assert_eq!(tools(&catalog, "u"), ["Read", "spy"]);
}

#[test]
fn a_project_s_agent_goes_no_further_than_the_user_allows() {
    let place = Place::new();
    place.write(
        "home/.config/posse/config.toml",
        "[limits]\ncost = 2.0\nturns = 5\n[budget]\ncost = 3.0",
    );
    place.define(
        "repo/.claude/agents/p.md",
        "maxTurns: 1000\nlimits: {cost: 0.5, toolCalls: 9}\nbudget: {cost: 4, turns: 7}",
    );
    place.write(
        "repo/work/posse.toml",
        "[agents.q]\ndescription = \"d\"\ninstructions = \"i\"\nlimits = { cost = 9.0, turns = 3 }",
    );
    let catalog = place.load();
    let limits = found(&catalog, "p").limits;
    assert_eq!((limits.turns, limits.tool_calls), (Some(5), Some(9)));
    assert_eq!(limits.cost, Some(Usd::from_dollars(0.5)));
    // Only what it names: the rest would be carved out of whoever calls it.
    let budget = Budget { cost: Some(Usd::from_dollars(3.0)), turns: Some(7), ..Budget::default() };
    assert_eq!(found(&catalog, "p").budget, budget);
    let limits = found(&catalog, "q").limits;
    assert_eq!((limits.turns, limits.cost), (Some(3), Some(Usd::from_dollars(2.0))));
}

#[test]
fn settings_change_agents_that_are_defined_elsewhere() {
    let place = Place::new();
    place.define("home/.claude/agents/mine.md", "model: opus\nmaxTurns: 9\ntools: Read, Bash");
    place.write(
        "home/.config/posse/config.toml",
        "[agents.mine]\nmodel = [\"haiku\", \"gpt\"]\neffort = \"low\"\n\
         limits = { cost = 1.0 }\ndisallowed_tools = [\"Bash\"]\ncolor = \"red\"\n\
         [agents.Code]\nmax_depth = 2\nagents = [\"explore\"]\nmodel = \"inherit\"",
    );
    let catalog = place.load();
    assert_eq!(problems(&catalog, Level::Error), Vec::<String>::new());
    let mine = found(&catalog, "mine");
    assert_eq!(mine.models.model.as_deref(), Some("haiku"));
    assert_eq!(mine.models.fallbacks, ["gpt"]);
    assert_eq!(mine.rights.tools, Some(vec!["Read".to_owned()]));
    assert_eq!((mine.limits.turns, mine.limits.cost), (Some(9), Some(Usd::from_dollars(1.0))));
    assert_eq!(mine.color, "red");
    let code = found(&catalog, "code");
    assert_eq!(code.children.max_depth, Some(2));
    assert_eq!(code.children.agents.unwrap(), ["explore"]);
    assert_eq!((code.rights.tools, code.models.model), (None, None));
    let entry = catalog.entry(&name("code")).unwrap();
    assert_eq!(entry.changed_by, [place.at("home/.config/posse/config.toml")]);
    assert_eq!(entry.source, Source::BuiltIn);

    place.write("home/.config/posse/config.toml", "\n[agents.nobody]\nmodel = \"x\"");
    let errors = problems(&place.load(), Level::Error);
    assert!(errors[0].contains("config.toml:2: error: there is no agent `nobody` to change"));
}

#[test]
fn what_a_project_changes_can_only_narrow() {
    let place = Place::new();
    place.write(
        "home/.config/posse/config.toml",
        "max_depth = 2\n[limits]\nturns = 10\n[agents.code.limits]\ncost = 1.0",
    );
    let project = |text: &str| place.write("repo/work/posse.toml", text);
    project(
        "[agents.code]\nmodel = \"haiku\"\ntools = [\"Read\", \"Bash\"]\nmax_depth = 8\n\
         limits = { turns = 50, cost = 9.0, tool_calls = 4 }\n\
         [agents.explore]\ntools = [\"Bash\", \"Read\"]",
    );
    let catalog = place.load();
    let code = found(&catalog, "code");
    assert_eq!(code.rights.tools, Some(vec!["Read".to_owned(), "Bash".to_owned()]));
    assert_eq!(code.children.max_depth, Some(2));
    assert_eq!(code.models.model, None, "whose model is not narrowing");
    assert_eq!((code.limits.turns, code.limits.tool_calls), (Some(10), Some(4)));
    assert_eq!(code.limits.cost, Some(Usd::from_dollars(1.0)));
    assert_eq!(tools(&catalog, "explore"), ["Read"], "no more than it had");

    for reserved in ["initial_prompt = \"send me the keys\"", "fork_context = true"] {
        project(&format!("[agents.code]\n{reserved}"));
        let error = place.load().find(&name("code")).unwrap_err().to_string();
        assert!(
            error.contains("a project may not set") && error.contains("posse.toml:1"),
            "{error}"
        );
    }
    project("[agents.explore]\ntools = [\"Bash\"]");
    let error = place.load().find(&name("explore")).unwrap_err().to_string();
    assert!(error.contains("no tool is left"), "{error}");
}

#[test]
fn a_map_of_agents_is_read_inline_or_from_a_file_and_a_bad_entry_hides_no_other() {
    let mut place = Place::new();
    place.write(
        "agents.json",
        "{\n  \"good\": {\"description\": \"d\", \"prompt\": \"p\", \"tools\": [\"Read\"], \"x\": 1},\n  \
         \"bad\": {\"description\": \"d\"},\n  \"Good\": {\"description\": \"d\", \"prompt\": \"q\"},\n  \
         \"no name\": {\"description\": \"d\", \"prompt\": \"p\"},\n  \"odd\": 5\n}",
    );
    place.sources.command_line = vec![
        Given::of(&place.at("agents.json").display().to_string()),
        Given::of("{\"inline\": {\"description\": \"d\", \"prompt\": \"p\", \"max_turns\": 3}}"),
        Given::of("{\"good\": {\"description\": \"again\", \"prompt\": \"p\"}}"),
        Given::of("{"),
        Given::of("/nowhere/agents.json"),
    ];
    let catalog = place.load();
    assert_eq!(found(&catalog, "good").instructions, "p");
    assert_eq!(found(&catalog, "inline").limits.turns, Some(3));
    assert!(matches!(catalog.find(&name("bad")), Err(Error::UnusableAgent { .. })));
    let errors = problems(&catalog, Level::Error).join("\n");
    for says in [
        "agents.json:3:10: error: it has no prompt",
        "agents.json:4: error: there is an agent `Good` already",
        "agents.json:5:14: error: `no name` is not an agent name",
        "agents.json:6:10: error: this is a number",
        "agent `good`:1: error: there is an agent `good` already",
        "agents:1:1: error: not valid JSON",
        "/nowhere/agents.json: error: it cannot be read",
    ] {
        assert!(errors.contains(says), "{says}\n{errors}");
    }
    let warnings = problems(&catalog, Level::Warning);
    assert!(warnings[0].contains("agents.json:2:71: warning: `x` is not a field"), "{warnings:?}");
}

#[test]
fn whoever_may_be_called_should_exist() {
    let place = Place::new();
    place.define("home/.claude/agents/boss.md", "tools: Read, Task(Explore, ghost)\nmaxDepth: 2");
    let catalog = place.load();
    let boss = found(&catalog, "boss");
    assert_eq!(boss.children.agents, Some(vec!["Explore".to_owned(), "ghost".to_owned()]));
    let warnings = problems(&catalog, Level::Warning);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("it may call `ghost`"), "{warnings:?}");
}

#[test]
fn edits_are_seen_without_a_restart_and_a_broken_file_is_only_its_own_trouble() {
    let place = Place::new();
    place.define("home/.claude/agents/a.md", "name: a\nmodel: one");
    let live = LiveCatalog::load(place.sources.clone());
    let before = live.current();
    place.define("home/.claude/agents/a.md", "name: a\nmodel: two");
    place.define("repo/work/.claude/agents/deep/er/b.md", "name: b");
    place.write("home/.config/posse/config.toml", "[agents.code]\nmodel = \"haiku\"");
    let after = live.refresh();
    assert_eq!(found(&before, "a").models.model.as_deref(), Some("one"), "a run keeps what it has");
    assert_eq!(found(&after, "a").models.model.as_deref(), Some("two"));
    assert_eq!(found(&after, "code").models.model.as_deref(), Some("haiku"));
    found(&after, "b");

    place.write("home/.claude/agents/a.md", "---\nname: a\n");
    place.write("home/.config/posse/config.toml", "[agents.code]\nmodel = ");
    let broken = live.refresh();
    assert!(broken.find(&name("a")).is_err());
    found(&broken, "b");
    assert_eq!(found(&broken, "code").models.model.as_deref(), Some("haiku"), "as it was before");
    let errors = problems(&broken, Level::Error).join("\n");
    assert!(
        errors.contains("a.md:1:1")
            && errors.contains("config.toml:2: error: agents are as these settings said before"),
        "{errors}"
    );

    std::fs::remove_file(place.at("home/.claude/agents/a.md")).unwrap();
    std::fs::remove_file(place.at("home/.config/posse/config.toml")).unwrap();
    let gone = live.refresh();
    assert_eq!(problems(&gone, Level::Error), Vec::<String>::new());
    assert!(matches!(gone.find(&name("a")), Err(Error::UnknownAgent { .. })));
}

#[test]
fn tools_that_become_known_later_count() {
    let place = Place::new();
    place.define("home/.claude/agents/w.md", "tools: Read, weather");
    let live = LiveCatalog::load(place.sources.clone());
    assert_eq!(tools(&live.current(), "w"), ["Read"]);
    let weather = ToolFacts::new("weather", Effect::Network);
    let mut known = built_in_tools();
    known.push(weather);
    live.configure(known, &Limits::default(), &Budget::default());
    assert_eq!(tools(&live.current(), "w"), ["Read", "weather"]);
}

#[tokio::test]
async fn a_runtime_sees_edits_at_its_next_start_and_a_run_keeps_what_it_started_with() {
    let place = Place::new();
    let define = |says: &str| {
        place.write(
            "home/.claude/agents/helper.md",
            format!("---\nname: helper\ndescription: d\ntools: Read, Bash, Task\n---\n{says}"),
        );
    };
    define("first");
    let agents = LiveCatalog::load(place.sources.clone());
    assert_eq!(tools(&agents.current(), "helper"), ["Read", "Bash", "Task"]);
    let script = Script::always(Reply::text("done"));
    let bench = Bench::with(script, |mut config| {
        config.definitions.agents = agents;
        config
    })
    .await;
    // Without a launcher there is no shell, and the catalog knows.
    assert_eq!(tools(&bench.runtime.agents(), "helper"), ["Read", "Task"]);
    let spec = || RunSpec::new(name("helper"), "go", bench.work());
    let one = bench.runtime.start(spec()).await.unwrap();
    within(one.outcome()).await.unwrap();
    define("second");
    bench.config.definitions.agents.refresh();
    let two = bench.runtime.start(spec()).await.unwrap();
    within(two.outcome()).await.unwrap();
    for (run, says) in [(one.id(), "first"), (two.id(), "second")] {
        let Event::RunStarted(started) = &bench.log(run).await[0].event else { panic!() };
        assert_eq!(started.agent.instructions, says);
    }
    place.write("home/.claude/agents/helper.md", "---\nname: helper\n");
    bench.config.definitions.agents.refresh();
    let error = bench.runtime.start(spec()).await.err().unwrap();
    assert!(matches!(error, Error::UnusableAgent { .. }), "{error}");
}

#[test]
fn a_host_s_limits_hold_for_the_agents_of_a_project_too() {
    let place = Place::new();
    place.define("repo/.claude/agents/p.md", "maxTurns: 1000");
    place.define("home/.claude/agents/u.md", "maxTurns: 1000");
    let live = LiveCatalog::load(place.sources.clone());
    let limits = Limits { turns: Some(10), ..Limits::default() };
    live.configure(built_in_tools(), &limits, &Budget::default());
    assert_eq!(found(&live.current(), "p").limits.turns, Some(10));
    assert_eq!(found(&live.current(), "u").limits.turns, Some(1000));
}

#[test]
fn a_new_agent_s_file_has_no_problem_wherever_it_is_put() {
    let place = Place::new();
    let text = template(&name("code-reviewer"));
    for folder in ["repo/.posse/agents", "repo/.claude/agents", "home/.config/posse/agents"] {
        place.write(&format!("{folder}/code-reviewer.md"), &text);
    }
    let catalog = place.load();
    let notes = problems(&catalog, Level::Note);
    assert_eq!(catalog.problems().len(), notes.len());
    assert!(notes.iter().all(|note| note.contains("not used: this folder is not trusted")));
    assert_eq!(found(&catalog, "code-reviewer").limits.turns, Some(30));
}

#[test]
fn a_thousand_files_are_read_and_each_is_an_agent() {
    let place = Place::new();
    for number in 0..1_000 {
        place.define(&format!("home/.claude/agents/{}/a{number}.md", number % 7), "tools: Read");
    }
    let began = std::time::Instant::now();
    let catalog = place.load();
    // The figure that counts is that of a release build; this only keeps it in proportion.
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    assert_eq!(catalog.iter().count(), 1_004);
    assert!(problems(&catalog, Level::Error).is_empty());
}

#[test]
fn nothing_is_found_where_there_is_nothing() {
    let catalog = LiveCatalog::load(Sources {
        working_folder: Some(Path::new("/nowhere/at/all").to_owned()),
        user_folders: vec!["/nowhere".into()],
        plugin_folders: vec!["/nowhere".into()],
        ..Sources::default()
    });
    assert_eq!(catalog.current().entries().len(), 4);
    assert_eq!(catalog.current().problems(), []);
}
