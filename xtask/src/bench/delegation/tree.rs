//! A main agent and those it calls: each of them reads three files, one a turn, and answers.

use super::recording::lead;
use crate::bench::Result;
use crate::bench::line::say;
use crate::bench::load::{SETTLED, config};
use crate::bench::meter::{Cost, Meter};
use crate::bench::process::{Process, next_order};
use posse::store::{Filter, Kin};
use posse::{Runtime, TreeEvents, Update};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Executes a main agent that calls many others at once
#[derive(clap::Args)]
pub struct Tree {
    /// The base URL
    #[arg(long)]
    url: String,
    /// The database
    #[arg(long)]
    db: PathBuf,
    /// The folder with the files
    #[arg(long)]
    workspace: PathBuf,
    /// How many it calls
    #[arg(long)]
    children: usize,
    /// How many are executed at a time
    #[arg(long)]
    slots: usize,
    /// Watch the whole tree
    #[arg(long)]
    watch: bool,
}

/// What a tree came to.
#[derive(Serialize, Deserialize)]
pub struct Grown {
    pub cost: Cost,
    /// Updates that were delivered to a watcher.
    pub updates: usize,
}

impl Tree {
    pub async fn run(self) -> Result<()> {
        let runtime = Runtime::open(config(&self.db, &self.url, self.slots)).await?;
        let spec = lead(&self.workspace)?;
        tokio::time::sleep(SETTLED).await;
        say("\"ready\"");
        next_order().await?;
        let meter = Meter::start();
        let mut updates = 0;
        let run = if self.watch {
            let (begun, events) = runtime.start_and_watch(spec).await?;
            let run = runtime.handle(begun.run());
            let mut tree = TreeEvents::new(run.clone(), events);
            while let Some(update) = tree.next().await {
                let (_, Update::Event(_) | Update::Delta(_)) = update?;
                updates += 1;
            }
            run
        } else {
            runtime.start(spec).await?
        };
        let outcome = run.outcome().await?;
        let cost = meter.read();
        let kin = Kin::ChildrenOf(run.id());
        let below = Filter { kin, limit: self.children + 1, ..Filter::default() };
        let rows = runtime.list(&below).await?;
        let ended =
            rows.iter().filter(|row| row.state.outcome.as_deref() == Some("completed")).count();
        runtime.shutdown().await;
        if !outcome.is_completed() || ended != self.children {
            return Err(format!(
                "the main agent: {outcome}; {ended} of {} children completed",
                self.children
            )
            .into());
        }
        say(&serde_json::to_string(&Grown { cost, updates })?);
        Ok(())
    }
}

/// Whether anybody looks on.
#[derive(Clone, Copy, PartialEq)]
pub enum Watcher {
    Nobody,
    Someone,
}

/// How many a main agent calls, and how many of them are executed at a time.
#[derive(Clone, Copy)]
pub struct Size {
    pub children: usize,
    pub slots: usize,
}

impl Size {
    /// All of them at once.
    pub fn at_once(children: usize) -> Self {
        Size { children, slots: children + 1 }
    }
}

/// A runtime with its database in `folder`, ready to go.
pub fn client(
    workspace: &Path,
    size: Size,
    url: &str,
    folder: &tempfile::TempDir,
    watcher: Watcher,
) -> Result<Process> {
    let mut arguments = vec![
        "tree".to_owned(),
        format!("--url={url}"),
        format!("--db={}", folder.path().join("runs.db").display()),
        format!("--workspace={}", workspace.display()),
        format!("--children={}", size.children),
        format!("--slots={}", size.slots),
    ];
    if watcher == Watcher::Someone {
        arguments.push("--watch".to_owned());
    }
    let mut client = Process::part(&arguments)?;
    client.hear::<String>()?;
    Ok(client)
}
