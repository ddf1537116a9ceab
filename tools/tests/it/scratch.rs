//! The scratch folder: reached by the tools of its run, made when it is needed, and no way out.

use crate::confinement::{cannot, not_tested};
use crate::fixture::{Fixture, marker};
use posse_agent::Toolbox;
use posse_tools::confine::Backend;
use posse_tools::{Scratch, ToolError, Workspace, toolset};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn mode(path: impl AsRef<Path>) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn write(path: impl Into<String>) -> serde_json::Value {
    json!({"file_path": path.into(), "content": "hello\n"})
}

#[test]
fn it_is_made_on_first_use_and_is_private() {
    let fixture = Fixture::with_scratch("data/scratch/run");
    let data = fixture.outside().parent().unwrap().join("data");
    fixture.put("a", "");
    fixture.ok("Read", json!({"file_path": "a"}));
    fixture.ok("Read", json!({"file_path": fixture.path("a")}));
    fixture.ok("Glob", json!({"pattern": "*"}));
    fixture.refused("Read", json!({"file_path": "/etc/passwd"}), &["outside"]);
    assert!(!data.exists());
    assert_eq!(
        fixture.ok("List", json!({"path": fixture.in_scratch("")})),
        "[The folder is empty]"
    );
    for folder in [data.clone(), data.join("scratch"), data.join("scratch/run")] {
        assert_eq!(mode(&folder), 0o700, "{folder:?}");
    }
}

#[test]
fn every_file_tool_reaches_it_by_its_absolute_path() {
    let fixture = Fixture::with_scratch("data/run");
    let notes = fixture.in_scratch("deep/notes.txt");
    assert_eq!(fixture.ok("Write", write(&notes)), format!("Created {notes} (6 bytes)"));
    assert_eq!(fixture.ok("Read", json!({"file_path": notes})), "     1\thello\n");
    let edit = json!({"file_path": notes, "old_string": "hello", "new_string": "bye"});
    assert!(fixture.ok("Edit", edit).starts_with(&format!("Edited {notes} in 1 place")));
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "bye\n");
    let found = format!("{notes}\n");
    let scratch = fixture.in_scratch("");
    assert_eq!(fixture.ok("Glob", json!({"pattern": "*.txt", "path": scratch})), found);
    let pattern = fixture.in_scratch("**/*.txt");
    assert_eq!(fixture.ok("Glob", json!({"pattern": pattern})), found);
    assert_eq!(fixture.ok("Grep", json!({"pattern": "bye", "path": scratch})), found);
    assert_eq!(fixture.ok("Grep", json!({"pattern": "bye", "path": notes})), found);
    assert_eq!(fixture.ok("Grep", json!({"pattern": "bye", "glob": pattern})), found);
    assert_eq!(fixture.ok("List", json!({"path": scratch})), "deep/\n");
    let near = fixture.in_scratch("deep/note.txt");
    let hint = format!("did you mean {notes}?");
    fixture.refused("Read", json!({"file_path": near}), &[&hint]);
}

#[test]
fn relative_paths_and_searches_without_a_path_stay_in_the_workspace() {
    let fixture = Fixture::with_scratch("data/run");
    fixture.put("a.txt", "hello\n");
    fixture.ok("Write", write(fixture.in_scratch("b.txt")));
    assert_eq!(fixture.ok("Glob", json!({"pattern": "*.txt"})), "a.txt\n");
    assert_eq!(fixture.ok("Grep", json!({"pattern": "hello"})), "a.txt\n");
    fixture.refused("Read", json!({"file_path": "b.txt"}), &["b.txt does not exist"]);
    let others = format!("!{}", fixture.in_scratch("*"));
    assert_eq!(fixture.ok("Glob", json!({"pattern": others})), "a.txt\n");
    let elsewhere = json!({"pattern": fixture.in_scratch("*"), "path": "."});
    assert!(fixture.ok("Glob", elsewhere).starts_with("No file matches"));
}

#[test]
fn a_file_known_in_one_folder_is_not_known_in_the_other() {
    let fixture = Fixture::with_scratch("data/run");
    fixture.put("a", "hello\n");
    fixture.ok("Read", json!({"file_path": "a"}));
    std::fs::create_dir_all(fixture.in_scratch("")).unwrap();
    std::fs::write(fixture.in_scratch("a"), "hello\n").unwrap();
    fixture.refused("Write", write(fixture.in_scratch("a")), &["has not been read"]);
}

