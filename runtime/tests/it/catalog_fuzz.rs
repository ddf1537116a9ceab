//! Whatever stands in a file, nothing panics, and nobody gets more tools than the text names.

use posse::agents::{AgentDefinition, LiveCatalog, Source, Sources, built_in_tools};
use posse::{AgentCatalog, AgentSpec};
use proptest::prelude::*;
use std::sync::Arc;

fn load(text: &[u8]) -> Arc<AgentCatalog> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.md"), text).unwrap();
    let sources = Sources { user_folders: vec![folder.path().to_owned()], ..Sources::default() };
    LiveCatalog::load(sources).current()
}

/// The agent that a file gives, if it gives one.
fn loaded(text: &[u8]) -> Option<AgentSpec> {
    let catalog = load(text);
    let new = catalog.entries().iter().find(|entry| entry.source != Source::BuiltIn);
    new.and_then(|entry| entry.agent.clone())
}

/// Each tool of `spec` is in `text`: by a name of its own, by its group, or by a pattern.
fn names_no_more_than(spec: &AgentSpec, text: &str) {
    let text = text.to_lowercase();
    let Some(tools) = &spec.rights.tools else {
        return assert!(text.contains('*'), "everything, of {text}");
    };
    for rule in tools {
        let facts = built_in_tools();
        let names = facts.iter().filter(|tool| tool.name == *rule);
        let known: Vec<String> = names
            .flat_map(|tool| tool.aliases.iter().chain([&tool.name]))
            .chain([rule])
            .map(|name| name.to_lowercase())
            .collect();
        assert!(known.iter().any(|name| text.contains(name)), "{rule} of {text}");
    }
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "Read",
        "bash",
        "Task(explore, plan)",
        "*",
        "**",
        "@read",
        "@exec",
        "mcp__a__*",
        "Gr*",
        "Bash(ls:*)",
        "Nothing",
        "5",
        "true",
        "null",
        "~",
        "",
        " ",
        "\"Read\"",
        "'Edit'",
        "[]",
        "[Read]",
        "{a: b}",
        "- Read",
        "\n- Read",
        "\n  - Write",
        "\n\t- Read",
        "|",
        ">",
        "&a",
        "*a",
        "!!str",
        "#",
        ":",
        ",",
        "[",
        "]",
        "(",
        ")",
        "\\n",
        "\u{feff}",
        "\r\n",
        "é",
    ])
    .prop_map(str::to_owned)
}

fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "name",
        "description",
        "model",
        "effort",
        "maxTurns",
        "hooks",
        "budget",
        "user",
        "Context",
        "version",
        "agents",
        "skills",
        "color",
    ]);
    let indent = prop::sample::select(vec!["", "", "", "  ", "\t"]);
    let values = prop::collection::vec(word(), 0..4).prop_map(|words| words.concat());
    let with_key =
        (indent, key, values).prop_map(|(indent, key, value)| format!("{indent}{key}: {value}"));
    prop_oneof![with_key, word(), "[ -~]{0,20}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut text = b"---\n".to_vec();
        text.extend(&bytes);
        text.extend(b"\n---\nbody");
        loaded(&bytes);
        loaded(&text);
    }

    #[test]
    fn any_lines_are_read_without_a_panic(lines in prop::collection::vec(line(), 0..8)) {
        loaded(format!("---\n{}\n---\nbody", lines.join("\n")).as_bytes());
    }

    #[test]
    fn a_list_of_tools_never_means_more_than_it_names(
        before in prop::collection::vec(line(), 0..2),
        key in prop::sample::select(vec!["tools", "Tools", "allowed-tools", "allowed_tools", "tools "]),
        indent in prop::sample::select(vec!["", "", " ", "\t"]),
        words in prop::collection::vec(word(), 0..5),
        joint in prop::sample::select(vec![", ", " ", ",", "\n- "]),
        after in prop::collection::vec(line(), 0..2),
    ) {
        // What stands further right below `key: |` is the text of that key.
        let is_text = |line: &String| line.contains(['|', '>']);
        prop_assume!(indent.is_empty() || !before.iter().any(is_text));
        let value = words.join(joint);
        let head = [before, vec![format!("{indent}{key}: {value}")], after].concat().join("\n");
        let text = format!("---\nname: fuzzed\ndescription: d\n{head}\n---\nbody");
        if let Some(spec) = loaded(text.as_bytes()) {
            names_no_more_than(&spec, &head);
        }
    }

    #[test]
    fn any_json_is_read_without_a_panic_and_grants_what_it_names(
        words in prop::collection::vec(word(), 0..5),
        raw in "[\\PC]{0,80}",
    ) {
        let _ = serde_json::from_str::<AgentDefinition>(&raw);
        let text = serde_json::json!({"description": "d", "prompt": "p", "tools": words});
        if let Ok(mut definition) = serde_json::from_value::<AgentDefinition>(text.clone()) {
            definition.name = Some("x".parse().unwrap());
            if let (Some(spec), _) = definition.resolve(&built_in_tools()) {
                names_no_more_than(&spec, &text.to_string());
            }
        }
    }
}
