//! Decides the next step: a pure function of the transcript.

use crate::allowance::CountHeld;
use crate::calls::{Call, CallState};
use crate::transcript::{BYTES_PER_TOKEN, Transcript};
use crate::{Allowance, ModelInfo};
use posse_protocol::{
    CallId, Ending, Extra, FailureKind, Limit, Limits, Outcome, Price, Shortfall, Stop, ToolCall,
    Usage,
};

/// The limits of a run, and the size and price of its model.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The limits.
    pub limits: Limits,
    /// The size and price of the model.
    pub model: ModelInfo,
    /// Tokens of the instructions and tools, which every request contains.
    pub overhead_tokens: u64,
    /// How much the run may still draw from budgets.
    pub allowance: Allowance,
    /// True when a run above this one has the money budget, so that other runs draw on it too.
    pub shares_money: bool,
}

/// One step of the loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Call the model.
    CallModel {
        /// The most tokens the reply may have.
        max_tokens: u64,
        /// The most that the call may spend.
        reserved: Usage,
        /// The number of bytes to which each new result is shortened, if that is needed.
        share: Option<u64>,
        /// How long to wait before the call, in milliseconds.
        after_ms: u64,
    },
    /// Run these calls.
    CallTools(Vec<ToolCall>),
    /// Answer these calls without running them.
    Answer {
        /// The calls.
        calls: Vec<CallId>,
        /// How the calls ended.
        ending: Ending,
        /// The message for the model.
        why: String,
        /// What refused the calls; empty if they were not refused.
        by: String,
    },
    /// Tell the agent that it is near a limit.
    Tell {
        /// The limit.
        limit: Limit,
        /// The text of the message.
        text: String,
    },
    /// Replace the beginning of the transcript by a summary.
    Compact,
    /// Do nothing until an event is appended.
    Wait,
    /// Wait for budget: not enough is left, but other runs hold some and may give it back.
    WaitForBudget,
    /// End the run with this outcome.
    Finish(Outcome),
    /// The run has ended with this outcome.
    Done(Outcome),
}

/// The beginning of the message that the agent is near a limit.
pub const LIMIT_NEAR: &str = "You are close to your limit of ";
/// How full the context window is when the transcript is compacted, in percent.
const COMPACT_AT_PERCENT: u64 = 80;
/// The shortest reply worth asking for. If not even this fits, the run ends.
const MIN_REPLY_TOKENS: u64 = 64;
/// If other runs draw on the same money, a call reserves one of `PARTS` parts of what is left, or enough
/// for `FAIR_TOKENS`. If it reserved everything, the runs could make only one call at a time.
const PARTS: u64 = 8;
const FAIR_TOKENS: u64 = 16_384;
/// With room for a reply this long, a run does not wait for more budget: longer replies are rare.
const LONG_REPLY_TOKENS: u64 = 4_096;
/// How many tokens an agent needs for its final report.
const REPORT_TOKENS: u64 = 256;
/// The result of a call that a person cancelled.
const CANCELLED: &str = "cancelled before it finished";
/// The same for a call that had not started.
const NOT_STARTED: &str = "cancelled before it started";
/// The result of a call that had started when its process died, or that was given up.
const INTERRUPTED: &str = "interrupted: the process that ran this call died, was stopped by the \
     user, or gave it up because it hung, before its result was recorded. Whether it had its effect is not known; look before \
     you try again.";
/// The reason of the failure when the model refuses to answer.
const REFUSED: &str =
    "the model refused to answer; say differently what is wanted, or use another model";

