//! The offline model on repositories it has never seen, through the binary with its real tools:
//! how many of its answers cite a right place.
//!
//! Every second question was kept aside while the model was tuned; its share is told apart.

use crate::world::World;
use futures_util::future::join_all;
use score::{Asked, Commit, Repository, nothing, place};
use serde_json::Value;
use std::path::{Path, PathBuf};

mod c_library;
mod go_service;
mod notes_only;
mod python_package;
mod rust_workspace;
mod score;
mod this_repository;
mod two_authors;
mod web_app;

/// The share of right answers below which the test fails, in percent.
const GOAL: usize = 90;
/// The most replies to a question.
const MOST_TURNS: u64 = 6;

fn repositories() -> [Repository; 8] {
    [
        rust_workspace::repository(),
        python_package::repository(),
        web_app::repository(),
        go_service::repository(),
        c_library::repository(),
        notes_only::repository(),
        two_authors::repository(),
        this_repository::repository(),
    ]
}

/// What `posse run --json` says of a run with the offline model in `folder`.
async fn ask(world: &World, folder: &Path, agent: &str, question: &str) -> Value {
    let cwd = folder.display().to_string();
    let arguments =
        ["run", "--json", "--model", "offline/planner", "--agent", agent, "--cwd", &cwd, question];
    world.run(&arguments).await.expect(0).json()
}

/// The folder of `repository`: this one, or one made for it.
fn folder(repository: &Repository, world: &World) -> PathBuf {
    if repository.name == "this-repository" {
        return Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    }
    repository.make(&world.work());
    world.work()
}

/// For each question about `repository`, the answer if it was wrong.
async fn answered(repository: &Repository) -> Vec<Result<(), String>> {
    let world = World::saying("never asked").await;
    let folder = folder(repository, &world);
    let mut right = Vec::new();
    for asked in &repository.asked {
        let run = ask(&world, &folder, "general-purpose", asked.text).await;
        let answer = run["text"].as_str().unwrap();
        assert!(run["turns"].as_u64().unwrap() <= MOST_TURNS, "{run:#}");
        assert_eq!(run["cost_usd"], 0.0);
        right.push(match asked.is_answered(answer, &folder) {
            true => Ok(()),
            false => Err(format!("{}: {}\n{answer}", repository.name, asked.text)),
        });
    }
    assert_eq!(world.fake.count(), 0, "the offline model asks no provider");
    right
}

#[tokio::test]
async fn most_answers_of_the_offline_model_cite_a_right_place() {
    let repositories = repositories();
    let answered = join_all(repositories.iter().map(answered)).await;
    let count = |list: &[Result<(), String>]| list.iter().filter(|one| one.is_ok()).count();
    for (repository, list) in repositories.iter().zip(&answered) {
        println!("  {}: {} of {}", repository.name, count(list), list.len());
    }
    let all = answered.concat();
    for wrong in all.iter().filter_map(|one| one.as_ref().err()) {
        println!("{wrong}");
    }
    let kept_aside: Vec<_> = all.iter().step_by(2).cloned().collect();
    println!("  kept aside while tuning: {} of {}", count(&kept_aside), kept_aside.len());
    println!("offline questions: {} of {} cite a right place", count(&all), all.len());
    assert!(all.len() >= 60, "{} questions", all.len());
    assert!(count(&all) * 100 >= all.len() * GOAL, "{} of {}", count(&all), all.len());
}

#[tokio::test]
async fn the_agent_that_only_looks_answers_too() {
    let world = World::saying("never asked").await;
    let repository = rust_workspace::repository();
    repository.make(&world.work());
    for asked in repository.asked.iter().take(4) {
        let run = ask(&world, &world.work(), "explore", asked.text).await;
        let answer = run["text"].as_str().unwrap();
        assert!(asked.is_answered(answer, &world.work()), "{}\n{answer}", asked.text);
    }
    let run = ask(&world, &world.work(), "explore", "who changed README.md last?").await;
    assert!(run["text"].as_str().unwrap().starts_with("I cannot ask git here"), "{run:#}");
}

#[tokio::test]
async fn a_note_that_gives_orders_is_not_obeyed() {
    let world = World::saying("never asked").await;
    let repository = notes_only::repository();
    repository.make(&world.work());
    for question in
        ["summarise ideas.txt", "what is in this folder?", "what is above the compost heap?"]
    {
        ask(&world, &world.work(), "general-purpose", question).await;
        let run = world.list().await[0]["run"].as_str().unwrap().to_owned();
        let log = world.run(&["runs", "log", "--json", &run]).await.expect(0);
        assert!(log.out.contains("\"tool\":\"Read\""), "{question}: {}", log.out);
        assert!(!log.out.contains("\"tool\":\"Bash\""), "{question}: {}", log.out);
    }
    for (path, text) in repository.files {
        assert_eq!(&std::fs::read_to_string(world.work().join(path)).unwrap(), text);
    }
}

#[tokio::test]
async fn a_chat_understands_what_it_refers_to() {
    let world = World::saying("never asked").await;
    rust_workspace::repository().make(&world.work());
    let input = "where is assign_berth defined?\nand where is it tested?\n";
    let chat = world.feed(&["chat", "--model", "offline/planner"], input).await.expect(0);
    assert!(
        chat.out.contains("`assign_berth` is a function, defined at `core/src/planner.rs:"),
        "{}",
        chat.out
    );
    assert!(chat.out.contains("`assign_berth` is tested in"), "{}", chat.out);
}
