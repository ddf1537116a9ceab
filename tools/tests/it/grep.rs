//! Grep.

use crate::fixture::{Fixture, eventually};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.put("a.rs", "fn one() {}\nfn two() {\n    one();\n}\n");
    fixture.put("src/b.py", "def One():\n    pass\n");
    fixture.put("src/c.md", "none\n");
    fixture.put("target/d.rs", "one\n");
    fixture.put("binary", b"one\0one\n\0");
    fixture.put(".gitignore", "target/\n");
    fixture
}

#[track_caller]
fn check(input: Value, expected: &str) {
    assert_eq!(fixture().ok("Grep", input), expected);
}

#[test]
fn the_modes_give_files_lines_and_counts() {
    check(json!({"pattern": "one\\b"}), "a.rs\nsrc/c.md\n");
    check(
        json!({"pattern": "one", "output_mode": "content"}),
        "a.rs:1:fn one() {}\na.rs:3:    one();\nsrc/c.md:1:none\n",
    );
    check(json!({"pattern": "one", "output_mode": "count"}), "a.rs:2\nsrc/c.md:1\n");
    check(json!({"pattern": "pass", "output_mode": "content", "-n": false}), "src/b.py:    pass\n");
    check(json!({"pattern": "zzz"}), "No match. (Ignored and binary files are not searched.)\n");
}

#[test]
fn case_type_glob_and_path_narrow_the_search() {
    check(json!({"pattern": "ONE", "-i": true}), "a.rs\nsrc/b.py\nsrc/c.md\n");
    check(json!({"pattern": "one", "-i": true, "type": "py"}), "src/b.py\n");
    check(json!({"pattern": "one", "-i": true, "type": "rust"}), "a.rs\n");
    check(json!({"pattern": "one", "-i": true, "glob": "*.{md,rs}"}), "a.rs\nsrc/c.md\n");
    check(json!({"pattern": "one", "-i": true, "glob": "!*.rs"}), "src/b.py\nsrc/c.md\n");
    check(json!({"pattern": "one", "-i": true, "path": "src"}), "src/b.py\nsrc/c.md\n");
    check(json!({"pattern": "one", "path": "a.rs", "output_mode": "count"}), "a.rs:2\n");
    check(json!({"pattern": "one", "path": "target/d.rs"}), "target/d.rs\n");
}

#[test]
fn context_is_shown_around_matches() {
    check(
        json!({"pattern": "two", "output_mode": "content", "-C": 1}),
        "a.rs-1-fn one() {}\na.rs:2:fn two() {\na.rs-3-    one();\n",
    );
    check(
        json!({"pattern": "two", "output_mode": "content", "-A": 1}),
        "a.rs:2:fn two() {\na.rs-3-    one();\n",
    );
    let fixture = fixture();
    fixture.put("gap", "hit\n.\n.\n.\nhit\n");
    let input = json!({"pattern": "hit", "output_mode": "content", "path": "gap", "-B": 1});
    assert_eq!(fixture.ok("Grep", input), "gap:1:hit\n--\ngap-4-.\ngap:5:hit\n");
}

#[test]
fn multiline_matches_across_lines() {
    check(
        json!({"pattern": "two.*one", "multiline": true, "output_mode": "content"}),
        "a.rs:2:fn two() {\na.rs:3:    one();\n",
    );
    check(
        json!({"pattern": "two.*one"}),
        "No match. (Ignored and binary files are not searched.)\n",
    );
    fixture().refused("Grep", json!({"pattern": "a\\nb"}), &["multiline"]);
}

#[test]
fn a_cap_says_how_to_get_more() {
    let fixture = Fixture::new();
    fixture.put("a", "hit\n".repeat(300));
    let text = fixture.ok("Grep", json!({"pattern": "hit", "output_mode": "content"}));
    assert!(text.contains("a:250:hit\n[The first 250 entries. There are more: raise head_limit"));
    let input = json!({"pattern": "hit", "output_mode": "content", "head_limit": 2});
    let text = fixture.ok("Grep", input);
    assert!(text.starts_with("a:1:hit\na:2:hit\n[The first 2 entries."), "{text}");
    let input = json!({"pattern": "hit", "output_mode": "content", "head_limit": 300});
    assert!(!fixture.ok("Grep", input).contains('['));
    fixture.put("b", format!("hit {}\n", "x".repeat(1000)).repeat(100));
    let input = json!({"pattern": "hit", "output_mode": "content", "path": "b"});
    let text = fixture.ok("Grep", input);
    assert!(text.len() < 32_000 && text.contains("[line cut]"), "{}", text.len());
    assert!(text.contains("narrow the search"));
}

#[test]
fn other_encodings_are_searched() {
    let fixture = Fixture::new();
    fixture.put("a", b"\xFF\xFEh\0i\0t\0\n\0");
    fixture.put("b", b"gr\xFC\xDFe hit\n");
    let text = fixture.ok("Grep", json!({"pattern": "hit", "output_mode": "content"}));
    assert_eq!(text, "a:1:hit\nb:1:gr\u{FFFD}\u{FFFD}e hit\n");
}

#[test]
fn lines_that_end_in_a_carriage_return_match_at_their_end() {
    let fixture = Fixture::new();
    fixture.put("a", "one hit\r\ntwo\r\n");
    let text = fixture.ok("Grep", json!({"pattern": "hit$", "output_mode": "content"}));
    assert_eq!(text, "a:1:one hit\n");
}

#[test]
fn a_cancelled_search_ends_soon_and_so_does_its_thread() {
    let fixture = Fixture::new();
    // The same sixteen megabytes under a thousand names: much to search, little to store.
    fixture.put("0", "nothing to be found in this line\n".repeat(500_000));
    for number in 1..1000 {
        std::fs::hard_link(fixture.path("0"), fixture.path(&number.to_string())).unwrap();
    }
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually("it has begun", || started.elapsed() > Duration::from_millis(20));
            fixture.cancel.cancel();
        });
        fixture.refused("Grep", json!({"pattern": "[a-z]+ing .* x"}), &["cancelled"]);
    });
    // Waits for the blocking thread.
    drop(fixture);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}
