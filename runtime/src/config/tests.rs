//! Tests of several settings files: which value wins, who may set a key, and the errors.

use super::*;
use posse_protocol::{Budget, Usd};
use std::time::Duration;

/// Loads a user's and a trusted project's file with these texts.
fn load(user: &str, project: &str) -> Result<Config, ConfigError> {
    load_trusting(user, project, |folder| TrustedFolders::default().and_for_now(folder).unwrap())
}

fn load_trusting(
    user: &str,
    project: &str,
    trust: impl Fn(&Path) -> TrustedFolders,
) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    let (user, project) = (write("config.toml", user), write("posse.toml", project));
    let trust = trust(folder.path());
    Config::load(&Sources { user, project, trust })
}

#[test]
fn a_project_that_nobody_trusts_can_only_narrow() {
    let project = "model = \"opus\"\nagent = \"mine\"\neffort = \"max\"\nstrategy = \"auto\"\n\
                   [limits]\nturns = 3\n[skills]\ndeny = [\"x\"]\n\
                   [subagents]\ndefault_model = \"opus\"\nenabled = false\n";
    let trusted = load("model = \"haiku\"", project).unwrap();
    assert_eq!(*trusted.model.value, ["opus"]);
    assert!(trusted.held_back.is_empty());
    let strange =
        load_trusting("model = \"haiku\"", project, |_| TrustedFolders::default()).unwrap();
    assert_eq!(*strange.model.value, ["haiku"]);
    assert_eq!(strange.agent.value, default_agent());
    assert_eq!((strange.effort.value, strange.subagents.default_model.value), (None, None));
    assert_eq!(strange.limits.turns.value, Some(3));
    assert_eq!(strange.skills.deny.len(), 1);
    assert!(!strange.subagents.enabled.value);
    let keys: Vec<&str> = strange.held_back.iter().map(|key| key.value).collect();
    assert_eq!(keys, ["model", "effort", "agent", "strategy", "subagents.default_model"]);
}

