//! `posse skills`, and skills in runs that the command starts.

use crate::world::World;
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn skill(folder: &Path, name: &str, head: &str, body: &str) -> PathBuf {
    let file = folder.join(name).join("SKILL.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, format!("---\n{head}---\n{body}\n")).unwrap();
    file
}

#[tokio::test]
async fn list_shows_where_each_comes_from_and_what_is_not_used() {
    let world = World::saying("x").await;
    let none = world.run(&["skills", "list"]).await.expect(0);
    assert_eq!(none.out, "");
    assert!(none.err.contains("no skills: put a folder with a SKILL.md"), "{}", none.err);
    let project = world.work().join(".posse/skills");
    let user = world.home().join("config/posse/skills");
    skill(&project, "pdf", "description: The project's\n", "x");
    skill(&user, "pdf", "description: Mine\n", "x");
    skill(&world.home().join(".claude/skills"), "mail", "description: Mails\n", "x");
    skill(&user, "danger", "description: Dangerous\n", "x");
    skill(&user, "bad", "name: no good\ndescription: d\n", "x");
    world.write("posse.toml", "[skills]\ndeny = [\"danger\"]\n");
    let list = world.run(&["skills", "list"]).await.expect(0);
    let line = |begin: &str| {
        let found = list.out.lines().find(|line| line.starts_with(begin));
        found.unwrap_or_else(|| panic!("{begin}: {}", list.out))
    };
    assert!(line("pdf ").ends_with("  The project's") && line("pdf ").contains("project ("));
    assert!(line("  pdf ").contains("(shadowed by project ("), "{}", list.out);
    assert!(line("mail ").ends_with("  Mails") && line("mail ").contains(".claude/skills"));
    assert!(line("danger ").ends_with("  (denied by the settings)"));
    assert!(line("bad ").ends_with("  cannot be used: see `posse skills check`"));
    assert!(list.err.contains("`posse skills check` shows them"), "{}", list.err);
    let json = world.run(&["skills", "list", "--json"]).await.expect(0).json();
    let usable: Vec<&Value> =
        json.as_array().unwrap().iter().filter(|it| it["usable"] == true).collect();
    assert_eq!(usable.len(), 2, "{json}");
    assert_eq!(usable[0]["name"], "mail");
    assert_eq!(usable[1]["skill"]["description"], "The project's");
}

#[tokio::test]
async fn show_prints_a_skill_as_an_agent_is_given_it() {
    let world = World::saying("x").await;
    let user = world.home().join("config/posse/skills");
    let head = "name: pdf\ndescription: Fills forms\nallowed-tools: Read\nargument-hint: FILE\n";
    let file = skill(&user, "pdf", head, "Fill in $0 and $ARGUMENTS.");
    std::fs::write(file.with_file_name("more.md"), "x").unwrap();
    let show = world.run(&["skills", "show", "PDF", "a.pdf", "b.pdf"]).await.expect(0);
    for line in [
        "skill       pdf",
        "about       Fills forms",
        "hint        FILE",
        "asks for    Read",
        "files       more.md",
    ] {
        assert!(show.out.lines().any(|shown| shown == line), "{line}: {}", show.out);
    }
    assert!(show.out.ends_with("\n\nFill in a.pdf and a.pdf b.pdf.\n"), "{}", show.out);
    assert!(show.err.contains("SKILL.md:4:1: note: `allowed-tools` grants nothing"));
    let json = world.run(&["skills", "show", "--json", "pdf"]).await.expect(0).json();
    assert_eq!((&json["files"], &json["body"]), (&json!(["more.md"]), &json!("Fill in $0 and .")));
    let nothing = world.run(&["skills", "show", "nothing"]).await.expect(2);
    assert!(nothing.err.contains("there is no skill `nothing`; there are: pdf"), "{}", nothing.err);
}

#[tokio::test]
async fn check_names_every_problem_with_its_place_and_fails_for_errors_only() {
    let world = World::saying("x").await;
    let clean = world.run(&["skills", "check"]).await.expect(0);
    assert_eq!(
        (clean.out.as_str(), clean.err.as_str()),
        ("", "0 skills checked: 0 errors, 0 warnings\n")
    );
    let project = world.work().join(".posse/skills");
    let odd = skill(&project, "odd", "name: odd\nnonsense: 1\n", "Do it.");
    let warned = world.run(&["skills", "check"]).await.expect(0);
    for says in [":2:1: warning: it has no `description`", ":3:1: note: `nonsense` is no field"] {
        let line = format!("{}{says}", odd.display());
        assert!(warned.out.contains(&line), "{line}: {}", warned.out);
    }
    let agents = world.work().join(".posse/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let agent = "---\ndescription: d\nskills: odd, word\n---\nx";
    std::fs::write(agents.join("clerk.md"), agent).unwrap();
    let agent = world.run(&["skills", "check", "--json"]).await.expect(0).json();
    let told = agent["problems"].to_string();
    assert!(told.contains("the skill `word` from the start") && !told.contains("skill `odd` from"));
    let bad = skill(&project, "bad", "description: d\n", "");
    let failed = world.run(&["skills", "check"]).await.expect(2);
    assert!(failed.out.contains("bad/SKILL.md:4:1: error: "), "{}", failed.out);
    let only = world.run(&["skills", "check", odd.to_str().unwrap()]).await.expect(0);
    assert!(only.err.starts_with("1 skill checked"), "{}", only.err);
    world.run(&["skills", "check", bad.to_str().unwrap()]).await.expect(2);
    let draft = world.work().join("draft");
    skill(&draft, "worse", "name: 'a b'\n", "x");
    let json = world.run(&["skills", "check", "--json", "draft"]).await.expect(2).json();
    assert_eq!((&json["skills"], &json["errors"]), (&json!(1), &json!(1)), "{json}");
    let nothing = world.run(&["skills", "check", "nowhere"]).await.expect(2);
    assert!(nothing.err.contains("cannot check nowhere"), "{}", nothing.err);
}

#[tokio::test]
async fn a_run_has_the_skills_of_its_folder() {
    let load = Reply::tool_call("Skill", json!({"skill": "greet", "arguments": "Ada"}));
    let agent = Conversation::when(When::any()).reply(load).reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(agent)).await;
    skill(&world.work().join(".claude/skills"), "greet", "description: Greets\n", "Greet $0.");
    world.run(&["run", "say hello"]).await.expect(0);
    let results = world.fake.last_request().tool_results();
    assert!(results[0].contains("Greet Ada."), "{results:?}");
}
