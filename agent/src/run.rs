//! The loop: decide, do, record, until the run waits or ends.
//!
//! Main agents and subagents, streaming and not, the first start and the hundredth resume: all
//! of them are this one function. It knows a model, tools and a journal, and nothing else.

use crate::desk::{Desk, Watched};
use crate::dispatch;
use crate::step::{Bounds, Step, keep_tokens, next_step};
use crate::{
    Answer, DeltaSink, Journal, JournalError, Model, ModelError, Reply, Request, ToolContext,
    Toolbox, compact,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use posse_protocol::{
    CallId, Compacted, Delta, Ending, Event, Extra, FailureKind, Grant, Limits, Message,
    MessageReceived, ModelCalled, ModelFailed, ModelReplied, Outcome, Part, Purpose, Role,
    RunFinished, RunId, Sender, Seq, Stop, ToolCall, ToolFinished, ToolOutput, ToolPending,
    ToolSpec, ToolStarted, Usage,
};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// An agent ready to work: what it is told, its model, its tools, how far it may go.
pub struct Agent {
    /// The run it works on.
    pub run: RunId,
    /// Its instructions.
    pub system: Arc<str>,
    /// Its model.
    pub model: Arc<dyn Model>,
    /// Every tool there is.
    pub tools: Toolbox,
    /// What it may call of them.
    pub grant: Grant,
    /// How far it may go.
    pub limits: Limits,
    /// Takes what is shown and never stored. Must not block.
    pub deltas: Arc<dyn Fn(Delta) + Send + Sync>,
}

/// Why [`run`] returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The run ended.
    Finished(Outcome),
    /// There is nothing to do until something is appended after `seen`.
    Waiting {
        /// The last event that was considered.
        seen: Seq,
    },
    /// `stop` fired; the run goes on when `run` is called again.
    Stopped,
}

/// Works on a run until it ends, waits, or `stop` fires, which is looked at between steps.
///
/// Dropping the future stops what is under way at once; the log then says what was begun.
///
/// # Errors
/// When the journal fails, or another process owns the run.
pub async fn run(
    agent: &Agent,
    journal: &dyn Journal,
    stop: &CancellationToken,
) -> Result<Ended, JournalError> {
    let tools = agent.tools.offered(&agent.grant);
    let bounds = Bounds {
        limits: agent.limits.clone(),
        model: agent.model.info().clone(),
        overhead_tokens: overhead_tokens(&agent.system, &tools),
    };
    let mut shift = Shift { agent, tools, bounds, desk: Desk::open(journal).await? };
    loop {
        shift.desk.sync().await?;
        if stop.is_cancelled() {
            shift.desk.store().await?;
            return Ok(Ended::Stopped);
        }
        match next_step(&shift.desk.transcript, &shift.bounds) {
            Step::CallModel { max_tokens, reserved } => {
                shift.call_model(max_tokens, reserved).await?;
            }
            Step::CallTools(calls) => shift.call_tools(calls).await?,
            Step::Answer { calls, ending, why } => {
                for call in calls {
                    shift.finish_call(call, ToolOutput::error(why.clone()), ending, 0);
                }
                fail::fail_point!("loop.calls.answered");
            }
            Step::Tell { limit, text } => {
                shift.desk.note(Event::MessageReceived(MessageReceived {
                    from: Sender::LimitNear(limit),
                    message: Message::user(text),
                    extra: Extra::default(),
                }))
            }
            Step::Compact => shift.compact().await?,
            Step::Wait => {
                shift.desk.store().await?;
                return Ok(Ended::Waiting { seen: shift.desk.transcript.seq() });
            }
            Step::Finish(outcome) => {
                fail::fail_point!("loop.finish.before");
                if shift.finish(&outcome).await? {
                    return Ok(Ended::Finished(outcome));
                }
            }
            Step::Done(outcome) => return Ok(Ended::Finished(outcome)),
        }
    }
}

/// Tokens of what every request carries besides the transcript, estimated on the high side.
fn overhead_tokens(system: &str, tools: &[ToolSpec]) -> u64 {
    let schemas = tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.schema.to_string().len() + 40);
    ((system.len() + schemas.sum::<usize>()) / 3) as u64
}

/// One call of [`run`] at work.
struct Shift<'a> {
    agent: &'a Agent,
    tools: Arc<[ToolSpec]>,
    bounds: Bounds,
    desk: Desk<'a>,
}

