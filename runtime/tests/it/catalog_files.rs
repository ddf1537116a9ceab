//! Definitions as people write them: what is accepted, what is said about it, what is refused.

use crate::catalog::{Place, found, name, problems};
use posse::agents::{AgentDefinition, Level, Memory, Network, PermissionMode, built_in_tools};
use posse::protocol::{Announce, Context, Effort};
use posse::{AgentCatalog, AgentSpec};
use serde_json::json;
use std::sync::Arc;

/// What a file of the user's, in Claude Code's folder, gives.
fn loaded(text: impl AsRef<[u8]>) -> Arc<AgentCatalog> {
    let place = Place::new();
    place.write("home/.claude/agents/x.md", text);
    place.load()
}

/// The same for a file of which only the front matter matters.
fn with(lines: &str) -> Arc<AgentCatalog> {
    loaded(format!("---\nname: x\n{lines}\n---\nDo as told.\n"))
}

fn agent(lines: &str) -> AgentSpec {
    let catalog = with(lines);
    assert_eq!(problems(&catalog, Level::Error), Vec::<String>::new(), "{lines}");
    found(&catalog, "x")
}

/// The one error that a front matter gives.
fn error(lines: &str) -> String {
    let catalog = with(lines);
    let errors = problems(&catalog, Level::Error);
    assert_eq!(errors.len(), 1, "{lines}: {errors:?}");
    assert!(catalog.find(&name("x")).is_err());
    errors[0].rsplit_once("x.md:").unwrap().1.to_owned()
}

fn tools(lines: &str) -> Option<Vec<String>> {
    agent(&format!("description: d\n{lines}")).rights.tools
}

#[test]
fn a7_a_definition_needs_a_description_and_a_prompt_and_is_written_back_without_the_rest() {
    let text = json!({"description": "Reviews code", "prompt": "Review."});
    let definition: AgentDefinition = serde_json::from_value(text.clone()).unwrap();
    let expected = AgentDefinition {
        description: "Reviews code".to_owned(),
        prompt: "Review.".to_owned(),
        ..AgentDefinition::default()
    };
    assert_eq!(definition, expected);
    assert_eq!(serde_json::to_value(&definition).unwrap(), text);
    for missing in [json!({"prompt": "p"}), json!({"description": "d"}), json!({})] {
        assert!(serde_json::from_value::<AgentDefinition>(missing).is_err());
    }
}

#[test]
fn a8_a_full_definition_has_its_keys_in_camel_case() {
    let text = json!({
        "name": "full",
        "description": "d",
        "prompt": "p",
        "tools": ["Read", "Task(explore)"],
        "disallowedTools": ["Bash"],
        "model": ["opus", "gpt"],
        "effort": "high",
        "maxTurns": 12,
        "permissionMode": "dontAsk",
        "skills": ["pdf"],
        "mcpServers": ["files", {"web": {"command": "x"}}],
        "hooks": {"Stop": []},
        "memory": "project",
        "background": true,
        "isolation": "worktree",
        "color": "cyan",
        "forkContext": 3,
        "initialPrompt": "begin",
        "omitClaudeMd": true,
        "limits": {"inputTokens": 5, "outputTokens": 6, "cost": 0.5, "time": "10m", "toolCalls": 7},
        "budget": {"cost": 1.5, "turns": 8, "children": 9},
        "outputSchema": {"type": "object"},
        "announce": "collect",
        "maxDepth": 2,
        "agents": ["explore"],
        "network": ["example.com"],
        "paths": {"read": ["src"], "write": ["out"]},
    });
    let definition: AgentDefinition = serde_json::from_value(text.clone()).unwrap();
    assert_eq!(serde_json::to_value(&definition).unwrap(), text);
    assert_eq!(definition.rights.permission_mode, Some(PermissionMode::DontAsk));
    assert_eq!(definition.start.memory, Some(Memory::Project));
    assert_eq!(definition.start.announce, Some(Announce::Collect));
    assert_eq!(definition.rights.network, Some(Network::Hosts(vec!["example.com".to_owned()])));
    let (spec, problems) = definition.resolve(&built_in_tools());
    assert!(problems.iter().all(|problem| problem.level != Level::Error), "{problems:?}");
    let spec = spec.unwrap();
    assert_eq!(spec.start.context, Context::ForkTurns(3));
    assert_eq!(spec.models.effort, Some(Effort::High));
    assert_eq!((spec.limits.wall_ms, spec.limits.tool_calls), (Some(600_000), Some(7)));
    assert_eq!((spec.budget.turns, spec.budget.children), (Some(8), Some(9)));
    assert_eq!(spec.start.initial_prompt, "begin");
    assert_eq!(spec.rights.tools.unwrap(), ["Read", "Task", "mcp__files"]);
    assert_eq!(spec.children.agents.unwrap(), ["explore"]);
    assert_eq!(spec.start.skills, ["pdf"]);
}