#[test]
fn what_leads_out_of_it_is_refused_by_every_tool() {
    let fixture = Fixture::with_scratch("data/run");
    let (outside, workspace) = (fixture.outside(), fixture.path(""));
    fixture.put("inside", "canary");
    fixture.ok("Write", write(fixture.in_scratch("a")));
    symlink(&outside, fixture.in_scratch("folder")).unwrap();
    symlink(outside.join("canary"), fixture.in_scratch("file")).unwrap();
    symlink("../../outside/canary", fixture.in_scratch("relative")).unwrap();
    symlink("/proc/self/root", fixture.in_scratch("root")).unwrap();
    symlink(&workspace, fixture.in_scratch("workspace")).unwrap();
    symlink(fixture.in_scratch(""), fixture.path("scratch")).unwrap();
    std::fs::create_dir(fixture.in_scratch("../other")).unwrap();
    std::fs::write(fixture.in_scratch("../other/canary"), "another run's").unwrap();
    let named = [workspace.to_str().unwrap().trim_end_matches('/'), &fixture.in_scratch("")];
    let parts = ["outside of the working folder", "and of the scratch folder", named[0], named[1]];
    let beside = format!("{}-evil/canary", fixture.in_scratch(""));
    let root = fixture.in_scratch(&format!("root{}", outside.join("canary").display()));
    for path in [
        fixture.in_scratch("../../outside/canary"),
        fixture.in_scratch("../other/canary"),
        fixture.in_scratch("folder/canary"),
        fixture.in_scratch("file"),
        fixture.in_scratch("relative"),
        fixture.in_scratch("workspace/inside"),
        "scratch/a".to_owned(),
        root,
        beside,
    ] {
        for (tool, input) in [
            ("Read", json!({"file_path": path})),
            ("Write", json!({"file_path": path, "content": "x"})),
            ("Edit", json!({"file_path": path, "old_string": "canary", "new_string": "x"})),
            ("Grep", json!({"path": path, "pattern": "canary"})),
        ] {
            fixture.refused(tool, input, &parts);
        }
    }
    for path in [fixture.in_scratch(".."), fixture.in_scratch("folder"), "scratch".to_owned()] {
        fixture.refused("List", json!({"path": path}), &parts);
        fixture.refused("Glob", json!({"path": path, "pattern": "*"}), &parts);
        fixture.refused("Grep", json!({"path": path, "pattern": "."}), &parts);
    }
    fixture.refused("Glob", json!({"pattern": "/etc/*"}), &parts);
    let search = json!({"path": fixture.in_scratch(""), "pattern": "canary"});
    assert!(fixture.ok("Grep", search).starts_with("No match"));
    fixture.refused("Read", json!({"file_path": ""}), &["empty", "or of the scratch folder"]);
    assert_eq!(fixture.content("inside"), b"canary");
    fixture.canary_is_whole();
}

#[test]
fn something_else_in_its_place_is_refused() {
    let fixture = Fixture::with_scratch_and_shell("data/run");
    let place = fixture.in_scratch("");
    std::fs::create_dir(Path::new(&place).parent().unwrap()).unwrap();
    let refused = || {
        let parts = ["cannot use the scratch folder", &place, "a link or a file is in its place"];
        fixture.refused("Read", json!({"file_path": fixture.in_scratch("canary")}), &parts);
        fixture.refused("Write", write(fixture.in_scratch("new")), &parts);
        fixture.refused("List", json!({"path": place}), &parts);
        fixture.refused("Bash", json!({"command": "touch $TMPDIR/new"}), &parts);
    };
    let before = mode(fixture.outside());
    symlink(fixture.outside(), &place).unwrap();
    refused();
    std::fs::remove_file(&place).unwrap();
    std::fs::write(&place, "").unwrap();
    refused();
    assert_eq!(mode(fixture.outside()), before);
    fixture.canary_is_whole();
}

#[test]
fn commands_find_it_in_their_environment() {
    let fixture = Fixture::with_scratch_and_shell("data/run");
    let scratch = fixture.in_scratch("");
    let bash = |command: &str| fixture.ok("Bash", json!({"command": command}));
    assert_eq!(bash("echo $TMPDIR; echo $POSSE_SCRATCH"), format!("{scratch}\n{scratch}\n"));
    assert!(bash("mktemp").starts_with(&format!("{scratch}/")));
    bash("echo hello > $TMPDIR/a");
    let read = json!({"file_path": fixture.in_scratch("a")});
    assert_eq!(fixture.ok("Read", read.clone()), "     1\thello\n");
    bash("rm $TMPDIR/*");
    fixture.refused("Read", read, &["does not exist"]);
    assert!(bash("mktemp").starts_with(&format!("{scratch}/")));
}

#[test]
fn without_one_commands_have_a_folder_for_temporary_files_that_nobody_else_sees() {
    let fixture = Fixture::with_shell();
    let command = "echo ${POSSE_SCRATCH-none}; made=$(mktemp); echo $made";
    let text = fixture.ok("Bash", json!({"command": command}));
    let made = text.strip_prefix("none\n").unwrap().trim();
    assert!(made.starts_with("/tmp/"), "{made}");
    assert!(!Path::new(made).exists());
}

