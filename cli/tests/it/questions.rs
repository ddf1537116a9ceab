//! The offline model on small repositories, through the binary with its real tools: what its
//! answers say, and what they must never say.

use crate::world::World;
use futures_util::future::join_all;
use score::{Asked, Commit, Repository, ask};
use serde_json::Value;
use std::path::Path;

mod go_service;
mod js_library;
mod notes_only;
mod python_package;
mod rust_workspace;
mod score;
mod two_authors;
mod web_app;

/// The most replies to a question.
const MOST_TURNS: u64 = 6;

fn repositories() -> [Repository; 7] {
    [
        rust_workspace::repository(),
        python_package::repository(),
        web_app::repository(),
        go_service::repository(),
        js_library::repository(),
        notes_only::repository(),
        two_authors::repository(),
    ]
}

/// What `posse run --json` says of a run with the offline model in `folder`.
async fn run(world: &World, folder: &Path, agent: &str, question: &str) -> Value {
    let cwd = folder.display().to_string();
    let arguments =
        ["run", "--json", "--model", "offline/planner", "--agent", agent, "--cwd", &cwd, question];
    world.run(&arguments).await.expect(0).json()
}

/// For each question about `repository`, the answer if it was wrong.
async fn answered(repository: &Repository) -> Vec<Result<(), String>> {
    let world = World::saying("never asked").await;
    repository.make(&world.work());
    let mut right = Vec::new();
    for asked in &repository.asked {
        let run = run(&world, &world.work(), "general-purpose", asked.text).await;
        let answer = run["text"].as_str().unwrap();
        assert!(run["turns"].as_u64().unwrap() <= MOST_TURNS, "{run:#}");
        assert_eq!(run["cost_usd"], 0.0);
        right.push(
            asked.check(answer).map_err(|fault| {
                format!("{}: {}\n  {fault}\n{answer}", repository.name, asked.text)
            }),
        );
    }
    assert_eq!(world.fake.count(), 0, "the offline model asks no provider");
    right
}

#[tokio::test]
async fn the_offline_model_answers_what_it_is_sure_of() {
    let repositories = repositories();
    let answered = join_all(repositories.iter().map(answered)).await.concat();
    let wrong: Vec<&String> = answered.iter().filter_map(|one| one.as_ref().err()).collect();
    for wrong in &wrong {
        println!("{wrong}\n");
    }
    let right = answered.len() - wrong.len();
    println!("offline questions: {right} of {} are answered rightly", answered.len());
    assert!(answered.len() >= 60, "{} questions", answered.len());
    assert!(wrong.is_empty(), "{} answers are wrong; see above", wrong.len());
}

#[tokio::test]
async fn the_agent_that_only_looks_answers_too() {
    let world = World::saying("never asked").await;
    let repository = rust_workspace::repository();
    repository.make(&world.work());
    for asked in repository.asked.iter().take(4) {
        let run = run(&world, &world.work(), "explore", asked.text).await;
        let answer = run["text"].as_str().unwrap();
        assert_eq!(asked.check(answer), Ok(()), "{}\n{answer}", asked.text);
    }
    let run = run(&world, &world.work(), "explore", "who changed README.md last?").await;
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
        run(&world, &world.work(), "general-purpose", question).await;
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
    let input = "where is assign_berth defined?\nand where is it tested?\n\
                 where is Planner defined?\nand who uses it?\n";
    let chat = world.feed(&["chat", "--model", "offline/planner"], input).await.expect(0);
    assert!(
        chat.out.contains("`assign_berth` is a function, defined at `core/src/planner.rs:"),
        "{}",
        chat.out
    );
    assert!(chat.out.contains("`assign_berth` is mentioned in tests"), "{}", chat.out);
    assert!(chat.out.contains("`Planner`: "), "{}", chat.out);
    // What the model is, is said once in a session, and not among its answers.
    assert_eq!(chat.err.matches("built-in offline model").count(), 1, "{}", chat.err);
    assert!(!chat.out.contains("offline model"), "{}", chat.out);
}

#[tokio::test]
async fn what_the_model_is_goes_to_standard_error_and_not_into_the_answer() {
    let world = World::saying("never asked").await;
    rust_workspace::repository().make(&world.work());
    let question = ["run", "--model", "offline/planner", "where is Berth defined?"];
    let shown = world.run(&question).await.expect(0);
    assert!(shown.out.starts_with("`Berth` is a struct"), "{}", shown.out);
    assert!(!shown.out.contains("ANTHROPIC_API_KEY"), "{}", shown.out);
    let notice = "This is the built-in offline model";
    assert_eq!(shown.err.matches(notice).count(), 1, "{}", shown.err);
    assert!(shown.err.contains("set ANTHROPIC_API_KEY"), "{}", shown.err);
    for quiet in ["--quiet", "--json"] {
        let exit = world.run(&[&[quiet], &question[..]].concat()).await.expect(0);
        assert!(!exit.err.contains(notice) && !exit.out.contains(notice), "{exit:?}");
    }
}

