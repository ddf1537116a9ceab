//! The calls of a reply and how far each is.

use posse_protocol::{CallId, Message, Part, Role, RunId, ToolCall, ToolResult};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Calls that are looked through one by one; more are looked up.
const FEW: usize = 16;

/// The calls of one reply, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    list: Vec<Call>,
    /// Where each is, if there are many and no two have the same id.
    places: Option<HashMap<CallId, usize>>,
    /// How many are answered.
    answered: usize,
    /// What the model is told of them, once all are.
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

    /// Answers the first open call that `result` is of. Returns whether there is one.
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

    /// The results in the order of the calls, once all are there.
    pub(crate) fn results(&self) -> Option<&Arc<Message>> {
        self.results.as_ref()
    }

    /// The results and whose each is: the run's that worked for the call, if one did.
    pub(crate) fn results_of(&self) -> impl Iterator<Item = (&Part, Option<RunId>)> {
        let parts = self.results.iter().flat_map(|message| &message.parts);
        parts.zip(self.list.iter().map(|call| call.child))
    }

    /// Puts `results` in the place of the results.
    pub(crate) fn replace_results(&mut self, results: Vec<Part>) {
        self.results = Some(Arc::new(Message::new(Role::User, results)));
    }

    /// The place of the first call `id` that `wanted` accepts.
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

/// A tool call and how far it is.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) call: ToolCall,
    pub(crate) state: CallState,
    /// The run whose end is its result.
    pub(crate) child: Option<RunId>,
    /// Its result, until that of the last call is there.
    result: Option<ToolResult>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallState {
    /// Not started.
    Asked,
    /// A person is to decide about it.
    Questioned {
        /// What the answer must be bound to.
        digest: String,
    },
    /// A person let it run; it has not started.
    Approved {
        /// Who.
        by: String,
    },
    /// A person refused it; the model has not been told.
    Denied {
        /// Who.
        by: String,
        /// Why, for the agent to read.
        reason: String,
    },
    /// Started, and its result not recorded.
    Started { repeatable: bool },
    /// Someone else will append the result.
    Pending,
    /// The turn that asked for it was stopped.
    Abandoned {
        /// It had begun, and may have had its effect.
        begun: bool,
    },
    /// Answered.
    Answered,
}

impl Call {
    /// It can start, and never has.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self.state, CallState::Asked | CallState::Approved { .. })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state != CallState::Answered
    }

    /// It had begun, it may not run again, and no result came: what became of it is not known.
    pub(crate) fn may_have_had_its_effect(&self) -> bool {
        matches!(
            self.state,
            CallState::Started { repeatable: false } | CallState::Abandoned { begun: true }
        )
    }
}
