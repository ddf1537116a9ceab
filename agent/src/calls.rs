//! The calls of a reply and how far each is.

use posse_protocol::{CallId, ToolCall, ToolResult};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

/// Calls that are looked through one by one; more are looked up.
const FEW: usize = 16;

/// The calls of one reply, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    list: Vec<Call>,
    /// Where each is, if there are many and no two have the same id.
    places: Option<HashMap<CallId, usize>>,
}

impl Calls {
    pub(crate) fn of<'a>(calls: impl Iterator<Item = &'a ToolCall>) -> Self {
        let call = |call: &ToolCall| Call { call: call.clone(), state: CallState::Asked };
        let list: Vec<Call> = calls.map(call).collect();
        let places = (list.len() > FEW).then(|| {
            let ids = list.iter().map(|call| call.call.id.clone());
            ids.zip(0..).collect::<HashMap<CallId, usize>>()
        });
        let places = places.filter(|places| places.len() == list.len());
        Calls { list, places }
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
    Answered(ToolResult),
}

impl Call {
    /// It can start, and never has.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self.state, CallState::Asked | CallState::Approved { .. })
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, CallState::Answered(_))
    }

    /// It had begun, it may not run again, and no result came: what became of it is not known.
    pub(crate) fn may_have_had_its_effect(&self) -> bool {
        matches!(
            self.state,
            CallState::Started { repeatable: false } | CallState::Abandoned { begun: true }
        )
    }
}
