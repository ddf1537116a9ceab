//! The calls of a reply and the state of each.

use posse_protocol::{CallId, Message, Part, Role, RunId, ToolCall, ToolResult};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Up to this many calls, a linear search is used; above it, an index.
const FEW: usize = 16;

/// The calls of one reply, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    list: Vec<Call>,
    /// The index of each call, if there are many calls and their ids are unique.
    places: Option<HashMap<CallId, usize>>,
    /// The number of answered calls.
    answered: usize,
    /// The message with all results, once every call is answered.
    results: Option<Arc<Message>>,
}

impl Calls {
    pub(crate) fn of<'a>(calls: impl Iterator<Item = &'a ToolCall>) -> Self {
        let call = |call: &ToolCall| Call {
            call: call.clone(),
            state: CallState::Asked,
            child: None,
            result: None,
        };
        let list: Vec<Call> = calls.map(call).collect();
        let places = (list.len() > FEW).then(|| {
            let ids = list.iter().map(|call| call.call.id.clone());
            ids.zip(0..).collect::<HashMap<CallId, usize>>()
        });
        let places = places.filter(|places| places.len() == list.len());
        Calls { list, places, answered: 0, results: None }
    }

    /// Answers the first open call with the id in `result`. Returns whether there is one.
    pub(crate) fn answer(&mut self, result: ToolResult) -> bool {
        let Some(place) = self.place(&result.call, Call::is_open) else { return false };
        let call = &mut self.list[place];
        (call.state, call.result) = (CallState::Answered, Some(result));
        self.answered += 1;
        if self.answered == self.list.len() {
            let results = self.list.iter_mut().filter_map(|call| call.result.take());
            let parts = results.map(Part::ToolResult).collect();
            self.results = Some(Arc::new(Message::new(Role::User, parts)));
        }
        true
    }

    /// The results in the order of the calls, once every call is answered.
    pub(crate) fn results(&self) -> Option<&Arc<Message>> {
        self.results.as_ref()
    }

    /// The results, each with the child that worked for the call, if there was one.
    pub(crate) fn results_of(&self) -> impl Iterator<Item = (&Part, Option<RunId>)> {
        let parts = self.results.iter().flat_map(|message| &message.parts);
        parts.zip(self.list.iter().map(|call| call.child))
    }

    /// Replaces the results by `results`.
    pub(crate) fn replace_results(&mut self, results: Vec<Part>) {
        self.results = Some(Arc::new(Message::new(Role::User, results)));
    }

    /// The index of the first call `id` that `wanted` accepts.
    pub(crate) fn place(&self, id: &CallId, wanted: impl Fn(&Call) -> bool) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(id).copied().filter(|place| wanted(&self.list[*place])),
            None => self.list.iter().position(|call| call.call.id == *id && wanted(call)),
        }
    }
}

impl Deref for Calls {
    type Target = [Call];
    fn deref(&self) -> &[Call] {
        &self.list
    }
}

impl DerefMut for Calls {
    fn deref_mut(&mut self) -> &mut [Call] {
        &mut self.list
    }
}

/// A tool call and its state.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) call: ToolCall,
    pub(crate) state: CallState,
    /// The child whose outcome is the result of this call.
    pub(crate) child: Option<RunId>,
    /// The result, until every call of the reply has one.
    result: Option<ToolResult>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallState {
    /// Not started.
    Asked,
    /// A person has to decide about it.
    Questioned {
        /// The digest that an answer must carry.
        digest: String,
    },
    /// A person approved it; it has not started.
    Approved {
        /// The person.
        by: String,
    },
    /// A person denied it; the model does not know yet.
    Denied {
        /// The person.
        by: String,
        /// The reason, for the agent.
        reason: String,
    },
    /// Started; its result is not recorded.
    Started { repeatable: bool },
    /// Another process or run will append the result.
    Pending,
    /// The turn that made the call was cancelled.
    Abandoned {
        /// The call had started.
        begun: bool,
        /// It may have had its effect.
        lost: bool,
    },
    /// Answered.
    Answered,
}

impl Call {
    /// True when the call may start and has not started before.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self.state, CallState::Asked | CallState::Approved { .. })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state != CallState::Answered
    }

    /// True when the call has started.
    pub(crate) fn has_begun(&self) -> bool {
        matches!(
            self.state,
            CallState::Started { .. }
                | CallState::Pending
                | CallState::Abandoned { begun: true, .. }
        )
    }

    /// True when the call started, must not run again, and has no result: whether it had its effect is unknown.
    pub(crate) fn may_have_had_its_effect(&self) -> bool {
        matches!(
            self.state,
            CallState::Started { repeatable: false } | CallState::Abandoned { lost: true, .. }
        )
    }
}
