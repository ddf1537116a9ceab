//! The `posse` binary as its users meet it: through pipes, signals and a terminal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod aftermath;
mod agents;
mod asking;
mod attacks;
mod audit;
mod budgets;
mod bulk;
mod cassette;
mod chat;
mod chat_commands;
mod chat_screen;
mod claude;
mod cleaning;
mod codes;
mod confinement;
mod control;
mod cost;
mod crash;
mod daemon;
mod daemon_socket;
mod folding;
mod front;
mod full_disk;
mod git;
mod git_law;
mod going_on;
mod grid;
mod guidance;
mod help;
mod home;
mod hostile;
mod interrupted;
mod labels;
mod links;
mod lists;
mod mcp;
mod mending;
mod models;
mod money;
mod mounts;
mod near_misses;
mod next_steps;
mod prompt;
mod quarantine;
mod questions;
mod queue;
mod records;
mod repositories;
mod rules;
mod run;
mod secrets;
mod seen;
mod server_away;
mod server_database;
mod settings;
mod sharing;
mod signals;
mod skills;
mod slash;
mod taken_over;
mod terminal;
mod tmux;
mod tree;
mod tree_terminal;
mod trust;
mod verbs;
mod webhooks;
mod worktrees;
mod world;

#[test]
fn every_file_beside_this_one_is_a_module_of_it() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(module) = name.strip_suffix(".rs") else { continue };
        assert!(module == "main" || main.contains(&format!("mod {module};")), "{name}");
    }
}
