//! `subagents`: lists, waits for, messages and cancels the subagents of a run.

use crate::announcement;
use crate::child::Above;
use crate::control::SubagentScope;
use crate::delegation::arguments::{self, invalid};
use crate::delegation::target::{self, Family};
use crate::delegation::task;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::tool_facts::{SUBAGENTS, own};
use async_trait::async_trait;
use futures_util::future::join_all;
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::{
    Announce, Caller, CancelScope, Event, Extra, Message, MessageReceived, RunId, Schema, Sender,
    Seq, Status, ToolOutput, ToolSpec,
};
use posse_store::{Append, Guard, RunRow, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::LazyLock;
use std::time::Duration;

const ABOUT: &str = "Lists, inspects, waits for, messages and cancels the agents below you.";

/// The default and the longest time of `wait`.
const WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// The default and the largest number of lines of a list or a log.
const LINES: usize = 20;
const MOST_LINES: usize = 200;
/// How many bytes of a log are shown.
const LOG: usize = 16 * 1024;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = |about: &str| json!({"type": "string", "description": about});
    Schema::from(json!({
        "type": "object",
        "properties": {
            "action": {"type": "string",
                "enum": ["list", "status", "log", "wait", "message", "steer", "cancel"],
                "description": "message: seen when its turn ends, or wakes it; steer: seen before \
                    its next step"},
            "target": text("Run id, label, or number in the list"),
            "targets": {"type": "array", "items": {"type": "string"}},
            "message": {"type": "string"},
            "timeoutSeconds": {"type": "number", "description": "For wait, at most 600"},
            "limit": {"type": "integer"},
        },
        "required": ["action"],
    }))
});

/// The tool for one run.
pub(crate) struct Subagents {
    spec: ToolSpec,
    runtime: Runtime,
}

impl Subagents {
    pub(crate) fn new(runtime: Runtime) -> Self {
        let spec = ToolSpec {
            facts: own(SUBAGENTS),
            description: ABOUT.to_owned(),
            schema: SCHEMA.clone(),
            // After a crash, a message may have arrived; the model decides whether to repeat it.
            idempotent: false,
        };
        Subagents { spec, runtime }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    action: Action,
    #[serde(default, alias = "id", alias = "run")]
    target: Option<Value>,
    #[serde(default, alias = "ids")]
    targets: Vec<Value>,
    #[serde(default, alias = "text")]
    message: String,
    #[serde(default, alias = "timeout_seconds", deserialize_with = "arguments::number")]
    timeout_seconds: Option<f64>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Status,
    Log,
    Wait,
    #[serde(alias = "send")]
    Message,
    Steer,
    #[serde(alias = "kill", alias = "stop")]
    Cancel,
}

#[async_trait]
impl Tool for Subagents {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        match act(&self.runtime, input, context).await {
            Ok(text) => ToolOutput::text(text).into(),
            Err(Error::ShuttingDown) => task::gone(context).await,
            Err(error) => ToolOutput::error(error.to_string()).into(),
        }
    }
}