#[test]
fn a_model_is_one_name_or_several_and_inherit_is_none() {
    let models = |lines: &str| {
        let spec = agent(&format!("description: d\n{lines}"));
        (spec.models.model, spec.models.fallbacks)
    };
    assert_eq!(models("model: sonnet"), (Some("sonnet".into()), vec![]));
    assert_eq!(models("model: [sonnet, gpt]"), (Some("sonnet".into()), vec!["gpt".into()]));
    assert_eq!(models("model: inherit"), (None, vec![]));
    assert_eq!(models("model: small"), (Some("small".into()), vec![]));
    assert_eq!(models("model:"), (None, vec![]));
    assert!(error("description: d\nmodel: [inherit, gpt]").contains("`inherit` stands alone"));
    assert!(error("description: d\nmodel: {a: b}").contains("`model` is a table"));
}

#[test]
fn d12_what_cannot_be_loaded_is_one_error_with_its_path_and_the_others_load() {
    let place = Place::new();
    let folder = "home/.config/posse/agents";
    let long = "a".repeat(65);
    place.write(&format!("{folder}/long.md"), format!("---\nname: {long}\ndescription: d\n---\nx"));
    place.write(&format!("{folder}/{long}.md"), "---\ndescription: d\n---\nx");
    place.write(
        &format!("{folder}/lines.md"),
        "---\nname: lines\ndescription: |\n  one\n  two\n---\nx",
    );
    place.write(&format!("{folder}/empty.md"), "---\nname: empty\ndescription: d\n---\n\n");
    place.define(&format!("{folder}/good.md"), "name: good");
    let catalog = place.load();
    found(&catalog, "good");
    for agent in ["lines", "empty", "long"] {
        assert!(catalog.find(&name(agent)).is_err(), "{agent}");
    }
    let errors = problems(&catalog, Level::Error);
    assert_eq!(errors.len(), 4, "{errors:?}");
    for (path, says) in [
        ("long.md:2:7", "is not an agent name"),
        (&format!("{long}.md:1:1"), "its file's cannot be one"),
        ("lines.md:4:3", "the description has several lines"),
        ("empty.md:5:1", "there is no text below the front matter"),
    ] {
        let found = errors.iter().any(|error| error.contains(path) && error.contains(says));
        assert!(found, "{path} {says}: {errors:?}");
    }
}

#[test]
fn a_description_of_several_lines_is_one_where_claude_code_writes_it() {
    let expected = "Use this agent. Examples: <example> user: \"hi\" </example>";
    for description in [
        "description: \"Use this agent. Examples:\\n\\n<example>\\nuser: \\\"hi\\\"\\n</example>\"",
        "description: Use this agent. Examples:\\n\\n<example>\\nuser: \"hi\"\\n</example>",
        "description: |\n  Use this agent. Examples:\n\n  <example>\n  user: \"hi\"\n  </example>",
        "description: Use this agent. Examples:\n\n<example>\nuser: \"hi\"\n</example>",
        "description: Use this agent. Examples:\n  <example>\n  user: \"hi\"\n  </example>",
        "description: >-\n  Use this agent. Examples:\n  <example> user: \"hi\" </example>",
        "description:\n  Use this agent. Examples: <example>\n  user: \"hi\"\n  </example>",
    ] {
        let spec = agent(&format!("{description}\ntools: Read\nmodel: opus"));
        assert_eq!(spec.description, expected, "{description}");
        assert_eq!(spec.rights.tools, Some(vec!["Read".to_owned()]), "{description}");
        assert_eq!(spec.models.model.as_deref(), Some("opus"), "{description}");
    }
    // Escaped, it is one line in our own folders too.
    let place = Place::new();
    place.write(
        "home/.config/posse/agents/x.md",
        "---\nname: x\ndescription: \"one\\ntwo\"\n---\nbody",
    );
    assert_eq!(found(&place.load(), "x").description, "one two");
}

