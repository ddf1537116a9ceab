//! Runs the tools that a reply calls: checks each call, runs calls in parallel where possible, and
//! records the results.

use super::RunLoop;
use crate::calls::CallState;
use crate::dispatch::Preview;
use crate::log_buffer::{Draw, Interrupts, Watched};
use crate::{Answer, JournalError, Ruling, ToolContext, digest, dispatch};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use posse_protocol::{
    ApprovalAsked, CallId, Effect, Ending, Event, Extra, Limit, TimeAtWork, ToolCall, ToolFinished,
    ToolOutput, ToolPending, ToolStarted,
};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The result of a call that was dropped.
const NOT_ENDED: &str =
    "stopped: it did not end when told to; whether it had its effect is not known";

/// How long the preview of a call may take, and how many bytes it may have.
const PREVIEW_TIME: Duration = Duration::from_secs(3);
const PREVIEW_BYTES: usize = 256 * 1024;

/// How long read-only calls may take before the reply that made them is stored.
const SOON: Duration = Duration::from_millis(10);

/// A call that may run.
struct Admitted {
    call: ToolCall,
    /// The source of the permission.
    by: String,
}

impl RunLoop<'_> {
    /// Runs these calls, until a cancel request, a pause or `stop`: calls that have not begun then stay open.
    pub(crate) async fn call_tools(
        &mut self,
        calls: Vec<ToolCall>,
        stop: &CancellationToken,
    ) -> Result<(), JournalError> {
        let agent = self.agent;
        let before = self.log_buffer.interrupts();
        let mut runnable = Vec::new();
        for call in calls {
            match dispatch::resolve(&agent.tools, &agent.grant, &call) {
                Ok(tool) => {
                    if let Some(by) = self.admit(&call, tool).await? {
                        runnable.push((Admitted { call, by }, tool));
                    }
                    // A cancel request came or the time is up. No call has started yet.
                    if self.log_buffer.interrupts() > before || self.is_out_of_time() {
                        return Ok(());
                    }
                }
                Err(why) => self.refuse(call.id, why, dispatch::GRANT.to_owned()),
            }
        }
        for group in dispatch::groups(runnable) {
            if self.run_group(group, before).await? != Draw::Taken {
                break;
            }
            let late = self.wall_end_ms().is_some_and(|end| self.log_buffer.worked_ms() >= end);
            let is_paused = self.log_buffer.transcript.phase.paused || stop.is_cancelled();
            if late || is_paused || self.log_buffer.interrupts() > before {
                break;
            }
        }
        Ok(())
    }

    /// The source of the permission for `call`. If there is none, notes a question or a refusal.
    async fn admit(
        &mut self,
        call: &ToolCall,
        tool: &Arc<dyn crate::Tool>,
    ) -> Result<Option<String>, JournalError> {
        let transcript = &self.log_buffer.transcript;
        let state = transcript.call_state(&call.id);
        if let Some(CallState::Approved { by }) = state {
            return Ok(Some(format!("approved by {by}")));
        }
        let again = matches!(state, Some(CallState::Started { .. }));
        match self.agent.guard.judge(call, tool.spec(), &transcript.standing) {
            Ruling::Allow { by } => Ok(Some(by)),
            // It was allowed before the process died.
            Ruling::Ask { by, .. } if again => Ok(Some(by)),
            Ruling::Ask { by, rule } => {
                let shown = match self.foresee(call, tool).await? {
                    Some(Preview::Shown(text)) => text,
                    Some(Preview::Plain) => format!("{:#}", call.input),
                    Some(Preview::Refused(why)) => {
                        self.refuse(call.id.clone(), why, tool.spec().name.clone());
                        return Ok(None);
                    }
                    None => return Ok(None),
                };
                self.log_buffer.note(Event::ApprovalAsked(Box::new(ApprovalAsked {
                    call: call.id.clone(),
                    tool: tool.spec().name.clone(),
                    digest: digest(call),
                    shown,
                    by,
                    rule,
                    extra: Extra::default(),
                })));
                Ok(None)
            }
            Ruling::Deny { by, reason } => {
                self.refuse(call.id.clone(), reason, by);
                Ok(None)
            }
        }
    }

    /// Asks `tool` about `call` before Posse asks a person. A preview that is too long or too slow is
    /// ignored. `None` when the run has to stop meanwhile.
    async fn foresee(
        &mut self,
        call: &ToolCall,
        tool: &Arc<dyn crate::Tool>,
    ) -> Result<Option<Preview>, JournalError> {
        // An earlier open call may still read the file that this call is about.
        let transcript = &self.log_buffer.transcript;
        let is_first = transcript.open_calls().next() == Some(&call.id);
        let seen = is_first.then(|| transcript.seen.clone());
        // The preview may take seconds. Store the reply first, so that a crash does not lose it.
        self.log_buffer.store().await?;
        let token = CancellationToken::new();
        let work = async {
            let said = dispatch::foresee(&**tool, call, seen.as_ref());
            tokio::select! {
                biased;
                () = token.cancelled() => None,
                said = tokio::time::timeout(PREVIEW_TIME, said) => {
                    Some(said.unwrap_or(Preview::Plain))
                }
            }
        };
        Ok(match self.log_buffer.watch(&self.bounds, &token, work).await? {
            Watched::Ended(Some(Preview::Shown(text))) if text.len() > PREVIEW_BYTES => {
                Some(Preview::Plain)
            }
            Watched::Ended(outlook) => outlook,
            Watched::Dropped => None,
        })
    }

    fn refuse(&mut self, call: CallId, why: String, by: String) {
        let answer = self.answer_to(call, ToolOutput::error(why), Ending::Refused, 0);
        self.log_buffer.note(Event::ToolFinished(ToolFinished { by, ..answer }));
    }

    /// The time at work at which the time limit is reached, if there is one.
    fn wall_end_ms(&self) -> Option<u64> {
        let transcript = &self.log_buffer.transcript;
        let limit = transcript.wall_ms(&self.bounds.limits)?;
        Some(transcript.leg_began_ms().saturating_add(limit))
    }

    /// True when the time is up according to the log.
    fn is_out_of_time(&self) -> bool {
        let transcript = &self.log_buffer.transcript;
        transcript.wall_ms(&self.bounds.limits).is_some_and(|limit| transcript.leg_ms() >= limit)
    }

    /// Runs calls in parallel and records each result as it arrives, if the budgets cover the calls.
    async fn run_group(
        &mut self,
        group: Vec<(Admitted, &Arc<dyn crate::Tool>)>,
        before: Interrupts,
    ) -> Result<Draw, JournalError> {
        let started = group.iter().map(|(admitted, tool)| {
            let spec = tool.spec();
            Event::ToolStarted(ToolStarted {
                call: admitted.call.id.clone(),
                tool: spec.name.clone(),
                repeatable: spec.idempotent,
                by: admitted.by.clone(),
                extra: Extra::default(),
            })
        });
        let started: Vec<Event> = started.collect();
        // A read has no effect, so it need not wait for the disk. Its events are stored with the next
        // request, in one commit, unless the read takes long.
        let looks =
            |tool: &dyn crate::Tool| tool.spec().effect == Effect::Read && tool.spec().idempotent;
        let counted = self.bounds.allowance.of(Limit::ToolCalls).is_some();
        let mut unstored = !counted && group.iter().all(|(_, tool)| looks(&***tool));
        let soon = Instant::now() + SOON;
        if unstored {
            started.into_iter().for_each(|event| self.log_buffer.note(event));
        } else if let refused @ Draw::Refused(_) = self.draw(started).await? {
            return Ok(refused);
        }
        fail::fail_point!("loop.tool.started");
        let group: Vec<_> = group.into_iter().map(|(it, tool)| (it.call, tool)).collect();
        let token = CancellationToken::new();
        let mut open: Vec<Option<CallId>> =
            group.iter().map(|(call, _)| Some(call.id.clone())).collect();
        let mut left = open.len();
        if self.log_buffer.interrupts() > before {
            // A cancel request came while the events were stored; no call has started here. A
            // repeatable call may have started in a process that died, so its answer may still come.
            let why = "cancelled before it began";
            let (again, once): (Vec<_>, Vec<_>) =
                group.into_iter().partition(|(_, tool)| tool.spec().idempotent);
            for (call, _) in once {
                self.finish_call(call.id, ToolOutput::error(why), Ending::Stopped, 0);
            }
            let again = again.into_iter().map(|(call, _)| call.id).collect();
            self.answer(again, Ending::Stopped, why, "");
            return Ok(Draw::Taken);
        }
        let worked_ms = self.log_buffer.worked_ms();
        let left_ms = self.wall_end_ms().map(|end| end.saturating_sub(worked_ms));
        let time = TimeAtWork::new(worked_ms, left_ms);
        let writable_bytes = self.log_buffer.transcript.writable_bytes(&self.bounds.limits);
        let calls = group.into_iter().enumerate().map(|(index, (call, tool))| {
            let context = ToolContext {
                run: self.agent.run,
                call: call.id.clone(),
                turn: self.log_buffer.transcript.replies(),
                time: time.clone(),
                writable_bytes,
                seen: self.log_buffer.transcript.seen.clone(),
                claim: self.log_buffer.claim(),
                cancel: token.child_token(),
                deltas: self.agent.deltas.clone(),
            };
            let (tool, began) = (tool.clone(), Instant::now());
            async move {
                let id = call.id.clone();
                let answer = dispatch::invoke(&*tool, call, context).await;
                (index, id, answer, began.elapsed().as_millis() as u64)
            }
        });
        let mut running: FuturesUnordered<_> = calls.collect();
        let mut ended = VecDeque::new();
        while left > 0 {
            let next = if let Some(next) = ended.pop_front() {
                Watched::Ended(Some(next))
            } else if unstored {
                tokio::select! {
                    biased;
                    next = running.next() => Watched::Ended(next),
                    () = tokio::time::sleep_until(soon) => {
                        unstored = false;
                        beside(self.log_buffer.store(), &mut running, &mut ended).await?;
                        continue;
                    }
                }
            } else {
                self.log_buffer.watch(&self.bounds, &token, running.next()).await?
            };
            fail::fail_point!("loop.tool.returned");
            let Watched::Ended(Some((index, id, answer, took_ms))) = next else {
                for id in open.into_iter().flatten() {
                    let output = ToolOutput::error(NOT_ENDED);
                    self.finish_call(id, output, Ending::Stopped, 0);
                }
                return Ok(Draw::Taken);
            };
            open[index] = None;
            left -= 1;
            // The run or process that will append the result knows of the call, so the note need not be stored.
            let lasting = matches!(answer, Answer::Done(_));
            match answer {
                Answer::Done(output) => {
                    let ending =
                        if token.is_cancelled() { Ending::Stopped } else { Ending::Returned };
                    self.finish_call(id, output, ending, took_ms);
                }
                Answer::Pending { waits_for } => {
                    self.log_buffer.note(Event::ToolPending(ToolPending {
                        call: id,
                        waits_for,
                        extra: Extra::default(),
                    }))
                }
            }
            if lasting && left > 0 && !unstored {
                beside(self.log_buffer.store(), &mut running, &mut ended).await?;
            }
        }
        Ok(Draw::Taken)
    }

    fn finish_call(&mut self, call: CallId, output: ToolOutput, ending: Ending, took_ms: u64) {
        let finished = self.answer_to(call, output, ending, took_ms);
        self.log_buffer.note(Event::ToolFinished(finished));
    }

    pub(super) fn answer_to(
        &self,
        call: CallId,
        output: ToolOutput,
        ending: Ending,
        took_ms: u64,
    ) -> ToolFinished {
        let worked_ms = self.log_buffer.worked_ms();
        let (by, extra) = (String::new(), Extra::default());
        ToolFinished { call, output, ending, by, took_ms, worked_ms, extra }
    }
}

/// Does `work` while calls go on: it may wait for what one of them holds. The calls that end meanwhile
/// are added to `ended`.
async fn beside<T, C: Future>(
    work: impl Future<Output = T>,
    running: &mut FuturesUnordered<C>,
    ended: &mut VecDeque<C::Output>,
) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Some(next) = running.next() => ended.push_back(next),
        }
    }
}
