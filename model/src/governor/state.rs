//! What a governor knows of its provider, and the decision about the next call. Pure; the caller
//! provides the time.

use super::rate::{Cap, Left};
use super::width::{Refusal, Width};
use crate::catalog::Caps;
use crate::http::{Limit, Limits};
use std::time::Duration;
use tokio::time::Instant;

/// The most calls in flight to a provider that accepts all, without a cap of the user, unless the
/// host begins with more.
const WIDEST: usize = 4096;

/// If a provider refuses again and again and does not say until when, no call goes for this long,
/// then for twice as long, up to the second value.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The longest wait here for a provider that has told all clients to wait. After that the caller
/// decides whether to wait on or to use another provider.
const LONGEST_HOLD: Duration = Duration::from_secs(60);
/// If a provider's limit lets a call go only later than this, the call is not sent at all.
const LONGEST_PACE: Duration = Duration::from_secs(3_600);

/// A provider that refuses calls does so at once. After this long without a refusal, more calls go.
const SILENCE: Duration = Duration::from_millis(30);

/// An estimate of the tokens of a reply before the first one.
const FIRST_OUTPUT: u64 = 500;

/// What is known of a provider.
#[derive(Debug)]
pub(super) struct State {
    pub(super) width: Width,
    pub(super) in_flight: usize,
    last_sent: Option<Instant>,
    /// Calls in flight without an answer.
    unanswered: Amount,
    pub(super) held_until: Option<Instant>,
    pub(super) probe: Probe,
    /// Refusals that narrowed the width since the last accepted call.
    streak: u32,
    requests: Rate,
    tokens: Rate,
    /// Tokens of recent replies.
    typical_output: u64,
    pub(super) sent: u64,
    pub(super) refused: u64,
}

/// Whether one call goes before all others to see whether the provider accepts calls again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// None is needed.
    None,
    /// The next call is it.
    Wanted,
    /// It is on its way.
    Out,
}

/// Calls and their tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    requests: u64,
    tokens: u64,
}

/// One thing that is counted, by the user and by the provider.
#[derive(Debug)]
struct Rate {
    cap: Option<Cap>,
    left: Option<Left>,
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may go. It is in flight from now on.
    Go,
    /// Not before then.
    At(Instant),
    /// Not before something changes.
    Later,
    /// Not for a long time: its caller should decide.
    RetryLater(Duration),
}

/// A call in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    round: u64,
    tokens: u64,
    is_probe: bool,
    is_answered: bool,
    is_taken: bool,
}

impl State {
    pub(super) fn new(first_width: usize, caps: Caps) -> Self {
        let rate = |cap: Option<u64>| Rate { cap: cap.map(Cap::new), left: None };
        State {
            width: Width::new(first_width, caps.max_concurrent.unwrap_or(WIDEST.max(first_width))),
            in_flight: 0,
            last_sent: None,
            unanswered: Amount::default(),
            held_until: None,
            probe: Probe::None,
            streak: 0,
            requests: rate(caps.requests_per_minute),
            tokens: rate(caps.tokens_per_minute),
            typical_output: FIRST_OUTPUT,
            sent: 0,
            refused: 0,
        }
    }

    /// True when it matters how many tokens a call has.
    pub(super) fn counts_tokens(&self) -> bool {
        self.tokens.cap.is_some() || self.tokens.left.is_some()
    }

    /// Whether a call that sends `input` tokens may go.
    pub(super) fn ask(&mut self, input: u64, now: Instant) -> Verdict {
        if let Some(until) = self.held_until {
            match until.saturating_duration_since(now) {
                Duration::ZERO => {
                    self.held_until = None;
                    self.probe = Probe::Wanted;
                }
                left if left > LONGEST_HOLD => return Verdict::RetryLater(left),
                _ => return Verdict::At(until),
            }
        }
        if self.probe == Probe::Out {
            return Verdict::Later;
        }
        if self.in_flight >= self.width.now() {
            // A provider that never refused a call gets more after a short time.
            let silent = self.last_sent.map(|sent| sent + SILENCE);
            match silent.filter(|_| self.width.was_never_refused()) {
                Some(at) if at <= now => self.width.widen(),
                Some(at) => return Verdict::At(at),
                None => return Verdict::Later,
            }
        }
        if self.in_flight >= self.width.now() {
            return Verdict::Later;
        }
        let tokens = self.tokens_of(input);
        let paced = self.requests.free_at(1, now).max(self.tokens.free_at(tokens, now));
        match paced {
            None => Verdict::Go,
            Some(at) => match at.saturating_duration_since(now) {
                wait if wait > LONGEST_PACE => Verdict::RetryLater(wait),
                _ => Verdict::At(at),
            },
        }
    }