/// Decides the next step. Pure: the same log always gives the same step.
pub fn next_step(transcript: &Transcript, bounds: &Bounds) -> Step {
    let phase = &transcript.phase;
    if let Some(outcome) = &phase.finished {
        return Step::Done(outcome.clone());
    }
    if transcript.started.is_none() || phase.archived {
        return Step::Wait;
    }
    let partial = || transcript.last_text().to_owned();
    if let Some(by) = &phase.cancelled {
        let outcome = Outcome::cancelled(by, partial());
        return stop_calls(transcript, CANCELLED, Step::Finish(outcome));
    }
    if phase.paused {
        return Step::Wait;
    }
    let wall_ms = transcript.wall_ms(&bounds.limits);
    if let Some(limit_ms) = wall_ms.filter(|limit| transcript.leg_ms() >= *limit) {
        let outcome = Outcome::timed_out(limit_ms, partial());
        return stop_calls(transcript, "stopped: the run is out of time", Step::Finish(outcome));
    }
    if transcript.writable_bytes(&bounds.limits) == Some(0) {
        let outcome = Outcome::stopped(Limit::WrittenBytes, partial());
        let why = "stopped: the run may write no more to disks";
        return stop_calls(transcript, why, Step::Finish(outcome));
    }
    if let Some((kind, reason)) = &phase.failure {
        let overflow = *kind == FailureKind::ContextOverflow;
        if overflow && !phase.just_compacted && may_compact(transcript, bounds) {
            return Step::Compact;
        }
        if overflow && !phase.squeezed && share(transcript, bounds).is_some() {
            return next_turn(transcript, bounds);
        }
        return Step::Finish(Outcome::failed(reason, partial()));
    }
    if let Some(step) = open_calls(transcript, bounds) {
        return step;
    }
    if transcript.has_news() {
        return next_turn(transcript, bounds);
    }
    if transcript.is_session() || transcript.phase.last_stop.is_none() {
        return Step::Wait;
    }
    Step::Finish(match &phase.last_stop {
        Some(Stop::MaxTokens) => cut_off(transcript, bounds),
        Some(Stop::Refusal) => Outcome::failed(REFUSED, partial()),
        // The run waits for its background children, because their results may change its answer.
        _ if transcript.awaited_runs() > 0 => return Step::Wait,
        _ => Outcome::completed(partial()),
    })
}

/// The outcome of a run whose last reply was cut off. It names the money limit if that limit made the
/// reply so short.
fn cut_off(transcript: &Transcript, bounds: &Bounds) -> Outcome {
    let (partial, reserved) = (transcript.last_text(), &transcript.phase.reserved);
    let (limits, allowance) = (&bounds.limits, &bounds.allowance);
    let by_tokens = limits.output_tokens.is_some() || allowance.of(Limit::OutputTokens).is_some();
    let is_short = reserved.output_tokens < longest_reply(&bounds.model, reserved.input_tokens);
    if by_tokens || !is_short {
        return Outcome::stopped(Limit::OutputTokens, partial);
    }
    match (limits.cost, allowance.of(Limit::Cost)) {
        (None, Some(share)) => Outcome::out_of_budget(Limit::Cost, share.holder, partial),
        (Some(_), _) => Outcome::stopped(Limit::Cost, partial),
        (None, None) => Outcome::stopped(Limit::OutputTokens, partial),
    }
}

/// Tokens of the longest reply of `model` to `input` tokens. Vendors reject a call that could exceed
/// the context window.
fn longest_reply(model: &ModelInfo, input: u64) -> u64 {
    let room = model.context_window.saturating_sub(input).max(MIN_REPLY_TOKENS);
    model.max_output.min(room)
}

/// The answer to each open call when none of them will run: stopped, for the reason `why`, or
/// interrupted if the call may have had its effect.
pub fn closing_answers<'a>(
    transcript: &Transcript,
    why: &'a str,
) -> impl Iterator<Item = (CallId, Ending, &'a str)> {
    transcript.calls.iter().filter(|call| call.is_open()).map(move |call| {
        let (ending, why) = match call.may_have_had_its_effect() {
            true => (Ending::Interrupted, INTERRUPTED),
            false if why == CANCELLED && !call.has_begun() => (Ending::Stopped, NOT_STARTED),
            false => (Ending::Stopped, why),
        };
        (call.call.id.clone(), ending, why)
    })
}

