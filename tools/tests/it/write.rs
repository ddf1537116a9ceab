//! Write.

use crate::fixture::Fixture;
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn a_new_file_is_created_with_its_folders() {
    let fixture = Fixture::new();
    let text = fixture.ok("Write", json!({"file_path": "a/b/c.txt", "content": "hello\n"}));
    assert_eq!(text, "Created a/b/c.txt (6 bytes)");
    assert_eq!(fixture.content("a/b/c.txt"), b"hello\n");
    let mode = std::fs::metadata(fixture.path("a/b/c.txt")).unwrap().mode() & 0o777;
    assert_eq!(mode & !0o644, 0, "{mode:o}");
    assert_eq!(mode & 0o600, 0o600, "{mode:o}");
}

#[test]
fn nothing_but_the_file_is_left_in_the_folder() {
    let fixture = Fixture::new();
    fixture.ok("Write", json!({"file_path": "a", "content": "1"}));
    fixture.ok("Write", json!({"file_path": "a", "content": "2"}));
    fixture.refused("Write", json!({"file_path": "a/b", "content": "2"}), &["not a folder"]);
    assert_eq!(fixture.ok("List", json!({})), "a\n");
}

#[test]
fn a_file_that_exists_must_have_been_read_and_be_unchanged() {
    let fixture = Fixture::new();
    fixture.put("a", "old");
    let write = json!({"file_path": "a", "content": "new"});
    fixture.refused("Write", write.clone(), &["a exists", "read it first"]);
    fixture.ok("Read", json!({"file_path": "a"}));
    fixture.put("a", "odd");
    fixture.refused("Write", write.clone(), &["changed since", "read it again"]);
    assert_eq!(fixture.content("a"), b"odd");
    fixture.ok("Read", json!({"file_path": "a"}));
    assert_eq!(fixture.ok("Write", write.clone()), "Replaced a (3 bytes)");
    fixture.ok("Write", write);
}

#[test]
fn what_one_run_has_read_another_has_not() {
    let fixture = Fixture::new();
    fixture.put("a", "old");
    fixture.ok("Read", json!({"file_path": "a"}));
    let other = fixture.other_run();
    let write = fixture.call_with(&other, "Write", json!({"file_path": "a", "content": "x"}));
    assert!(fixture.runtime.block_on(write).is_error);
}

#[test]
fn the_mode_of_a_replaced_file_stays() {
    let fixture = Fixture::new();
    fixture.put("run.sh", "#!/bin/sh\n");
    let set = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(fixture.path("run.sh"), set(0o751)).unwrap();
    fixture.ok("Read", json!({"file_path": "run.sh"}));
    fixture.ok("Write", json!({"file_path": "run.sh", "content": "#!/bin/bash\n"}));
    let mode = || std::fs::metadata(fixture.path("run.sh")).unwrap().mode() & 0o7777;
    assert_eq!(mode(), 0o751);
    let edit = json!({"file_path": "run.sh", "old_string": "bash", "new_string": "dash"});
    fixture.ok("Edit", edit);
    assert_eq!(mode(), 0o751);
    std::fs::set_permissions(fixture.path("run.sh"), set(0o444)).unwrap();
    let write = json!({"file_path": "run.sh", "content": "x"});
    fixture.refused("Write", write, &["read-only", "make it writable"]);
}

#[test]
fn a_reader_sees_the_old_content_or_the_new() {
    let fixture = Fixture::new();
    let (small, large) = ("a".repeat(10), "b".repeat(200_000));
    fixture.ok("Write", json!({"file_path": "f", "content": small}));
    let path = fixture.path("f");
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            loop {
                let content = std::fs::read_to_string(&path).unwrap();
                assert!(content == small || content == large || content == "end");
                if content == "end" {
                    break;
                }
            }
        });
        for _ in 0..20 {
            fixture.ok("Write", json!({"file_path": "f", "content": large}));
            fixture.ok("Write", json!({"file_path": "f", "content": small}));
        }
        fixture.ok("Write", json!({"file_path": "f", "content": "end"}));
        reader.join().unwrap();
    });
}

#[test]
fn two_runs_that_write_the_same_file_do_not_lose_a_change() {
    let fixture = Fixture::new();
    fixture.put("count", "0");
    let runs: Vec<_> = (0..4).map(|_| fixture.other_run()).collect();
    let increment = async |tools: &posse_agent::Toolbox| {
        for _ in 0..10 {
            loop {
                let read = fixture.call_with(tools, "Read", json!({"file_path": "count"})).await;
                let shown = read.joined_text();
                let number: u32 = shown.split_once("\t").unwrap().1.trim().parse().unwrap();
                let content = (number + 1).to_string();
                let input = json!({"file_path": "count", "content": content});
                if !fixture.call_with(tools, "Write", input).await.is_error {
                    break;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for run in &runs {
            scope.spawn(|| fixture.runtime.block_on(increment(run)));
        }
    });
    assert_eq!(fixture.content("count"), b"40");
}
