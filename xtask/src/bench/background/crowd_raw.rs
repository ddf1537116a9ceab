//! The requests of all children by a raw client, as many side by side as there are slots.

use super::SLOTS;
use super::recording::{OF_CHILD, Recording};
use crate::bench::line::say;
use crate::bench::meter::Meter;
use crate::bench::process::{Process, next_order};
use crate::bench::raw::converse;
use crate::bench::{Result, client};
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

/// Makes the requests of many children, some at a time
#[derive(clap::Args)]
pub struct CrowdRaw {
    /// The base URL
    #[arg(long)]
    url: String,
    /// The folder with the bodies
    #[arg(long)]
    bodies: PathBuf,
    /// How many children
    #[arg(long)]
    runs: usize,
}

impl CrowdRaw {
    pub async fn run(self) -> Result<()> {
        let client = client::build()?;
        let read = |turn: usize| std::fs::read(self.bodies.join(turn.to_string())).map(Bytes::from);
        let bodies: Arc<[Bytes]> = (0..OF_CHILD).map(read).collect::<std::io::Result<_>>()?;
        let url: Arc<str> = self.url.into();
        let begun = Arc::new(AtomicUsize::new(0));
        say("\"ready\"");
        next_order().await?;
        let meter = Meter::start();
        let mut tasks = JoinSet::new();
        for _ in 0..SLOTS {
            let (client, bodies, url) = (client.clone(), bodies.clone(), url.clone());
            let (begun, runs) = (begun.clone(), self.runs);
            tasks.spawn(async move {
                let mut reads = 0;
                while begun.fetch_add(1, Ordering::Relaxed) < runs {
                    let heard = converse(&client, &url, &bodies).await;
                    reads += heard.map_err(|error| error.to_string())?;
                }
                Ok::<usize, String>(reads)
            });
        }
        let mut reads = 0;
        while let Some(done) = tasks.join_next().await {
            reads += done??;
        }
        let cost = meter.read();
        if reads != self.runs {
            return Err(format!("{reads} reads were found instead of {}", self.runs).into());
        }
        say(&serde_json::to_string(&cost)?);
        Ok(())
    }
}

/// A raw client, ready to go.
pub fn raw_client(recording: &Recording, url: &str, runs: usize) -> Result<Process> {
    let mut client = Process::part(&[
        "crowd-raw".to_owned(),
        format!("--url={url}"),
        format!("--bodies={}", recording.bodies().display()),
        format!("--runs={runs}"),
    ])?;
    client.hear::<String>()?;
    Ok(client)
}
