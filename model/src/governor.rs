//! A governor for each provider. Every call asks it for permission before it is sent.
//!
//! A governor learns from refusals and headers how many calls the provider accepts, lets that many
//! go, and keeps the others waiting in their order. It sends nothing and retries nothing: a call
//! that is refused fails, and its caller decides.

mod rate;
mod state;
mod width;

use crate::catalog::Caps;
use crate::fault::Kind;
use crate::http::Limits;
use parking_lot::{Mutex, MutexGuard};
use posse_agent::Request;
use posse_protocol::{Part, ToolSpec, Usage};
use state::{Probe, Sent, State, Verdict};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use width::Refusal;

/// About the number of bytes of a token.
const BYTES_PER_TOKEN: u64 = 4;

/// An estimate of the tokens of a picture or a document.
const TOKENS_OF_MEDIA: u64 = 1500;

/// Whether calls wait for permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Calls wait: as many go as the provider accepts.
    Adaptive {
        /// How many may go at once before anything is known.
        first_width: usize,
    },
    /// Calls go at once. For hosts that pace calls themselves.
    Off,
}

impl Default for Pacing {
    fn default() -> Self {
        Pacing::Adaptive { first_width: 24 }
    }
}

/// The state of a provider in its governor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The vendor.
    pub name: String,
    /// Its address, without parts that may be secret.
    pub address: String,
    /// How many calls may be in flight.
    pub width: usize,
    /// How many calls are in flight.
    pub in_flight: usize,
    /// How many calls wait.
    pub waiting: usize,
    /// For how long nothing is sent, at the request of the provider.
    pub held_for: Option<Duration>,
    /// How many requests were sent.
    pub sent: u64,
    /// How many requests the provider refused, because there were too many or because it was in
    /// trouble.
    pub refused: u64,
}

impl Provider {
    /// Returns how many requests were needed: sent and not refused.
    pub fn needed(&self) -> u64 {
        self.sent - self.refused
    }
}

/// Decides which call may go to a provider, and when.
pub(crate) struct Governor {
    name: String,
    address: String,
    pacing: Pacing,
    queue: Mutex<Queue>,
}

struct Queue {
    state: State,
    /// The waiting calls, in order of arrival.
    waiting: VecDeque<Arc<Notify>>,
}

/// The provider has told all clients to wait this long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RetryLater(pub(crate) Duration);

impl Governor {
    pub(crate) fn new(name: String, address: String, pacing: Pacing, caps: Caps) -> Self {
        let first_width = match pacing {
            Pacing::Adaptive { first_width } => first_width,
            Pacing::Off => usize::MAX,
        };
        let state = State::new(first_width, caps);
        let queue = Mutex::new(Queue { state, waiting: VecDeque::new() });
        Governor { name, address, pacing, queue }
    }

    /// Returns when `request` may be sent; it counts as in flight until what is returned is
    /// dropped. `queued` is called with the number of calls before it, if it has to wait. To stop
    /// waiting, drop the future.
    pub(crate) async fn leave(
        &self,
        request: &Request,
        queued: impl FnOnce(usize),
    ) -> Result<Leave<'_>, RetryLater> {
        let mut place = match self.line_up(request) {
            Ok(leave) => return Ok(leave),
            Err((place, before)) => {
                queued(before);
                place
            }
        };
        loop {
            match self.verdict(&mut place, request) {
                Ok(leave) => return Ok(leave),
                Err(Verdict::RetryLater(left)) => return Err(RetryLater(left)),
                Err(Verdict::At(at)) => {
                    tokio::select! {
                        () = place.woken.notified() => {}
                        () = sleep_until(at) => {}
                    }
                }
                Err(_) => place.woken.notified().await,
            }
        }
    }

    /// Permission at once, or a place in the queue and how many calls are before it.
    fn line_up(&self, request: &Request) -> Result<Leave<'_>, (QueuePlace<'_>, usize)> {
        let mut queue = self.queue();
        let (input, now) = (queue.input_tokens(request), Instant::now());
        if self.pacing == Pacing::Off
            || (queue.waiting.is_empty() && queue.state.ask(input, now) == Verdict::Go)
        {
            return Ok(self.granted(&mut queue, input, now));
        }
        let place = QueuePlace { governor: self, woken: Arc::default(), in_line: true };
        queue.waiting.push_back(place.woken.clone());
        Err((place, queue.waiting.len() - 1))
    }

    /// Permission for the first in the queue, or the reason why not.
    fn verdict(&self, place: &mut QueuePlace<'_>, request: &Request) -> Result<Leave<'_>, Verdict> {
        let mut queue = self.queue();
        if !queue.waiting.front().is_some_and(|first| Arc::ptr_eq(first, &place.woken)) {
            return Err(Verdict::Later);
        }
        let (input, now) = (queue.input_tokens(request), Instant::now());
        match queue.state.ask(input, now) {
            Verdict::Go => {
                queue.waiting.pop_front();
                place.in_line = false;
                queue.wake();
                Ok(self.granted(&mut queue, input, now))
            }
            other => Err(other),
        }
    }

    fn granted(&self, queue: &mut Queue, input: u64, now: Instant) -> Leave<'_> {
        Leave { governor: self, sent: queue.state.send(input, now) }
    }

    /// The state of the provider, for people.
    pub(crate) fn provider(&self) -> Provider {
        let queue = self.queue();
        let now = Instant::now();
        let held_until = queue.state.held_until.filter(|until| *until > now);
        Provider {
            name: self.name.clone(),
            address: self.address.clone(),
            width: match queue.state.probe {
                Probe::None => queue.state.width.now(),
                Probe::Wanted | Probe::Out => 1,
            },
            in_flight: queue.state.in_flight,
            waiting: queue.waiting.len(),
            held_for: held_until.map(|until| until - now),
            sent: queue.state.sent,
            refused: queue.state.refused,
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

impl Queue {
    /// About how many tokens `request` sends, if that matters.
    fn input_tokens(&self, request: &Request) -> u64 {
        match self.state.counts_tokens() {
            true => input_tokens(request),
            false => 0,
        }
    }

    /// Wakes the first in the queue, which asks again.
    fn wake(&self) {
        if let Some(first) = self.waiting.front() {
            first.notify_one();
        }
    }
}

/// A place in the queue; dropped with this value.
struct QueuePlace<'a> {
    governor: &'a Governor,
    woken: Arc<Notify>,
    in_line: bool,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        if self.in_line {
            let mut queue = self.governor.queue();
            queue.waiting.retain(|other| !Arc::ptr_eq(other, &self.woken));
            queue.wake();
        }
    }
}

