//! The requests of a main agent and of those it calls by a raw client: the first of the main
//! agent, those of all others side by side, and then the last, which has their results.

use super::recording::{FIRST, LAST, Recording};
use crate::bench::line::say;
use crate::bench::meter::Meter;
use crate::bench::process::{Process, next_order};
use crate::bench::raw::{ask, converse};
use crate::bench::serve::FILES;
use crate::bench::{Result, client, requests};
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Makes the requests of a tree of runs
#[derive(clap::Args)]
pub struct TreeRaw {
    /// The base URL
    #[arg(long)]
    url: String,
    /// The folder with the bodies
    #[arg(long)]
    bodies: PathBuf,
    /// How many the main agent calls
    #[arg(long)]
    children: usize,
}

impl TreeRaw {
    pub async fn run(self) -> Result<()> {
        let client = client::build()?;
        let of_child: Arc<[Bytes]> =
            requests::bodies(&self.bodies)?.into_iter().map(Bytes::from).collect();
        let [first, last] =
            [FIRST, LAST].map(|name| std::fs::read(self.bodies.join(name)).map(Bytes::from));
        let (first, last) = (first?, last?);
        let url: Arc<str> = self.url.into();
        say("\"ready\"");
        next_order().await?;
        let meter = Meter::start();
        let called = ask(&client, &url, first, "Task").await?;
        let mut tasks = JoinSet::new();
        for _ in 0..called {
            let (client, bodies, url) = (client.clone(), of_child.clone(), url.clone());
            tasks.spawn(async move {
                converse(&client, &url, &bodies).await.map_err(|error| error.to_string())
            });
        }
        let mut reads = 0;
        while let Some(done) = tasks.join_next().await {
            reads += done??;
        }
        let more = ask(&client, &url, last, "Task").await?;
        let cost = meter.read();
        if (called, reads, more) != (self.children, self.children * FILES.len(), 0) {
            return Err(format!("{called} tasks, {reads} reads and {more} more were found").into());
        }
        say(&serde_json::to_string(&cost)?);
        Ok(())
    }
}

/// A raw client, ready to go.
pub fn raw_client(recording: &Recording, url: &str) -> Result<Process> {
    let mut client = Process::part(&[
        "tree-raw".to_owned(),
        format!("--url={url}"),
        format!("--bodies={}", recording.bodies().display()),
        format!("--children={}", recording.children),
    ])?;
    client.hear::<String>()?;
    Ok(client)
}