#[test]
fn what_is_no_yaml_is_read_as_it_is_meant_and_that_is_said() {
    let catalog =
        with("description: Use this: when it helps\ntools: Read, Grep # look\ncolor: pink");
    let spec = found(&catalog, "x");
    assert_eq!(spec.description, "Use this: when it helps");
    assert_eq!(spec.rights.tools.unwrap(), ["Read", "Grep"]);
    assert_eq!(spec.color, "pink");
    let notes = problems(&catalog, Level::Note);
    assert!(notes[0].contains("x.md:3:22: note: not valid YAML"), "{notes:?}");

    let look = Some(vec!["Read".to_owned(), "Grep".to_owned()]);
    for lines in [
        "description: a: b\ntools:\n  - Read\n  - Grep",
        "description: a: b\ntools:\n- Read\n- Grep",
        "description: a: b\ntools:\n\t- Read\n\t- Grep",
        "description: a: b\ntools: [Read, Grep]",
        "description: a: b\n  tools: Read, Grep",
        "tools:Read, Grep\ndescription: a: b",
        "\"tools\": Read, Grep\ndescription: a: b",
        "description: [x] y\nallowed-tools: Read, Grep",
        "description: a: b\nversion: 1.0: x\ntools: Read, Grep",
        "description: a: b\r\ntools: Read, Grep\r",
    ] {
        assert_eq!(agent(lines).rights.tools, look, "{lines}");
    }
    for (lines, says) in [
        ("description: a: b\ntools: [Read, Grep", "`tools` cannot be read"),
        ("description: a: b\ntools: Read\ntools: Bash", "stands there already"),
        ("description: a: b\ntool: Read", "`tool` is not a field"),
        ("description: a: b\nbudget: {turns: 5", "`budget` cannot be read"),
        ("description: a: b\ntools: &x [*x]", "cannot be read"),
    ] {
        assert!(error(lines).contains(says), "{lines}");
    }
    let stray = loaded("---\nnonsense\nname: x\ndescription: a: b\n---\nbody");
    let errors = problems(&stray, Level::Error);
    assert!(errors[0].contains("x.md:2:1: error: this line belongs to no key"), "{errors:?}");
}

#[test]
fn odd_values_of_tools_are_errors_and_never_everything() {
    assert_eq!(tools(""), None);
    assert_eq!(tools("tools: \"*\""), None);
    assert_eq!(tools("tools: [\"*\"]"), None);
    assert_eq!(tools("tools: *"), None);
    assert_eq!(tools("tools: [\"*\", Read]"), Some(vec!["Read".to_owned()]));
    assert_eq!(tools("tools: @read"), Some(vec!["@read".to_owned()]));
    for lines in [
        "tools:",
        "tools: null",
        "tools: ~",
        "tools: \"\"",
        "tools: []",
        "tools: ,",
        "tools: 5",
        "tools: true",
        "tools: {Read: true}",
        "tools: [[Read]]",
        "tools: [5]",
        "tools: \"**\"",
        "tools: Nothing",
        "tools: !!binary aGk=",
        "tool: Read",
        "color:\n  tools: Read",
        "metadata:\n  tools: Read",
        "hooks:\n  disallowedTools: Bash",
        "permissions: read-only",
        "disallowedTools:",
        "disallowedTools: 5",
        "disallowedTools: \"*\"",
        "maxTurns: lots",
        "maxTurns: -1",
        "maxDepth: 9",
        "permissionMode: yolo",
        "effort: banana",
        "agents: [../x]",
        "paths: [../x]",
        "announce: loudly",
        "forkContext: 0",
        "outputSchema: 5",
        "background: perhaps",
    ] {
        let catalog = with(&format!("description: d\n{lines}"));
        assert!(!problems(&catalog, Level::Error).is_empty(), "{lines}");
        assert!(catalog.find(&name("x")).is_err(), "{lines}");
    }
    assert!(error("description: d\neffort: banana").contains("one of low, medium, high, max"));
}

#[test]
fn d4_what_is_allowed_and_denied_is_denied() {
    assert_eq!(
        tools("tools: Read, Write, Bash\ndisallowedTools: write, Bash"),
        Some(vec!["Read".to_owned()])
    );
    let spec = agent("description: d\ndisallowedTools: \"@exec, Write\"");
    assert_eq!(spec.rights.tools, None);
    assert_eq!(spec.rights.disallowed_tools, ["@exec", "Write"]);
    assert!(
        error("description: d\ntools: Bash\ndisallowedTools: Bash").contains("no tool is left")
    );
}

