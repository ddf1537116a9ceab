//! Protected names at the top of a workspace that are links, or hold links: what programs of the user then obey
//! stays as it is, wherever in the workspace it lies.

use crate::worktrees::git;
use crate::world::{World, bash};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::json;
use std::os::unix::fs::symlink;

/// Makes `links`, each from a name to a target, and `file` with `text`, if there is one. Then tries to change what the
/// last link leads to: by a command, and by the file tools.
async fn check(links: &[(&str, &str)], file: &str, text: Option<&str>) {
    let link = links.last().unwrap().0;
    let top = file.split('/').next().unwrap();
    let command = format!(
        "echo fine > made; echo fine > old; echo fine > old-folder/new; mkdir -p {top} && echo fine > {top}/other
        echo evil > {file}; rm -rf {file}; echo evil > {link}; mv {top} away; mkdir -p $(dirname {file})
        echo evil > {file}; rm {link}; mkdir -p $(dirname {link}); echo evil > {link}; true"
    );
    let write =
        |path: &str| Reply::tool_call("Write", json!({"file_path": path, "content": "evil"}));
    let conversation = Conversation::when(When::any())
        .reply(write(file))
        .reply(write(link))
        .reply(bash(&command))
        .reply(write(file))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(conversation)).await;
    let work = world.work();
    std::fs::create_dir(work.join("old-folder")).unwrap();
    std::fs::write(work.join("old"), "").unwrap();
    for (link, target) in links {
        std::fs::create_dir_all(work.join(link).parent().unwrap()).unwrap();
        symlink(target, work.join(link)).unwrap();
    }
    if let Some(text) = text {
        std::fs::create_dir_all(work.join(file).parent().unwrap()).unwrap();
        std::fs::write(work.join(file), text).unwrap();
    }
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    let said = world.fake.last_request().tool_results().join("\n");
    let found = std::fs::read_to_string(work.join(file)).ok();
    assert_eq!(found.as_deref(), text, "{link}: {said}");
    assert!(work.join(link).is_symlink(), "{link}: {said}");
    // Commands change the files and folders that are there. Where a name at the top is a link, they make nothing new
    // beside it.
    assert_eq!(world.read("old"), "fine\n", "{link}: {said}");
    assert_eq!(world.read("old-folder/new"), "fine\n", "{link}: {said}");
    let is_at_top = links.iter().any(|(link, _)| link.starts_with('.') && !link.contains('/'));
    assert!(work.join("made").exists() != is_at_top, "{link}: {said}");
}

#[tokio::test]
async fn what_protected_names_lead_to_stays_as_it_is() {
    let (settings, tasks) = (".claude/settings.json", ".vscode/a/b/tasks.json");
    check(&[(settings, "../conf/deep/c.json")], "conf/deep/c.json", Some("{}")).await;
    check(&[(tasks, "../../../tools/tasks.json")], "tools/tasks.json", Some("x")).await;
    check(&[(".mise.toml", "conf/mise.toml")], "conf/mise.toml", Some("")).await;
    check(&[(".envrc", "envs/main")], "envs/main", None).await;
    // Links in a folder that a link leads to.
    let links = [("skills/x", "../pkg/x"), (".claude/skills", "../skills")];
    check(&links, "pkg/x/SKILL.md", Some("text")).await;
    // Links to links.
    let links = [("conf/two.json", "one.json"), (settings, "../conf/two.json")];
    check(&links, "conf/one.json", Some("{}")).await;
}

/// Folders that are protected for other reasons than their names.
#[tokio::test]
async fn what_links_in_folders_of_mise_and_lefthook_lead_to_stays_as_it_is() {
    check(&[("mise/conf.d/a.toml", "../../conf/a.toml")], "conf/a.toml", Some("")).await;
    check(&[(".config/mise/conf.d", "../../conf/mise")], "conf/mise/a.toml", Some("")).await;
    let text = "#!/bin/sh\nlefthook run pre-commit\n";
    let world = World::new(Script::turns([
        bash("echo evil > scripts/check; echo fine > scripts/other; rm scripts/check; true"),
        Reply::text("done"),
    ]));
    let world = world.await;
    git(&world.work(), &["init", "-q"]);
    for (name, text) in [
        (".git/hooks/pre-commit", text),
        ("lefthook.yml", "pre-commit:\n  scripts:\n    check:\n      runner: sh\n"),
        ("scripts/check", "true\n"),
    ] {
        std::fs::create_dir_all(world.work().join(name).parent().unwrap()).unwrap();
        std::fs::write(world.work().join(name), text).unwrap();
    }
    std::fs::create_dir_all(world.work().join(".lefthook/pre-commit")).unwrap();
    symlink("../../scripts/check", world.work().join(".lefthook/pre-commit/check")).unwrap();
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    let said = world.fake.last_request().tool_results().join("\n");
    assert_eq!(world.read("scripts/check"), "true\n", "{said}");
    assert_eq!(world.read("scripts/other"), "fine\n", "{said}");
}

