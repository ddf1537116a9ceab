//! The calls of the last reply and their states: part of the fold.

use super::{Transcript, weigh};
use crate::calls::{Call, CallState};
use posse_protocol::{
    Approval, ApprovalGiven, CallId, Ending, Limit, ToolFinished, ToolResult, ToolStarted,
};

impl Transcript {
    /// The calls that a person has to decide about, each with the digest that the answer must carry.
    pub fn questions(&self) -> impl Iterator<Item = (&CallId, &str)> {
        self.calls.iter().filter_map(|call| match &call.state {
            CallState::Questioned { digest } => Some((&call.call.id, digest.as_str())),
            _ => None,
        })
    }

    /// The state of the first open call `id`.
    pub(crate) fn call_state(&self, id: &CallId) -> Option<&CallState> {
        let place = self.calls.place(id, Call::is_open)?;
        self.calls.get(place).map(|call| &call.state)
    }

    /// The calls of the last reply that have no result yet.
    pub fn open_calls(&self) -> impl Iterator<Item = &CallId> {
        self.calls.iter().filter(|call| call.is_open()).map(|call| &call.call.id)
    }

    /// Marks a call as started. A call that runs again after a crash is not counted again.
    pub(super) fn start(&mut self, started: &ToolStarted) {
        let begun = |call: &Call| matches!(call.state, CallState::Started { .. });
        if let Some(place) = self
            .calls
            .place(&started.call, Call::is_fresh)
            .or(self.calls.place(&started.call, begun))
            && let Some(call) = self.calls.get_mut(place)
        {
            self.spent.tool_calls += u32::from(call.is_fresh());
            call.state = CallState::Started { repeatable: started.repeatable };
        }
    }

    /// Applies a person's answer. An answer whose digest matches no open question is ignored.
    pub(super) fn decide(&mut self, given: &ApprovalGiven) {
        let questioned = |call: &Call| matches!(&call.state, CallState::Questioned { digest } if *digest == given.digest);
        let Some(place) = self.calls.place(&given.call, questioned) else { return };
        let Some(call) = self.calls.get_mut(place) else { return };
        let by = given.by.clone();
        call.state = match &given.answer {
            Approval::Denied { reason } => CallState::Denied { by, reason: reason.clone() },
            Approval::Once | Approval::Run { .. } | Approval::Always { .. } => {
                CallState::Approved { by }
            }
        };
        if let Approval::Run { rule } | Approval::Always { rule } = &given.answer {
            self.standing.approved.push(rule.clone());
        }
    }

    pub(super) fn answer(&mut self, finished: &ToolFinished) {
        if finished.ending == Ending::OverLimit {
            self.phase.over = Some(Limit::ToolCalls);
        }
        let written = finished.output.written_bytes;
        self.spent.written_bytes = self.spent.written_bytes.saturating_add(written);
        let weight = weigh(&finished.output.parts);
        let result = ToolResult {
            call: finished.call.clone(),
            parts: finished.output.parts.clone(),
            is_error: finished.output.is_error,
            extra: Default::default(),
        };
        if self.calls.answer(result) {
            self.weight.since += weight;
            // A late answer, to a call that is already closed, does not change the time at work.
            self.worked(finished.worked_ms);
            self.seen.note(&finished.output.seen);
            self.standing.narrowed.extend(finished.output.narrows.clone());
        }
    }

    pub(super) fn calls_done(&self) -> bool {
        !self.calls.iter().any(Call::is_open)
    }

    pub(super) fn open_call(&mut self, id: &CallId) -> Option<&mut Call> {
        let place = self.calls.place(id, Call::is_open)?;
        self.calls.get_mut(place)
    }
}
