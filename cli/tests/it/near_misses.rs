//! Names that are nearly right: what was meant is said, and what would restrict nothing is refused.

use crate::world::World;

fn put(world: &World, path: &str, text: &str) {
    let path = world.work().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn a_mistyped_key_that_restricts_makes_an_agent_unusable() {
    let world = World::saying("x").await;
    for (key, meant) in [
        ("tols: Read", "tools"),
        ("toools: Read", "tools"),
        ("dissalowedTools: Bash", "disallowedTools"),
        ("permisionMode: plan", "permissionMode"),
        ("netwrok: false", "network"),
    ] {
        put(&world, ".posse/agents/tt.md", &format!("---\ndescription: d\n{key}\n---\nDo it.\n"));
        let check = world.run(&["agents", "check"]).await.expect(2).out;
        let told = format!("restricts nothing; did you mean `{meant}`?");
        assert!(check.contains("tt.md:3:1: error: ") && check.contains(&told), "{key}: {check}");
        let run = world.run(&["run", "--agent", "tt", "x"]).await.expect(2);
        assert!(run.err.contains(&told), "{}", run.err);
    }
    put(&world, ".posse/agents/tt.md", "---\ndescription: d\ncolr: red\n---\nDo it.\n");
    let check = world.run(&["agents", "check"]).await.expect(0).out;
    assert!(
        check.contains("tt.md:3:1: warning: `colr`") && check.contains("did you mean `color`?")
    );
    let given = r#"{"tt": {"description": "d", "prompt": "p", "tols": ["Read"]}}"#;
    let run = world.run(&["run", "--agents", given, "--agent", "tt", "x"]).await.expect(2);
    assert!(run.err.contains("did you mean `tools`?"), "{}", run.err);
    std::fs::remove_file(world.work().join(".posse/agents/tt.md")).unwrap();
    put(&world, "posse.toml", "[agents.explore]\ntols = [\"Read\"]\n");
    let check = world.run(&["agents", "check"]).await.expect(2).err;
    assert!(check.contains("posse.toml:2:1: `tols` is not a field"), "{check}");
    assert!(check.contains("did you mean `tools`?"), "{check}");
    assert_eq!(world.fake.count(), 0, "none of them ran");
}

#[tokio::test]
async fn a_mistyped_name_is_answered_with_the_one_that_was_meant() {
    let world = World::saying("x").await;
    put(&world, ".posse/agents/bad.md", "---\ndescription: d\nmodel: sonett\n---\nDo it.\n");
    for (arguments, says) in [
        (
            &["run", "--model", "sonett", "x"][..],
            "`sonett` is not a known model; did you mean `sonnet`?",
        ),
        (&["run", "--model", "antropic/x", "x"], "did you mean `anthropic`?"),
        (&["run", "--agent", "explor", "x"], "there is no agent `explor`; did you mean `explore`?"),
        (&["run", "--modle", "sonnet", "x"], "did you mean `--model`?"),
        (
            &["run", "--deny", "Bsh(x)", "x"],
            "invalid rule `Bsh(x)`: there is no tool `Bsh`; did you mean `Bash`?",
        ),
        (&["--mode", "ask", "chat"], "the option `--mode` goes after the command"),
        (&["--mode", "ask", "chat"], "write `posse chat --mode`"),
        (&["--mode", "plan"], "write `posse run --mode` or `posse chat --mode`"),
        (&["--stream-json"], "write `posse run --stream-json`"),
        (&["runs", "answer", "abcd", "--yes"], "`--once` allows the call once"),
        (&["run", "--model", "", "x"], "the name of a model is missing"),
        (&["run", "--model", ",", "x"], "the name of a model is missing"),
        (&["run", "--label", "", "x"], "the label is empty"),
        (&["run", "--timeout", "0s", "x"], "give more than 0"),
        (&["run", "--max-turns", "many", "x"], "give a whole number, 1 or more"),
        (&["run", "--cwd", "/etc/passwd", "x"], "cannot work in /etc/passwd: it is not a folder"),
        (
            &["run", "--cwd", "/nowhere", "x"],
            "cannot work in /nowhere: there is no such file or folder",
        ),
        (
            &["run", "--prompt-file", "nowhere"],
            "cannot read nowhere: there is no such file or folder",
        ),
    ] {
        let exit = world.run(arguments).await.expect(2);
        assert!(exit.err.contains(says), "{arguments:?}: {}", exit.err);
        assert!(!exit.err.contains("os error") && !exit.err.contains("invalid digit"));
    }
    let unlike = world.run(&["run", "--model", "rocket-nine", "x"]).await.expect(2).err;
    assert!(unlike.contains("and more; ") && unlike.contains("`posse models`"), "{unlike}");
    assert!(unlike.lines().all(|line| line.len() < 240), "{unlike}");
    let check = world.run(&["agents", "check"]).await.expect(2).out;
    assert!(check.contains("bad.md:3:1: error: no run of agent `bad` can start"), "{check}");
    assert_eq!(world.fake.count(), 0);
}

#[tokio::test]
async fn a_settings_file_says_what_is_wrong_where_and_in_plain_words() {
    let world = World::saying("x").await;
    let folder = world.home().join("config/posse");
    std::fs::create_dir_all(&folder).unwrap();
    for (text, says) in [
        ("anthropic_api_key = \"sk-x\"\n", "config.toml:1:1: `anthropic_api_key` does not belong"),
        ("anthropic_api_key = \"sk-x\"\n", "Set the variable ANTHROPIC_API_KEY"),
        ("modle = \"opus\"\n", "config.toml:1:1: unknown key `modle`; did you mean `model`?"),
        ("\nzzz = 1\n", "config.toml:2:1: unknown key `zzz`; there are: "),
        ("[limits]\nturns = \"many\"\n", "`turns` must be a whole number, 0 or more"),
        ("[limits]\nturns = -3\n", "`turns` must be a whole number, 0 or more"),
        ("[limits]\ntime = \"10 minutes\"\n", "config.toml:2:1: in [limits]: `time`: `10 minutes`"),
        ("[permissions]\ndeny = [\"Bsh\"]\n", "config.toml:2:1: `permissions.deny`: invalid rule"),
    ] {
        std::fs::write(folder.join("config.toml"), text).unwrap();
        let exit = world.run(&["config"]).await.expect(2);
        assert!(exit.err.contains(says), "{says}: {}", exit.err);
        assert!(exit.err.lines().all(|line| line.len() < 400), "{}", exit.err);
    }
}
