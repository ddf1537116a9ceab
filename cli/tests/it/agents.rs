//! `posse agents`, and agents given on the command line.

use crate::tree::{child, lead, settings, task};
use crate::world::World;
use posse_testkit::{Reply, Script, When};
use serde_json::{Value, json};
use std::path::Path;

fn agent(folder: &Path, name: &str, head: &str, body: &str) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(format!("{name}.md")), format!("---\n{head}---\n{body}\n")).unwrap();
}

#[tokio::test]
async fn list_shows_where_each_comes_from_and_who_is_shadowed() {
    let world = World::saying("x").await;
    let project = world.work().join(".posse/agents");
    let user = world.home().join("config/posse/agents");
    let claude = world.home().join(".claude/agents");
    let reviewer = "name: reviewer\ndescription: Reviews\ntools: Read, Grep\nmodel: opus\n";
    agent(&project, "reviewer", reviewer, "Review.");
    agent(&user, "mine", "name: mine\ndescription: Mine\n", "Mine.");
    agent(&project, "mine", "name: mine\ndescription: Theirs\n", "Theirs.");
    agent(&claude, "writer", "name: writer\ndescription: Writes\n", "Write.");
    agent(&project, "bad", "name: bad\ndescription: Bad\ntools: []\n", "Bad.");
    let list = world.run(&["agents", "list"]).await.expect(0);
    let line = |begin: &str| {
        let found = list.out.lines().find(|line| line.starts_with(begin));
        found.unwrap_or_else(|| panic!("{begin}: {}", list.out))
    };
    assert!(line("reviewer ").contains(&format!("project ({})", project.display())));
    // Nobody trusts the folder: it chooses no model.
    assert!(!line("reviewer ").contains("opus"));
    assert!(line("AGENT ").contains("DESCRIPTION"), "{}", list.out);
    assert!(line("reviewer ").contains("  (not trusted: read-only) Reviews  "), "{}", list.out);
    assert!(line("reviewer ").ends_with("  Read, Grep"));
    // Nor does it take the name of an agent of the user's.
    assert!(line("mine ").contains(&format!("user ({})", user.display())));
    assert!(line("  mine ").contains("(shadowed by user ("), "{}", list.out);
    assert!(line("writer ").ends_with("  all") && line("writer ").contains(".claude/agents"));
    assert!(line("bad ").ends_with("  cannot be used: see `posse agents check`"));
    assert!(line("explore ").contains("built-in") && line("explore ").contains("small"));
    assert!(list.err.contains("`posse agents check` shows them"), "{}", list.err);
    let json = world.run(&["agents", "list", "--json"]).await.expect(0).json();
    let entries: Vec<&Value> =
        json.as_array().unwrap().iter().filter(|it| it["name"] == "mine").collect();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["source"]["kind"], "user");
    assert_eq!(entries[1]["shadowed_by"]["kind"], "user");
    // One that cannot be used hides nobody, and is told before a run.
    let run = world.run(&["run", "x"]).await.expect(0);
    assert!(run.err.contains("bad.md:") && run.err.contains("error: "), "{}", run.err);
    assert!(run.err.contains("Posse uses another agent mine instead of its own"), "{}", run.err);
}

#[tokio::test]
async fn show_prints_what_an_agent_is_and_its_prompt() {
    let world = World::saying("x").await;
    settings(&world, "small_model = \"haiku\"\n");
    let head = "name: reviewer\ndescription: Reviews\ndisallowedTools: Bash\nmaxTurns: 7\nagents: explore\ncolor: red\n";
    agent(&world.home().join("config/posse/agents"), "reviewer", head, "You review.\n\nWell.");
    let show = world.run(&["agents", "show", "Reviewer"]).await.expect(0).out;
    for line in [
        "agent       reviewer",
        "about       Reviews",
        "model       inherit",
        "tools       Read, Write, Edit, Glob, Grep, List, TodoWrite, Task, spawn_subagent, subagents, Skill",
        "may call    explore",
        "limits      7 turns",
        "colour      red",
    ] {
        assert!(show.lines().any(|shown| shown == line), "{line}: {show}");
    }
    let tools = show.lines().find(|line| line.starts_with("tools       Read, Write, ")).unwrap();
    assert!(tools.contains(", Task") && !tools.contains("Bash"), "{tools}");
    assert!(show.contains("reviewer.md") && show.ends_with("\n\nYou review.\n\nWell.\n"), "{show}");
    let explore = world.run(&["agents", "show", "explore"]).await.expect(0).out;
    assert!(explore.contains("\nmodel       small (haiku, "), "{explore}");
    assert!(!explore.contains("may call"), "it has no tool for that: {explore}");
    let json = world.run(&["agents", "show", "--json", "reviewer"]).await.expect(0).json();
    assert_eq!(json["definition"]["disallowedTools"], json!(["Bash"]));
    assert_eq!(json["may_call"], json!(["explore"]));
    let nobody = world.run(&["agents", "show", "nobody"]).await.expect(2);
    assert!(nobody.err.contains("there is no agent `nobody`; there are: general-purpose, explore"));
}