/// What a command moves to `/tmp` it means to find there later.
#[test]
fn what_a_command_leaves_in_a_temporary_folder_is_there_for_the_next_one() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let fixture = Fixture::with_scratch_and_shell("data/run");
    let bash = |command: &str| fixture.ok("Bash", json!({"command": command}));
    fixture.put("notes", "mine\n");
    let marker = marker();
    let marker = marker.as_str();
    bash(&format!("mv notes /tmp/{marker}; echo two > /var/tmp/{marker}"));
    assert!(
        !Path::new("/tmp").join(marker).exists() && !Path::new("/var/tmp").join(marker).exists()
    );
    let found = bash(&format!("mv /tmp/{marker} back; cat back /var/tmp/{marker}"));
    assert_eq!(found, "mine\ntwo\n");
    assert_eq!(fixture.content("back"), b"mine\n");
    let beside = Path::new(&fixture.in_scratch("")).with_file_name("run.tmp");
    assert!(beside.join("var-tmp").join(marker).exists());
    fixture.scratch.as_ref().unwrap().remove().unwrap();
    assert!(!beside.exists());
}

/// The workspace of this test lies in a temporary folder of the machine.
#[test]
fn what_a_command_puts_in_the_way_of_the_workspace_is_gone_before_the_next_one() {
    if cannot(Backend::Bubblewrap) {
        return;
    }
    let fixture = Fixture::with_scratch_and_shell("data/run");
    let bash = |command: &str| fixture.ok("Bash", json!({"command": command}));
    let work = fixture.workspace.path().to_owned();
    let Ok(below) = work.strip_prefix("/tmp") else {
        return not_tested("a workspace in /tmp");
    };
    let top = Path::new("/tmp").join(below.iter().next().unwrap());
    let (top, work) = (top.display(), work.display());
    std::fs::create_dir(fixture.workspace.path().join(".git")).unwrap();
    fixture.put(".git/HEAD", "ref: refs/heads/main\n");
    fixture.put(".git/config", "[core]\n");
    // Another folder with the same names, and a link to it where the workspace is.
    bash(&format!(
        "mkdir -p /tmp/decoy/{0}; mv {top} /tmp/moved; ln -s /tmp/decoy {top}; ls -l /tmp",
        below.display()
    ));
    let said = bash(&format!(
        "pwd; ls -ld {top} | cut -c1; ls -d {work}; echo evil > {work}/.git/config; \
         echo made > {work}/made; ls /tmp"
    ));
    assert!(said.contains(&format!("{work}\nd\n")), "{said}");
    assert_eq!(fixture.content(".git/config"), b"[core]\n", "{said}");
    assert_eq!(fixture.content("made"), b"made\n", "{said}");
    fixture.canary_is_whole();
}

#[test]
fn a_link_on_the_way_to_it_is_fine_and_both_names_lead_there() {
    let fixture = Fixture::with_scratch_and_shell("link/run");
    let around = fixture.outside().parent().unwrap().to_owned();
    std::fs::create_dir(around.join("real")).unwrap();
    symlink("real", around.join("link")).unwrap();
    let real = around.canonicalize().unwrap().join("real/run/a");
    // As a new process sees it, which has used nothing yet.
    assert_eq!(
        fixture.ok("Write", write(real.to_str().unwrap())),
        format!("Created {} (6 bytes)", fixture.in_scratch("a"))
    );
    for path in [real.to_str().unwrap(), &fixture.in_scratch("a")] {
        assert_eq!(fixture.ok("Read", json!({"file_path": path})), "     1\thello\n");
    }
}

#[test]
fn one_that_others_could_look_into_is_closed_to_them() {
    let fixture = Fixture::with_scratch("data/run");
    for found in [0o777, 0o000] {
        std::fs::create_dir_all(fixture.in_scratch("")).unwrap();
        std::fs::set_permissions(fixture.in_scratch(""), Permissions::from_mode(found)).unwrap();
        fixture.ok("List", json!({"path": fixture.in_scratch("")}));
        assert_eq!(mode(fixture.in_scratch("")), 0o700);
    }
}

#[test]
fn inside_of_the_workspace_it_is_no_way_around_either() {
    let fixture = Fixture::with_scratch("work/.data/run");
    fixture.put("a", "hello\n");
    fixture.ok("Write", write(fixture.in_scratch("b")));
    // By its own name it is the scratch folder, from which no link leads on.
    symlink(fixture.path("a"), fixture.in_scratch("to-a")).unwrap();
    fixture.refused("Read", json!({"file_path": fixture.in_scratch("to-a")}), &["outside of"]);
    fixture.refused("Read", json!({"file_path": fixture.in_scratch("../../a")}), &["outside of"]);
    // By the workspace's name it is a folder like any other.
    assert_eq!(fixture.ok("Read", json!({"file_path": ".data/run/b"})), "     1\thello\n");
    symlink(fixture.outside(), fixture.in_scratch("out")).unwrap();
    fixture.refused("Read", json!({"file_path": ".data/run/out/canary"}), &["outside of"]);
    fixture.canary_is_whole();
}

