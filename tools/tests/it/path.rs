//! Paths: what is inside the workspace, and that nothing leads out of it.

use crate::fixture::Fixture;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

#[test]
fn relative_and_absolute_paths_inside_are_the_same_file() {
    let fixture = Fixture::new();
    fixture.put("src/a.rs", "hello\n");
    let absolute = fixture.path("src/a.rs").to_str().unwrap().to_owned();
    for path in ["src/a.rs", "./src/a.rs", "src/./a.rs", "src/../src/a.rs", absolute.as_str()] {
        assert_eq!(fixture.ok("Read", json!({"file_path": path})), "     1\thello\n", "{path}");
    }
}

#[test]
fn a_workspace_reached_through_a_link_accepts_both_names() {
    let fixture = Fixture::new();
    fixture.put("a", "hello\n");
    let link = fixture.outside().parent().unwrap().join("link");
    symlink(fixture.path(""), &link).unwrap();
    let workspace = posse_tools::Workspace::open(&link).unwrap();
    let tools = posse_agent::Toolbox::new(posse_tools::toolset(&workspace, None, None));
    for path in [link.join("a"), fixture.path("a")] {
        let call = fixture.call_with(&tools, "Read", json!({"file_path": path}));
        assert!(!fixture.runtime.block_on(call).is_error);
    }
}

#[test]
fn what_leads_outside_is_refused_by_every_tool() {
    let fixture = Fixture::new();
    let outside = fixture.outside();
    symlink(&outside, fixture.path("folder")).unwrap();
    symlink(outside.join("canary"), fixture.path("file")).unwrap();
    symlink("../outside/canary", fixture.path("relative")).unwrap();
    symlink("/proc/self/root", fixture.path("root")).unwrap();
    let absolute = outside.join("canary").to_str().unwrap().to_owned();
    let root = format!("root{absolute}");
    let working = fixture.workspace.path().to_str().unwrap().to_owned();
    for path in [
        "../outside/canary",
        "folder/canary",
        "file",
        "relative",
        "/etc/passwd",
        &absolute,
        &root,
        "folder/../../outside/canary",
    ] {
        for (tool, input) in [
            ("Read", json!({"file_path": path})),
            ("Write", json!({"file_path": path, "content": "x"})),
            ("Edit", json!({"file_path": path, "old_string": "canary", "new_string": "x"})),
            ("Grep", json!({"path": path, "pattern": "canary"})),
        ] {
            fixture.refused(tool, input, &["outside of the working folder", &working]);
        }
    }
    for path in ["..", "folder", "/", "../outside"] {
        fixture.refused("List", json!({"path": path}), &[&working]);
        fixture.refused("Glob", json!({"path": path, "pattern": "*"}), &[&working]);
        fixture.refused("Grep", json!({"path": path, "pattern": "."}), &[&working]);
    }
    fixture.refused("Write", json!({"file_path": "folder/new", "content": "x"}), &["outside"]);
    fixture.refused("Write", json!({"file_path": "../outside/new/x", "content": ""}), &["outside"]);
    fixture.refused("Glob", json!({"pattern": "/etc/*"}), &["outside of the working folder"]);
    fixture.canary_is_whole();
}

#[test]
fn a_folder_whose_name_only_begins_alike_is_outside() {
    let fixture = Fixture::new();
    let evil = format!("{}-evil/secret", fixture.path("").to_str().unwrap().trim_end_matches('/'));
    std::fs::create_dir(std::path::Path::new(&evil).parent().unwrap()).unwrap();
    std::fs::write(&evil, "secret").unwrap();
    fixture.refused("Read", json!({"file_path": evil}), &["outside of the working folder"]);
}

#[test]
fn links_inside_are_followed() {
    let fixture = Fixture::new();
    fixture.put("real/a.txt", "hello\n");
    symlink("real/a.txt", fixture.path("link")).unwrap();
    fixture.ok("Read", json!({"file_path": "link"}));
    let edit = json!({"file_path": "link", "old_string": "hello", "new_string": "bye"});
    fixture.ok("Edit", edit);
    assert_eq!(fixture.content("real/a.txt"), b"bye\n");
    assert!(fixture.path("link").is_symlink());
}

#[test]
fn only_regular_files_are_opened_and_nothing_hangs() {
    let fixture = Fixture::new();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.path("fifo"), mode).unwrap();
    let _socket = UnixListener::bind(fixture.path("socket")).unwrap();
    std::fs::create_dir(fixture.path("folder")).unwrap();
    for (path, word) in [("fifo", "named pipe"), ("socket", "a socket"), ("folder", "a folder")] {
        fixture.refused("Read", json!({"file_path": path}), &[path, word]);
        fixture.refused("Write", json!({"file_path": path, "content": "x"}), &[path, word]);
        let edit = json!({"file_path": path, "old_string": "a", "new_string": "b"});
        fixture.refused("Edit", edit, &[path, word]);
    }
    fixture.refused("Grep", json!({"path": "fifo", "pattern": "x"}), &["named pipe"]);
    assert!(fixture.ok("Grep", json!({"pattern": "x"})).starts_with("No match"));
    assert!(fixture.ok("Glob", json!({"pattern": "*"})).starts_with("No file"));
}

#[test]
fn odd_paths_are_explained() {
    let fixture = Fixture::new();
    fixture.put("file", "");
    fixture.refused("Read", json!({"file_path": ""}), &["path is empty"]);
    fixture.refused("Read", json!({"file_path": "a\u{0}b"}), &["cannot use"]);
    fixture.refused("Read", json!({"file_path": "file/below"}), &["file"]);
    fixture.refused("Write", json!({"file_path": ".", "content": ""}), &["folder"]);
    fixture.refused("Write", json!({"file_path": "..", "content": ""}), &["folder"]);
    fixture.refused("List", json!({"path": "file"}), &["not a folder"]);
    symlink("nowhere", fixture.path("dangling")).unwrap();
    fixture.refused("Write", json!({"file_path": "dangling", "content": ""}), &["dangling"]);
}

#[test]
fn a_missing_file_suggests_names_that_resemble_it() {
    let fixture = Fixture::new();
    fixture.put("src/parser.rs", "");
    fixture.put("src/zebra.rs", "");
    let text = fixture.call("Read", json!({"file_path": "src/praser.rs"})).joined_text();
    assert!(text.contains("did you mean src/parser.rs"), "{text}");
    assert!(!text.contains("zebra"), "{text}");
    fixture.refused("Read", json!({"file_path": "x/y"}), &["does not exist", "Glob or List"]);
}
