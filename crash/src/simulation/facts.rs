//! The events and appends of the simulated runtime. Each event has a mark in one of its texts, which
//! is there once in all logs if the append was stored once.

use super::plan::Step;
use posse_protocol::{
    AgentSpec, Announce, Announced, CallId, CancelRequested, CancelScope, ChildStarted, Ending,
    Event, Extra, Grant, Message, MessageReceived, Outcome, Parent, RunFinished, RunId, RunStarted,
    Sender, TimeAtWork, ToolFinished, ToolOutput, ToolStarted,
};
use posse_store::{Append, Guard, Ownership, Reserve};

/// The prefix of a mark: the rest is `worker/epoch/number`.
const MARK: &str = "mark:";

/// Returns the text of a mark.
pub(super) fn mark(worker: u32, epoch: u64, number: u64) -> String {
    format!("{MARK}{worker}/{epoch}/{number}")
}

/// Returns the agent of all runs.
///
/// # Errors
/// When the name is none that the protocol allows.
pub(super) fn agent() -> Result<AgentSpec, String> {
    let name = "worker".parse().map_err(|_| "`worker` names no agent".to_owned())?;
    Ok(AgentSpec::new(name))
}

pub(super) fn append(run: RunId, events: Vec<Event>, guard: Guard) -> Append {
    Append {
        run,
        events: events.into(),
        guard,
        reserve: Reserve::Leave,
        outbox: Vec::new(),
        bundle: None,
    }
}

/// Returns the start of a run, whose label says what it is to do.
pub(super) fn started(
    agent: &AgentSpec,
    number: usize,
    key: String,
    parent: Option<Parent>,
) -> Event {
    let (key, label) = (Some(key), number.to_string());
    let grant = Grant { workspace: "/w".to_owned(), ..Grant::default() };
    RunStarted { parent, key, label, ..RunStarted::new(agent.clone(), "test/model", grant) }.into()
}

pub(super) fn parent(
    run: RunId,
    above: &[RunId],
    call: &str,
    announce: Option<Announce>,
) -> Parent {
    let ancestors = above.iter().copied().chain([run]).collect();
    let call = announce.is_none().then(|| call.into());
    Parent {
        run,
        call,
        announce,
        account: None,
        limited: Vec::new(),
        abreast: None,
        time: TimeAtWork::default(),
        ancestors,
        extra: Extra::default(),
    }
}

pub(super) fn child_started(
    child: RunId,
    agent: &AgentSpec,
    call: &str,
    announce: Option<Announce>,
    mark: String,
) -> Event {
    Event::ChildStarted(Box::new(ChildStarted {
        run: child,
        call: announce.is_none().then(|| call.into()),
        announce,
        agent: agent.name.clone(),
        label: mark,
        resumed: false,
        extra: Extra::default(),
    }))
}

pub(super) fn message(text: String) -> Event {
    Event::MessageReceived(MessageReceived::user(text))
}

pub(super) fn tool_started(call: &str, step: &Step, mark: String) -> Event {
    let (tool, repeatable) = match step {
        Step::Effect { repeatable } => ("Bash", *repeatable),
        Step::Calls(_) | Step::Spawn(..) => ("Task", true),
    };
    Event::ToolStarted(ToolStarted {
        call: call.into(),
        tool: tool.to_owned(),
        by: mark,
        repeatable,
        extra: Extra::default(),
    })
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    /// The worker did nothing, because its lease had not held.
    StoodStill,
    Interrupted,
    Stopped,
}

pub(super) fn tool_finished(call: &str, ended: Ended, mark: String) -> Event {
    let output = match ended {
        Ended::Done => ToolOutput::text("done"),
        Ended::StoodStill | Ended::Interrupted | Ended::Stopped => ToolOutput::error("not done"),
    };
    let ending = match ended {
        Ended::Done | Ended::StoodStill => Ending::Returned,
        Ended::Interrupted => Ending::Interrupted,
        Ended::Stopped => Ending::Stopped,
    };
    Event::ToolFinished(ToolFinished {
        call: call.into(),
        output,
        ending,
        by: mark,
        took_ms: 1,
        worked_ms: 1,
        extra: Extra::default(),
    })
}

pub(super) fn finished(outcome: Outcome) -> Event {
    let extra = Extra::default();
    Event::RunFinished(RunFinished { outcome, worked_ms: 1, changes: None, extra })
}

pub(super) fn cancel(run: RunId, by: String) -> Append {
    let (scope, extra) = (CancelScope::Run, Extra::default());
    Append::by_anyone(run, Event::CancelRequested(CancelRequested { by, scope, extra }))
}

/// How a run announces its end to another.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    Result(CallId),
    Told { announce: Announce, inherited: bool, kept: bool },
}

/// Returns the append that tells `to` the end of `run`.
pub(super) fn announcement(run: RunId, to: RunId, manner: &Manner, mark: String) -> Append {
    let extra = Extra::default();
    let event = match manner.clone() {
        Manner::Result(call) => tool_finished(&call.0, Ended::Done, mark),
        Manner::Told { announce, inherited, kept } => {
            let told =
                Announced { run, announce, inherited, kept, worked_ms: 0, extra: extra.clone() };
            let (from, message) = (Sender::Child(told), Message::user(mark));
            Event::MessageReceived(MessageReceived {
                from,
                message,
                later: false,
                asks: None,
                extra,
            })
        }
    };
    Append::by_anyone(to, event)
}

/// Returns an append by the owner of `run`.
pub(super) fn by_owner(
    run: RunId,
    epoch: u64,
    last: posse_protocol::Seq,
    events: Vec<Event>,
    then: Ownership,
) -> Append {
    append(run, events, Guard::Owner { epoch, last: Some(last), then })
}

/// Returns the text by which the checker finds an event in a log.
pub(super) fn mark_of(event: &Event) -> String {
    match event {
        Event::RunStarted(started) => started.key.clone().unwrap_or_default(),
        Event::MessageReceived(received) => received.message.text(),
        Event::ToolStarted(started) => started.by.clone(),
        Event::ToolFinished(finished) => finished.by.clone(),
        Event::ChildStarted(child) => child.label.clone(),
        Event::CancelRequested(request) => request.by.clone(),
        Event::RunFinished(finished) => finished.outcome.text().to_owned(),
        _ => String::new(),
    }
}