/// `then`, once every open call is answered. Each step answers the calls with the same answer.
fn stop_calls(transcript: &Transcript, why: &str, then: Step) -> Step {
    let mut answers = closing_answers(transcript, why);
    let Some((first, ending, why)) = answers.next() else { return then };
    let alike = answers.filter(|(_, other, text)| (*other, *text) == (ending, why));
    let alike = alike.map(|(call, ..)| call);
    let calls = std::iter::once(first).chain(alike).collect();
    Step::Answer { calls, ending, why: why.to_owned(), by: String::new() }
}

/// The next step for the open calls of the last reply, if there are any.
fn open_calls(transcript: &Transcript, bounds: &Bounds) -> Option<Step> {
    let ids = |wanted: &dyn Fn(&Call) -> bool| -> Vec<CallId> {
        let calls = transcript.calls.iter().filter(|call| wanted(call));
        calls.map(|call| call.call.id.clone()).collect()
    };
    let lost = ids(&Call::may_have_had_its_effect);
    if !lost.is_empty() {
        let (why, by) = (INTERRUPTED.to_owned(), String::new());
        return Some(Step::Answer { calls: lost, ending: Ending::Interrupted, why, by });
    }
    for (has_begun, why) in [(true, CANCELLED), (false, NOT_STARTED)] {
        let is_abandoned = |call: &Call| matches!(call.state, CallState::Abandoned { .. });
        let abandoned = ids(&|call| is_abandoned(call) && call.has_begun() == has_begun);
        if !abandoned.is_empty() {
            let (why, by) = (why.to_owned(), String::new());
            return Some(Step::Answer { calls: abandoned, ending: Ending::Stopped, why, by });
        }
    }
    let denied = transcript.calls.iter().find_map(|call| match &call.state {
        CallState::Denied { by, reason } => Some((call.call.id.clone(), by, reason)),
        _ => None,
    });
    if let Some((call, by, reason)) = denied {
        let why = match reason.is_empty() {
            true => {
                format!("{by} did not allow this call; do without it, or ask what to do instead")
            }
            false => format!("{by} did not allow this call: {reason}"),
        };
        let (calls, by) = (vec![call], by.clone());
        return Some(Step::Answer { calls, ending: Ending::Refused, why, by });
    }
    let mut runnable: Vec<ToolCall> = transcript
        .calls
        .iter()
        .filter(|call| call.is_fresh() || matches!(call.state, CallState::Started { .. }))
        .map(|call| call.call.clone())
        .collect();
    if runnable.is_empty() {
        return transcript.calls.iter().any(Call::is_open).then_some(Step::Wait);
    }
    if let Some(limit) = bounds.limits.tool_calls {
        // A call that runs again after a crash was counted when it first started.
        let left = limit.saturating_sub(transcript.spent.tool_calls) as usize;
        let mut fresh = 0;
        let asked = ids(&Call::is_fresh);
        runnable.retain(|call| {
            fresh += usize::from(asked.contains(&call.id));
            !asked.contains(&call.id) || fresh <= left
        });
        if runnable.is_empty() {
            return Some(Step::Answer {
                calls: asked,
                ending: Ending::OverLimit,
                why: format!("not run: the limit of {limit} tool calls is reached"),
                by: format!("the limit of {limit} tool calls"),
            });
        }
    }
    let Some(share) = bounds.allowance.of(Limit::ToolCalls) else {
        return Some(Step::CallTools(runnable));
    };
    // A call that runs again after a crash counts again for a budget.
    let refused: Vec<CallId> = runnable.iter().map(|call| call.id.clone()).collect();
    runnable.truncate(usize::try_from(share.left).unwrap_or(usize::MAX));
    Some(match runnable.is_empty() {
        false => Step::CallTools(runnable),
        true if share.held > 0 => Step::WaitForBudget,
        true => Step::Answer {
            calls: refused,
            ending: Ending::OverLimit,
            why: format!("not run: the budget of run {} has no tool calls left", share.holder),
            by: format!("the budget of run {}", share.holder),
        },
    })
}

