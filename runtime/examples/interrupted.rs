//! A run that outlives its runtime: the first is shut down in the middle, the second goes on.
//!
//! `ANTHROPIC_API_KEY=… cargo run --example interrupted`

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example is its own host")]

use posse::protocol::{Event, Seq};
use posse::{Catalog, Keys, RunSpec, Runtime, RuntimeConfig, Update};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let keys = Keys::collect(&Catalog::built_in(), |name| std::env::var(name).ok());
    // Where runs are kept; an example keeps them no longer than it runs.
    let folder = tempfile::tempdir()?;
    let config = {
        let mut config: RuntimeConfig = RuntimeConfig::new(folder.path().join("runs.db"), keys);
        config.models.model = Some("sonnet".to_owned());
        config
    };

    let first = Runtime::open(config.clone()).await?;
    let spec =
        RunSpec::new("explore".parse()?, "What is in this folder?", std::env::current_dir()?);
    let run = first.start(spec).await?;
    let mut events = run.events(Seq::ZERO);
    while let Some(update) = events.next().await {
        if let Update::Event(record) = update?
            && matches!(record.event, Event::ToolFinished(_))
        {
            break;
        }
    }
    first.shutdown().await;
    println!("shut down after the first tool call; the run is in the database");

    let second = Runtime::open(config).await?;
    let outcome = second.handle(run.id()).outcome().await?;
    println!("{outcome}: {}", outcome.text());
    second.shutdown().await;
    Ok(())
}
