//! What a turn costs as the transcript grows, against the bytes it sends.

use crate::bench::harness::Effort;
use crate::bench::line::{Line, Samples, seconds, times};
use crate::bench::load::{open_with, spec};
use crate::bench::meter::{Meter, cpu};
use crate::bench::part::ready;
use crate::bench::server::{NOTES, Pace, Play, Server};
use crate::bench::{Part, Result, client};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use posse::protocol::{Effect, Event, Seq, ToolOutput, ToolSpec};
use posse::{Answer, Tool, ToolContext};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Requests of each size that the raw client makes.
const REQUESTS: usize = 200;
/// Long runs of one round.
const RUNS: usize = 8;
/// Sizes of a transcript at which turns are measured, in messages, and how many turns before and after
/// belong to the measurement.
const SIZES: [(usize, usize); 4] = [(10, 4), (100, 10), (300, 10), (1_000, 11)];
/// What each call returns.
const RESULT_BYTES: usize = 400;

pub fn measure(effort: Effort) -> Result<()> {
    let rounds: Vec<(Vec<Turn>, Vec<Turn>)> = effort.rounds(|| Ok((posse()?, raw()?)))?;
    for (index, (messages, _)) in SIZES.iter().enumerate() {
        let costs: Vec<(f64, f64)> =
            rounds.iter().map(|(posse, raw)| (posse[index].cpu, raw[index].cpu)).collect();
        let shown = |cpu: Samples, turn: &Turn| {
            let per_megabyte = seconds(cpu.median() / (turn.bytes / 1e6));
            format!("{}, {per_megabyte}/MB", cpu.shown(seconds))
        };
        let (posse, raw) = &rounds[0];
        let name = format!("turns: processor at {messages} messages");
        Line::compared(name, &costs, seconds)
            .posse(shown(Samples::new(costs.iter().map(|cost| cost.0)), &posse[index]))
            .raw(shown(Samples::new(costs.iter().map(|cost| cost.1)), &raw[index]))
            .print();
    }
    let growths = rounds.iter().map(|(posse, raw)| (growth(posse), growth(raw)));
    let growths: Vec<(f64, f64)> = growths.collect();
    let median = Samples::new(growths.iter().map(|growth| growth.0)).median();
    Line::compared("turns: growth of the slope", &growths, times)
        .ratio("–")
        .goal("linear in bytes (≤ 1.5)", median <= 1.5)
        .print();
    Ok(())
}

/// What another byte costs between the two largest sizes, against what it costs up to there: 1
/// when cost is linear in bytes, about 4 if it were quadratic.
fn growth(turns: &[Turn]) -> f64 {
    let slope = |from: &Turn, to: &Turn| (to.cpu - from.cpu) / (to.bytes - from.bytes);
    match turns {
        [first, _, third, fourth] => slope(third, fourth) / slope(first, third),
        _ => f64::NAN,
    }
}

fn posse() -> Result<Vec<Turn>> {
    let part = |url| Part::Talk(Talk { url });
    Server::round(Play::Notes, Pace::AtOnce, RUNS * (NOTES + 1), part)
}

fn raw() -> Result<Vec<Turn>> {
    let part = |url| Part::TalkRaw(TalkRaw { url });
    Server::round(Play::Notes, Pace::AtOnce, SIZES.len() * (REQUESTS + 1), part)
}

/// What one turn costs at some size.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Turn {
    /// Seconds of processor time.
    pub cpu: f64,
    /// Bytes of the request.
    pub bytes: f64,
}

/// Executes long runs, one after the other.
#[derive(Serialize, Deserialize)]
pub struct Talk {
    url: String,
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
        self.calls.lock().push(cpu());
        ToolOutput::text("n".repeat(RESULT_BYTES)).into()
    }
}

impl Talk {
    pub async fn run(self) -> Result<Vec<Turn>> {
        let note = Arc::new(Note {
            spec: ToolSpec::new(
                "Note",
                "Notes something.",
                Effect::Read,
                json!({"type": "object", "properties": {}}),
            ),
            calls: Mutex::default(),
        });
        let tools = vec![note.clone() as Arc<dyn Tool>];
        let (runtime, folder) = open_with(&self.url, 1, |config| config.tools = tools).await?;
        ready().await?;
        let mut sums = [Turn { cpu: 0.0, bytes: 0.0 }; SIZES.len()];
        for _ in 0..RUNS {
            let run = runtime.start(spec("Take notes.", folder.path())?).await?;
            let outcome = run.outcome().await?;
            if !outcome.is_completed() {
                return Err(format!("a run ended otherwise: {outcome}").into());
            }
            let calls = std::mem::take(&mut *note.calls.lock());
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
        let runs = RUNS as f64;
        Ok(sums.map(|sum| Turn { cpu: sum.cpu / runs, bytes: sum.bytes / runs }).to_vec())
    }
}

/// Makes requests as long as those of long runs.
#[derive(Serialize, Deserialize)]
pub struct TalkRaw {
    url: String,
}

impl TalkRaw {
    pub async fn run(self) -> Result<Vec<Turn>> {
        let client = client::build()?;
        ready().await?;
        let mut turns = Vec::new();
        for (messages, _) in SIZES {
            let body = Bytes::from(body(messages.min(NOTES * 2)));
            // The first request only opens the connection.
            client::ask(&client, &self.url, body.clone()).await?;
            let meter = Meter::start();
            for _ in 0..REQUESTS {
                client::ask(&client, &self.url, body.clone()).await?;
            }
            turns.push(Turn { cpu: meter.read().cpu / REQUESTS as f64, bytes: body.len() as f64 });
        }
        Ok(turns)
    }
}

/// A request of this many messages, in the form of a request of a run.
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