#[test]
fn around_the_workspace_it_is_no_way_around_either() {
    let fixture = Fixture::new();
    let around = fixture.outside().parent().unwrap().canonicalize().unwrap().join("run");
    std::fs::create_dir_all(around.join("inner")).unwrap();
    std::fs::write(around.join("note"), "hello\n").unwrap();
    symlink("../note", around.join("inner/to-note")).unwrap();
    let workspace = Workspace::open(&around.join("inner")).unwrap();
    let scratch = Scratch::at(&around).unwrap();
    let tools = Toolbox::new(toolset(&workspace, Some(&scratch), None));
    let call = |tool, input| fixture.runtime.block_on(fixture.call_with(&tools, tool, input));
    let read = |path: &str| call("Read", json!({"file_path": path}));
    for path in ["../note", "to-note", around.join("inner/to-note").to_str().unwrap()] {
        let output = read(path);
        assert!(output.joined_text().contains("outside of"), "{path}: {}", output.joined_text());
    }
    assert!(!read(around.join("note").to_str().unwrap()).is_error);
    let written = call("Write", write(around.join("inner/new").to_str().unwrap()));
    assert_eq!(written.joined_text(), "Created new (6 bytes)");
}

#[test]
fn a_path_without_a_name_cannot_be_one() {
    for path in ["/", "a/..", ""] {
        let error = Scratch::at(Path::new(path)).unwrap_err();
        assert!(matches!(error, ToolError::ScratchPath { .. }), "{path}: {error}");
    }
    assert!(Scratch::at(Path::new("relative")).unwrap().path().is_absolute());
}

#[test]
fn removing_takes_all_of_it_and_nothing_else() {
    let fixture = Fixture::with_scratch("data/run");
    let scratch = fixture.scratch.clone().unwrap();
    scratch.remove().unwrap();
    fixture.ok("Write", write(fixture.in_scratch("a/b/c")));
    fixture.ok("Write", write(fixture.in_scratch("a/d")));
    fixture.ok("Write", write(fixture.in_scratch("e")));
    let other = scratch.path().with_file_name("other");
    std::fs::create_dir(&other).unwrap();
    symlink(fixture.outside(), fixture.in_scratch("folder")).unwrap();
    symlink(fixture.outside().join("canary"), fixture.in_scratch("a/file")).unwrap();
    symlink("nowhere", fixture.in_scratch("dangling")).unwrap();
    symlink("../..", fixture.in_scratch("a/b/up")).unwrap();
    let pipe = rustix::fs::Mode::RUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.in_scratch("pipe"), pipe).unwrap();
    for (path, mode) in [("a/b", 0o555), ("a", 0o000), ("", 0o100)] {
        let closed = Permissions::from_mode(mode);
        std::fs::set_permissions(fixture.in_scratch(path), closed).unwrap();
    }
    scratch.remove().unwrap();
    assert!(!scratch.path().exists());
    assert!(other.exists());
    scratch.remove().unwrap();
    fixture.canary_is_whole();
    fixture.ok("Write", write(fixture.in_scratch("again")));
}

#[test]
fn removing_a_link_in_its_place_leaves_what_it_leads_to() {
    let fixture = Fixture::with_scratch("data/run");
    let scratch = fixture.scratch.clone().unwrap();
    std::fs::create_dir(scratch.path().parent().unwrap()).unwrap();
    symlink(fixture.outside(), scratch.path()).unwrap();
    scratch.remove().unwrap();
    assert!(!scratch.path().is_symlink());
    fixture.canary_is_whole();
}

#[test]
fn no_depth_keeps_it_from_being_removed() {
    let fixture = Fixture::with_scratch("data/run");
    fixture.ok("Write", write(fixture.in_scratch("a")));
    let directory = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::PATH;
    let none = rustix::fs::Mode::empty();
    let mut folder = rustix::fs::open(fixture.in_scratch(""), directory, none).unwrap();
    for _ in 0..5_000 {
        rustix::fs::mkdirat(&folder, "x", rustix::fs::Mode::RWXU).unwrap();
        folder = rustix::fs::openat(&folder, "x", directory, none).unwrap();
    }
    let scratch = fixture.scratch.clone().unwrap();
    scratch.remove().unwrap();
    assert!(!scratch.path().exists());
}
