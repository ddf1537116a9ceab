//! The fold: from a run's events to what the model sees and what the loop decides on.
//!
//! Folding is incremental and never fails: an event that does not fit is left without effect.
//! It does no I/O and reads no clock. What others append (messages, cancel requests, results of
//! pending calls) commutes with what the owner appends, because a reply names what it had seen.

mod calls;
mod hearing;
mod news;
mod weight;

pub(crate) use weight::weigh;

use crate::awaited::Awaited;
use crate::calls::{Call, CallState, Calls};
use crate::guard::Standing;
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
    /// What the model has seen and said, in order.
    entries: Vec<Entry>,
    /// What was said to the agent and no reply has seen yet.
    inbox: Vec<News>,
    /// What is told when the present turn ends.
    later: Vec<News>,
    /// What the log adds to the rules about calls.
    pub(crate) standing: Standing,
    /// What other runs are at work for this one.
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
    /// The model that took the place of the run's own.
    fallback: Option<String>,
    /// The model that somebody has asked for in place of the run's own.
    pub(crate) asked_model: Option<String>,
    /// Replies so far.
    replies: u64,
}

/// A message in its place, and the position of the reply it is, if it is one.
#[derive(Clone, Debug)]
struct Entry {
    message: Arc<Message>,
    reply: Option<Seq>,
    bytes: usize,
}

/// What was spent since the run was last set to work.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) turns: u32,
    pub(crate) tool_calls: u32,
    pub(crate) written_bytes: u64,
    tally: Tally,
    /// Limits the agent has been told about.
    pub(crate) told: Vec<Limit>,
    /// Answers that did not follow their schema.
    pub(crate) misfits: u32,
}

/// Flags of the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    /// There is something that the model has not answered yet.
    pub(crate) awake: bool,
    pub(crate) cancelled: Option<String>,
    pub(crate) failure: Option<(FailureKind, String)>,
    pub(crate) finished: Option<Outcome>,
    pub(crate) archived: bool,
    /// Nothing more is begun.
    pub(crate) paused: bool,
    pub(crate) last_stop: Option<Stop>,
    /// A call was not run because this limit was reached.
    pub(crate) over: Option<Limit>,
    /// Cancel requests so far.
    pub(crate) interrupts: u32,
    /// Calls that failed since the last reply and are made again.
    pub(crate) retries: u32,
    /// Milliseconds waited for the provider since the last reply.
    pub(crate) waited_ms: u64,
    /// Milliseconds to wait before the next call of the model.
    pub(crate) wait_ms: u64,
    /// The next call is one that failed, made again.
    pub(crate) again: bool,
    /// The model was called for a turn, and nothing is known yet of what it came to. If its process
    /// has died, the same is asked again.
    pub(crate) calling: bool,
    /// What the last call for a turn reserved.
    pub(crate) reserved: Usage,
    /// Compacted since the last reply: doing it again would change nothing.
    pub(crate) just_compacted: bool,
    /// Somebody asked for a summary in place of the conversation so far.
    pub(crate) asked_to_compact: bool,
    /// New results were shortened since the last reply because the provider found them too long.
    pub(crate) squeezed: bool,
    /// Time at work when the run was last set to work.
    leg_began_ms: u64,
    /// How much time was left then to whoever set it to work.
    leg_left_ms: Option<u64>,
    /// The limits that came with the message that began this leg, or with a later one.
    leg_limits: Option<Limits>,
    /// It has been set to work before.
    begun: bool,
    worked_ms: u64,
}

/// How much the transcript holds, for estimates.
#[derive(Clone, Debug, Default)]
struct Weight {
    /// Bytes of all entries.
    entries: usize,
    /// Tokens up to and with the last reply, as its provider counted them.
    measured: Option<u64>,
    /// Bytes that came after it.
    since: usize,
}