#[tokio::test]
async fn check_names_every_problem_with_its_place_and_fails_for_errors_only() {
    let world = World::saying("x").await;
    let clean = world.run(&["agents", "check"]).await.expect(0);
    assert_eq!(
        (clean.out.as_str(), clean.err.as_str()),
        ("", "4 definitions checked: 0 errors, 0 warnings\n")
    );
    let project = world.work().join(".posse/agents");
    agent(&project, "odd", "name: odd\ndescription: Odd\ntools: Read, Nonsense\n", "Odd.");
    let warned = world.run(&["agents", "check"]).await.expect(0);
    let place = format!("{}:4:", project.join("odd.md").display());
    assert!(warned.out.starts_with(&place), "{}", warned.out);
    assert!(
        warned.out.contains(": warning: ") && warned.out.contains("Nonsense"),
        "{}",
        warned.out
    );
    agent(&project, "bad", "name: bad\ndescription: Bad\ndisallowedTools: Nonsense\n", "Bad.");
    let failed = world.run(&["agents", "check"]).await.expect(2);
    assert!(failed.out.contains("bad.md:4:") && failed.out.contains(": error: "), "{}", failed.out);
    // Only what is named, wherever it stands.
    let odd = world.run(&["agents", "check", ".posse/agents/odd.md"]).await.expect(0);
    assert!(!odd.out.contains("bad.md") && odd.err.starts_with("1 definition checked"), "{odd:?}");
    let draft = world.work().join("draft");
    agent(&draft, "worse", "name: worse\ndescription: Worse\ntools: []\n", "Worse.");
    let json = world.run(&["agents", "check", "--json", "draft"]).await.expect(2).json();
    assert_eq!((&json["definitions"], &json["errors"]), (&json!(1), &json!(1)), "{json}");
    assert!(json["problems"][0]["path"].as_str().unwrap().ends_with("draft/worse.md"));
    world.run(&["agents", "check", "draft/worse.md"]).await.expect(2);
    let nothing = world.run(&["agents", "check", "nowhere"]).await.expect(2);
    assert!(nothing.err.contains("cannot check nowhere") && nothing.err.contains("hint: "));
}

#[tokio::test]
async fn check_finds_agents_that_no_run_could_be_started_of() {
    let world = World::saying("x").await;
    let project = world.work().join(".posse/agents");
    for (head, why) in [
        ("model: nosuch", "`nosuch` is not a known model"),
        ("model: sonnet, nosuch", "`nosuch` is not a known model"),
        ("outputSchema: {type: nonsense}", "`outputSchema` cannot be used"),
    ] {
        agent(&project, "bad", &format!("name: bad\ndescription: Bad\n{head}\n"), "Bad.");
        for arguments in [&["agents", "check"][..], &["agents", "check", ".posse"]] {
            let exit = world.run(arguments).await.expect(2);
            assert!(exit.out.contains("bad.md:") && exit.out.contains(why), "{}", exit.out);
        }
    }
    for head in ["model: inherit", "model: sonnet, haiku", "model: small"] {
        agent(&project, "bad", &format!("name: bad\ndescription: Good\n{head}\n"), "Good.");
        world.run(&["agents", "check"]).await.expect(0);
    }
    // A role is what the settings say it is.
    world.write("posse.toml", "small_model = \"nosuch\"\n");
    world.run(&["trust", "--yes"]).await.expect(0);
    let exit = world.run(&["agents", "check"]).await.expect(2);
    assert!(exit.out.contains("`nosuch` is not a known model"), "{}", exit.out);
}

