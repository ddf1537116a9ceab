//! A fake model that always says the same, in a process of its own.

use crate::bench::Result;
use crate::bench::line::say;
use crate::bench::meter::Meter;
use crate::bench::process::{Process, next_order};
use posse_testkit::{FakeModel, Reply, Script};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Serves a model that says a text of some length, until told to end
#[derive(clap::Args)]
pub struct SayText {
    /// The length of the text
    #[arg(long)]
    bytes: usize,
}

/// What the server has seen, and what that took.
#[derive(Serialize, Deserialize)]
pub struct Seen {
    pub requests: usize,
    pub refused: usize,
    pub abandoned: usize,
    pub connections: usize,
    /// Seconds of processor time.
    pub cpu: f64,
}

impl SayText {
    pub async fn run(self) -> Result<()> {
        let text = "Sixteen letters.".repeat(self.bytes.div_ceil(16));
        let script = Script::always(Reply::text(&text[..self.bytes]));
        let fake = FakeModel::start(script.without_capture()).await?;
        say(&json!(fake.url()).to_string());
        let meter = Meter::start();
        next_order().await?;
        let cpu = meter.read().cpu;
        let (requests, refused, abandoned) = (fake.count(), fake.refused(), fake.abandoned());
        let seen = Seen { requests, refused, abandoned, connections: fake.connections(), cpu };
        say(&serde_json::to_string(&seen)?);
        fake.shutdown().await;
        Ok(())
    }
}

/// Such a server, from outside.
pub struct Server {
    process: Process,
    pub url: String,
}

impl Server {
    /// One that says a text of `bytes`.
    pub fn saying(bytes: usize) -> Result<Self> {
        let mut process = Process::part(&["say-text".to_owned(), format!("--bytes={bytes}")])?;
        let url = process.hear()?;
        Ok(Server { process, url })
    }

    /// Ends it. Fails when a request was not answered to its end.
    pub fn end(mut self) -> Result<Seen> {
        self.process.tell("end")?;
        let seen: Seen = self.process.hear()?;
        self.process.wait()?;
        if (seen.refused, seen.abandoned) != (0, 0) {
            let Seen { refused, abandoned, .. } = seen;
            return Err(format!("the fake model refused {refused} and lost {abandoned}").into());
        }
        Ok(seen)
    }
}