/// Permission for one call, which is in flight until this is dropped.
pub(crate) struct Leave<'a> {
    governor: &'a Governor,
    sent: Sent,
}

impl Leave<'_> {
    /// Notes what the head of the answer says is left.
    pub(crate) fn told(&mut self, limits: &Limits) {
        let mut queue = self.governor.queue();
        queue.state.told(&mut self.sent, limits, Instant::now());
    }

    /// Notes that the provider has begun to answer.
    pub(crate) fn taken(&mut self) {
        let mut queue = self.governor.queue();
        let waiting = queue.waiting.len();
        queue.state.taken(&mut self.sent, waiting);
        queue.wake();
    }

    /// Notes how the call failed. `limits` are those of the answer, if there was one.
    pub(crate) fn failed(&mut self, kind: Kind, limits: &Limits) {
        let (refusal, asked) = match kind {
            Kind::RateLimited(asked) => (Refusal::Ours, asked.or_else(|| spent_until(limits))),
            Kind::Overloaded(asked) => (Refusal::Theirs, asked),
            // This is an answer, too: the provider accepts calls.
            Kind::Rejected | Kind::Unauthorised | Kind::ContextOverflow => return self.taken(),
            Kind::Unreachable | Kind::Refused | Kind::Unanswered => return,
            Kind::Stalled(_) | Kind::Cut | Kind::Malformed => return,
        };
        let mut queue = self.governor.queue();
        queue.state.refused(&mut self.sent, refusal, asked, Instant::now());
        queue.wake();
    }

    /// Notes what the reply took.
    pub(crate) fn spent(&mut self, usage: &Usage) {
        let input = usage.input_tokens.saturating_add(usage.cache_write_tokens);
        let mut queue = self.governor.queue();
        queue.state.spent(&self.sent, input, usage.output_tokens, Instant::now());
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut queue = self.governor.queue();
        queue.state.ended(&mut self.sent);
        queue.wake();
    }
}

/// How long until a used-up limit has something left again.
fn spent_until(limits: &Limits) -> Option<Duration> {
    let spent = limits.scarcer().filter(|limit| limit.left == 0)?;
    spent.resets_in_ms.filter(|wait| *wait > 0).map(Duration::from_millis)
}

/// About how many tokens `request` sends.
fn input_tokens(request: &Request) -> u64 {
    let of_tool =
        |tool: &ToolSpec| tool.name.len() + tool.description.len() + tool.schema.text().len();
    let tools: usize = request.tools.iter().map(of_tool).sum();
    let said = request.messages.iter().map(|message| parts_tokens(&message.parts));
    tokens(request.system.len() + tools) + said.sum::<u64>()
}

fn parts_tokens(parts: &[Part]) -> u64 {
    let of = |part: &Part| match part {
        Part::Text(text) => tokens(text.text.len()),
        Part::Thinking(thinking) => tokens(thinking.text.len()),
        Part::ToolCall(call) => tokens(call.input.to_string().len()),
        Part::ToolResult(result) => parts_tokens(&result.parts),
        Part::Image { .. } | Part::Document { .. } => TOKENS_OF_MEDIA,
        Part::Opaque { value, .. } => tokens(value.to_string().len()),
    };
    parts.iter().map(of).sum()
}

fn tokens(bytes: usize) -> u64 {
    bytes as u64 / BYTES_PER_TOKEN
}

#[cfg(test)]
mod tests;