impl Shift<'_> {
    async fn call_model(&mut self, max_tokens: u64, reserved: Usage) -> Result<(), JournalError> {
        self.begin_model_call(Purpose::Turn, reserved).await?;
        fail::fail_point!("loop.model.called");
        let seen = self.desk.transcript.seq();
        let spoken = Mutex::new(String::new());
        let listen = |delta: Delta| {
            if let Delta::Text { text } = &delta
                && let Ok(mut spoken) = spoken.lock()
            {
                spoken.push_str(text);
            }
            (self.agent.deltas)(delta);
        };
        let request = self.request(self.desk.transcript.messages(), max_tokens);
        let result = self.ask(request, &listen).await?;
        fail::fail_point!("loop.model.replied");
        let spoken = spoken.into_inner().unwrap_or_default();
        let worked_ms = self.desk.worked_ms();
        let event = match result {
            Ok(reply) => replied(seen, reply, worked_ms),
            Err(ModelError::Cancelled) if !spoken.trim().is_empty() => {
                replied(seen, spoken_so_far(spoken, reserved), worked_ms)
            }
            Err(error) => failed(&error, reserved, worked_ms),
        };
        self.desk.note(event);
        Ok(())
    }

    /// Stores that a request is about to be made.
    async fn begin_model_call(
        &mut self,
        purpose: Purpose,
        reserved: Usage,
    ) -> Result<(), JournalError> {
        let called = ModelCalled { reserved, purpose, extra: Extra::default() };
        self.desk.note(Event::ModelCalled(called));
        self.desk.store().await
    }

    fn request(&self, messages: Vec<Arc<Message>>, max_tokens: u64) -> Request {
        let (system, tools) = (self.agent.system.clone(), self.tools.clone());
        Request { system, messages, tools, max_tokens }
    }

    /// Makes a request, watching for cancel requests and the end of the time.
    async fn ask(
        &mut self,
        request: Request,
        deltas: DeltaSink<'_>,
    ) -> Result<Result<Reply, ModelError>, JournalError> {
        let token = CancellationToken::new();
        let work = self.agent.model.call(request, deltas, &token);
        Ok(match self.desk.watch(&self.bounds, &token, work).await? {
            Watched::Ended(result) => result,
            Watched::Dropped => Err(ModelError::Cancelled),
        })
    }

    async fn call_tools(&mut self, calls: Vec<ToolCall>) -> Result<(), JournalError> {
        let agent = self.agent;
        let mut runnable = Vec::new();
        for call in calls {
            match dispatch::resolve(&agent.tools, &agent.grant, &call) {
                Ok(tool) => runnable.push((call, tool)),
                Err(why) => {
                    self.finish_call(call.id, ToolOutput::error(why), Ending::Refused, 0);
                }
            }
        }
        let interrupts = self.desk.transcript.phase.interrupts;
        for group in dispatch::groups(runnable) {
            self.run_group(group).await?;
            let late = self.desk.worked_ms() >= self.wall_end_ms();
            if late || self.desk.transcript.phase.interrupts > interrupts {
                break;
            }
        }
        Ok(())
    }

    /// Time at work at which the time is up.
    fn wall_end_ms(&self) -> u64 {
        let limit = self.bounds.limits.wall_ms.unwrap_or(u64::MAX);
        self.desk.transcript.leg_began_ms().saturating_add(limit)
    }

    /// Runs calls side by side, recording each result as it comes.
    async fn run_group(
        &mut self,
        group: Vec<(ToolCall, &Arc<dyn crate::Tool>)>,
    ) -> Result<(), JournalError> {
        for (call, tool) in &group {
            let spec = tool.spec();
            self.desk.note(Event::ToolStarted(ToolStarted {
                call: call.id.clone(),
                tool: spec.name.clone(),
                repeatable: spec.idempotent,
                extra: Extra::default(),
            }));
        }
        self.desk.store().await?;
        fail::fail_point!("loop.tool.started");
        let token = CancellationToken::new();
        let mut open: Vec<CallId> = group.iter().map(|(call, _)| call.id.clone()).collect();
        let mut running: FuturesUnordered<_> = group
            .into_iter()
            .map(|(call, tool)| {
                let context = ToolContext {
                    run: self.agent.run,
                    call: call.id.clone(),
                    cancel: token.child_token(),
                    deltas: self.agent.deltas.clone(),
                };
                let began = Instant::now();
                async move {
                    let id = call.id.clone();
                    let answer = dispatch::invoke(&**tool, call, context).await;
                    (id, answer, began.elapsed().as_millis() as u64)
                }
            })
            .collect();
        while !open.is_empty() {
            let next = self.desk.watch(&self.bounds, &token, running.next()).await?;
            fail::fail_point!("loop.tool.returned");
            let Watched::Ended(Some((id, answer, took_ms))) = next else {
                for id in open.drain(..) {
                    let output = ToolOutput::error("stopped: it did not end when told to");
                    self.finish_call(id, output, Ending::Stopped, 0);
                }
                return Ok(());
            };
            open.retain(|call| *call != id);
            match answer {
                Answer::Done(output) => {
                    let ending =
                        if token.is_cancelled() { Ending::Stopped } else { Ending::Returned };
                    self.finish_call(id, output, ending, took_ms);
                }
                Answer::Pending { waits_for } => self.desk.note(Event::ToolPending(ToolPending {
                    call: id,
                    waits_for,
                    extra: Extra::default(),
                })),
            }
            if !open.is_empty() {
                self.desk.store().await?;
                fail::fail_point!("loop.tool.finished");
            }
        }
        Ok(())
    }

    fn finish_call(&mut self, call: CallId, output: ToolOutput, ending: Ending, took_ms: u64) {
        let worked_ms = self.desk.worked_ms();
        let extra = Extra::default();
        let finished = ToolFinished { call, output, ending, took_ms, worked_ms, extra };
        self.desk.note(Event::ToolFinished(finished));
    }

    async fn compact(&mut self) -> Result<(), JournalError> {
        self.desk.store().await?;
        let keep = keep_tokens(&self.bounds);
        let transcript = &self.desk.transcript;
        let before = transcript.compactable_before(keep).unwrap_or(transcript.seq().next());
        let all = transcript.messages();
        let input = transcript.context_tokens() + self.bounds.overhead_tokens;
        let max_tokens = self.bounds.model.max_output.min(4_096);
        let mut reserved =
            Usage { input_tokens: input, output_tokens: max_tokens, ..Usage::default() };
        reserved.cost = self.bounds.model.price.of(&reserved);
        self.begin_model_call(Purpose::Compaction, reserved).await?;
        fail::fail_point!("loop.compact.called");
        let mut messages = all.clone();
        messages.push(Arc::new(Message::user(compact::REQUEST)));
        let result = self.ask(self.request(messages, max_tokens), &|_| {}).await?;
        fail::fail_point!("loop.compact.replied");
        let (summary, by_model, usage) = match result {
            Ok(reply) if !reply.message.text().trim().is_empty() => {
                (reply.message.text(), true, reply.usage)
            }
            Ok(reply) => (compact::extract(&all), false, reply.usage),
            Err(_) => (compact::extract(&all), false, Usage::default()),
        };
        let worked_ms = self.desk.worked_ms();
        self.desk.note(Event::Compacted(Box::new(Compacted {
            before,
            summary: compact::framed(&summary),
            by_model,
            usage,
            worked_ms,
            extra: Extra::default(),
        })));
        self.desk.store().await
    }

    async fn finish(&mut self, outcome: &Outcome) -> Result<bool, JournalError> {
        let worked_ms = self.desk.worked_ms();
        let extra = Extra::default();
        let finished = RunFinished { outcome: outcome.clone(), worked_ms, extra };
        self.desk.conclude(Event::RunFinished(finished)).await
    }
}

