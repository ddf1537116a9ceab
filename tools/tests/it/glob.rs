//! Glob.

use crate::fixture::Fixture;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    for path in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.ts", ".github/e.yml", "target/f.rs"] {
        fixture.put(path, "");
    }
    fixture.put(".git/HEAD.rs", "");
    fixture.put(".gitignore", "target/\n");
    fixture
}

#[track_caller]
fn check(input: Value, expected: &[&str]) {
    let text = fixture().ok("Glob", input);
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn patterns_match_as_users_expect() {
    check(json!({"pattern": "**/*.rs"}), &["a.rs", "src/b.rs", "src/deep/c.rs"]);
    check(json!({"pattern": "*.rs"}), &["a.rs", "src/b.rs", "src/deep/c.rs"]);
    check(json!({"pattern": "src/*.rs"}), &["src/b.rs"]);
    check(json!({"pattern": "./src/**/*.{rs,ts}"}), &["src/b.rs", "src/d.ts", "src/deep/c.rs"]);
    check(json!({"pattern": "*.rs", "path": "src"}), &["src/b.rs", "src/deep/c.rs"]);
    check(json!({"pattern": "deep/*", "path": "src"}), &["src/deep/c.rs"]);
    check(json!({"pattern": "**/*.yml"}), &[".github/e.yml"]);
    let none = "No file matches. (Ignored files are not looked at.)";
    check(json!({"pattern": "target/*"}), &[none]);
}

#[test]
fn an_absolute_pattern_inside_the_workspace_works() {
    let fixture = fixture();
    let pattern = fixture.path("src/*.rs").to_str().unwrap().to_owned();
    assert_eq!(fixture.ok("Glob", json!({"pattern": pattern})), "src/b.rs\n");
}

#[test]
fn ignore_files_above_the_searched_folder_hold() {
    let fixture = fixture();
    fixture.put("src/target/g.rs", "");
    let found = fixture.ok("Glob", json!({"pattern": "*.rs", "path": "src"}));
    assert_eq!(found, "src/b.rs\nsrc/deep/c.rs\n");
}

#[test]
fn ignore_files_above_the_workspace_do_not_hold() {
    let fixture = fixture();
    std::fs::write(fixture.path("../.gitignore"), "*\n").unwrap();
    let found = fixture.ok("Glob", json!({"pattern": "src/*.rs"}));
    assert_eq!(found, "src/b.rs\n");
}

#[test]
fn an_ignored_folder_is_searched_when_it_is_asked_for() {
    check(json!({"pattern": "*.rs", "path": "target"}), &["target/f.rs"]);
}

#[test]
fn links_are_not_followed() {
    let fixture = fixture();
    symlink(fixture.outside(), fixture.path("src/out")).unwrap();
    assert!(!fixture.ok("Glob", json!({"pattern": "**/*"})).contains("canary"));
}

#[test]
fn many_files_are_capped_in_order() {
    let fixture = Fixture::new();
    for number in 0..505 {
        fixture.put(&format!("f{number:03}.txt"), "");
    }
    let text = fixture.ok("Glob", json!({"pattern": "*.txt"}));
    assert_eq!(text.lines().count(), 501);
    assert!(text.contains("f499.txt\n[The first 500 files."), "{text}");
    assert!(text.contains("narrower pattern"), "{text}");
}

#[test]
fn an_ignore_file_that_is_a_pipe_does_not_hang_the_search() {
    let fixture = fixture();
    let pipe = |path| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, fixture.path(path), mode).unwrap();
    };
    pipe("src/deep/.gitignore");
    assert_eq!(fixture.ok("Glob", json!({"pattern": "*.rs"})), "a.rs\nsrc/b.rs\n");
    pipe(".ignore");
    fixture.refused("Glob", json!({"pattern": "*.rs"}), &["ignore file", "mend or remove it"]);
}

#[test]
fn a_cancelled_search_ends() {
    let fixture = fixture();
    fixture.cancel.cancel();
    fixture.refused("Glob", json!({"pattern": "*"}), &["cancelled"]);
}