#[test]
fn each_tool_that_does_not_exist_is_named_with_its_line_and_character() {
    let catalog = with("description: d\ntools: Read, Raed, WebFetch\n");
    assert_eq!(found(&catalog, "x").rights.tools.unwrap(), ["Read"]);
    let warnings = problems(&catalog, Level::Warning);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("x.md:4:14: warning: there is no tool `Raed`"), "{warnings:?}");
    assert!(warnings[1].contains("x.md:4:20: warning: `WebFetch` does not exist here"));
    let catalog = with("description: d\ntools:\n  - 'Read'\n  - \"Raed\"\n");
    let warnings = problems(&catalog, Level::Warning);
    assert!(warnings[0].contains("x.md:6:6: warning"), "{warnings:?}");
    assert!(error("description: d\ndisallowedTools: Bash, Raed").starts_with("4:24: error"));
    assert!(error("description: d\ntools: Read, Bash(a && b)").starts_with("4:14: error"));
}

#[test]
fn plan_mode_leaves_the_tools_that_look() {
    let mut found = tools("permissionMode: plan").unwrap();
    found.sort();
    assert_eq!(found, ["Glob", "Grep", "List", "Read", "Skill", "TodoWrite"]);
    assert_eq!(tools("tools: Read, Bash\npermissionMode: plan"), Some(vec!["Read".to_owned()]));
}

#[test]
fn fields_that_nothing_acts_on_yet_are_said_to_be_so() {
    let fields = [
        "mcpServers: {web: {command: x}}",
        "hooks: {Stop: []}",
        "memory: user",
        "limits: {tokens: 5000}",
        "budget: {tokens: 5000}",
    ];
    for field in fields {
        let catalog = with(&format!("description: d\n{field}"));
        let said = problems(&catalog, Level::NotInForce);
        assert_eq!(said.len(), 1, "{field}: {said:?}");
        assert!(said[0].contains("x.md:4:"), "{said:?}");
        found(&catalog, "x");
    }
    for field in [
        "permissionMode: acceptEdits",
        "permissionMode: default",
        "permissionMode: plan",
        "skills: [pdf]",
        "effort: low",
        "background: true",
        "omitClaudeMd: true",
        "announce: silent",
        "mcpServers: [files]",
        "tools: Read, mcp__files__read",
    ] {
        let catalog = with(&format!("description: d\n{field}"));
        assert_eq!(problems(&catalog, Level::NotInForce), Vec::<String>::new(), "{field}");
    }
}

#[test]
fn other_spellings_of_fields_are_taken_and_said() {
    let catalog = with("description: d\nmax_turns: 4\ndisallowed-tools: [Bash]\nColor: Blue");
    let spec = found(&catalog, "x");
    assert_eq!((spec.limits.turns, spec.color.as_str()), (Some(4), "blue"));
    assert_eq!(spec.rights.disallowed_tools, ["Bash"]);
    let notes = problems(&catalog, Level::Note).join("\n");
    assert!(notes.contains("`max_turns` is read as `maxTurns`"), "{notes}");
    assert!(notes.contains("`disallowed-tools` is read as `disallowedTools`"), "{notes}");
    assert!(error("description: d\nmax_turns: 4\nmaxTurns: 9").contains("keep one of them"));
    let warnings = problems(&with("description: d\nauthor: me\ncolor: mauve"), Level::Warning);
    assert!(warnings[0].contains("`author` is not a field"), "{warnings:?}");
    assert!(warnings[1].contains("`color` is `mauve`"), "{warnings:?}");
}

#[test]
fn files_that_are_too_large_or_no_text_are_refused_unread() {
    let large = format!("---\nname: x\ndescription: d\n---\n{}", "x".repeat(256 << 10));
    let errors = problems(&loaded(large), Level::Error);
    assert!(errors[0].contains("larger than the 262144 bytes"), "{errors:?}");
    let errors = problems(&loaded(b"---\nname: \xff\n---\nx"), Level::Error);
    assert!(errors[0].contains("it is not UTF-8: byte 11"), "{errors:?}");
    let none = loaded("# Notes\n\nNothing to see.\n");
    assert_eq!(problems(&none, Level::Error), Vec::<String>::new());
    assert!(problems(&none, Level::Warning)[0].contains("this is no agent"));
}

