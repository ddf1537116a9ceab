//! What model calls cost, counted from the events of a run.
//!
//! [`Charge::of`] alone decides what a call is charged. Limits and budgets count everything that a
//! call may have cost. Reports show known and uncertain costs separately.

use crate::{Event, Usage};

/// The charge for one model call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The known cost, as counted by the vendor or estimated from what arrived.
    pub known: Usage,
    /// What the call may have cost in addition, if it was cut short.
    pub uncertain: Usage,
}

impl Charge {
    /// The charge for the model call that `event` ends. `open` is the reserved amount of the open
    /// call, if there is one.
    ///
    /// A call without a recorded result may have cost everything that it reserved.
    pub fn of(event: &Event, open: Option<&Usage>) -> Option<Charge> {
        let known = |usage: &Usage| Charge { known: usage.clone(), uncertain: Usage::default() };
        match event {
            Event::ModelReplied(replied) => Some(Charge {
                known: replied.usage.clone(),
                uncertain: replied.uncertain.clone().unwrap_or_default(),
            }),
            Event::ModelFailed(failed) => Some(split(&failed.usage, failed.uncertain.as_ref())),
            Event::Compacted(compacted) if compacted.by_model => Some(known(&compacted.usage)),
            Event::Compacted(compacted) => {
                Some(split(&compacted.usage, compacted.uncertain.as_ref()))
            }
            Event::ModelCalled(_) | Event::RunFinished(_) => {
                Some(Charge { known: Usage::default(), uncertain: open?.clone() })
            }
            _ => None,
        }
    }

    /// The most that the call may have cost.
    pub fn total(&self) -> Usage {
        self.known.clone() + &self.uncertain
    }

    /// True when the call may have cost more than is known.
    pub fn is_uncertain(&self) -> bool {
        self.uncertain != Usage::default()
    }
}

/// Splits `usage` into known and uncertain. Old logs do not record the uncertain part of a failed
/// call: then all of it is uncertain.
fn split(usage: &Usage, uncertain: Option<&Usage>) -> Charge {
    let uncertain = uncertain.unwrap_or(usage);
    Charge { known: usage.without(uncertain), uncertain: uncertain.clone() }
}

/// The cost of all model calls of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The known cost.
    pub known: Usage,
    /// What the calls that were cut short may have cost in addition.
    pub uncertain: Usage,
    /// The number of calls that were cut short.
    pub cut: u64,
    /// The reserved amount of the open call.
    pub open: Option<Usage>,
}

impl Tally {
    /// Counts an event.
    pub fn observe(&mut self, event: &Event) {
        if let Some(charge) = Charge::of(event, self.open.as_ref()) {
            self.open = None;
            self.cut += u64::from(charge.is_uncertain());
            self.known += &charge.known;
            self.uncertain += &charge.uncertain;
        }
        if let Event::ModelCalled(called) = event {
            self.open = Some(called.reserved.clone());
        }
    }

    /// The most that may have been spent, with the open call as reserved. Limits count this.
    pub fn total(&self) -> Usage {
        let settled = self.known.clone() + &self.uncertain;
        match &self.open {
            Some(reserved) => settled + reserved,
            None => settled,
        }
    }

    /// Resets all counts except the open call.
    pub fn begin_again(&mut self) {
        *self = Tally { open: self.open.take(), ..Tally::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Usd;
    use serde_json::json;

    fn event(value: serde_json::Value) -> Event {
        serde_json::from_value(value).unwrap()
    }

    fn usage(output_tokens: u64, cost: u64) -> Usage {
        Usage { input_tokens: 5, output_tokens, cost: Usd(cost), ..Usage::default() }
    }

    #[test]
    fn what_is_known_and_what_is_uncertain_are_counted_apart() {
        let called = || event(json!({"type": "model_called", "reserved": usage(100, 1_000)}));
        let failed = |more: serde_json::Value| {
            let mut failed = json!({"type": "model_failed", "kind": "other", "reason": "cut",
                "worked_ms": 1});
            failed.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event(failed)
        };
        let uncertain = Usage { output_tokens: 90, cost: Usd(900), ..Usage::default() };
        let half = failed(json!({"usage": usage(100, 1_000), "uncertain": uncertain}));
        let earlier = failed(json!({"usage": usage(100, 1_000)}));
        let nothing = failed(json!({}));
        let replied = event(json!({"type": "model_replied", "seen": 1, "stop": "end",
            "message": {"role": "assistant", "parts": []}, "usage": usage(7, 70), "worked_ms": 1}));
        let mut tally = Tally::default();
        let mut count = |events: &[&Event]| {
            events.iter().for_each(|event| tally.observe(event));
            (tally.known.cost.0, tally.uncertain.cost.0, tally.cut, tally.total().cost.0)
        };
        let called = called();
        assert_eq!(count(&[&called]), (0, 0, 0, 1_000), "under way");
        assert_eq!(count(&[&replied]), (70, 0, 0, 70));
        assert_eq!(count(&[&called, &nothing]), (70, 0, 0, 70), "never sent");
        assert_eq!(count(&[&called, &half]), (170, 900, 1, 1_070));
        assert_eq!(count(&[&called, &earlier]), (170, 1_900, 2, 2_070), "an older log");
        assert_eq!(count(&[&called, &called]), (170, 2_900, 3, 4_070), "its process died");
    }
}