async fn act(runtime: &Runtime, input: Value, context: &ToolContext) -> Result<String, Error> {
    let arguments: Arguments = arguments::read(input)?;
    let rows = runtime.descendants(context.run).await?;
    let family = Family::new(context.run, rows);
    let limit = arguments.limit.unwrap_or(LINES).clamp(1, MOST_LINES);
    let named: Vec<String> = arguments
        .targets
        .iter()
        .chain(&arguments.target)
        .map(|target| match target {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect();
    let targets = || -> Result<Vec<&RunRow>, Error> {
        if named.is_empty() {
            return Err(invalid("`target` is missing; `list` shows which there are"));
        }
        named.iter().map(|name| family.find(name)).collect()
    };
    let one = || match targets()?.as_slice() {
        [one] => Ok((*one).clone()),
        _ => Err(invalid("this takes one target")),
    };
    match arguments.action {
        Action::List => Ok(list(&family, limit)),
        Action::Status => {
            let rows: Vec<&RunRow> = match named.is_empty() {
                true => family.listed().take(limit).collect(),
                false => targets()?,
            };
            Ok(lines(rows.into_iter()))
        }
        Action::Log => log(runtime, &one()?, limit).await,
        Action::Wait => {
            let seconds = arguments.timeout_seconds.map(|seconds| seconds.clamp(0.0, 1e6));
            let within = seconds.map_or(WAIT, Duration::from_secs_f64).min(LONGEST_WAIT);
            let runs: Vec<RunId> = match named.is_empty() {
                true => family.at_work().map(|row| row.id).collect(),
                false => targets()?.into_iter().map(|row| row.id).collect(),
            };
            wait(runtime, &runs, within, context).await
        }
        Action::Message => say(runtime, &one()?, &arguments.message, true, context).await,
        Action::Steer => say(runtime, &one()?, &arguments.message, false, context).await,
        Action::Cancel => {
            let runs = targets()?.into_iter().cloned().collect::<Vec<_>>();
            cancel(runtime, &runs, context).await
        }
    }
}

impl Runtime {
    /// All subagents of `run`.
    pub(crate) async fn descendants(&self, run: RunId) -> Result<Vec<RunRow>, Error> {
        match self.row(run).await? {
            Some(row) => self.rows_below(&row, SubagentScope::All).await,
            None => Ok(Vec::new()),
        }
    }
}

fn list(family: &Family, limit: usize) -> String {
    let count = family.listed().count();
    if count == 0 {
        return "No agent that you started is at work or ended in the last half hour.".to_owned();
    }
    let mut text = String::new();
    for (index, row) in family.listed().take(limit).enumerate() {
        let _ = writeln!(text, "{}. {}", index + 1, target::line(row));
    }
    if count > limit {
        let _ = writeln!(text, "… and {} more", count - limit);
    }
    text
}

fn lines<'a>(rows: impl Iterator<Item = &'a RunRow>) -> String {
    rows.map(|row| target::line(row) + "\n").collect()
}

/// The last messages and actions of a run.
async fn log(runtime: &Runtime, row: &RunRow, limit: usize) -> Result<String, Error> {
    let records = runtime.read(row.id, Seq::ZERO, usize::MAX).await?;
    let shown: Vec<String> = records.iter().filter_map(|it| told(&it.event)).collect();
    let last = shown.len().saturating_sub(limit);
    let mut text = shown[last..].join("\n");
    let mut cut = text.len().saturating_sub(LOG);
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    text.drain(..cut);
    Ok(format!("{}\n{}", target::line(row), announcement::quote(row.id, "log", &text)))
}

/// A line about an event, if it shows what the run does.
fn told(event: &Event) -> Option<String> {
    let short = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = |text: String| text.chars().take(400).collect::<String>();
    match event {
        Event::MessageReceived(received) => {
            Some(format!("told: {}", cut(short(&received.message.text()))))
        }
        Event::ModelReplied(replied) => {
            let text = short(&replied.message.text());
            let calls = replied.message.tool_calls().map(|call| {
                let input: String = call.input.to_string().chars().take(120).collect();
                format!("calls {} {input}", call.name)
            });
            let all: Vec<String> =
                Some(text).filter(|text| !text.is_empty()).into_iter().chain(calls).collect();
            Some(format!("says: {}", cut(all.join("; "))))
        }
        Event::ModelFailed(failed) => Some(format!("model: {}", cut(short(&failed.reason)))),
        Event::ToolFinished(finished) if finished.output.is_error => {
            Some(format!("error: {}", cut(short(&finished.output.joined_text()))))
        }
        Event::RunFinished(finished) => Some(format!("ended: {}", finished.outcome)),
        _ => None,
    }
}

/// Waits until all of `runs` have ended, or the time is up.
async fn wait(
    runtime: &Runtime,
    runs: &[RunId],
    within: Duration,
    context: &ToolContext,
) -> Result<String, Error> {
    // The runs that are waited for may need this slot.
    let own = runtime.row(context.run).await?;
    let lent = own.map(|own| runtime.inner.supervisor.lend_slot(&own));
    let ends =
        join_all(runs.iter().map(|run| async move { runtime.handle(*run).outcome().await.ok() }));
    let over = tokio::select! {
        _ = ends => true,
        () = tokio::time::sleep(within) => false,
        () = context.cancel.cancelled() => false,
    };
    drop(lent);
    let mut rows = Vec::new();
    for run in runs {
        rows.extend(runtime.row(*run).await?);
    }
    let head = match over {
        true => "all have ended; you get their results without asking\n".to_owned(),
        false => {
            let open = rows.iter().filter(|row| row.state.outcome.is_none()).count();
            format!("{open} of {} are still at work\n", rows.len())
        }
    };
    Ok(head + &lines(rows.iter()))
}

/// Sends a message to a run. A run that has ended starts to work again.
async fn say(
    runtime: &Runtime,
    row: &RunRow,
    text: &str,
    later: bool,
    context: &ToolContext,
) -> Result<String, Error> {
    if text.trim().is_empty() {
        return Err(invalid("`message` is empty; say something"));
    }
    let message = |from: Caller| {
        let (message, extra) = (Message::user(text), Extra::default());
        let (from, asks) = (Sender::Run(from), None);
        Event::MessageReceived(MessageReceived { from, message, later, asks, extra })
    };
    let own = Caller::of_run(context.run);
    if row.state.outcome.is_none() {
        let append = Append::by_anyone(row.id, message(own));
        runtime.inner.store.append(vec![append]).await?;
        runtime.resume(row.id);
        return Ok(format!("told run {}", row.id));
    }
    if row.family.parent != Some(context.run) {
        return Err(invalid(format!(
            "run {} has ended, and only its own parent can set it to work again",
            row.id
        )));
    }
    let announce = Announce::Followup;
    let time = context.time.clone();
    let caller = Caller { time: time.clone(), ..Caller::told(context.run, announce) };
    let above = runtime.above(&caller).await?;
    let above = Above { announce: Some(announce), time, ..above };
    let guard = Guard::Anyone { last: Some(row.log.last_seq) };
    let mut batch = vec![Append { guard, ..Append::by_anyone(row.id, message(caller)) }];
    batch.extend(above.beside(
        row.id,
        &task::agent_named(&row.about.agent)?,
        &row.about.label,
        true,
    ));
    match runtime.inner.store.append(batch).await {
        Err(StoreError::Moved { .. }) => {
            Err(invalid(format!("run {} has just been set to work", row.id)))
        }
        Err(error) => Err(error.into()),
        Ok(_) => {
            runtime.resume(row.id);
            Ok(format!("run {} continues; you will get its result", row.id))
        }
    }
}

async fn cancel(
    runtime: &Runtime,
    rows: &[RunRow],
    context: &ToolContext,
) -> Result<String, Error> {
    let by = match runtime.row(context.run).await? {
        Some(own) => format!("its caller ({})", own.about.agent),
        None => "its caller".to_owned(),
    };
    let mut text = String::new();
    for row in rows {
        let stopped = match runtime.cancel(row.id, &by, CancelScope::Run).await {
            Ok(receipt) => receipt,
            Err(Error::NotNow { .. }) => {
                let _ = writeln!(text, "run {} had ended already", row.id);
                continue;
            }
            Err(error) => return Err(error),
        };
        let _ = writeln!(text, "told run {} to stop", row.id);
        for told in stopped.below() {
            let _ = writeln!(text, "told run {} below it to stop", told.run);
        }
    }
    Ok(text)
}

/// True when a run with this status has not ended.
pub(crate) fn is_at_work(status: Status) -> bool {
    !matches!(status, Status::Finished | Status::Archived | Status::Damaged)
}