/// The next step when the model has something to answer, within limits and budgets.
fn next_turn(transcript: &Transcript, bounds: &Bounds) -> Step {
    let (limits, allowance) = (&bounds.limits, &bounds.allowance);
    let own = turn_within(transcript, bounds, limits, Notice::Given);
    if allowance.is_empty() {
        return own;
    }
    let out_of_budget = |limit, shortfall: &Option<Shortfall>| {
        let holder = allowance.of(limit)?.holder;
        let outcome = Outcome::out_of_budget(limit, holder, transcript.last_text());
        Some(Step::Finish(outcome.for_want_of(shortfall.clone())))
    };
    if let Some(over) = transcript.phase.over
        && limits.tool_calls.is_none_or(|limit| transcript.spent.tool_calls < limit)
    {
        return out_of_budget(over, &None).unwrap_or(own);
    }
    if let Step::Finish(outcome) = own {
        return Step::Finish(with_what_is_left(outcome, allowance));
    }
    let within = |reach| allowance.within(limits, transcript, reach);
    let full = turn_within(transcript, bounds, &within(CountHeld::Returned), Notice::Given);
    let most = match &full {
        Step::Finish(Outcome::Stopped { limit, shortfall, .. }) => {
            return out_of_budget(*limit, shortfall).unwrap_or(full);
        }
        Step::CallModel { max_tokens, .. } => *max_tokens,
        _ => return full,
    };
    match turn_within(transcript, bounds, &within(CountHeld::Now), Notice::Withheld) {
        Step::CallModel { max_tokens, .. } if max_tokens >= most => full,
        now @ Step::CallModel { max_tokens, .. } if max_tokens >= most.min(LONG_REPLY_TOKENS) => {
            now
        }
        _ => Step::WaitForBudget,
    }
}

/// `outcome` with the rest of its limit reduced by what subagents have drawn.
fn with_what_is_left(mut outcome: Outcome, allowance: &Allowance) -> Outcome {
    if let Outcome::Stopped { limit, shortfall: Some(short), .. } = &mut outcome
        && let Some(share) = allowance.of(*limit)
    {
        short.left = short.left.min(share.left.saturating_add(share.held));
    }
    outcome
}

/// Whether the agent gets a message that a limit is near.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notice {
    /// Yes, once. Until then, tokens for its report are kept back.
    Given,
    /// No.
    Withheld,
}

