//! One run, from prompt to result, with its events as they come.
//!
//! `ANTHROPIC_API_KEY=… cargo run --example one_run -- "What does this project do?"`

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example is its own host")]

use posse::protocol::{Delta, Event, Seq};
use posse::{Catalog, Keys, RunSpec, Runtime, RuntimeConfig, Update, launch};
use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    // First of all, before any thread: commands of agents run below this executable.
    let launcher = launch::init();
    tokio::runtime::Runtime::new()?.block_on(run(launcher))
}

async fn run(launcher: launch::Launcher) -> Result<(), Box<dyn Error>> {
    let prompt = std::env::args().nth(1).unwrap_or("What is in this folder?".to_owned());
    let keys = Keys::collect(&Catalog::built_in(), |name| std::env::var(name).ok());
    // Where runs are kept; an example keeps them no longer than it runs.
    let folder = tempfile::tempdir()?;
    let environment = launch::allowed_environment(std::env::vars_os(), &[]);
    let runtime = Runtime::open({
        let mut config: RuntimeConfig = RuntimeConfig::new(folder.path().join("runs.db"), keys);
        config.models.model = Some("sonnet".to_owned());
        config.launcher = Some(launcher.with_environment(environment));
        config
    })
    .await?;

    let spec = RunSpec::new("explore".parse()?, prompt, std::env::current_dir()?);
    let run = runtime.start(spec).await?;
    let mut events = run.events(Seq::ZERO);
    while let Some(update) = events.next().await {
        match update? {
            Update::Delta(Delta::Text { text }) => {
                print!("{text}");
                std::io::stdout().flush()?;
            }
            Update::Event(record) => match record.event {
                Event::ToolStarted(started) => println!("\n[{} …]", started.tool),
                Event::RunFinished(finished) => println!("\n[{}]", finished.outcome),
                _ => {}
            },
            Update::Delta(_) => {}
        }
    }
    runtime.shutdown().await;
    Ok(())
}
