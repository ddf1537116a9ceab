//! The key reaches the provider and nobody else.

use crate::world::{World, bash, started};
use posse_testkit::{Reply, Script};

const CANARY: &str = "sk-canary-8f3b1c";

#[tokio::test]
async fn the_key_is_in_no_environment_of_a_command_no_output_and_no_file() {
    let script = Script::turns([
        bash("env; cat /proc/self/environ | tr '\\0' '\\n'; echo the environment of Bash"),
        Reply::text("done"),
    ]);
    let world = World::new(script).await;
    for form in ["--json", "--stream-json", "--quiet"] {
        let mut command = world.command(&["run", form, "x"]);
        command.env("ANTHROPIC_API_KEY", CANARY).env("SOME_TOKEN", "also-secret");
        let exit = started(command).end().await.expect(0);
        assert!(!exit.out.contains(CANARY) && !exit.err.contains(CANARY));
    }
    assert_eq!(world.fake.requests()[0].header("x-api-key"), Some(CANARY));
    let run = world.list().await[0]["run"].as_str().unwrap().to_owned();
    let export = world.run(&["runs", "export", &run]).await.expect(0).out;
    assert!(export.contains("the environment of Bash") && export.contains("PATH="), "{export}");
    assert!(!export.contains("ANTHROPIC") && !export.contains("also-secret"), "{export}");
    for entry in std::fs::read_dir(world.database().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn a_provider_that_echoes_the_key_does_not_bring_it_onto_the_screen() {
    let script = Script::always(Reply::error(401, &format!("the key {CANARY} is not known")));
    let world = World::new(script).await;
    let mut command = world.command(&["run", "x"]);
    command.env("ANTHROPIC_API_KEY", CANARY);
    let exit = started(command).end().await.expect(1);
    assert!(!exit.err.contains(CANARY) && !exit.out.contains(CANARY), "{}", exit.err);
}

#[tokio::test]
async fn what_is_stored_is_for_its_owner_only() {
    let world = World::saying("x").await;
    world.run(&["run", "x"]).await.expect(0);
    let folder = world.database().parent().unwrap().to_owned();
    assert_eq!(crate::world::mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(crate::world::mode(&path) & 0o077, 0, "{}", path.display());
    }
}