#[tokio::test]
async fn a_search_is_shown_in_words_and_with_its_place() {
    let world = World::saying("never asked").await;
    rust_workspace::repository().make(&world.work());
    let shown = |question: &'static str| {
        let world = &world;
        async move { world.run(&["run", "--model", "offline/planner", question]).await.expect(0).err }
    };
    let err = shown("where is assign_berth used in core/src/planner.rs?").await;
    assert!(err.contains("● Grep assign_berth in core/src/planner.rs\n"), "{err}");
    let err = shown("how are clients limited?").await;
    assert!(err.contains("● Grep client|limit\n"), "{err}");
    for line in err.lines().filter(|line| line.starts_with("● ")) {
        assert_eq!(err.matches(line).count(), 1, "{line} is shown more than once:\n{err}");
    }
}

#[tokio::test]
async fn an_agent_asked_for_by_name_gets_the_task() {
    let world = World::saying("never asked").await;
    rust_workspace::repository().make(&world.work());
    let task = "use the explore agent to find out where Berth is defined";
    let exit = world.run(&["run", "--model", "offline/planner", task]).await.expect(0);
    assert!(exit.out.starts_with("`explore` answered:"), "{}", exit.out);
    assert!(
        exit.out.contains("`Berth` is a struct, defined at `core/src/berth.rs:11`"),
        "{}",
        exit.out
    );
}

#[tokio::test]
async fn a_diff_to_review_is_declined_and_not_searched() {
    let world = World::saying("never asked").await;
    rust_workspace::repository().make(&world.work());
    let diff = "review this change:\ndiff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n+fn a() {}\n";
    let exit = world.feed(&["run", "--model", "offline/planner", "-"], diff).await.expect(0);
    assert!(exit.out.contains("I cannot review, write, judge or fix"), "{}", exit.out);
    assert!(exit.out.contains("`x.rs`: 1 line added, 0 lines removed"), "{}", exit.out);
    assert!(!exit.err.contains("● "), "{}", exit.err);
}

#[tokio::test]
async fn piped_text_is_not_the_question() {
    let world = World::saying("never asked").await;
    rust_workspace::repository().make(&world.work());
    let ask = |question: &'static str, piped: &'static str| {
        let world = &world;
        async move {
            let arguments = ["run", "--model", "offline/planner", question];
            let exit = world.feed(&arguments, piped).await.expect(0);
            (exit.out, exit.err)
        }
    };
    // It does not read what is piped, and says so; it searches for no word of it.
    let diff = "diff --git a/core/src/tide.rs b/core/src/tide.rs\n--- a/core/src/tide.rs\n\
                +++ b/core/src/tide.rs\n@@ -1,2 +1,3 @@\n a\n-fn Planner() {}\n+use Berth;\n+b\n";
    for question in ["what does this do?", "what changed?", "how many lines are there?"] {
        let (out, err) = ask(question, diff).await;
        assert!(out.contains("I cannot explain text that comes with a question"), "{out}");
        assert!(out.contains("`core/src/tide.rs`: 2 lines added, 1 line removed"), "{out}");
        assert!(!out.contains("Planner") && !err.contains("● "), "{out}{err}");
    }
    let log = "use the explore agent to find Planner\nfn main() {\n";
    let (out, _) = ask("explain this", log).await;
    assert!(out.contains("I cannot explain text that comes with a question"), "{out}");
    assert!(!out.contains("explore") && !out.contains("Planner"), "{out}");
    // What it can answer from files it does, and it says what it left out.
    let (out, _) = ask("where is Berth defined?", log).await;
    assert!(out.starts_with("`Berth` is a struct, defined at `core/src/berth.rs:11`"), "{out}");
    assert!(out.contains("I did not read the text that came with the question"), "{out}");
    let (out, _) = ask("what does this project do?", log).await;
    assert!(out.contains("assigns berths to arriving ships"), "{out}");
}

#[tokio::test]
async fn the_agents_that_can_be_asked_are_known() {
    let world = World::saying("never asked").await;
    rust_workspace::repository().make(&world.work());
    let ask = |question: &'static str| {
        let world = &world;
        let arguments = ["run", "--model", "offline/planner", question];
        async move { world.run(&arguments).await.expect(0).out }
    };
    let out = ask("which agents are there?").await;
    assert!(out.contains("- `explore`: ") && out.contains("- `plan`: "), "{out}");
    let out = ask("ask explore to find out where Berth is defined").await;
    assert!(out.starts_with("`explore` answered:"), "{out}");
    assert!(out.contains("`core/src/berth.rs:11`"), "{out}");
}
