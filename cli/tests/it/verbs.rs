//! What it takes to add a command: its variant with a doc comment, its file, and what the compiler
//! and the reference ask for. Help, manual, completions and `--json` follow.

use crate::daemon::Guard;
use crate::help::every_help;
use crate::world::{Exit, World};
use serde_json::{Deserializer, Value};

/// Fails unless `exit` is of a command that says everything as JSON.
fn check_json(command: &str, exit: &Exit) {
    for value in Deserializer::from_str(&exit.out).into_iter::<Value>() {
        assert!(value.is_ok(), "`posse {command} --json` prints something else: {exit:#?}");
    }
    if exit.code != Some(0) && exit.out.is_empty() {
        let failure: Value = serde_json::from_str(&exit.err)
            .unwrap_or_else(|_| panic!("`posse {command} --json` fails in words: {exit:#?}"));
        assert!(failure["error"].is_string(), "{command}: {failure}");
        assert_eq!(failure["code"].as_i64(), exit.code.map(i64::from), "{command}: {failure}");
    }
}

#[tokio::test]
async fn every_command_has_help_a_page_completions_and_json() {
    let world = World::saying("done").await;
    let _daemon = Guard::of(&world);
    let reference = include_str!("../../../docs/reference/commands.md");
    // One shell is enough: all come from the same definitions.
    let completions = world.run(&["completions", "zsh"]).await.expect(0).out;
    world.run(&["run", "go"]).await.expect(0);
    let run = world.only_run().await;

    let mut answered = 0;
    let all = every_help(&world, "-h").await;
    assert!(all.len() > 40, "{} commands", all.len());
    for (command, help) in all.iter().filter(|(command, _)| !command.is_empty()) {
        let about = help.lines().next().unwrap();
        assert!(
            about.starts_with(char::is_uppercase) && !about.ends_with('.'),
            "{command}: {about}"
        );
        assert!(reference.contains(&format!("# posse {command}\n")), "{command} has no section");

        let words: Vec<&str> = command.split_whitespace().collect();
        let page: Vec<&str> = ["man"].into_iter().chain(words.iter().copied()).collect();
        let page = world.run(&page).await.expect(0).out.replace("\\-", "-");
        let name = format!("posse-{}", words.join("-"));
        assert!(page.contains(&format!("{name} - ")), "{command} has no manual page: {page}");
        let function = format!("_posse__subcmd__{}_commands()", words.join("__subcmd__"));
        assert!(completions.contains(&function), "no shell completes `{command}`");

        // It executes runs until a signal stops it.
        if command == "worker" {
            continue;
        }
        let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap();
        let named = usage.contains("<RUN>").then_some(run.as_str());
        let line: Vec<&str> = words.iter().copied().chain(named).chain(["--json"]).collect();
        let exit = world.run(&line).await;
        check_json(command, &exit);
        answered += usize::from(!exit.out.is_empty());
    }
    assert!(answered > 25, "only {answered} commands printed something");
}