/// The next step when the model has something to answer, within `limits`.
fn turn_within(transcript: &Transcript, bounds: &Bounds, limits: &Limits, notice: Notice) -> Step {
    let spent = &transcript.spent;
    let used = transcript.leg_usage();
    let stopped = |limit| Step::Finish(Outcome::stopped(limit, transcript.last_text()));
    let short = |limit, needed, left| {
        let (reply_tokens, extra) = (MIN_REPLY_TOKENS, Extra::default());
        let shortfall = Some(Shortfall { needed, left, reply_tokens, extra });
        Step::Finish(Outcome::stopped(limit, transcript.last_text()).for_want_of(shortfall))
    };
    if is_new_turn(transcript) && limits.turns.is_some_and(|limit| spent.turns >= limit) {
        return stopped(Limit::Turns);
    }
    if let Some(limit) = transcript.phase.over {
        return stopped(limit);
    }
    let input = transcript.request_tokens(bounds.overhead_tokens, None);
    let is_long = input > bounds.model.context_window / 100 * COMPACT_AT_PERCENT;
    if (is_long || transcript.phase.asked_to_compact)
        && !transcript.phase.just_compacted
        && may_compact(transcript, bounds)
    {
        return Step::Compact;
    }
    let share = share(transcript, bounds);
    let input = transcript.request_tokens(bounds.overhead_tokens, share);
    if let Some(limit) = limits.input_tokens {
        let left = limit.saturating_sub(used.all_input_tokens());
        if input > left {
            return short(Limit::InputTokens, input, left);
        }
    }
    // A message before a retry would turn the retry into a different call.
    let may_tell = notice == Notice::Given && !transcript.phase.again;
    // Until the agent knows of the limit, tokens for one more reply are kept back, so that it can report.
    let mut max_tokens = longest_reply(&bounds.model, input);
    if let Some(limit) = limits.output_tokens {
        let left = limit.saturating_sub(used.output_tokens);
        if left < MIN_REPLY_TOKENS.min(limit) || left == 0 {
            return short(Limit::OutputTokens, MIN_REPLY_TOKENS, left);
        }
        let told = !may_tell || spent.told.contains(&Limit::OutputTokens);
        match left.saturating_sub(REPORT_TOKENS) {
            _ if told => max_tokens = max_tokens.min(left),
            usable if usable >= MIN_REPLY_TOKENS => max_tokens = max_tokens.min(usable),
            // An agent that has written nothing has nothing to report.
            _ if used.output_tokens == 0 => max_tokens = max_tokens.min(left),
            _ => return tell(transcript, limits, Limit::OutputTokens),
        }
    }
    let price = &bounds.model.price;
    if let Some(limit) = limits.cost
        && price.output > 0
    {
        let left = limit.saturating_sub(used.cost).0;
        let sent = input.saturating_mul(dearer_input(price));
        let affordable = left.saturating_sub(sent) / price.output;
        if affordable < MIN_REPLY_TOKENS {
            let needed = sent.saturating_add(MIN_REPLY_TOKENS.saturating_mul(price.output));
            return short(Limit::Cost, needed, left);
        }
        let report = sent.saturating_add(sent / 2) / price.output + REPORT_TOKENS;
        let told = !may_tell || spent.told.contains(&Limit::Cost);
        let usable = match affordable.saturating_sub(report) {
            _ if told => affordable,
            usable if usable >= MIN_REPLY_TOKENS => usable,
            _ if used.cost.0 == 0 => affordable,
            _ => return tell(transcript, limits, Limit::Cost),
        };
        max_tokens = max_tokens.min(usable);
        if bounds.shares_money {
            max_tokens = max_tokens.min((usable / PARTS).max(FAIR_TOKENS));
        }
    }
    if let Some(limit) = near(transcript, limits, input).filter(|_| may_tell) {
        return tell(transcript, limits, limit);
    }
    let reserved = reservation(price, input, max_tokens);
    // If only the input costs money, a shorter reply is not cheaper.
    if let Some(limit) = limits.cost.filter(|limit| used.cost + reserved.cost > *limit) {
        return short(Limit::Cost, reserved.cost.0, limit.saturating_sub(used.cost).0);
    }
    let share = share.map(|bytes| bytes as u64);
    Step::CallModel { max_tokens, reserved, share, after_ms: transcript.phase.wait_ms }
}

/// True when the next call begins a turn. The retry of a call that failed or was cut short belongs to
/// the same turn.
fn is_new_turn(transcript: &Transcript) -> bool {
    let phase = &transcript.phase;
    !phase.again && !phase.calling && phase.failure.is_none()
}

/// The number of bytes to which each new result is shortened, so that all of them fit into the
/// context window. Half of that if the vendor has found the request too long.
pub(crate) fn share(transcript: &Transcript, bounds: &Bounds) -> Option<usize> {
    let input = transcript.request_tokens(bounds.overhead_tokens, None);
    let excess = input.saturating_sub(bounds.model.context_window / 100 * COMPACT_AT_PERCENT);
    let excess = usize::try_from(excess).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
    let share = transcript.share_without(excess);
    match transcript.phase.failure {
        Some(_) => transcript.half_share(share),
        None => share,
    }
}

/// The most that a call with `input` tokens and a reply of `output` tokens may cost. Input counts at
/// the higher of its two prices, because the vendor decides which one applies.
pub(crate) fn reservation(price: &Price, input: u64, output: u64) -> Usage {
    let mut reserved = Usage { input_tokens: input, output_tokens: output, ..Usage::default() };
    reserved.cost = Price { input: dearer_input(price), ..*price }.of(&reserved);
    reserved
}

fn dearer_input(price: &Price) -> u64 {
    price.input.max(price.cache_write)
}

