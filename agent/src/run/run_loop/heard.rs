//! The deltas of a model call, and the charge for a call that ended without a reply.

use crate::step::reservation;
use crate::transcript::BYTES_PER_TOKEN;
use crate::{ModelError, Reply};
use parking_lot::{Mutex, MutexGuard};
use posse_protocol::{Charge, Delta, Message, Part, Price, Role, Stop, Usage};

/// Collects the deltas of a call.
#[derive(Default)]
pub(super) struct Listener(Mutex<Heard>);

/// The parts of a reply that have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// The text of the reply.
    pub(super) text: String,
    /// Bytes of reasoning and of tool calls.
    unshown: usize,
    /// The usage that the vendor has reported.
    counted: Usage,
}

impl Listener {
    /// Records a delta. Returns it if it should be shown.
    pub(super) fn hear(&self, delta: Delta) -> Option<Delta> {
        let mut heard = self.heard();
        match &delta {
            Delta::Text { text } => heard.text.push_str(text),
            Delta::Thinking { text } => heard.unshown += text.len(),
            Delta::Called { bytes } => {
                heard.unshown += bytes;
                return None;
            }
            Delta::Counted { usage } => {
                heard.counted.clone_from(usage);
                return None;
            }
            Delta::Waiting { .. } | Delta::Held { .. } | Delta::ToolProgress { .. } => {}
        }
        Some(delta)
    }

    pub(super) fn into_heard(self) -> Heard {
        self.0.into_inner()
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock()
    }
}

impl Heard {
    /// The charge for a call that reserved `reserved` and ended with `error`.
    ///
    /// The charge is zero if the vendor did not get the request. If the vendor ended the call, the
    /// charge covers what arrived. Otherwise the vendor may have continued, up to the reserved amount.
    pub(super) fn charge(&self, error: &ModelError, reserved: &Usage, price: &Price) -> Charge {
        let known = self.known(reserved, price);
        let may_go_on = match error {
            ModelError::Cancelled
            | ModelError::Cut { .. }
            | ModelError::Stalled { .. }
            | ModelError::Malformed { .. } => true,
            ModelError::Unreachable { sent, .. } => *sent,
            ModelError::RetryAfter { .. }
            | ModelError::Overloaded { .. }
            | ModelError::Rejected { .. }
            | ModelError::Unauthorised { .. }
            | ModelError::ContextOverflow { .. }
            | ModelError::NotRunning { .. }
            | ModelError::NotSent => false,
        };
        let uncertain = match may_go_on {
            true => {
                let input = match self.counted.all_input_tokens() {
                    0 => reserved.input_tokens.saturating_sub(known.input_tokens),
                    _ => 0,
                };
                let output = reserved.output_tokens.saturating_sub(known.output_tokens);
                reservation(price, input, output)
            }
            false => Usage::default(),
        };
        Charge { known, uncertain }
    }

    /// The text that the model had written before it was cancelled, as its reply.
    pub(super) fn into_reply(self, usage: Usage) -> Reply {
        Reply {
            message: Message::new(Role::Assistant, vec![Part::text(self.text)]),
            stop: Stop::Cancelled,
            usage,
            request_id: None,
            service_tier: None,
            rate_limits: None,
        }
    }

    /// The usage for what arrived, as the vendor counted it or as estimated.
    fn known(&self, reserved: &Usage, price: &Price) -> Usage {
        let estimated = match self.text.len() + self.unshown {
            0 => 0,
            bytes => ((bytes / BYTES_PER_TOKEN) as u64 + 1).min(reserved.output_tokens),
        };
        let mut usage = self.counted.clone();
        usage.output_tokens = usage.output_tokens.max(estimated);
        if usage.all_input_tokens() == 0 && usage.output_tokens > 0 {
            usage.input_tokens = reserved.input_tokens;
        }
        usage.cost = price.of(&usage);
        usage
    }
}

/// `reply` with estimates where the vendor reported no usage, so that no call counts as free.
pub(super) fn counted(mut reply: Reply, reserved: &Usage, price: &Price) -> Reply {
    let said: usize = reply.message.parts.iter().map(bytes_of).sum();
    let usage = &mut reply.usage;
    if usage.all_input_tokens() > 0 && (usage.output_tokens > 0 || said == 0) {
        return reply;
    }
    if usage.all_input_tokens() == 0 {
        usage.input_tokens = reserved.input_tokens;
    }
    if usage.output_tokens == 0 && said > 0 {
        let estimated = (said / BYTES_PER_TOKEN) as u64 + 1;
        usage.output_tokens = estimated.min(reserved.output_tokens.max(1));
    }
    usage.cost = price.of(usage);
    reply
}

/// Bytes that the model wrote for `part`.
fn bytes_of(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.text.len(),
        Part::Thinking(thinking) => thinking.text.len(),
        Part::ToolCall(call) => call.name.len() + call.input.to_string().len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posse_protocol::Usd;

    const PRICE: Price = Price { input: 2, cache_read: 1, cache_write: 3, output: 10 };

    fn check(deltas: &[Delta], error: ModelError, known: (u64, u64), uncertain: (u64, u64)) {
        let listener = Listener::default();
        deltas.iter().for_each(|delta| drop(listener.hear(delta.clone())));
        let reserved = reservation(&PRICE, 100, 1_000);
        let charge = listener.into_heard().charge(&error, &reserved, &PRICE);
        let tokens = |usage: &Usage| (usage.all_input_tokens(), usage.output_tokens);
        assert_eq!(
            (tokens(&charge.known), tokens(&charge.uncertain)),
            (known, uncertain),
            "{error}"
        );
        assert!(charge.total().cost <= reserved.cost, "{error}");
        assert_eq!(charge.known.cost, PRICE.of(&charge.known));
    }

    #[test]
    fn a_call_without_an_answer_is_charged_for_what_arrived_and_may_have_cost_the_rest() {
        let model = String::new;
        let cut = || ModelError::Cut { model: model(), reason: String::new() };
        let text = Delta::Text { text: "x".repeat(29) };
        let usage =
            Usage { input_tokens: 5, cache_read_tokens: 60, output_tokens: 1, ..Usage::default() };
        let counted = Delta::Counted { usage };
        let thought = Delta::Thinking { text: "y".repeat(30) };
        check(&[], cut(), (0, 0), (100, 1_000));
        check(std::slice::from_ref(&text), cut(), (100, 10), (0, 990));
        check(&[counted.clone(), text.clone()], cut(), (65, 10), (0, 990));
        check(&[counted.clone(), thought, text], ModelError::Cancelled, (65, 20), (0, 980));
        check(std::slice::from_ref(&counted), ModelError::Cancelled, (65, 1), (0, 999));
        let called = Delta::Called { bytes: 300 };
        check(&[counted.clone(), called.clone()], cut(), (65, 101), (0, 899));
        let (reason, after) = (String::new(), None);
        let busy = ModelError::Overloaded { model: model(), reason, after };
        check(&[counted.clone(), called], busy, (65, 101), (0, 0));
        check(&[], ModelError::NotSent, (0, 0), (0, 0));
        let reason = String::new;
        let unreachable = |sent| ModelError::Unreachable { model: model(), reason: reason(), sent };
        check(&[], unreachable(false), (0, 0), (0, 0));
        check(&[], unreachable(true), (0, 0), (100, 1_000));
        let overloaded = ModelError::Overloaded { model: model(), after: None, reason: reason() };
        check(&[counted], overloaded, (65, 1), (0, 0));
        assert_eq!(reservation(&PRICE, 100, 1_000).cost, Usd(10_300));
    }
}
