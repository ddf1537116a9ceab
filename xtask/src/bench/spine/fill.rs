//! A database with many runs, as a runtime leaves it that has worked for long and then died.

use crate::bench::Result;
use crate::bench::part::ready;
use posse::protocol::{
    AgentSpec, CallId, Event, Extra, Grant, Message, MessageReceived, ModelCalled, ModelReplied,
    Outcome, Part, Purpose, Role, RunFinished, RunStarted, Seq, Stop, ToolCall, ToolStarted, Usage,
};
use posse::store::{
    Append, Durability, Guard, Logs, Options, Ownership, Reserve, SqliteStore, Store, StoreError,
};
use posse::{AgentCatalog, RunId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Adds runs to a database.
#[derive(Serialize, Deserialize)]
pub struct Fill {
    pub database: PathBuf,
    /// Runs that have ended.
    pub finished: usize,
    /// Runs that were at work.
    pub unfinished: usize,
}

/// Runs of one append.
const BATCH: usize = 256;
/// Appends that wait at a time, so that the store commits several together.
const ABREAST: usize = 8;

impl Fill {
    pub async fn run(self) -> Result<()> {
        let options = Options { durability: Durability::Process, ..Options::new(&self.database) };
        let store = Arc::new(SqliteStore::open(options).await?);
        ready().await?;
        add(&store, self.finished, Guard::Create(Ownership::Waiting), finished()).await?;
        add(&store, self.unfinished, Guard::Create(Ownership::Mine), interrupted()).await?;
        if self.unfinished == 0 {
            store.close().await;
        }
        // Unfinished runs stay as a killed process leaves them.
        std::mem::forget(store);
        Ok(())
    }
}

/// An append of `events`, without a reservation and without webhooks.
pub fn append(run: RunId, events: Arc<[Event]>, guard: Guard) -> Append {
    Append { run, events, guard, reserve: Reserve::Leave, outbox: Vec::new(), bundle: None }
}

async fn add(store: &Arc<SqliteStore>, count: usize, guard: Guard, log: Vec<Event>) -> Result<()> {
    let log: Arc<[Event]> = log.into();
    let mut tasks: JoinSet<std::result::Result<(), StoreError>> = JoinSet::new();
    let mut left = count;
    while left > 0 {
        let batch = left.min(BATCH);
        left -= batch;
        if tasks.len() == ABREAST
            && let Some(done) = tasks.join_next().await
        {
            done??;
        }
        let (store, log) = (store.clone(), log.clone());
        tasks.spawn(async move {
            let create = |_| append(RunId::new(), log.clone(), guard);
            store.append((0..batch).map(create).collect()).await.map(|_| ())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// The log of a run that has begun.
pub fn started() -> Vec<Event> {
    let agent = AgentCatalog::built_in().iter().next().cloned();
    let started = agent.map(|agent| {
        // Short, as thousands of logs hold it.
        let instructions = "Do what you are asked.".to_owned();
        let (tools, workspace) = (vec!["Read".to_owned()], "/work".to_owned());
        let grant = Grant { tools, workspace, ..Grant::default() };
        let agent = AgentSpec { instructions, ..agent };
        Event::from(RunStarted::new(agent, "anthropic/claude-sonnet-4-5", grant))
    });
    let asked = Event::MessageReceived(MessageReceived::user("Read the file and report."));
    started.into_iter().chain([asked]).collect()
}

/// The log of a run that has ended.
fn finished() -> Vec<Event> {
    started().into_iter().chain([ended()]).collect()
}

/// The end of a run.
pub fn ended() -> Event {
    let outcome = Outcome::completed("All is there.");
    Event::RunFinished(RunFinished {
        outcome,
        worked_ms: 1,
        changes: None,
        extra: Extra::default(),
    })
}

/// The log of a run that was killed during a tool call.
fn interrupted() -> Vec<Event> {
    let mut log = started();
    let usage = Usage { input_tokens: 500, output_tokens: 20, ..Usage::default() };
    let call = CallId("toolu_1".to_owned());
    log.push(Event::ModelCalled(ModelCalled {
        reserved: usage.clone(),
        purpose: Purpose::Turn,
        model: String::new(),
        share: None,
        extra: Extra::default(),
    }));
    log.push(Event::ModelReplied(Box::new(ModelReplied {
        seen: Seq(3),
        message: Message::new(
            Role::Assistant,
            vec![Part::ToolCall(ToolCall {
                id: call.clone(),
                name: "Read".to_owned(),
                input: serde_json::json!({"file_path": "one.txt"}),
                extra: Extra::default(),
            })],
        ),
        stop: Stop::ToolUse,
        usage,
        uncertain: None,
        request_id: None,
        service_tier: None,
        rate_limits: None,
        worked_ms: 1,
        extra: Extra::default(),
    })));
    log.push(Event::ToolStarted(ToolStarted {
        call,
        tool: "Read".to_owned(),
        by: String::new(),
        repeatable: true,
        extra: Extra::default(),
    }));
    log
}