fn may_compact(transcript: &Transcript, bounds: &Bounds) -> bool {
    transcript.compactable_before(keep_tokens(transcript, bounds)).is_some()
}

/// How many tokens stay verbatim when the transcript is compacted: a quarter of the context window,
/// or none if a message asked for a summary.
pub(crate) fn keep_tokens(transcript: &Transcript, bounds: &Bounds) -> u64 {
    match transcript.phase.asked_to_compact {
        true => 0,
        false => bounds.model.context_window / 4,
    }
}

/// The first limit that is near and that the agent does not know of yet.
fn near(transcript: &Transcript, limits: &Limits, next_input: u64) -> Option<Limit> {
    let spent = &transcript.spent;
    let used = transcript.leg_usage();
    let most = |used: u64, limit: u64| used.saturating_mul(5) >= limit.saturating_mul(4);
    let sent = used.all_input_tokens().saturating_add(next_input);
    let near = [
        (
            Limit::Turns,
            is_new_turn(transcript)
                && limits.turns.is_some_and(|limit| limit > 1 && limit - spent.turns == 1),
        ),
        (
            Limit::ToolCalls,
            limits.tool_calls.is_some_and(|limit| {
                limit > 1 && limit.saturating_sub(spent.tool_calls) <= (limit / 5).max(1)
            }),
        ),
        (
            Limit::InputTokens,
            // The call after this one will send more than this one.
            limits
                .input_tokens
                .is_some_and(|limit| most(sent, limit) || sent.saturating_add(next_input) > limit),
        ),
        (
            Limit::OutputTokens,
            limits.output_tokens.is_some_and(|limit| most(used.output_tokens, limit)),
        ),
        (Limit::Cost, limits.cost.is_some_and(|limit| most(used.cost.0, limit.0))),
        (
            Limit::WallTime,
            transcript
                .wall_ms(limits)
                .is_some_and(|limit| transcript.leg_ms() >= wall_near_ms(limit)),
        ),
        (
            Limit::WrittenBytes,
            limits.written_bytes.is_some_and(|limit| most(spent.written_bytes, limit)),
        ),
    ];
    near.into_iter()
        .find(|(limit, is_near)| *is_near && !spent.told.contains(limit))
        .map(|(limit, _)| limit)
}

/// The step that tells the agent that it is near `limit`.
fn tell(transcript: &Transcript, limits: &Limits, limit: Limit) -> Step {
    let spent = &transcript.spent;
    let usage = transcript.leg_usage();
    let seconds = |ms: u64| format!("{} s", ms / 1000);
    let number = |of: Option<u64>| of.unwrap_or_default().to_string();
    let (used, of) = match limit {
        Limit::Turns => (spent.turns.to_string(), number(limits.turns.map(u64::from))),
        Limit::ToolCalls => {
            (spent.tool_calls.to_string(), number(limits.tool_calls.map(u64::from)))
        }
        Limit::InputTokens => (usage.all_input_tokens().to_string(), number(limits.input_tokens)),
        Limit::OutputTokens => (usage.output_tokens.to_string(), number(limits.output_tokens)),
        Limit::Cost => (usage.cost.to_string(), limits.cost.unwrap_or_default().to_string()),
        Limit::WallTime => {
            (seconds(transcript.leg_ms()), seconds(transcript.wall_ms(limits).unwrap_or(0)))
        }
        Limit::WrittenBytes => {
            let of = limits.written_bytes.unwrap_or_default();
            (limit.amount(spent.written_bytes), limit.amount(of))
        }
        // It does not limit the run itself, so the run is never near it.
        Limit::Children => (String::new(), String::new()),
    };
    let text = format!(
        "{LIMIT_NEAR}{limit}: {used} of {of} used. Stop working now and give \
         your final answer with what you have; say what is left undone."
    );
    Step::Tell { limit, text }
}

/// When the end of the time is near: one minute before it, or at four fifths of it if that is later.
pub(crate) fn wall_near_ms(limit_ms: u64) -> u64 {
    (limit_ms / 5 * 4).max(limit_ms.saturating_sub(60_000))
}
