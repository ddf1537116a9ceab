//! What a crash between two steps of a write leaves behind. Needs the feature `failpoints`.

#![cfg(feature = "failpoints")]

use crate::fixture::Fixture;
use serde_json::json;

/// Breaks off a write at `point` and expects `content` in the file.
#[track_caller]
fn check(point: &str, content: &str) {
    let fixture = Fixture::new();
    fixture.put("a", "old");
    fixture.ok("Read", json!({"file_path": "a"}));
    let scenario = fail::FailScenario::setup();
    fail::cfg(point, "panic").unwrap();
    let write = json!({"file_path": "a", "content": "new"});
    fixture.refused("Write", write, &["broke off"]);
    scenario.teardown();
    assert_eq!(fixture.content("a"), content.as_bytes());
    assert_eq!(fixture.ok("List", json!({})), "a\n");
}

#[test]
fn a_write_broken_off_anywhere_leaves_the_old_content_or_the_new() {
    check("tool.write.temp_created", "old");
    check("tool.write.temp_written", "old");
    check("tool.write.renamed", "new");
    check("tool.write.synced", "new");
}
