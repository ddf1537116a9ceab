//! Folders that a run may read and never write: reached by their paths, and no way out of them.

use crate::fixture::Fixture;
use posse_agent::Toolbox;
use posse_tools::confine::Confinement;
use posse_tools::{ReadOnly, toolset_within};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A workspace, and beside it a folder `skill` with a few files that may be read.
fn fixture() -> (Fixture, PathBuf) {
    let mut fixture = Fixture::new();
    let skill = fixture.outside().parent().unwrap().canonicalize().unwrap().join("skill");
    std::fs::create_dir_all(skill.join("scripts")).unwrap();
    std::fs::write(skill.join("SKILL.md"), "how to\n").unwrap();
    std::fs::write(skill.join("scripts/fill.py"), "fill()\n").unwrap();
    fixture.tools = tools(&fixture, &[&skill]);
    (fixture, skill)
}

fn tools(fixture: &Fixture, folders: &[&Path]) -> Toolbox {
    let folders = folders.iter().map(ReadOnly::at).collect();
    let confinement = Confinement::workspace_write();
    Toolbox::new(toolset_within(&fixture.workspace, None, folders, None, &confinement))
}

fn at(path: &Path) -> Value {
    json!({"file_path": path})
}

#[test]
fn every_tool_that_looks_reaches_it_by_its_absolute_path() {
    let (fixture, skill) = fixture();
    assert_eq!(fixture.ok("Read", at(&skill.join("SKILL.md"))), "     1\thow to\n");
    assert_eq!(fixture.ok("List", json!({"path": skill})), "SKILL.md\nscripts/\n");
    let script = format!("{}\n", skill.join("scripts/fill.py").display());
    assert_eq!(fixture.ok("Glob", json!({"pattern": "*.py", "path": skill})), script);
    assert_eq!(fixture.ok("Glob", json!({"pattern": skill.join("**/*.py")})), script);
    assert_eq!(fixture.ok("Grep", json!({"pattern": "fill", "path": skill})), script);
    // Without a path, a search stays in the workspace.
    assert!(fixture.ok("Glob", json!({"pattern": "*.py"})).starts_with("No file matches"));
    fixture.refused("Read", at(Path::new("SKILL.md")), &["does not exist"]);
}

#[test]
fn nothing_in_it_is_written_changed_or_made() {
    let (fixture, skill) = fixture();
    let file = skill.join("SKILL.md");
    fixture.ok("Read", at(&file));
    let only_read = ["can only be read", "working folder"];
    let write = |path: &Path| json!({"file_path": path, "content": "mine"});
    fixture.refused("Write", write(&file), &only_read);
    fixture.refused("Write", write(&skill.join("new/file")), &only_read);
    let edit = json!({"file_path": file, "old_string": "how", "new_string": "now"});
    fixture.refused("Edit", edit, &only_read);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "how to\n");
    assert!(!skill.join("new").exists());
}

#[test]
fn what_leads_out_of_it_is_refused_by_every_tool() {
    let (fixture, skill) = fixture();
    let outside = fixture.outside();
    symlink(&outside, skill.join("folder")).unwrap();
    symlink(outside.join("canary"), skill.join("file")).unwrap();
    symlink("../outside/canary", skill.join("relative")).unwrap();
    symlink("/proc/self/root", skill.join("root")).unwrap();
    let evil = skill.with_file_name("skill-evil");
    std::fs::create_dir(&evil).unwrap();
    std::fs::write(evil.join("canary"), "x").unwrap();
    for path in [
        skill.join("../outside/canary"),
        skill.join("folder/canary"),
        skill.join("file"),
        skill.join("relative"),
        skill.join("root/etc/passwd"),
        evil.join("canary"),
        skill.parent().unwrap().to_owned(),
    ] {
        fixture.refused("Read", at(&path), &["outside of the working folder"]);
        let grep = json!({"path": path, "pattern": "."});
        fixture.refused("Grep", grep, &["outside of the working folder"]);
    }
    for path in [skill.join(".."), skill.join("folder")] {
        fixture.refused("List", json!({"path": path}), &["outside of the working folder"]);
    }
    let found = fixture.ok("Grep", json!({"path": skill, "pattern": "canary"}));
    assert!(found.starts_with("No match"), "{found}");
    fixture.canary_is_whole();
}

#[test]
fn a_link_in_its_place_is_not_followed() {
    let (fixture, skill) = fixture();
    std::fs::remove_dir_all(&skill).unwrap();
    fixture.refused("Read", at(&skill.join("SKILL.md")), &["cannot use"]);
    symlink(fixture.outside(), &skill).unwrap();
    fixture.refused("Read", at(&skill.join("canary")), &["behind a link"]);
    fixture.refused("List", json!({"path": skill}), &["behind a link"]);
}

#[test]
fn what_lies_in_the_workspace_too_can_be_written_there() {
    let mut fixture = Fixture::new();
    fixture.put("skills/mine/SKILL.md", "old\n");
    let mine = fixture.path("skills/mine");
    fixture.tools = tools(&fixture, &[&mine]);
    fixture.ok("Read", at(&mine.join("SKILL.md")));
    fixture.ok("Write", json!({"file_path": mine.join("SKILL.md"), "content": "new\n"}));
    assert_eq!(fixture.content("skills/mine/SKILL.md"), b"new\n");
}
