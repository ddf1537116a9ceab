//! Long conversations: what one turn costs when many have gone before it.

use super::line::say;
use super::load::config;
use super::meter::cpu;
use super::serve::NOTES;
use super::{Result, client};
use async_trait::async_trait;
use bytes::Bytes;
use posse::protocol::{Effect, Event, Seq, ToolOutput, ToolSpec};
use posse::{Answer, Outcome, RunSpec, Runtime, RuntimeConfig, Tool, ToolContext};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Sizes of a transcript at which a turn is looked at, in messages, and how many turns before
/// and after are looked at with it.
pub const SIZES: [(usize, usize); 4] = [(10, 4), (100, 10), (300, 10), (1_000, 11)];
/// What each call returns.
const RESULT_BYTES: usize = 400;

/// What one turn costs at some size.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Turn {
    /// Seconds of processor time.
    pub cpu: f64,
    /// Bytes of the request.
    pub bytes: f64,
}

/// Executes long runs, one after the other
#[derive(clap::Args)]
pub struct Talk {
    /// The base URL
    #[arg(long)]
    url: String,
    /// The database
    #[arg(long)]
    db: PathBuf,
    /// The folder to work in
    #[arg(long)]
    workspace: PathBuf,
    /// How many
    #[arg(long)]
    runs: usize,
}

/// A tool that notes how much processor time was used when it was called.
struct Note {
    spec: ToolSpec,
    calls: Mutex<Vec<Duration>>,
}

#[async_trait]
impl Tool for Note {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Answer {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(cpu());
        ToolOutput::text("n".repeat(RESULT_BYTES)).into()
    }
}

impl Talk {
    pub async fn run(self) -> Result<()> {
        let note = Arc::new(Note {
            spec: ToolSpec::new(
                "Note",
                "Notes something.",
                Effect::Read,
                json!({"type": "object", "properties": {}}),
            ),
            calls: Mutex::default(),
        });
        let config = {
            let mut config: RuntimeConfig = config(&self.db, &self.url, 1);
            config.tools = vec![note.clone()];
            config
        };
        let runtime = Runtime::open(config).await?;
        let mut sums = [Turn { cpu: 0.0, bytes: 0.0 }; SIZES.len()];
        for _ in 0..self.runs {
            let spec = RunSpec::new("general-purpose".parse()?, "Take notes.", &self.workspace);
            let run = runtime.start(spec).await?;
            let outcome = run.outcome().await?;
            if !matches!(outcome, Outcome::Completed { .. }) {
                return Err(format!("a run ended otherwise: {outcome}").into());
            }
            let calls =
                std::mem::take(&mut *note.calls.lock().unwrap_or_else(PoisonError::into_inner));
            let records = runtime.read(run.id(), Seq::ZERO, usize::MAX).await?;
            // The fake model counts a token for four bytes of the request.
            let bytes: Vec<f64> = records
                .iter()
                .filter_map(|record| match &record.event {
                    Event::ModelReplied(replied) => Some(replied.usage.input_tokens as f64 * 4.0),
                    _ => None,
                })
                .collect();
            for (sum, (messages, around)) in sums.iter_mut().zip(SIZES) {
                let (first, last) = (messages / 2 - around, messages / 2 + around);
                let turns = (last - first) as f64;
                let (Some(before), Some(after)) = (calls.get(first), calls.get(last)) else {
                    return Err("a run made too few calls".into());
                };
                sum.cpu += after.saturating_sub(*before).as_secs_f64() / turns;
                sum.bytes += bytes[first + 1..=last].iter().sum::<f64>() / turns;
            }
        }
        runtime.shutdown().await;
        let runs = self.runs as f64;
        let turns = sums.map(|sum| Turn { cpu: sum.cpu / runs, bytes: sum.bytes / runs });
        say(&serde_json::to_string(&turns)?);
        Ok(())
    }
}

/// Makes requests as long as those of long runs
#[derive(clap::Args)]
pub struct TalkRaw {
    /// The base URL
    #[arg(long)]
    url: String,
    /// How many of each size
    #[arg(long)]
    requests: usize,
}

impl TalkRaw {
    pub async fn run(self) -> Result<()> {
        let client = client::build()?;
        let mut turns = Vec::new();
        for (messages, _) in SIZES {
            let body = body(messages.min(NOTES * 2));
            let bytes = body.len() as f64;
            let body = Bytes::from(body);
            let mut began = cpu();
            for count in 0..=self.requests {
                let mut response = client::post(&client, &self.url, body.clone()).await?;
                while response.chunk().await?.is_some() {}
                // The first one only opens the connection.
                if count == 0 {
                    began = cpu();
                }
            }
            let cpu = cpu().saturating_sub(began).as_secs_f64() / self.requests as f64;
            turns.push(Turn { cpu, bytes });
        }
        say(&serde_json::to_string(&turns)?);
        Ok(())
    }
}

/// A request of this many messages, in the shape of those that runs make.
fn body(messages: usize) -> Vec<u8> {
    let mut said =
        vec![json!({"role": "user", "content": [{"type": "text", "text": "Take notes."}]})];
    for turn in 0..messages / 2 {
        let id = format!("toolu_{turn}_0");
        let call = json!({"type": "tool_use", "id": id, "name": "Note", "input": {}});
        let text = json!([{"type": "text", "text": "n".repeat(RESULT_BYTES)}]);
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        said.push(json!({"role": "assistant", "content": [call]}));
        said.push(json!({"role": "user", "content": [result]}));
    }
    let tool = json!({"name": "Note", "description": "Notes something.", "input_schema": {"type": "object"}});
    let body = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 1024, "stream": true, "tools": [tool],
        "messages": said,
    });
    body.to_string().into_bytes()
}