#[test]
fn tables_of_other_systems_mean_what_they_mean_there() {
    let theirs = "[subagents.tools]\nallow = [\"Read\"]\ndeny = [\"Bash\"]\ninheritTools = true\n\
                  inheritSkills = true\nallowNestedSubagents = true\n\
                  [subagents.skills]\ninherit = true\nextraSkillDirs = []\n\
                  allowSkills = [\"pdf\"]\ndeny_skills = [\"sh\"]";
    let config = load(theirs, "").unwrap();
    assert_eq!(config.max_depth.value, 2);
    let tools = &config.subagents.tools[0].value;
    assert_eq!(
        (tools.allow.as_deref(), &*tools.deny),
        (Some(&["Read".to_owned()][..]), &["Bash".to_owned()][..])
    );
    let skills = &config.subagents.skills[0].value;
    assert_eq!(
        (skills.allow.as_deref(), &*skills.deny),
        (Some(&["pdf".to_owned()][..]), &["sh".to_owned()][..])
    );
    // Children have only skills of their parent, so without `inherit` they have none.
    for none in ["[subagents.skills]\ninherit = false", "[subagents.tools]\ninherit_skills = false"]
    {
        let config = load(none, "").unwrap();
        assert_eq!(config.subagents.skills[0].value.allow, Some(Vec::new()), "{none}");
    }
    for (refused, says) in [
        ("[subagents.tools]\ninherit_tools = false", "a child never has other tools"),
        ("[subagents.skills]\nextra_skill_dirs = [\"./more\"]", "`extra_dirs` of `[skills]`"),
    ] {
        let error = load(refused, "").unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn names_of_no_tool_are_refused_where_they_deny_and_told_where_they_allow() {
    let tools = |list: &str, name: &str| format!("[subagents.tools]\n{list} = [\"{name}\"]");
    for name in ["Bsah", "BASH", "@shell", "Nope(x)"] {
        let error = load(&tools("deny", name), "").unwrap_err().to_string();
        assert!(error.contains(&format!("names `{name}`, which is not a tool")), "{error}");
        let warnings = load(&tools("allow", name), "").unwrap().warnings;
        assert!(warnings[0].value.contains(&format!("names `{name}`")), "{warnings:?}");
    }
    let harmless =
        ["bash", "Bash(rm:*)", "@exec", "mcp__x", "web_*", "WebFetch", "memory_save", "subagents"];
    for name in harmless {
        assert!(load(&tools("deny", name), "").unwrap().warnings.is_empty(), "{name}");
    }
    assert!(load(&tools("allow", "*"), "").unwrap().warnings.is_empty());
}

#[test]
fn children_that_may_have_none_have_none_whoever_says_it() {
    let flat = "[subagents.tools]\nallow_nested = false";
    assert_eq!(load("max_depth = 3", flat).unwrap().max_depth.value, 1);
    assert_eq!(load("max_depth = 0", flat).unwrap().max_depth.value, 0);
    assert_eq!(load("", "[subagents]\nallow_nested = true").unwrap().max_depth.value, 1);
    let both = "[subagents]\nallow_nested = true\ntools = { allowNestedSubagents = false }";
    assert_eq!(load(both, "").unwrap().max_depth.value, 1);
    let beside = "max_depth = 3\n[subagents]\nallow_nested = false";
    assert_eq!(load(beside, "").unwrap().max_depth.value, 3);
}

#[test]
fn later_files_win_and_values_know_where_they_came_from() {
    let user = "model = [\"sonnet\", \"gpt\"]\nmax_concurrent = 4\neffort = \"high\"";
    let config = load(user, "model = \"haiku\"").unwrap();
    assert_eq!(*config.model.value, ["haiku"]);
    assert!(matches!(config.model.origin, Origin::Project(_)));
    assert!(matches!(config.max_concurrent.origin, Origin::User(_)));
    assert_eq!(config.effort.value, Some(Effort::High));
    assert_eq!(config.agent.origin, Origin::Default);
    assert_eq!(*load(user, "").unwrap().model.value, ["sonnet", "gpt"]);
    assert!(load("model = []", "").unwrap_err().to_string().contains("list of models is empty"));
}

#[test]
fn an_agent_has_its_models_its_effort_and_the_form_of_its_answer() {
    let agent = "[agents.judge]\ndescription = \"d\"\ninstructions = \"i\"\n\
                 model = [\"opus\", \"gpt\", \"gemini\"]\neffort = \"max\"\n\
                 output_schema = { type = \"object\", required = [\"verdict\"] }";
    let config = load(agent, "").unwrap();
    assert!(!config.agents[0].value.is_change());
    let judge = &config.agents[0].value.definition;
    assert_eq!(judge.models.model, ["opus", "gpt", "gemini"]);
    assert_eq!(judge.models.effort, Some(Effort::Max));
    assert_eq!(judge.output_schema.as_ref().unwrap()["required"][0], "verdict");
}

#[test]
fn patience_is_the_user_s_and_within_bounds() {
    let config = load("[patience]\nretries = 2\nfirst_wait_ms = 20\nstall_ms = 5000", "");
    let patience = config.unwrap().patience;
    assert_eq!(patience.patience().retries, 2);
    assert_eq!(patience.patience().first_wait, Duration::from_millis(20));
    assert_eq!(patience.stall(), Duration::from_secs(5));
    assert_eq!(patience.total_wait_s.origin, Origin::Default);
    for wrong in ["first_wait_ms = 0", "stall_ms = 1", "total_wait_s = 99999999"] {
        let error = load(&format!("[patience]\n{wrong}"), "").unwrap_err().to_string();
        let key = wrong.split(' ').next().unwrap();
        assert!(error.contains(&format!("in [patience]: `{key}`")), "{error}");
    }
}

#[test]
fn what_becomes_of_ended_runs_is_a_setting_with_bounds() {
    let usual = load("", "").unwrap().lifecycle();
    assert_eq!(usual, crate::Lifecycle::default());
    let config = load("archiveAfterMinutes = 90\nretention_days = 30", "").unwrap();
    let lifecycle = config.lifecycle();
    assert_eq!(lifecycle.archive_after, Some(Duration::from_secs(5_400)));
    assert_eq!(lifecycle.retention, Some(Duration::from_secs(30 * 86_400)));
    let never = load("archive_after_minutes = 0", "").unwrap().lifecycle();
    assert_eq!((never.archive_after, never.retention), (None, None));
    for wrong in ["archive_after_minutes = 99999999", "retention_days = 0"] {
        let error = load(wrong, "").unwrap_err().to_string();
        let key = wrong.split(' ').next().unwrap();
        assert!(error.contains(&format!("`{key}` is")), "{error}");
    }
}

#[test]
fn lanes_are_capped_by_parent_agent_and_model() {
    let user = "[lanes]\nper_parent = 5\nper_agent = { explore = 4, \"*\" = 8 }\n\
                per_model = { sonnet = 2, \"ollama/llama\" = 1 }";
    let lanes = load(user, "").unwrap().lanes;
    assert!(matches!(lanes.per_agent["explore"].origin, Origin::User(_)));
    let caps = lanes.caps();
    assert_eq!((caps.per_parent, caps.per_agent.of("Explore")), (Some(5), Some(4)));
    assert_eq!(caps.per_agent.of("coder"), Some(8));
    let sonnet = Catalog::built_in().find("sonnet").unwrap().id();
    assert_eq!(caps.per_model.of(&sonnet), Some(2), "{caps:?}");
    assert_eq!(caps.per_model.of("ollama/llama"), Some(1));
    assert_eq!(caps.per_model.of("openai/gpt"), None);
    for (wrong, says) in [
        ("per_parent = 0", "`per_parent` is 0"),
        ("per_agent = { explore = 0 }", "`per_agent.explore` is 0"),
        ("per_agent = { \"a b\" = 1 }", "`per_agent`: "),
        ("per_model = { nonsense = 1 }", "`per_model`: "),
    ] {
        let error = load(&format!("[lanes]\n{wrong}"), "").unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn how_long_tools_may_be_silent_is_a_time_or_off() {
    let silent = |text: &str| load(text, "").map(|config| config.stall_after.value.0);
    assert_eq!(silent("").unwrap(), Duration::from_secs(15 * 60));
    assert_eq!(silent("stall_after = \"90s\"").unwrap(), Duration::from_secs(90));
    assert_eq!(silent("stall_after = \"off\"").unwrap(), Duration::ZERO);
    let error = silent("stall_after = \"soon\"").unwrap_err().to_string();
    assert!(error.contains("`stall_after`: `soon` is not a duration"), "{error}");
}

#[test]
fn a_user_adds_vendors_models_and_short_names() {
    let user = "[vendors.work]\nbase_url = \"https://models.example.com/v1\"\n\
                key_variable = \"WORK_KEY\"\n\
                [models.\"work/large\"]\nwindow = 1000\nmax_output = 100\n\
                [aliases]\nboss = \"work/large\"";
    let config = load(user, "").unwrap();
    assert!(matches!(config.vendors.origin, Origin::User(_)));
    let found = config.catalog().find("boss").unwrap();
    assert_eq!((found.id().as_str(), found.properties.window), ("work/large", 1000));
    let caps = load("[vendors.anthropic]\nmax_concurrent = 4\ntokens_per_minute = 9000", "");
    let caps = caps.unwrap().catalog().clone().vendor("anthropic").unwrap().caps;
    assert_eq!((caps.max_concurrent, caps.requests_per_minute), (Some(4), None));
    assert_eq!(caps.tokens_per_minute, Some(9000));
    let error = load("[vendors.anthropic]\nrequests_per_minute = 0", "").unwrap_err();
    assert!(error.to_string().contains("`requests_per_minute` is 0"), "{error}");
    let error = load("[vendors.work]\nwire = \"openai-chat\"", "").unwrap_err().to_string();
    assert!(error.contains("config.toml: [vendors.work]: it has no `base_url`"), "{error}");
}

#[test]
fn a_project_can_only_make_limits_stricter() {
    let config =
        load("[limits]\nturns = 10\ncost = 1.0", "[limits]\nturns = 50\ncost = 0.5\ntime = \"5m\"");
    let limits = config.unwrap().limits.limits();
    assert_eq!(limits.turns, Some(10));
    assert_eq!(limits.cost, Some(Usd::from_dollars(0.5)));
    assert_eq!(limits.wall_ms, Some(300_000));
    let written = |user: &str, project: &str| load(user, project).unwrap().limits.written;
    assert_eq!(written("", "").value, Some(Bytes(20 << 30)));
    assert_eq!(written("limits.written = \"90GiB\"", "").value, Some(Bytes(90 << 30)));
    assert_eq!(written("", "limits.written = \"90GiB\"").value, Some(Bytes(20 << 30)));
    assert_eq!(written("", "limits.written = \"1MiB\"").value, Some(Bytes(1 << 20)));
}

#[test]
fn commands_have_limits_that_a_project_can_only_make_stricter() {
    let command = |user: &str, project: &str| load(user, project).map(|it| it.command.limits());
    let usual = command("", "").unwrap();
    assert_eq!(usual, posse_tools::confine::CommandLimits::usual());
    let user = "[command]\nmemory = \"64GiB\"\nprocesses = 9";
    let project = "[command]\nmemory = \"1GiB\"\nprocesses = 900\nwritten = \"90TiB\"";
    let limits = command(user, project).unwrap();
    assert_eq!((limits.memory_bytes, limits.processes), (1 << 30, 9));
    assert_eq!(limits.disk_bytes, usual.disk_bytes);
    for wrong in ["memory = \"much\"", "processes = 0", "written = \"0\""] {
        let error = command(&format!("[command]\n{wrong}"), "").unwrap_err().to_string();
        let key = wrong.split(' ').next().unwrap();
        assert!(error.contains(&format!("`command.{key}`")), "{error}");
    }
}

#[test]
fn a_budget_is_the_user_s_and_a_project_can_only_make_it_smaller() {
    let usual = load("", "").unwrap().budget;
    assert_eq!(usual.budget(), Budget { children: Some(10_000), ..Budget::default() });
    let user = "[budget]\nusd = 5\nturns = 100\nchildren = 50000";
    let config = load(user, "[budget]\ncost = 9\nturns = 10\ntokens = 7").unwrap();
    assert_eq!(config.budget.cost.value, Some(Usd::from_dollars(5.0)));
    assert!(matches!(config.budget.cost.origin, Origin::User(_)));
    assert!(matches!(config.budget.turns.origin, Origin::Project(_)));
    let budget = config.budget.budget();
    assert_eq!((budget.turns, budget.children), (Some(10), Some(50_000)));
    assert_eq!((budget.input_tokens, budget.output_tokens), (Some(7), Some(7)));
    let error = load("[budget]\ncost = 0", "").unwrap_err().to_string();
    assert!(error.contains("in [budget]: `cost` is 0"), "{error}");
    assert!(load("[budget]\ntime = 1", "").unwrap_err().to_string().contains("unknown key"));
}

#[test]
fn agents_know_their_lines_and_are_whole_or_changes() {
    let text = "model = \"x\"\n\n[agents.scout]\ndescription = \"d\"\ninstructions = \"i\"\n\
                [agents.explore]\nmodel = \"haiku\"\nlimits = { turns = 3, tool_calls = 9 }";
    let config = load(text, "").unwrap();
    let found: Vec<(&str, u32, bool)> = config
        .agents
        .iter()
        .map(|agent| (agent.value.name.as_str(), agent.value.line, agent.value.is_change()))
        .collect();
    assert_eq!(found, [("explore", 6, true), ("scout", 3, false)]);
    let limits = config.agents[0].value.definition.limits();
    assert_eq!((limits.turns, limits.tool_calls), (Some(3), Some(9)));
    for (wrong, says) in [
        ("description = \"d\"", "`instructions` is missing"),
        ("instructions = \"d\"", "`description` is missing"),
        ("modle = \"x\"", "`modle` is not a field of an agent; did you mean `model`?"),
        ("limits = { turn = 3 }", "`limits` has `turn`"),
        ("tools = 5", "`tools` is `5`"),
    ] {
        let error = load(&format!("[agents.scout]\n{wrong}"), "").unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("config.toml:"), "{error}");
    }
    let twice = "[agents.a]\nmodel = \"x\"\n[agents.A]\nmodel = \"y\"";
    assert!(load(twice, "").unwrap_err().to_string().contains("stands there twice"));
}

#[test]
fn models_by_role_depth_and_strategy_are_settings_too() {
    let user = "small_model = \"haiku\"\nmax_depth = 3\nplugins = [\"p\", \"/q\"]";
    let project = "plan_model = \"opus\"\nmax_depth = 2\nstrategy = \"tool_call\"";
    let config = load(user, project).unwrap();
    assert_eq!(config.small_model.value.as_deref(), Some("haiku"));
    assert_eq!(config.plan_model.value.as_deref(), Some("opus"));
    assert_eq!(config.max_depth.value, 2);
    assert_eq!(config.strategy.value, DelegationStrategy::ToolCall);
    let Origin::User(file) = &config.plugins.origin else { panic!("{:?}", config.plugins) };
    let beside = file.parent().unwrap().join("p");
    assert_eq!(config.plugins.value, [beside, PathBuf::from("/q")]);
    let none = load("", "").unwrap();
    assert_eq!((none.max_depth.value, none.strategy.value), (1, DelegationStrategy::Auto));
    assert_eq!(load("", "max_depth = 8").unwrap().max_depth.value, 1, "only less");
    let error = load("max_depth = 9", "").unwrap_err().to_string();
    assert!(error.contains("`max_depth` is 9: it can be 0 to 8"), "{error}");
}

#[test]
fn skills_are_taken_away_by_each_file_and_added_by_the_user_s_alone() {
    let user = "[skills]\nallow = [\"a\", \"b\"]\ninherit = false\nextra_dirs = [\"s\"]";
    let config = load(user, "[skills]\nallow = [\"b\"]\ndeny = [\"x\"]").unwrap();
    let skills = config.skills;
    assert_eq!((skills.inherit.value, skills.allow.len(), skills.rules().len()), (false, 2, 3));
    let Origin::User(file) = &skills.extra_dirs.origin else { panic!("{skills:?}") };
    assert_eq!(skills.extra_dirs.value, [file.parent().unwrap().join("s")]);
    assert!(load("", "").unwrap().skills.inherit.value);
}

#[test]
fn rules_of_all_files_hold_and_a_project_s_only_refuse_and_ask() {
    let user =
        "[permissions]\nmode = \"ask\"\nallow = [\"Bash(git diff:*)\"]\ndeny = [\"Read(.env)\"]";
    let config = load(user, "[permissions]\nask = [\"Edit(ci/**)\"]\ndeny = [\"Bash(rm:*)\"]");
    let permissions = config.unwrap().permissions;
    assert_eq!(permissions.mode.value, posse_protocol::Mode::Ask);
    let rules = permissions.permissions();
    assert_eq!(rules.allow, ["Bash(git diff:*)"]);
    assert_eq!(rules.ask, ["Edit(ci/**)"]);
    assert_eq!(rules.deny, ["Read(.env)", "Bash(rm:*)"]);
    assert!(matches!(permissions.deny[1].origin, Origin::Project(_)));
    for (user, project, says) in [
        ("", "[permissions]\nallow = [\"Bash\"]", "may not set `permissions.allow`"),
        ("", "[permissions]\nmode = \"ask\"", "may not set `permissions.mode`"),
        ("", "[permissions]\nmode = \"bypass\"", "may not set `permissions.mode`"),
        ("[permissions]\nmode = \"bypass\"", "", "cannot be `bypass` in a file"),
        ("[permissions]\ndeny = [\"Raed\"]", "", "`permissions.deny`: invalid rule `Raed`"),
        ("[permissions]\nallow = [\"Bash(a && b)\"]", "", "one simple command"),
        ("[permissions]\nalow = []", "", "unknown key"),
    ] {
        let error = load(user, project).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_project_cannot_reach_beyond_itself_nor_say_where_keys_are_sent() {
    for (project, expected) in [
        ("recovery = \"wait\"", "may not set `recovery`"),
        ("stall_after = \"1s\"", "may not set `stall_after`"),
        ("[lanes]\nper_parent = 1", "may not set `lanes`"),
        ("[vendors.anthropic]\nbase_url = \"http://evil.example.com\"", "may not set `vendors`"),
        ("[models.\"openai/x\"]\nwindow = 1", "may not set `models`"),
        ("[aliases]\nsonnet = \"x/y\"", "may not set `aliases`"),
        ("[patience]\nretries = 1", "may not set `patience`"),
        ("archive_after_minutes = 1", "may not set `archive_after_minutes`"),
        ("retention_days = 1", "may not set `retention_days`"),
        ("plugins = [\"evil\"]", "may not set `plugins`"),
        ("[skills]\nextra_dirs = [\"/etc\"]", "may not set `skills.extra_dirs`"),
        ("[skills]\ninherit = true", "may not set `skills.inherit`"),
        ("base_url = \"http://x\"", "unknown key"),
    ] {
        let error = load("", project).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("posse.toml"), "{error}");
    }
}
