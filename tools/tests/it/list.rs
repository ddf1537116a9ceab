//! List.

use crate::fixture::Fixture;
use serde_json::json;
use std::os::unix::fs::symlink;

#[test]
fn names_are_sorted_and_show_what_they_are() {
    let fixture = Fixture::new();
    fixture.put("b.txt", "");
    fixture.put("a/x", "");
    symlink("b.txt", fixture.path("c")).unwrap();
    assert_eq!(fixture.ok("List", json!({})), "a/\nb.txt\nc -> b.txt\n");
    assert_eq!(fixture.ok("LS", json!({"path": "a"})), "x\n");
}

#[test]
fn an_empty_folder_says_so_and_a_missing_one_is_an_error() {
    let fixture = Fixture::new();
    assert_eq!(fixture.ok("List", json!({})), "[The folder is empty]");
    fixture.refused("List", json!({"path": "nope"}), &["nope does not exist"]);
}

#[test]
fn a_crowded_folder_is_capped() {
    let fixture = Fixture::new();
    for number in 0..1003 {
        fixture.put(&format!("f{number:04}"), "");
    }
    let text = fixture.ok("List", json!({}));
    assert_eq!(text.lines().count(), 1001);
    assert!(text.contains("f0999\n[The first 1000 of 1003 names. Use Glob"), "{text}");
}
