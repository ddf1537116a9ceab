//! The help of every command, so that changes to it are seen.

use crate::world::World;

/// The help of every command there is, by its name, in the order in which it is listed.
async fn every_help(world: &World, flag: &str) -> Vec<(String, String)> {
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

#[tokio::test]
async fn the_reference_holds_the_help_of_every_command() {
    let reference = include_str!("../../../docs/reference/commands.md");
    let world = World::saying("x").await;
    for (command, help) in every_help(&world, "-h").await {
        // What every command takes stands there once.
        let own = match command.as_str() {
            "" => help.as_str(),
            _ => help.split("\n\nGlobal options:").next().unwrap(),
        };
        let name = format!("posse {command}");
        let level = "#".repeat(name.split_whitespace().count());
        let section = reference.split_once(&format!("{level} {name}\n"));
        let section = if command.is_empty() { Some(("", reference)) } else { section };
        let (_, section) = section.unwrap_or_else(|| panic!("`{name}` is not in the reference"));
        let section = section.split("\n#").find(|part| part.contains("```")).unwrap();
        let block = format!("```\n{}\n```", own.trim());
        assert!(section.contains(&block), "the reference of `{name}` differs from:\n{own}");
    }
}

#[tokio::test]
async fn without_a_command_the_help_is_shown_as_bad_usage() {
    let world = World::saying("x").await;
    let exit = world.run(&[]).await.expect(2);
    assert!(exit.err.contains("Usage: posse") && exit.err.contains("Commands:"), "{}", exit.err);
}