#[test]
fn the_examples_of_the_book_have_no_problem() {
    for page in [
        include_str!("../../../docs/reference/agents.md"),
        include_str!("../../../docs/guides/specialists.md"),
    ] {
        let example = page.split("```markdown\n").nth(1).and_then(|rest| rest.split("```").next());
        let catalog = loaded(example.unwrap());
        assert_eq!(catalog.problems(), []);
        found(&catalog, "code-reviewer");
    }
}

#[test]
fn an_agent_without_a_name_is_called_like_its_file() {
    let catalog = loaded("---\ndescription: d\n---\nbody");
    found(&catalog, "x");
    assert!(problems(&catalog, Level::Note)[0].contains("called like its file, `x`"));
    let catalog = loaded("---\nname: 1.10\ndescription: d\n---\nbody");
    assert!(problems(&catalog, Level::Error)[0].contains("`1.10` is not an agent name"));
    found(&loaded("---\nname: no\ndescription: d\n---\nbody"), "no");
}

#[test]
fn an_agent_says_how_many_children_it_has_at_work_and_how_long_they_are_kept() {
    let spec = agent("description: d\nsubagents: {maxConcurrent: 3, archiveAfterMinutes: 90}");
    let rules = &spec.children.subagents;
    assert_eq!((rules.max_concurrent, rules.archive_after_minutes), (Some(3), Some(90)));
    let refused = |key: &str| error(&format!("description: d\nsubagents: {{{key}}}"));
    assert!(refused("max_concurrent: 0").contains("must be at least 1"));
    assert!(refused("archiveAfterMinutes: 99999999").contains("it can be up to"));
    assert!(refused("quietSeconds: 1").contains("belongs into the settings"));
    // What a project brings along may cap its own, and puts away nothing.
    let place = Place::new();
    let lines = "subagents: {maxConcurrent: 3, archiveAfterMinutes: 90}";
    place.define("repo/work/.posse/agents/x.md", lines);
    let catalog = place.load();
    let rules = &catalog.find(&name("x")).unwrap().children.subagents;
    assert_eq!((rules.max_concurrent, rules.archive_after_minutes), (Some(3), None));
}

#[test]
fn an_agent_s_table_of_another_system_is_read() {
    let tables = |tools: &str, skills: &str| {
        format!("description: d\nsubagents: {{tools: {{{tools}}}, skills: {{{skills}}}}}")
    };
    let nested = "allowNestedSubagents: true, inheritTools: true, deny: [Bash]";
    let spec = agent(&tables(nested, "inherit: true, denySkills: [sh]"));
    assert_eq!((spec.children.max_depth, spec.children.subagents.tools.deny.len()), (Some(2), 1));
    assert_eq!(spec.children.subagents.skills.deny, ["sh"]);
    let spec = agent(&tables("allow_nested_subagents: false", "inherit: false"));
    assert_eq!(spec.children.max_depth, Some(1));
    assert_eq!(spec.children.subagents.skills.allow, Some(Vec::new()));
    assert!(error(&tables("inheritTools: false", "")).contains("a child never has other tools"));
    assert!(error(&tables("", "extraSkillDirs: [x]")).contains("`extra_dirs` of `[skills]`"));
}

#[test]
fn names_of_nothing_in_what_an_agent_says_of_its_children_are_told() {
    let says = |table: &str| format!("description: d\nsubagents: {{{table}}}");
    let wrong = error(&says("tools: {deny: [Bsah]}"));
    assert!(wrong.contains("`subagents.tools.deny` names `Bsah`, which is not a tool"), "{wrong}");
    for (table, expected) in [
        ("tools: {allow: [Raed]}", "`subagents.tools.allow` names `Raed`, which is not a tool"),
        ("allowedAgents: [nobody]", "it may call `nobody`, but there is no such agent"),
    ] {
        let told = problems(&with(&says(table)), Level::Warning);
        assert!(told.iter().any(|it| it.contains(expected)), "{told:?}");
    }
    let fine = with(&says("tools: {deny: [Bash]}, allowedAgents: ['*', EXPLORE]"));
    assert_eq!(problems(&fine, Level::Warning), Vec::<String>::new());
}
