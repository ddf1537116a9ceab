//! Edit.

use crate::fixture::Fixture;
use serde_json::{Value, json};

fn change(old: &str, new: &str) -> Value {
    json!({"file_path": "a", "old_string": old, "new_string": new})
}

/// Reads the file, edits it, and expects it to hold `after`.
#[track_caller]
fn check(before: &[u8], old: &str, new: &str, after: &[u8]) {
    let fixture = Fixture::new();
    fixture.put("a", before);
    fixture.ok("Read", json!({"file_path": "a"}));
    fixture.ok("Edit", change(old, new));
    assert_eq!(fixture.content("a"), after);
}

#[test]
fn an_edit_returns_a_short_difference() {
    let fixture = Fixture::new();
    fixture.put("a", "one\ntwo\nthree\n");
    fixture.ok("Read", json!({"file_path": "a"}));
    let text = fixture.ok("Edit", change("two", "2"));
    assert_eq!(text, "Edited a in 1 place:\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    // What the run wrote itself it knows.
    fixture.ok("Edit", change("2", "II"));
}

#[test]
fn a_long_difference_is_cut() {
    let fixture = Fixture::new();
    fixture.put("a", "x\n".repeat(500));
    fixture.ok("Read", json!({"file_path": "a"}));
    let mut input = change("x", "y");
    input["replace_all"] = json!(true);
    let text = fixture.ok("Edit", input);
    assert!(text.starts_with("Edited a in 500 places:\n"), "{text}");
    assert!(text.lines().count() < 70 && text.contains("more lines of difference"), "{text}");
    assert_eq!(fixture.content("a"), "y\n".repeat(500).as_bytes());
}

#[test]
fn an_ambiguous_text_is_refused_with_its_places() {
    let fixture = Fixture::new();
    fixture.put("a", "x\ny\nx\nx\n");
    fixture.ok("Read", json!({"file_path": "a"}));
    fixture.refused("Edit", change("x", "z"), &["3 places", "lines 1, 3, 4", "replace_all"]);
    assert_eq!(fixture.content("a"), b"x\ny\nx\nx\n");
}

#[test]
fn a_missing_text_an_empty_one_and_no_change_are_refused() {
    let fixture = Fixture::new();
    fixture.put("a", "if x {\n    y();\n}\n");
    fixture.ok("Read", json!({"file_path": "a"}));
    fixture.refused("Edit", change("nothing like it", "z"), &["not in a", "read the file again"]);
    fixture.refused("Edit", change("  y();\n  }", "z"), &["line 2", "white space"]);
    fixture.refused("Edit", change("x", "x"), &["the same"]);
    fixture.refused("Edit", change("", "x"), &["empty", "Write"]);
}

fn changes(edits: Value) -> Value {
    json!({"file_path": "a", "edits": edits})
}

#[test]
fn several_edits_are_made_in_order_and_all_or_none() {
    let fixture = Fixture::new();
    fixture.put("a", "one\ntwo\nthree\n");
    fixture.ok("Read", json!({"file_path": "a"}));
    let text = fixture.ok(
        "MultiEdit",
        changes(json!([
            {"old_string": "one", "new_string": "first"},
            {"old_string": "first\ntwo", "new_string": "1\n2"},
            {"old_string": "e", "new_string": "E", "replace_all": true},
        ])),
    );
    assert!(text.starts_with("Edited a in 4 places:\n"), "{text}");
    assert_eq!(fixture.content("a"), b"1\n2\nthrEE\n");
    let second = json!([
        {"old_string": "1", "new_string": "one"},
        {"old_string": "nowhere", "new_string": "x"},
    ]);
    let why = ["nothing was changed", "edit 2 of 2", "not in a"];
    fixture.refused("Edit", changes(second), &why);
    let undone = json!([
        {"old_string": "1", "new_string": "one"},
        {"old_string": "one", "new_string": "1"},
    ]);
    fixture.refused("Edit", changes(undone), &["undo each other"]);
    assert_eq!(fixture.content("a"), b"1\n2\nthrEE\n");
}

#[test]
fn edits_that_make_no_sense_are_refused() {
    let fixture = Fixture::new();
    fixture.put("a", "one\n");
    fixture.ok("Read", json!({"file_path": "a"}));
    let mut both = change("one", "two");
    both["edits"] = json!([{"old_string": "one", "new_string": "two"}]);
    fixture.refused("Edit", both, &["not both"]);
    fixture.refused("Edit", json!({"file_path": "a"}), &["needs old_string and new_string"]);
    fixture.refused("Edit", changes(json!([])), &["needs old_string and new_string"]);
    fixture.refused("Edit", changes(json!(["one"])), &["edit 1 of 1", "`old_string`"]);
    let twice = json!([{"old_string": "one", "new_string": "one"}]);
    fixture.refused("Edit", changes(twice), &["edit 1 of 1", "the same"]);
    assert_eq!(fixture.content("a"), b"one\n");
}

#[test]
fn a_file_must_have_been_read_and_be_unchanged() {
    let fixture = Fixture::new();
    fixture.put("a", "one");
    fixture.refused("Edit", change("one", "two"), &["not been read", "read it first"]);
    fixture.ok("Read", json!({"file_path": "a"}));
    fixture.put("a", "one!");
    fixture.refused("Edit", change("one", "two"), &["changed since", "read it again"]);
    fixture.put("a", "one");
    fixture.ok("Edit", change("one", "two"));
    let edit = json!({"file_path": "x/b", "old_string": "a", "new_string": "b"});
    fixture.refused("Edit", edit, &["does not exist"]);
    assert!(!fixture.path("x").exists());
}

#[test]
fn a_command_that_changes_a_file_makes_it_stale() {
    let fixture = Fixture::with_shell();
    fixture.put("a", "one\n");
    fixture.ok("Read", json!({"file_path": "a"}));
    fixture.ok("Bash", json!({"command": "echo two >> a"}));
    fixture.refused("Edit", change("one", "1"), &["changed since"]);
}

#[test]
fn encoding_mark_and_line_ends_stay() {
    check(b"a\r\nb\r\n", "a\nb", "x\ny", b"x\r\ny\r\n");
    check(b"\xEF\xBB\xBFa\n", "a", "\u{e4}", b"\xEF\xBB\xBF\xC3\xA4\n");
    check(b"\xFF\xFEa\0\r\0\n\0", "a", "b\nc", b"\xFF\xFEb\0\r\0\n\0c\0\r\0\n\0");
    check(b"\xFE\xFF\0a", "a", "\u{fc}", b"\xFE\xFF\0\xFC");
    check(b"gr\xFC\xDFe", "grüße", "süße", b"s\xFC\xDFe");
}

#[test]
fn what_the_encoding_lacks_or_is_no_text_is_refused() {
    let fixture = Fixture::new();
    fixture.put("a", b"gr\xFC\xDFe");
    fixture.ok("Read", json!({"file_path": "a"}));
    fixture.refused("Edit", change("grüße", "→"), &["windows-1252", "'→'"]);
    for bytes in [&b"a\0b"[..], b"\xFF\xFEa\0b"] {
        fixture.put("a", bytes);
        fixture.ok("Read", json!({"file_path": "a"}));
        fixture.refused("Edit", change("a", "b"), &["not valid text"]);
    }
}
