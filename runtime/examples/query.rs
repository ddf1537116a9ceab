//! One question to a main agent that may hand work to a specialist, message by message.
//!
//! `cargo run --example query` works without a key, on the offline model; with a key in the
//! environment, on a real one.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example is its own host")]

use posse::protocol::Delta;
use posse::query::{AgentDefinition, DefinedRights, Message, QueryOptions};
use posse::{Catalog, Keys, Limits};
use std::error::Error;
use std::io::Write;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let prompt = std::env::args().nth(1).unwrap_or("Have the reviewer look at README.md".into());
    let reviewer = AgentDefinition {
        description: "Reviews documents and code. Use it for everything that is to be judged."
            .into(),
        prompt: "You review what you are pointed to: read it, then say what is wrong with it and \
                 where."
            .into(),
        rights: DefinedRights::to_call(["Read", "Grep"]),
        max_turns: Some(20),
        ..AgentDefinition::default()
    };
    let keys = Keys::collect(&Catalog::built_in(), |name| std::env::var(name).ok());
    let options = QueryOptions {
        agents: [("reviewer".to_owned(), reviewer)].into(),
        allowed_tools: Some(["Read", "Glob", "Grep", "List", "Task"].map(str::to_owned).to_vec()),
        limits: Limits { turns: Some(30), ..Limits::default() },
        // Runs are kept in a temporary folder, until the last message.
        home: keys.into(),
        ..QueryOptions::default()
    };

    let mut messages = posse::query(prompt, options).await?;
    while let Some(message) = messages.next().await {
        match message? {
            Message::Started(started) => println!("[{} · {}]", started.agent, started.model),
            Message::Delta(Delta::Text { text }) => {
                print!("{text}");
                std::io::stdout().flush()?;
            }
            Message::Delegated { agent, label, .. } => println!("\n[{agent} … {label}]"),
            Message::ToolResult { tool, output, .. } if output.is_error => {
                println!("\n[{tool} failed: {}]", output.joined_text());
            }
            Message::Result(summary) => println!(
                "\n[{} · {} turns · {} runs below it · {}]",
                summary.outcome, summary.turns, summary.children, summary.cost
            ),
            _ => {}
        }
    }
    Ok(())
}