/// Tokens of what is around new messages and results in a request, about.
const WRAPPING: u64 = 64;
/// Bytes that make a token, pessimistically: three.
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
                // Made in spite of a failure, it is the same call with less to read.
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
                    // A call that we stopped is no failure of the run: what stopped it decides.
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
                // A call whose turn was stopped meanwhile is not waited for.
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
            Event::Paused(_) => self.phase.paused = true,
            Event::Resumed(_) => self.phase.paused = false,
            Event::RunFinished(finished) => {
                self.worked(finished.worked_ms);
                self.phase.finished = Some(finished.outcome.clone());
                (self.phase.awake, self.phase.paused) = (false, false);
                self.awaited = Awaited::default();
            }
            Event::Archived(_) => self.phase.archived = true,
        }
    }

    /// Position of the last event folded.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// What was folded at a provisional position stands at `seq` at the latest.
    pub(crate) fn reached(&mut self, seq: Seq) {
        self.seq = self.seq.max(seq);
    }

    /// How many replies there are.
    pub fn replies(&self) -> u64 {
        self.replies
    }

    /// How the run began.
    pub fn started(&self) -> Option<&RunStarted> {
        self.started.as_deref()
    }

    /// The model in use, as `vendor/name`: the run's own, or the one that took its place.
    pub fn model(&self) -> Option<&str> {
        self.fallback.as_deref().or(self.started.as_ref().map(|started| started.model.as_str()))
    }

    /// How the run ended, unless it has been reopened.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.phase.finished.as_ref()
    }

    /// What the model call reserved that has no answer yet.
    pub(crate) fn reserved(&self) -> Option<&Usage> {
        self.tally.open.as_ref()
    }

    /// What the whole run may have cost, at most: a call that is under way or was never answered as
    /// it was reserved.
    pub fn usage(&self) -> Usage {
        self.tally.total()
    }

    /// What may have been spent since the run was last set to work. Limits count this.
    pub(crate) fn leg_usage(&self) -> Usage {
        self.spent.tally.total()
    }

    /// Time at work so far, in milliseconds.
    pub fn worked_ms(&self) -> u64 {
        self.phase.worked_ms
    }

    /// How long it may be at work from when it was last set to work on: as long as `limits` say, and
    /// no longer than whoever set it to work.
    pub(crate) fn wall_ms(&self, limits: &Limits) -> Option<u64> {
        let asked = self.phase.leg_limits.as_ref().and_then(|limits| limits.wall_ms);
        limits.wall_ms.into_iter().chain(self.phase.leg_left_ms).chain(asked).min()
    }

    /// The limits of this leg: the stricter of `limits`, which the run has, and those that came with a
    /// message.
    pub(crate) fn leg_limits(&self, limits: &Limits) -> Limits {
        match &self.phase.leg_limits {
            Some(asked) => limits.clone().stricter(asked),
            None => limits.clone(),
        }
    }

    /// How it stands with the time of a run that has these `limits`.
    pub fn time(&self, limits: &Limits) -> TimeAtWork {
        let left = self.wall_ms(limits).map(|limit| limit.saturating_sub(self.leg_ms()));
        TimeAtWork::new(self.phase.worked_ms, left)
    }

    /// What its tools may still write, in bytes.
    pub(crate) fn writable_bytes(&self, limits: &Limits) -> Option<u64> {
        limits.written_bytes.map(|limit| limit.saturating_sub(self.spent.written_bytes))
    }

    /// Time at work since the run was last set to work, in milliseconds.
    pub(crate) fn leg_ms(&self) -> u64 {
        self.phase.worked_ms.saturating_sub(self.phase.leg_began_ms)
    }

    /// Time at work at which the present leg began, in milliseconds.
    pub(crate) fn leg_began_ms(&self) -> u64 {
        self.phase.leg_began_ms
    }

    /// The last text of the agent.
    pub fn last_text(&self) -> &str {
        &self.last_text
    }

    /// Who asked the run to stop, if someone did and it has not ended since.
    pub fn cancelled_by(&self) -> Option<&str> {
        self.phase.cancelled.as_deref()
    }

    /// How many other runs are at work whose ends this one will be told of.
    pub fn awaited_runs(&self) -> usize {
        self.awaited.count()
    }

    /// What the model is to see next: all it has seen and said, the results of its last calls,
    /// and what was said to it since.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        let mut messages = Vec::with_capacity(self.entries.len() + 1 + self.inbox.len());
        messages.extend(self.entries.iter().map(|entry| entry.message.clone()));
        messages.extend(self.calls.results().cloned());
        messages.extend(self.inbox.iter().map(|news| news.message.clone()));
        messages
    }

    /// What another run may take over, and up to which event it depends on the log: what the model
    /// has seen and said and the results of its last calls, but not its last reply while any of
    /// those is open. What no reply has seen is not taken over. The files are those that were seen
    /// in this part of the log.
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

    /// Tokens of so many bytes of what the model has seen and said: by their share of what its
    /// provider counted, since how many bytes make a token differs by language.
    pub(crate) fn tokens_of(&self, bytes: usize) -> u64 {
        match self.weight.measured {
            Some(tokens) => {
                (bytes as u64).saturating_mul(tokens) / self.weight.entries.max(1) as u64
            }
            None => (bytes / BYTES_PER_TOKEN) as u64,
        }
    }

    /// Tokens that the next request will have, estimated on the high side.
    pub fn context_tokens(&self) -> u64 {
        self.request_tokens(0, None)
    }

    /// About how many tokens the next request holds, of which `overhead` are instructions and tools,
    /// if new results are shortened to `share` bytes each.
    pub(crate) fn request_tokens(&self, overhead: u64, share: Option<usize>) -> u64 {
        let saved = share.map_or(0, |share| self.saved_by(share));
        let since = self.weight.since.saturating_sub(saved);
        match self.weight.measured {
            // The provider has counted instructions and tools as well.
            Some(tokens) => tokens.saturating_add((since / BYTES_PER_TOKEN) as u64 + WRAPPING),
            None => ((self.weight.entries + since) / BYTES_PER_TOKEN) as u64 + overhead,
        }
    }

    /// True when the model has something to answer: a message, or results of its calls.
    pub(crate) fn has_news(&self) -> bool {
        self.phase.awake && (!self.inbox.is_empty() || !self.calls.is_empty())
    }

    pub(crate) fn is_session(&self) -> bool {
        self.started.as_ref().is_some_and(|started| started.session)
    }

    /// The prefix that may be replaced by a summary: every message before the reply at the
    /// returned position, so that what stays is about `keep_tokens` at most and no call is parted
    /// from its result. `None` when there is nothing to gain.
    pub fn compactable_before(&self, keep_tokens: u64) -> Option<Seq> {
        // By the share of the bytes: how many of them make a token differs by language.
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
        // What it took over stands among the entries; it need not be kept twice.
        self.started = Some(match started.forked {
            None => started.clone(),
            Some(_) => Arc::new(RunStarted { forked: None, ..(**started).clone() }),
        });
    }

    /// What is done about a call that failed.
    fn mend(&mut self, remedy: &Remedy) {
        self.phase.again = true;
        match remedy {
            Remedy::Retry { after_ms, .. } => {
                self.phase.retries += 1;
                self.phase.wait_ms = *after_ms;
                self.phase.waited_ms = self.phase.waited_ms.saturating_add(*after_ms);
            }
            Remedy::Fallback { model, .. } => {
                self.forget_trouble();
                self.phase.again = true;
                self.fallback = Some(model.clone());
            }
        }
    }

    /// The provider is all right, or it is another one.
    fn forget_trouble(&mut self) {
        (self.phase.retries, self.phase.waited_ms, self.phase.wait_ms) = (0, 0, 0);
        self.phase.again = false;
    }

    /// The run is set to work, by somebody who has so much time left.
    fn begin_leg(&mut self, left_ms: Option<u64>) {
        let mut tally = std::mem::take(&mut self.spent.tally);
        tally.begin_again();
        self.spent = Spent { tally, ..Spent::default() };
        self.phase.calling = false;
        self.forget_trouble();
        self.fallback = None;
        // What was said before is no answer to what is asked now.
        self.last_text.clear();
        self.phase.leg_began_ms = self.phase.worked_ms;
        (self.phase.leg_left_ms, self.phase.begun) = (left_ms, true);
        self.awaited.begin_leg();
        // A run that was told to stop and has not ended yet still stops.
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
        self.forget_trouble();
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
        // A turn that was stopped stays stopped: only a message sets the agent to work again.
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
            call.state = CallState::Abandoned { begun: call.may_have_had_its_effect() };
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