#[tokio::test]
async fn new_writes_a_file_that_has_no_problem_and_never_overwrites() {
    let world = World::new(Script::always(Reply::text("{{system}}"))).await;
    let path = world.work().join(".posse/agents/scout.md");
    let made = world.run(&["agents", "new", "scout"]).await.expect(0);
    assert_eq!(made.out, format!("{}\n", path.display()));
    assert!(made.err.contains("posse agents run scout \"…\""), "{}", made.err);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("---\nname: scout\ndescription: "), "{text}");
    let check = world.run(&["agents", "check", path.to_str().unwrap()]).await.expect(0);
    assert_eq!(check.out, "");
    std::fs::write(&path, text.replace("You are scout.", "You are a scout of mine.")).unwrap();
    let again = world.run(&["agents", "new", "scout"]).await.expect(2);
    assert!(again.err.contains("exists already") && again.err.contains("hint: edit it"));
    assert!(std::fs::read_to_string(&path).unwrap().contains("a scout of mine"));
    let user = world.run(&["agents", "new", "--user", "--json", "scout"]).await.expect(0).json();
    assert_eq!(user["in_force"], true, "nobody trusts the project's: {user}");
    std::fs::remove_file(world.home().join("config/posse/agents/scout.md")).unwrap();
    world.run(&["trust", "--yes"]).await.expect(0);
    let user = world.run(&["agents", "new", "--user", "--json", "scout"]).await.expect(0).json();
    assert_eq!(user["in_force"], false, "the project's comes first: {user}");
    assert!(world.home().join("config/posse/agents/scout.md").exists());
    for name in ["no good", "", "plugin:scout"] {
        world.run(&["agents", "new", name]).await.expect(2);
    }
    let run = world.run(&["agents", "run", "scout", "go"]).await.expect(0);
    assert!(run.err.starts_with("scout · "), "{}", run.err);
    assert!(world.fake.last_request().system().contains("a scout of mine"));
    let both = world.run(&["agents", "run", "scout", "--agent", "explore", "go"]).await.expect(2);
    assert!(both.err.contains("cannot be used with"), "{}", both.err);
}

#[tokio::test]
async fn agents_are_given_on_the_command_line_as_text_or_as_a_file() {
    let script = Script::new()
        .conversation(lead([task("poet", "rhyme")]))
        .conversation(child("rhyme", Reply::text("moon, soon")));
    let world = World::new(script).await;
    let map = r#"{"poet": {"description": "Rhymes", "prompt": "You rhyme.", "tools": ["List"]}}"#;
    world.write("poets.json", map);
    for given in [map, "poets.json"] {
        let exit = world.run(&["run", "--agents", given, "lead them"]).await.expect(0);
        assert!(exit.err.contains("✓ [poet] do rhyme · 1 tool, "), "{}", exit.err);
    }
    let asked = world.fake.requests_where(&When::any().first_user_contains("rhyme"));
    assert!(asked[0].system().starts_with("You rhyme."), "{}", asked[0].system());
    let list = world.run(&["agents", "list", "--agents", map]).await.expect(0).out;
    assert!(list.contains("command line"), "{list}");
    let bad = r#"{"poet": {"description": "Rhymes", "prompt": "x", "tools": []}}"#;
    for given in [bad, "{", "nowhere.json"] {
        let exit = world.run(&["run", "--agents", given, "lead"]).await.expect(2);
        assert!(exit.err.starts_with("error: --agents:"), "{}", exit.err);
    }
    assert!(world.list().await.len() == 2, "nothing was started");
}

#[tokio::test]
async fn settings_say_how_deep_and_with_which_models() {
    let world = World::new(
        Script::new()
            .conversation(lead([task("explore", "one")]))
            .conversation(child("one", Reply::text("1"))),
    )
    .await;
    settings(&world, "model = \"opus\"\nsmall_model = \"haiku\"\nmax_depth = 1\n");
    let run = world.run(&["run", "--json", "lead them"]).await.expect(0).json();
    let run = run["run"].as_str().unwrap();
    let tree = world.run(&["runs", "tree", "--json", run]).await.expect(0).json();
    assert!(tree["model"].as_str().unwrap().contains("opus"), "{tree}");
    assert!(tree["children"][0]["model"].as_str().unwrap().contains("haiku"), "{tree}");
    settings(&world, "max_depth = 0\nstrategy = \"tool_call\"\n");
    world.run(&["run", "lead them"]).await.expect(0);
    assert!(!world.fake.last_request().tools().contains(&"Task".to_owned()));
    let config = world.run(&["config"]).await.expect(0).out;
    for line in ["max_depth", "strategy", "small_model", "plan_model"] {
        assert!(config.lines().any(|shown| shown.starts_with(line)), "{line}: {config}");
    }
}
