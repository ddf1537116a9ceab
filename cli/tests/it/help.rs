//! The help of every command, so that changes to it are seen.

use crate::world::World;

/// The help of every command there is, by its name, in the order in which it is listed.
pub async fn every_help(world: &World, flag: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(command) = open.pop() {
        let arguments: Vec<&str> = command.split_whitespace().chain([flag]).collect();
        let exit = world.run(&arguments).await.expect(0);
        assert_eq!(exit.err, "");
        let below = exit.out.lines().skip_while(|line| *line != "Commands:").skip(1);
        let below = below.take_while(|line| !line.is_empty());
        // What goes on on the next line stands further to the right.
        let names = below.filter(|line| !line.starts_with("   ")).filter_map(|line| {
            let name = line.split_whitespace().next()?;
            (name != "help").then(|| format!("{command} {name}").trim().to_owned())
        });
        open.extend(names.collect::<Vec<_>>().into_iter().rev());
        found.push((command, exit.out));
    }
    found
}

#[tokio::test]
async fn help_reads_well() {
    let world = World::saying("x").await;
    let shown = every_help(&world, "--help").await.into_iter().map(|(command, help)| {
        let command = ["posse", &command, "--help"].join(" ").replace("  ", " ");
        format!("$ {command}\n{help}\n")
    });
    insta::assert_snapshot!(shown.collect::<String>());
}

/// With `INSTA_UPDATE=always`, as for snapshots, the page is written anew from the help.
#[tokio::test]
async fn the_reference_holds_the_help_of_every_command() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/commands.md");
    let mut reference = std::fs::read_to_string(path).unwrap();
    let updates = std::env::var("INSTA_UPDATE").is_ok_and(|it| it == "always");
    let world = World::saying("x").await;
    for (command, help) in every_help(&world, "-h").await {
        // What every command takes stands there once.
        let own = match command.as_str() {
            "" => help.as_str(),
            _ => help.split("\n\nGlobal options:").next().unwrap(),
        };
        let name = format!("posse {command}");
        let level = "#".repeat(name.split_whitespace().count());
        let heading =
            if command.is_empty() { "# Commands\n".into() } else { format!("\n{level} {name}\n") };
        let Some(section) = reference.find(&heading).map(|at| at + heading.len()) else {
            panic!("`{name}` is not in the reference");
        };
        let fence = "```\n";
        let begin = reference[section..].find(fence).unwrap() + section + fence.len();
        let end = reference[begin..].find("\n```").unwrap() + begin;
        if updates {
            reference.replace_range(begin..end, own.trim());
        } else {
            assert_eq!(&reference[begin..end], own.trim(), "the reference of `{name}`");
        }
    }
    if updates {
        std::fs::write(path, reference).unwrap();
    }
}

#[tokio::test]
async fn without_a_command_the_help_is_shown_as_bad_usage() {
    let world = World::saying("x").await;
    let exit = world.run(&[]).await.expect(2);
    assert!(exit.err.contains("Usage: posse") && exit.err.contains("Commands:"), "{}", exit.err);
}
