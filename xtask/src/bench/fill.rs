//! Fills a database with runs, as a runtime that has worked for long and then died leaves it.

use super::Result;
use super::line::say;
use posse::protocol::{
    AgentSpec, CallId, Event, Extra, Grant, Message, MessageReceived, ModelCalled, ModelReplied,
    Outcome, Part, Purpose, Role, RunFinished, RunStarted, Seq, Stop, ToolCall, ToolStarted, Usage,
};
use posse::store::{
    Append, Durability, Guard, Logs, Options, Ownership, Reserve, SqliteStore, Store, StoreError,
};
use posse::{AgentCatalog, RunId};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Adds runs to a database
#[derive(clap::Args)]
pub struct Fill {
    /// The database
    #[arg(long)]
    db: PathBuf,
    /// Runs that have ended
    #[arg(long)]
    finished: usize,
    /// Runs that were at work
    #[arg(long)]
    unfinished: usize,
}

/// Runs of one append.
const BATCH: usize = 256;
/// Appends that wait side by side, so that several are committed at once.
const ABREAST: usize = 8;

impl Fill {
    pub async fn run(self) -> Result<()> {
        let options = Options { durability: Durability::Process, ..Options::new(&self.db) };
        let store = Arc::new(SqliteStore::open(options).await?);
        add(&store, self.finished, Guard::Create(Ownership::Waiting), finished()).await?;
        add(&store, self.unfinished, Guard::Create(Ownership::Mine), interrupted()).await?;
        if self.unfinished == 0 {
            store.close().await;
        }
        say("\"filled\"");
        // Not closed: what was at work stays as a killed process leaves it.
        std::process::exit(0);
    }
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
            let create = |_| Append {
                run: RunId::new(),
                events: log.clone(),
                guard,
                reserve: Reserve::Leave,
                outbox: Vec::new(),
            };
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
    // An agent of few words: thousands of logs hold it.
    let agent = AgentCatalog::built_in().iter().next().cloned();
    let agent = agent
        .into_iter()
        .map(|agent| AgentSpec { instructions: "Do what you are asked.".to_owned(), ..agent });
    let started = agent.map(|agent| {
        let grant = Grant {
            tools: vec!["Read".to_owned()],
            workspace: "/work".to_owned(),
            ..Grant::default()
        };
        let model = "anthropic/claude-sonnet-4-5";
        Event::from(RunStarted::new(agent, model, grant))
    });
    let asked = Event::MessageReceived(MessageReceived::user("Read the file and report."));
    started.chain([asked]).collect()
}

/// The log of a run that has ended.
fn finished() -> Vec<Event> {
    let mut log = started();
    let outcome = Outcome::completed("All is there.");
    log.push(Event::RunFinished(RunFinished {
        outcome,
        worked_ms: 1,
        changes: None,
        extra: Extra::default(),
    }));
    log
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