    fn tokens_of(&self, input: u64) -> u64 {
        match self.counts_tokens() {
            true => input.saturating_add(self.typical_output),
            false => 0,
        }
    }

    /// Sends a call.
    pub(super) fn send(&mut self, input: u64, now: Instant) -> Sent {
        let tokens = self.tokens_of(input);
        self.requests.spend(1, now);
        self.tokens.spend(tokens, now);
        self.in_flight += 1;
        self.last_sent = Some(now);
        self.unanswered.requests += 1;
        self.unanswered.tokens += tokens;
        self.sent += 1;
        let is_probe = self.probe == Probe::Wanted;
        if is_probe {
            self.probe = Probe::Out;
        }
        let round = self.width.round();
        Sent { at: now, round, tokens, is_probe, is_answered: false, is_taken: false }
    }

    /// Notes what an answer says is left.
    pub(super) fn told(&mut self, sent: &mut Sent, limits: &Limits, now: Instant) {
        self.answered(sent);
        let Amount { requests, tokens } = self.unanswered;
        self.requests.told(limits.requests, requests, sent.at, now);
        self.tokens.told(limits.tokens, tokens, sent.at, now);
    }

    fn answered(&mut self, sent: &mut Sent) {
        if !std::mem::replace(&mut sent.is_answered, true) {
            self.unanswered.requests -= 1;
            self.unanswered.tokens -= sent.tokens;
        }
    }

    /// Notes that a call was accepted: its answer has begun, or refuses the request for its
    /// content.
    pub(super) fn taken(&mut self, sent: &mut Sent, waiting: usize) {
        self.answered(sent);
        self.streak = 0;
        if std::mem::take(&mut sent.is_probe) && self.probe == Probe::Out {
            self.probe = Probe::None;
        }
        if !std::mem::replace(&mut sent.is_taken, true) {
            self.width.taken(self.in_flight, waiting);
        }
    }

    /// Notes that a call was refused, with what the provider says about when to come back.
    pub(super) fn refused(
        &mut self,
        sent: &mut Sent,
        refusal: Refusal,
        asked: Option<Duration>,
        now: Instant,
    ) {
        self.answered(sent);
        self.refused += 1;
        let was_probe = std::mem::take(&mut sent.is_probe);
        let narrowed = self.width.refused(refusal, sent.round, self.in_flight.saturating_sub(1));
        let speaks_for_all = narrowed || was_probe;
        if speaks_for_all {
            self.streak += 1;
        }
        // A provider that limits one call limits all calls with the same key.
        let hold = match asked {
            Some(asked) if refusal == Refusal::Ours || speaks_for_all => asked,
            _ if speaks_for_all && self.streak > 1 => pause(self.streak - 2),
            _ if was_probe => Duration::ZERO,
            _ => return,
        };
        let until = now + hold;
        self.held_until = Some(self.held_until.map_or(until, |held| held.max(until)));
        if self.probe == Probe::Out && was_probe {
            self.probe = Probe::None;
        }
    }

    /// Notes what a complete reply took.
    pub(super) fn spent(&mut self, sent: &Sent, input: u64, output: u64, now: Instant) {
        self.typical_output = (self.typical_output * 7 + output) / 8;
        if let Some(cap) = &mut self.tokens.cap {
            cap.spend((input + output).saturating_sub(sent.tokens), now);
        }
    }

    /// Notes that a call is over, however it went.
    pub(super) fn ended(&mut self, sent: &mut Sent) {
        self.answered(sent);
        self.in_flight -= 1;
        // A probe without a result leaves the question open.
        if sent.is_probe && self.probe == Probe::Out {
            self.probe = Probe::Wanted;
        }
    }
}

impl Rate {
    fn free_at(&mut self, amount: u64, now: Instant) -> Option<Instant> {
        let cap = self.cap.as_mut().and_then(|cap| cap.free_at(amount, now));
        cap.max(self.left.as_mut().and_then(|left| left.free_at(amount, now)))
    }

    fn spend(&mut self, amount: u64, now: Instant) {
        if let Some(cap) = &mut self.cap {
            cap.spend(amount, now);
        }
        if let Some(left) = &mut self.left {
            left.spend(amount, now);
        }
    }

    fn told(&mut self, limit: Option<Limit>, open: u64, sent: Instant, now: Instant) {
        let Some(newer) = limit.and_then(|limit| Left::told(&limit, open, now)) else { return };
        if self.left.as_mut().is_none_or(|left| left.gives_way_to(&newer, sent, now)) {
            self.left = Some(newer);
        }
    }
}

fn pause(times: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << times.min(16)).min(LONGEST_PAUSE)
}
