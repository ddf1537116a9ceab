//! The help of every command, so that changes to it are seen.

use crate::world::World;

#[tokio::test]
async fn help_reads_well() {
    let world = World::saying("x").await;
    let commands = [
        "",
        "run",
        "chat",
        "runs",
        "runs list",
        "runs show",
        "runs tree",
        "runs log",
        "runs watch",
        "runs send",
        "runs questions",
        "runs answer",
        "runs cancel",
        "runs pause",
        "runs resume",
        "runs verify",
        "runs archive",
        "runs prune",
        "runs export",
        "cost",
        "agents",
        "agents list",
        "agents show",
        "agents check",
        "agents new",
        "agents run",
        "skills",
        "skills list",
        "skills show",
        "skills check",
        "trust",
        "trust list",
        "trust remove",
        "audit",
        "audit list",
        "audit export",
        "audit verify",
        "webhooks",
        "webhooks list",
        "webhooks deliveries",
        "webhooks retry",
        "webhooks test",
        "daemon",
        "daemon start",
        "daemon stop",
        "daemon status",
        "daemon unit",
        "models",
        "models test",
        "config",
        "doctor",
        "demo",
        "fake-model",
        "completions",
    ];
    let mut all = String::new();
    for command in commands {
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.push("--help");
        let exit = world.run(&arguments).await.expect(0);
        assert_eq!(exit.err, "");
        all.push_str(&format!("$ posse {}\n{}\n", arguments.join(" "), exit.out));
    }
    insta::assert_snapshot!(all);
}

#[tokio::test]
async fn without_a_command_the_help_is_shown_as_bad_usage() {
    let world = World::saying("x").await;
    let exit = world.run(&[]).await.expect(2);
    assert!(exit.err.contains("Usage: posse") && exit.err.contains("Commands:"), "{}", exit.err);
}