/// A way with hundreds of steps, and more names than most folders have.
#[tokio::test]
async fn what_a_long_way_leads_to_and_what_many_names_hide_stays_as_it_is() {
    let long = format!("../conf/{}c.json", "deep/../".repeat(300));
    let command = "mkdir -p conf; echo evil > conf/c.json; echo evil > conf/last; true";
    let world = World::new(Script::turns([bash(command), Reply::text("done")])).await;
    for folder in [".claude/many", "conf/deep"] {
        std::fs::create_dir_all(world.work().join(folder)).unwrap();
    }
    for name in ["conf/c.json", "conf/last"] {
        std::fs::write(world.work().join(name), "{}").unwrap();
    }
    for number in 0..12_000 {
        std::fs::write(world.work().join(format!(".claude/many/{number}")), "").unwrap();
    }
    symlink(long, world.work().join(".claude/settings.json")).unwrap();
    symlink("../../conf/last", world.work().join(".claude/many/last")).unwrap();
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    let said = world.fake.last_request().tool_results().join("\n");
    assert_eq!(world.read("conf/c.json"), "{}", "{said}");
    assert_eq!(world.read("conf/last"), "{}", "{said}");
}

/// What packages bring is installed anew.
#[tokio::test]
async fn what_a_build_makes_can_be_made_though_a_link_leads_there() {
    let command = "mkdir -p node_modules/pkg/skill && echo fine > node_modules/pkg/skill/SKILL.md";
    let world = World::new(Script::turns([bash(command), Reply::text("done")])).await;
    std::fs::create_dir_all(world.work().join(".claude/skills")).unwrap();
    let link = world.work().join(".claude/skills/x");
    symlink("../../node_modules/pkg/skill", &link).unwrap();
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    let said = world.fake.last_request().tool_results().join("\n");
    assert_eq!(world.read(".claude/skills/x/SKILL.md"), "fine\n", "{said}");
}

#[tokio::test]
async fn a_folder_that_a_protected_name_leads_to_stays_as_it_is() {
    let write =
        |path: &str| Reply::tool_call("Write", json!({"file_path": path, "content": "evil"}));
    let conversation = Conversation::when(When::any())
        .reply(write(".agents/settings.json"))
        .reply(write(".agents/agents/evil.md"))
        .reply(write(".claude/agents/evil.md"))
        .reply(write("made"))
        .reply(bash("echo a >> made; echo b > src/new; echo c > new; rm .claude; git add . && git -c user.name=a -c user.email=b commit -qm x"))
        .reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(conversation)).await;
    git(&world.work(), &["init", "-q"]);
    std::fs::create_dir(world.work().join("src")).unwrap();
    let folder = world.work().join(".agents");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), "{}").unwrap();
    symlink(".agents", world.work().join(".claude")).unwrap();
    world.run(&["run", "--mode", "bypass", "go"]).await.expect(0);
    let said = world.fake.last_request().tool_results().join("\n");
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{said}");
    assert_eq!(world.read(".claude/settings.json"), "{}", "{said}");
    assert_eq!(world.read("made"), "evila\n", "{said}");
    assert_eq!(world.read("src/new"), "b\n", "{said}");
    assert!(!world.work().join("new").exists(), "{said}");
    assert!(world.work().join(".claude").is_symlink(), "{said}");
    assert_eq!(git(&world.work(), &["log", "--format=%s"]), "x", "{said}");
    assert!(said.contains(".claude is a link that the user's programs follow"), "{said}");
}
