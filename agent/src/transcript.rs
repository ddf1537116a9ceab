//! The fold: from a run's events to what the model sees and what the loop decides on.
//!
//! Folding is incremental and never fails: an event that does not fit has no effect. It does no I/O
//! and reads no clock. Events of other processes (messages, cancel requests, results of pending calls)
//! commute with those of the owner, because each reply records what it had seen.

mod calls;
mod hearing;
mod news;
mod weight;

pub(crate) use weight::weigh;

use crate::awaited::Awaited;
use crate::calls::{Call, CallState, Calls};
use crate::guard::AddedRules;
use crate::seen::SeenFiles;
use news::News;
use posse_protocol::{
    CancelRequested, CancelScope, Compacted, Event, FailureKind, Limit, Limits, Message,
    ModelReplied, Outcome, Purpose, Record, Remedy, RunStarted, Seq, Stop, Tally, TimeAtWork,
    Usage,
};
use std::sync::Arc;

/// A run's state: a fold over its log.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    pub(crate) started: Option<Arc<RunStarted>>,
    /// The messages that the model has seen and written, in order.
    entries: Vec<Entry>,
    /// The messages to the agent that no reply has seen yet.
    inbox: Vec<News>,
    /// The messages that are delivered at the end of the present turn.
    later: Vec<News>,
    /// The rules that the log adds.
    pub(crate) standing: AddedRules,
    /// The background children that have not ended.
    pub(crate) awaited: Awaited,
    /// The calls of the last reply, in its order, until the next reply.
    pub(crate) calls: Calls,
    /// The files that the run has read or written.
    pub(crate) seen: SeenFiles,
    pub(crate) spent: Spent,
    pub(crate) phase: Phase,
    seq: Seq,
    tally: Tally,
    last_text: String,
    weight: Weight,
    /// The fallback in use, if the run's own model failed.
    fallback: Option<String>,
    /// The model that a message asked for instead of the run's own.
    pub(crate) asked_model: Option<String>,
    /// The number of replies so far.
    replies: u64,
}

/// A message, and its position if it is a reply.
#[derive(Clone, Debug)]
struct Entry {
    message: Arc<Message>,
    reply: Option<Seq>,
    bytes: usize,
}

/// What was spent in the present leg.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) turns: u32,
    pub(crate) tool_calls: u32,
    pub(crate) written_bytes: u64,
    tally: Tally,
    /// The limits that the agent has been told are near.
    pub(crate) told: Vec<Limit>,
    /// The number of answers that did not follow the schema.
    pub(crate) misfits: u32,
}

/// The present state of the loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    /// The model has something to answer.
    pub(crate) awake: bool,
    pub(crate) cancelled: Option<String>,
    pub(crate) failure: Option<(FailureKind, String)>,
    pub(crate) finished: Option<Outcome>,
    pub(crate) archived: bool,
    /// The run starts nothing new.
    pub(crate) paused: bool,
    /// A person interrupted it, and nobody has resumed it yet.
    pub(crate) interrupted: bool,
    pub(crate) last_stop: Option<Stop>,
    /// The limit because of which a call was not run.
    pub(crate) over: Option<Limit>,
    /// The number of cancel requests so far.
    pub(crate) interrupts: u32,
    /// The number of retries since the last reply.
    pub(crate) retries: u32,
    /// Milliseconds waited for the vendor since the last reply.
    pub(crate) waited_ms: u64,
    /// Milliseconds to wait before the next call of the model.
    pub(crate) wait_ms: u64,
    /// The next call is a retry.
    pub(crate) again: bool,
    /// The model was called for a turn and the result is unknown. If the process has died, the same
    /// call is made again.
    pub(crate) calling: bool,
    /// The reserved amount of the last call for a turn.
    pub(crate) reserved: Usage,
    /// The transcript was compacted since the last reply, so compacting again would change nothing.
    pub(crate) just_compacted: bool,
    /// A message asked for a summary of the conversation so far.
    pub(crate) asked_to_compact: bool,
    /// New results were shortened since the last reply because the vendor found the request too long.
    pub(crate) squeezed: bool,
    /// The time at work when the present leg began.
    leg_began_ms: u64,
    /// How much time the sender of the message that began this leg had left.
    leg_left_ms: Option<u64>,
    /// The limits that came with the message that began this leg, or with a later one.
    leg_limits: Option<Limits>,
    /// The run has had a leg before.
    begun: bool,
    worked_ms: u64,
}

