//! Events and requests for the cases.

use super::Fault;
use crate::{Append, Appended, Claimed, Filter, Guard, Ownership, Reserve, RunRow, Store, Wanted};
use posse_protocol::{
    AgentSpec, Archived, CancelRequested, CancelScope, Compacted, Ending, Event, Extra,
    FailureKind, Grant, Message, MessageReceived, ModelCalled, ModelFailed, ModelReplied, Outcome,
    Part, Purpose, Role, RunFinished, RunId, RunStarted, Seq, Stop, TimePassed, ToolFinished,
    ToolOutput, ToolPending, ToolStarted, Usage, Usd,
};

use std::sync::Arc;

pub(super) fn start() -> Result<RunStarted, Fault> {
    let name = "tester".parse().map_err(|_| Fault("`tester` names no agent".to_owned()))?;
    let agent =
        AgentSpec { instructions: "Do as you are told.".to_owned(), ..AgentSpec::new(name) };
    let grant = Grant { workspace: "/w".to_owned(), ..Grant::default() };
    Ok(RunStarted::new(agent, "test/model", grant))
}

pub(super) fn started(workspace: &str, key: Option<&str>) -> Result<Event, Fault> {
    let mut first = start()?;
    first.grant.workspace = workspace.to_owned();
    first.key = key.map(str::to_owned);
    Ok(first.into())
}

pub(super) fn message(text: &str) -> Event {
    Event::MessageReceived(MessageReceived::user(text))
}

pub(super) fn cancel() -> Event {
    let by = "tester".to_owned();
    Event::CancelRequested(CancelRequested { by, scope: CancelScope::Run, extra: Extra::default() })
}

pub(super) fn archived() -> Event {
    Event::Archived(Archived::default())
}

pub(super) fn usage(tokens: u64) -> Usage {
    Usage {
        input_tokens: tokens,
        output_tokens: tokens / 10,
        cost: Usd(tokens * 3),
        ..Usage::default()
    }
}

pub(super) fn called(tokens: u64, purpose: Purpose) -> Event {
    let extra = Extra::default();
    let model = String::new();
    Event::ModelCalled(ModelCalled { reserved: usage(tokens), purpose, model, share: None, extra })
}

pub(super) fn replied(tokens: u64) -> Event {
    Event::ModelReplied(Box::new(ModelReplied {
        seen: Seq(1),
        message: Message::new(Role::Assistant, vec![Part::text("Grüße, 世界 🌍")]),
        stop: Stop::End,
        usage: usage(tokens),
        uncertain: None,
        request_id: None,
        service_tier: None,
        rate_limits: None,
        worked_ms: 1,
        extra: Extra::default(),
    }))
}

pub(super) fn failed(tokens: u64) -> Event {
    Event::ModelFailed(ModelFailed {
        kind: FailureKind::Other,
        reason: "it did not answer".to_owned(),
        usage: usage(tokens),
        uncertain: Some(Usage::default()),
        remedy: None,
        worked_ms: 1,
        extra: Extra::default(),
    })
}

pub(super) fn compacted(tokens: u64) -> Event {
    Event::Compacted(Box::new(Compacted {
        before: Seq(2),
        summary: "much was said".to_owned(),
        by_model: true,
        usage: usage(tokens),
        uncertain: None,
        worked_ms: 1,
        extra: Extra::default(),
    }))
}

pub(super) fn tool_started() -> Event {
    Event::ToolStarted(ToolStarted {
        call: "call".into(),
        tool: "Read".to_owned(),
        by: String::new(),
        repeatable: true,
        extra: Extra::default(),
    })
}

pub(super) fn tool_pending() -> Event {
    Event::ToolPending(ToolPending {
        call: "call".into(),
        waits_for: "a person".to_owned(),
        extra: Extra::default(),
    })
}

pub(super) fn tool_finished() -> Event {
    Event::ToolFinished(ToolFinished {
        call: "call".into(),
        output: ToolOutput::text("done"),
        ending: Ending::Returned,
        by: String::new(),
        took_ms: 1,
        worked_ms: 1,
        extra: Extra::default(),
    })
}

pub(super) fn time_passed() -> Event {
    Event::TimePassed(TimePassed { worked_ms: 2, quiet: false, extra: Extra::default() })
}

pub(super) fn finished() -> Event {
    let outcome = Outcome::completed("done");
    Event::RunFinished(RunFinished {
        outcome,
        worked_ms: 3,
        changes: None,
        extra: Extra::default(),
    })
}

/// Returns an append that creates a run in `workspace` with one message.
pub(super) fn creation(workspace: &str, then: Ownership) -> Result<Append, Fault> {
    Ok(Append {
        run: RunId::new(),
        events: Arc::new([started(workspace, None)?, message("hello")]),
        guard: Guard::Create(then),
        reserve: Reserve::Leave,
        outbox: Vec::new(),
        bundle: None,
    })
}

/// Returns an append that creates a run with a key.
pub(super) fn keyed(key: &str) -> Result<Append, Fault> {
    let events = Arc::new([started("/w", Some(key))?]);
    Ok(Append { events, ..creation("/w", Ownership::Queued)? })
}

/// Creates a run.
pub(super) async fn create(
    store: &dyn Store,
    workspace: &str,
    then: Ownership,
) -> Result<RunId, Fault> {
    let append = creation(workspace, then)?;
    let run = append.run;
    store.append(vec![append]).await?;
    Ok(run)
}

/// Creates several runs, one after the other.
pub(super) async fn create_many(
    store: &dyn Store,
    workspace: &str,
    count: usize,
) -> Result<Vec<RunId>, Fault> {
    let mut runs = Vec::with_capacity(count);
    for _ in 0..count {
        runs.push(create(store, workspace, Ownership::Queued).await?);
    }
    Ok(runs)
}

/// Returns an append by the owner of `run`.
pub(super) fn step(run: RunId, epoch: u64, events: Vec<Event>, then: Ownership) -> Append {
    let guard = Guard::Owner { epoch, last: None, then };
    Append {
        run,
        events: events.into(),
        guard,
        reserve: Reserve::Leave,
        outbox: Vec::new(),
        bundle: None,
    }
}

/// Appends to one run and returns the result.
pub(super) async fn append(
    store: &dyn Store,
    append: Append,
) -> Result<Appended, crate::StoreError> {
    let appended = store.append(vec![append]).await?;
    appended.first().copied().ok_or(crate::StoreError::Misplaced("no answer for an append"))
}

/// Claims at most `limit` runs.
pub(super) async fn claim(store: &dyn Store, limit: usize) -> Result<Vec<Claimed>, Fault> {
    let wanted = Wanted { limit, ..Wanted::default() };
    Ok(store.claim(&wanted).await?)
}

/// Claims only `run`.
pub(super) async fn claim_one(store: &dyn Store, run: RunId) -> Result<Option<Claimed>, Fault> {
    let wanted = Wanted { limit: 10, runs: vec![run], ..Wanted::default() };
    Ok(store.claim(&wanted).await?.pop())
}

/// Returns the row of `run`.
pub(super) async fn row(store: &dyn Store, run: RunId) -> Result<RunRow, Fault> {
    let filter = Filter { id: Some(run), ..Filter::default() };
    let row = store.list(&filter).await?.pop();
    row.ok_or_else(|| Fault(format!("run {run} is not listed")))
}