fn replied(seen: Seq, reply: Reply, worked_ms: u64) -> Event {
    Event::ModelReplied(Box::new(ModelReplied {
        seen,
        message: reply.message,
        stop: reply.stop,
        usage: reply.usage,
        request_id: reply.request_id,
        worked_ms,
        extra: Extra::default(),
    }))
}

/// What a model had said when it was stopped, charged by estimate.
fn spoken_so_far(spoken: String, reserved: Usage) -> Reply {
    let output_tokens = (spoken.len() / 3) as u64 + 1;
    Reply {
        message: Message::new(Role::Assistant, vec![Part::text(spoken)]),
        stop: Stop::Cancelled,
        usage: Usage { output_tokens: output_tokens.min(reserved.output_tokens), ..reserved },
        request_id: None,
    }
}

fn failed(error: &ModelError, reserved: Usage, worked_ms: u64) -> Event {
    let (kind, usage) = match error {
        ModelError::ContextOverflow { .. } => (FailureKind::ContextOverflow, Usage::default()),
        // What was under way may be billed: it is charged as it was reserved.
        ModelError::Cancelled => (FailureKind::Cancelled, reserved),
        ModelError::Cut { .. } | ModelError::Stalled { .. } | ModelError::Malformed { .. } => {
            (FailureKind::Other, reserved)
        }
        _ => (FailureKind::Other, Usage::default()),
    };
    let reason = error.to_string();
    Event::ModelFailed(ModelFailed { kind, reason, usage, worked_ms, extra: Extra::default() })
}