/// Sizes for estimates of tokens.
#[derive(Clone, Debug, Default)]
struct Weight {
    /// Bytes of all entries.
    entries: usize,
    /// Tokens up to and including the last reply, as the vendor counted them.
    measured: Option<u64>,
    /// Bytes since the last reply.
    since: usize,
}

/// Approximate tokens around new messages and results in a request.
const WRAPPING: u64 = 64;
/// Bytes per token, estimated low.
pub(crate) const BYTES_PER_TOKEN: usize = 3;

impl Transcript {
    /// Folds a whole log.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut transcript = Transcript::default();
        for record in records {
            transcript.apply(record.seq, &record.event);
        }
        transcript
    }

    /// Folds one more event.
    pub fn apply(&mut self, seq: Seq, event: &Event) {
        self.seq = self.seq.max(seq);
        self.tally.observe(event);
        self.spent.tally.observe(event);
        match event {
            Event::RunStarted(started) => self.begin(started),
            Event::MessageReceived(received) => self.receive(seq, received),
            Event::ModelCalled(called) => {
                let mut again = std::mem::take(&mut self.phase.again);
                self.phase.wait_ms = 0;
                // A call after a context overflow is the same call with shortened results.
                if called.purpose == Purpose::Turn && self.phase.failure.take().is_some() {
                    (again, self.phase.squeezed) = (true, true);
                }
                if let Some(share) = called.share {
                    self.shorten_news(usize::try_from(share).unwrap_or(usize::MAX));
                }
                if called.purpose == Purpose::Turn {
                    self.phase.reserved = called.reserved.clone();
                    again |= std::mem::replace(&mut self.phase.calling, true);
                    self.spent.turns += u32::from(!again);
                }
            }
            Event::ModelReplied(replied) => self.reply(seq, replied),
            Event::ModelFailed(failed) => {
                self.phase.calling = false;
                self.worked(failed.worked_ms);
                match &failed.remedy {
                    Some(remedy) => self.mend(remedy),
                    // A cancelled call is not a failure of the run. The cancel request decides.
                    None if failed.kind == FailureKind::Cancelled => {}
                    None => self.phase.failure = Some((failed.kind, failed.reason.clone())),
                }
            }
            Event::ApprovalAsked(asked) => {
                let fresh = |call: &Call| call.state == CallState::Asked;
                if let Some(place) = self.calls.place(&asked.call, fresh)
                    && let Some(call) = self.calls.get_mut(place)
                {
                    call.state = CallState::Questioned { digest: asked.digest.clone() };
                }
            }
            Event::ApprovalGiven(given) => self.decide(given),
            Event::ToolStarted(started) => self.start(started),
            Event::ToolPending(pending) => {
                let call = self.open_call(&pending.call);
                // A call whose turn was cancelled meanwhile is not waited for.
                if let Some(call) =
                    call.filter(|call| !matches!(call.state, CallState::Abandoned { .. }))
                {
                    call.state = CallState::Pending;
                }
            }
            Event::ToolFinished(finished) => self.answer(finished),
            Event::ChildStarted(child) => {
                self.awaited.begun(child);
                if let Some(call) = child.call.as_ref().and_then(|call| self.open_call(call)) {
                    call.child = Some(child.run);
                }
            }
            Event::TimePassed(passed) => {
                self.worked(passed.worked_ms);
                if passed.quiet {
                    self.tell_gathered(seq);
                }
            }
            Event::Compacted(compacted) => self.compact(compacted),
            Event::CancelRequested(request) => self.interrupt(request),
            Event::Paused(paused) => {
                self.phase.paused = true;
                self.phase.interrupted |= paused.interrupted;
            }
            Event::Resumed(_) => (self.phase.paused, self.phase.interrupted) = (false, false),
            Event::RunFinished(finished) => {
                self.worked(finished.worked_ms);
                self.phase.finished = Some(finished.outcome.clone());
                (self.phase.awake, self.phase.paused) = (false, false);
                self.awaited = Awaited::default();
            }
            Event::Archived(_) => self.phase.archived = true,
        }
    }

    /// The position of the last folded event.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Raises the position to `seq`, after events with provisional positions were stored.
    pub(crate) fn reached(&mut self, seq: Seq) {
        self.seq = self.seq.max(seq);
    }

    /// The number of replies.
    pub fn replies(&self) -> u64 {
        self.replies
    }

    /// The event that started the run.
    pub fn started(&self) -> Option<&RunStarted> {
        self.started.as_deref()
    }

    /// The model in use, as `vendor/name`: the run's own, or the fallback.
    pub fn model(&self) -> Option<&str> {
        self.fallback.as_deref().or(self.started.as_ref().map(|started| started.model.as_str()))
    }

    /// How the run ended, unless it has been reopened.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.phase.finished.as_ref()
    }

    /// The reserved amount of the model call that has no reply yet.
    pub(crate) fn reserved(&self) -> Option<&Usage> {
        self.tally.open.as_ref()
    }

    /// The most that the whole run may have cost. A call without a known result counts as its reserved amount.
    pub fn usage(&self) -> Usage {
        self.tally.total()
    }

    /// The most that may have been spent in the present leg. Limits count this.
    pub(crate) fn leg_usage(&self) -> Usage {
        self.spent.tally.total()
    }

    /// Time at work so far, in milliseconds.
    pub fn worked_ms(&self) -> u64 {
        self.phase.worked_ms
    }

    /// The time limit of the present leg: the one in `limits`, but not more than the time that the
    /// sender had left.
    pub(crate) fn wall_ms(&self, limits: &Limits) -> Option<u64> {
        let asked = self.phase.leg_limits.as_ref().and_then(|limits| limits.wall_ms);
        limits.wall_ms.into_iter().chain(self.phase.leg_left_ms).chain(asked).min()
    }

    /// The limits of this leg: the stricter of `limits`, the limits of the run, and the limits that
    /// came with a message.
    pub(crate) fn leg_limits(&self, limits: &Limits) -> Limits {
        match &self.phase.leg_limits {
            Some(asked) => limits.clone().stricter(asked),
            None => limits.clone(),
        }
    }

    /// How long the run has worked, and how much time it has left under `limits`.
    pub fn time(&self, limits: &Limits) -> TimeAtWork {
        let left = self.wall_ms(limits).map(|limit| limit.saturating_sub(self.leg_ms()));
        TimeAtWork::new(self.phase.worked_ms, left)
    }

    /// How many bytes its tools may still write.
    pub(crate) fn writable_bytes(&self, limits: &Limits) -> Option<u64> {
        limits.written_bytes.map(|limit| limit.saturating_sub(self.spent.written_bytes))
    }

    /// The time at work in the present leg, in milliseconds.
    pub(crate) fn leg_ms(&self) -> u64 {
        self.phase.worked_ms.saturating_sub(self.phase.leg_began_ms)
    }

    /// The time at work when the present leg began, in milliseconds.
    pub(crate) fn leg_began_ms(&self) -> u64 {
        self.phase.leg_began_ms
    }

    /// The last text of the agent.
    pub fn last_text(&self) -> &str {
        &self.last_text
    }

    /// Who asked the run to stop, if it has not ended since.
    pub fn cancelled_by(&self) -> Option<&str> {
        self.phase.cancelled.as_deref()
    }

    /// The number of background children that will still be announced.
    pub fn awaited_runs(&self) -> usize {
        self.awaited.count()
    }

    /// The messages of the next request: those the model has seen and written, the results of its last
    /// calls, and the new messages.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        let mut messages = Vec::with_capacity(self.entries.len() + 1 + self.inbox.len());
        messages.extend(self.entries.iter().map(|entry| entry.message.clone()));
        messages.extend(self.calls.results().cloned());
        messages.extend(self.inbox.iter().map(|news| news.message.clone()));
        messages
    }

    /// What a fork takes over, and the position up to which it depends on the log: the messages that
    /// the model has seen and written, and the results of its last calls. The last reply is left out
    /// while one of its calls is open, and so are messages that no reply has seen. The files are those
    /// seen in this part of the log.
    pub(crate) fn handed_over(&self) -> (Vec<Arc<Message>>, SeenFiles, Seq) {
        let mut messages: Vec<_> = self.entries.iter().map(|entry| entry.message.clone()).collect();
        let last_reply = self.entries.last().and_then(|entry| entry.reply);
        match last_reply {
            Some(reply) if !self.calls_done() => {
                messages.pop();
                (messages, self.seen.without_last_reply(), reply)
            }
            Some(_) => {
                messages.extend(self.calls.results().cloned());
                (messages, self.seen.clone(), self.seq)
            }
            None => (messages, self.seen.clone(), self.seq),
        }
    }

    /// The tokens of `bytes` bytes of the conversation, in proportion to what the vendor counted,
    /// because the number of bytes per token differs by language.
    pub(crate) fn tokens_of(&self, bytes: usize) -> u64 {
        match self.weight.measured {
            Some(tokens) => {
                (bytes as u64).saturating_mul(tokens) / self.weight.entries.max(1) as u64
            }
            None => (bytes / BYTES_PER_TOKEN) as u64,
        }
    }

    /// The estimated tokens of the next request, on the high side.
    pub fn context_tokens(&self) -> u64 {
        self.request_tokens(0, None)
    }

    /// The estimated tokens of the next request if new results are shortened to `share` bytes each.
    /// `overhead` are the tokens of instructions and tools.
    pub(crate) fn request_tokens(&self, overhead: u64, share: Option<usize>) -> u64 {
        let saved = share.map_or(0, |share| self.saved_by(share));
        let since = self.weight.since.saturating_sub(saved);
        match self.weight.measured {
            // The vendor's count includes instructions and tools.
            Some(tokens) => tokens.saturating_add((since / BYTES_PER_TOKEN) as u64 + WRAPPING),
            None => ((self.weight.entries + since) / BYTES_PER_TOKEN) as u64 + overhead,
        }
    }

    /// True when the model has something to answer: a message, or the results of its calls.
    pub(crate) fn has_news(&self) -> bool {
        self.phase.awake && (!self.inbox.is_empty() || !self.calls.is_empty())
    }

    pub(crate) fn is_session(&self) -> bool {
        self.started.as_ref().is_some_and(|started| started.session)
    }

    /// The position before which a summary may replace every message. The rest has about `keep_tokens`
    /// at most, and every call stays with its result. `None` when a summary would save nothing.
    pub fn compactable_before(&self, keep_tokens: u64) -> Option<Seq> {
        // In proportion to the bytes, because the number of bytes per token differs by language.
        let bytes = (self.weight.entries + self.weight.since) as u64;
        let keep = (bytes.saturating_mul(keep_tokens) / self.context_tokens().max(1)) as usize;
        let open = !self.calls.is_empty();
        let mut kept = 0;
        let mut cut = self.seq.next();
        let mut first_kept = self.entries.len();
        for (index, entry) in self.entries.iter().enumerate().rev() {
            kept += entry.bytes;
            let Some(reply) = entry.reply else { continue };
            // The last reply stays while its calls are open: their results follow it.
            let must_stay = open && first_kept == self.entries.len();
            if kept > keep && !must_stay {
                break;
            }
            (cut, first_kept) = (reply, index);
        }
        (first_kept > 1).then_some(cut)
    }

    fn begin(&mut self, started: &Arc<RunStarted>) {
        for message in started.forked.iter().flat_map(|forked| &forked.messages) {
            self.push(message.clone(), None);
        }
        if let Some(forked) = &started.forked {
            self.seen.note(&forked.seen);
            self.seen.settle();
        }
        // The messages it took over are in `entries` now, so drop them here.
        self.started = Some(match started.forked {
            None => started.clone(),
            Some(_) => Arc::new(RunStarted { forked: None, ..(**started).clone() }),
        });
    }

    /// Applies the remedy for a failed call.
    fn mend(&mut self, remedy: &Remedy) {
        self.phase.again = true;
        match remedy {
            Remedy::Retry { after_ms, .. } => {
                self.phase.retries += 1;
                self.phase.wait_ms = *after_ms;
                self.phase.waited_ms = self.phase.waited_ms.saturating_add(*after_ms);
            }
            Remedy::Fallback { model, .. } => {
                self.reset_retries();
                self.phase.again = true;
                self.fallback = Some(model.clone());
            }
        }
    }

    /// Resets the retries: the vendor answers again, or the run uses another model.
    fn reset_retries(&mut self) {
        (self.phase.retries, self.phase.waited_ms, self.phase.wait_ms) = (0, 0, 0);
        self.phase.again = false;
    }

    /// Begins a leg. `left_ms` is the time that the sender of the message has left.
    fn begin_leg(&mut self, left_ms: Option<u64>) {
        let mut tally = std::mem::take(&mut self.spent.tally);
        tally.begin_again();
        self.spent = Spent { tally, ..Spent::default() };
        self.phase.calling = false;
        self.reset_retries();
        self.fallback = None;
        // An earlier text does not answer the new message.
        self.last_text.clear();
        self.phase.leg_began_ms = self.phase.worked_ms;
        (self.phase.leg_left_ms, self.phase.begun) = (left_ms, true);
        self.awaited.begin_leg();
        // A cancelled run that has not ended yet still stops.
        if self.phase.finished.take().is_some() {
            self.phase.cancelled = None;
        }
        (self.phase.failure, self.phase.squeezed) = (None, false);
        self.phase.last_stop = None;
        self.phase.over = None;
        self.standing.narrowed.clear();
    }

    fn reply(&mut self, seq: Seq, replied: &ModelReplied) {
        self.replies += 1;
        self.phase.calling = false;
        self.seen.settle();
        self.reset_retries();
        self.worked(replied.worked_ms);
        if let Some(results) = self.calls.results().cloned() {
            self.push_shared(results, None);
        }
        let unseen = self.inbox.iter().position(|news| news.seq > replied.seen);
        let unseen = unseen.unwrap_or(self.inbox.len());
        let seen: Vec<_> = self.inbox.drain(..unseen).collect();
        for news in seen {
            self.push_shared(news.message, None);
        }
        let text = replied.message.text();
        if !text.trim().is_empty() {
            self.last_text = text;
        }
        self.calls = Calls::of(replied.message.tool_calls());
        self.push(replied.message.clone(), Some(seq));
        let usage = &replied.usage;
        let counted = usage.all_input_tokens().saturating_add(usage.output_tokens);
        self.weight.measured = (counted > 0).then_some(counted);
        self.weight.since = self.inbox.iter().map(|news| weigh(&news.message.parts)).sum();
        if self.weight.measured.is_none() {
            self.weight.since = 0;
        }
        // A cancelled turn stays cancelled: only a message wakes the agent.
        if self.calls.is_empty() && self.phase.awake {
            self.end_turn();
        }
        self.phase.awake = self.phase.awake && (!self.calls.is_empty() || !self.inbox.is_empty());
        self.phase.failure = None;
        (self.phase.just_compacted, self.phase.squeezed) = (false, false);
        self.phase.asked_to_compact = false;
        self.phase.last_stop = Some(replied.stop.clone());
    }

    fn interrupt(&mut self, request: &CancelRequested) {
        self.phase.interrupts += 1;
        if request.scope == CancelScope::Run || !self.is_session() {
            self.phase.cancelled = Some(request.by.clone());
            return;
        }
        self.phase.awake = false;
        for call in self.calls.iter_mut().filter(|call| call.is_open()) {
            let (begun, lost) = (call.has_begun(), call.may_have_had_its_effect());
            call.state = CallState::Abandoned { begun, lost };
        }
    }

    fn compact(&mut self, compacted: &Compacted) {
        self.worked(compacted.worked_ms);
        let kept = self.entries.iter().position(|entry| entry.reply == Some(compacted.before));
        let kept = kept.unwrap_or(self.entries.len());
        let tail = self.entries.split_off(kept);
        self.entries.clear();
        self.weight = Weight::default();
        self.push(Message::user(compacted.summary.clone()), None);
        for entry in tail {
            self.push_shared(entry.message, entry.reply);
        }
        self.weight.since = self.news_weight();
        (self.phase.just_compacted, self.phase.asked_to_compact) = (true, false);
        self.phase.failure = None;
    }

    fn push(&mut self, message: Message, reply: Option<Seq>) {
        self.push_shared(Arc::new(message), reply);
    }

    fn push_shared(&mut self, message: Arc<Message>, reply: Option<Seq>) {
        let bytes = weigh(&message.parts);
        self.weight.entries += bytes;
        self.entries.push(Entry { message, reply, bytes });
    }

    fn worked(&mut self, worked_ms: u64) {
        self.phase.worked_ms = self.phase.worked_ms.max(worked_ms);
    }
}
