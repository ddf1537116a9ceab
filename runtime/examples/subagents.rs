//! Two specialists, executed side by side.
//!
//! `cargo run --example subagents` works without a key, on the offline model; with a key in the
//! environment, on a real one.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example is its own host")]

use posse::subagents::{DelegationStrategy, Subagent, SubagentError, SubagentExecutor};
use posse::{Catalog, Keys};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let keys = Keys::collect(&Catalog::built_in(), |name| std::env::var(name).ok());
    // Runs are kept in a temporary folder, no longer than the executor.
    let mut executor = SubagentExecutor::new(DelegationStrategy::Auto).with_home(keys);
    executor.register(Subagent {
        name: "guide".into(),
        description: "Explains a project to newcomers".into(),
        instructions: "Look around first. Name files, with line numbers where they help.".into(),
        allowed_tools: ["Read", "Glob", "Grep", "List"].map(str::to_owned).to_vec(),
        max_turns: Some(20),
        model: None,
    })?;
    executor.register(Subagent {
        name: "counter".into(),
        description: "Counts things in a project".into(),
        instructions: "Answer with the number and what was counted, nothing else.".into(),
        allowed_tools: vec!["Glob".into(), "Grep".into(), "List".into()],
        max_turns: Some(20),
        model: None,
    })?;
    println!("There are: {}", executor.list_subagents().join(", "));

    let (guide, counter) = tokio::join!(
        executor.execute("guide", "What is in this folder?"),
        executor.execute("counter", "How many files are in this folder?"),
    );
    for result in [guide, counter] {
        match result {
            Ok(output) => println!(
                "\n[{}] {}\n({} messages, {} turns, {})",
                output.subagent_name,
                output.text(),
                output.messages.len(),
                output.summary.turns,
                output.summary.cost,
            ),
            Err(SubagentError::ExecutionFailed(failure)) => {
                println!("\n{failure}\n({} messages until there)", failure.messages.len());
            }
            Err(error) => println!("\n{error}"),
        }
    }
    executor.shutdown().await;
    Ok(())
}
