//! What tools say about themselves, and how wrong arguments are answered.

use crate::fixture::{Fixture, launcher};
use posse_protocol::Effect;
use posse_tools::toolset;
use serde_json::json;

#[test]
fn names_and_parameters_are_those_that_users_know() {
    let fixture = Fixture::with(Some(launcher()));
    let expected: [(&str, &[&str]); 8] = [
        ("Read", &["file_path", "offset", "limit"]),
        ("Write", &["file_path", "content"]),
        ("Edit", &["file_path", "old_string", "new_string", "replace_all", "edits"]),
        ("Glob", &["pattern", "path"]),
        (
            "Grep",
            &[
                "pattern",
                "path",
                "glob",
                "type",
                "output_mode",
                "-i",
                "-n",
                "-A",
                "-B",
                "-C",
                "multiline",
                "head_limit",
            ],
        ),
        ("List", &["path"]),
        ("TodoWrite", &["todos"]),
        ("Bash", &["command", "timeout", "description"]),
    ];
    assert_eq!(fixture.tools.names().collect::<Vec<_>>(), expected.map(|(name, _)| name));
    for (name, parameters) in expected {
        let spec = fixture.tools.find(name).unwrap().spec();
        let properties = spec.schema["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), parameters, "{name}");
    }
}

#[test]
fn other_names_lead_to_the_same_tools() {
    let fixture = Fixture::with(Some(launcher()));
    for (alias, name) in [
        ("read_file", "Read"),
        ("write_file", "Write"),
        ("edit_file", "Edit"),
        ("str_replace", "Edit"),
        ("glob", "Glob"),
        ("find_files", "Glob"),
        ("grep", "Grep"),
        ("search", "Grep"),
        ("LS", "List"),
        ("ls", "List"),
        ("list_dir", "List"),
        ("list_files", "List"),
        ("todo_write", "TodoWrite"),
        ("todowrite", "TodoWrite"),
        ("bash", "Bash"),
        ("shell", "Bash"),
        ("run_command", "Bash"),
        ("sh", "Bash"),
    ] {
        assert_eq!(fixture.tools.find(alias).unwrap().spec().name, name, "{alias}");
    }
}

#[test]
fn no_alias_is_claimed_by_two_tools() {
    let fixture = Fixture::new();
    let tools = toolset(&fixture.workspace, None, Some(&launcher()));
    let mut names: Vec<&str> = Vec::new();
    for tool in &tools {
        names.push(&tool.spec().name);
        names.extend(tool.spec().aliases.iter().map(String::as_str));
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn only_what_reads_may_be_repeated() {
    let fixture = Fixture::with(Some(launcher()));
    for name in fixture.tools.names() {
        let spec = fixture.tools.find(name).unwrap().spec();
        let effect = match name {
            "Write" | "Edit" => Effect::Write,
            "Bash" => Effect::Execute,
            _ => Effect::Read,
        };
        assert_eq!((spec.effect, spec.idempotent), (effect, effect == Effect::Read), "{name}");
    }
}

/// Bytes of a tool in a request.
fn size(fixture: &Fixture, tool: &str) -> usize {
    let spec = fixture.tools.find(tool).unwrap().spec();
    let (name, description, schema) = (&spec.name, &spec.description, &spec.schema);
    let sent = json!({"name": name, "description": description, "input_schema": schema});
    sent.to_string().len()
}

#[test]
fn the_tools_take_little_of_a_prompt() {
    let fixture = Fixture::with(Some(launcher()));
    let check = |tools: &[&str], most: usize| {
        let sizes: Vec<usize> = tools.iter().map(|tool| size(&fixture, tool)).collect();
        assert!(sizes.iter().sum::<usize>() <= most, "{tools:?}: {sizes:?}");
    };
    check(&["Read", "Glob", "Grep", "List"], 1850);
    check(&["TodoWrite"], 450);
    check(&["Bash", "Write", "Edit"], 1360);
}

#[test]
fn without_a_launcher_there_is_no_shell() {
    assert!(Fixture::new().tools.find("Bash").is_none());
}

#[test]
fn wrong_arguments_are_named_with_what_is_expected() {
    let fixture = Fixture::new();
    let check = |tool, input, parts: &[&str]| fixture.refused(tool, input, parts);
    check("Read", json!({}), &["Read needs the argument `file_path`", "a text"]);
    check("Read", json!({"file_path": null}), &["needs the argument `file_path`"]);
    check("Read", json!({"file_path": 7}), &["`file_path` must be a text", "number 7"]);
    check("Read", json!({"path": "a"}), &["no argument `path`", "`file_path`, `offset`, `limit`"]);
    check("Read", json!({"file_path": "a", "offset": "x"}), &["`offset`", "whole number", "\"x\""]);
    check("Read", json!({"file_path": "a", "offset": -1}), &["`offset`", "at least 0"]);
    check("Read", json!({"file_path": "a", "limit": 0}), &["`limit`", "at least 1"]);
    check("Read", json!("a"), &["Read takes an object", "`file_path`"]);
    check(
        "Edit",
        json!({"file_path": "a", "old_string": "a", "new_string": "b",
        "replace_all": "yes"}),
        &["`replace_all` must be true or false"],
    );
    check(
        "Grep",
        json!({"pattern": "a", "output_mode": "lines"}),
        &["`output_mode`", "\"content\""],
    );
    check("Grep", json!({"pattern": "a", "type": "klingon"}), &["`type`", "klingon", "rust"]);
    check("Grep", json!({"pattern": "("}), &["`pattern` must be a regular expression"]);
    check("Grep", json!({"pattern": "(a{500}){500}{500}"}), &["`pattern`", "exceeds size limit"]);
    check("Glob", json!({"pattern": "a[" }), &["\"a[\" is not a file pattern"]);
}

#[test]
fn a_timeout_beyond_the_longest_is_refused() {
    let fixture = Fixture::with_shell();
    let input = json!({"command": "true", "timeout": 600_001});
    fixture.refused("Bash", input, &["`timeout`", "from 1 to 600000"]);
}
